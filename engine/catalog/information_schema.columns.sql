CREATE VIEW sluice.info."columns" AS
	SELECT {lake} AS table_catalog, r.nspname AS table_schema, r.relname AS table_name, a.attname AS column_name, CAST(a.attnum AS INTEGER) AS ordinal_position, d.adbin AS column_default,
		CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable, CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' ELSE t.formatted END AS data_type,
		CAST(NULL AS INTEGER) AS character_maximum_length, CASE WHEN a.atttypid IN (25, 1043, 1042) THEN 1073741824 END AS character_octet_length,
		CASE a.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 WHEN 1700 THEN CASE WHEN a.atttypmod >= 4 THEN (a.atttypmod - 4) >> 16 END END AS numeric_precision,
		CASE WHEN a.atttypid IN (21, 23, 20, 700, 701) THEN 2 WHEN a.atttypid = 1700 THEN 10 END AS numeric_precision_radix,
		CASE WHEN a.atttypid IN (21, 23, 20) THEN 0 WHEN a.atttypid = 1700 AND a.atttypmod >= 4 THEN (a.atttypmod - 4) & 65535 END AS numeric_scale,
		CASE WHEN a.atttypid = 1082 THEN 0 WHEN a.atttypid IN (1083, 1114, 1184, 1186, 1266) THEN 6 END AS datetime_precision,
		CAST(NULL AS VARCHAR) AS interval_type, CAST(NULL AS INTEGER) AS interval_precision, CAST(NULL AS VARCHAR) AS character_set_catalog, CAST(NULL AS VARCHAR) AS character_set_schema,
		CAST(NULL AS VARCHAR) AS character_set_name, CAST(NULL AS VARCHAR) AS collation_catalog, CAST(NULL AS VARCHAR) AS collation_schema, CAST(NULL AS VARCHAR) AS collation_name,
		CAST(NULL AS VARCHAR) AS domain_catalog, CAST(NULL AS VARCHAR) AS domain_schema, CAST(NULL AS VARCHAR) AS domain_name, {lake} AS udt_catalog, 'pg_catalog' AS udt_schema, t.typname AS udt_name,
		CAST(NULL AS VARCHAR) AS scope_catalog, CAST(NULL AS VARCHAR) AS scope_schema, CAST(NULL AS VARCHAR) AS scope_name, CAST(NULL AS INTEGER) AS maximum_cardinality, CAST(a.attnum AS VARCHAR) AS dtd_identifier,
		'NO' AS is_self_referencing, 'NO' AS is_identity, CAST(NULL AS VARCHAR) AS identity_generation, CAST(NULL AS VARCHAR) AS identity_start, CAST(NULL AS VARCHAR) AS identity_increment,
		CAST(NULL AS VARCHAR) AS identity_maximum, CAST(NULL AS VARCHAR) AS identity_minimum, 'NO' AS identity_cycle, 'NEVER' AS is_generated, CAST(NULL AS VARCHAR) AS generation_expression,
		CASE WHEN r.relkind = 'v' THEN 'NO' ELSE 'YES' END AS is_updatable
	FROM (SELECT oid, nspname, relname, relkind FROM sluice.pg.system_relation UNION ALL SELECT oid, nspname, relname, relkind FROM sluice.pg.lake_relation) r
	JOIN sluice.pg.pg_attribute a ON a.attrelid = r.oid
	JOIN sluice.pg.system_type t ON t.oid = a.atttypid
	LEFT JOIN sluice.pg.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum;
