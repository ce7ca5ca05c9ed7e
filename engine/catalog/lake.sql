-- What the other files build on: the lake's objects under PostgreSQL's names. DuckDB's own functions tell them, since a
-- session may not read DuckLake's catalog. duckdb_columns() costs 5 µs a column; duckdb_tables() 1 ms a table, since it
-- counts rows, so it is used for comments only.

-- DuckLake's ids, which DuckDB does not tell. Filled by package engine with the statements of Refresh; while an object is
-- missing here its id is made from its name.
CREATE TABLE sluice.pg.lake_object (nspname VARCHAR, relname VARCHAR, id BIGINT);

CREATE VIEW sluice.pg.schema_name AS
	SELECT CAST(oid AS BIGINT) AS oid, nspname FROM (VALUES (11, 'pg_catalog'), (99, 'pg_toast'), (13207, 'information_schema'), (2200, 'public'), (15000, 'pg_temp_1')) v(oid, nspname)
	UNION ALL
	SELECT coalesce(o.id + 16384, sluice.pg.named_oid(s.schema_name, '')), s.schema_name
	FROM duckdb_schemas() s LEFT JOIN sluice.pg.lake_object o ON o.nspname = s.schema_name AND o.relname = ''
	WHERE s.database_name = {lake} AND s.schema_name NOT IN ('main', 'pg_catalog', 'information_schema');

-- DuckDB's types, without size and brackets, and the types that pgcodec sends for them.
CREATE TABLE sluice.pg.duck_type (name VARCHAR, oid BIGINT);
INSERT INTO sluice.pg.duck_type VALUES ('BOOLEAN', 16), ('TINYINT', 21), ('SMALLINT', 21), ('INTEGER', 23), ('BIGINT', 20), ('UTINYINT', 21),
	('USMALLINT', 23), ('UINTEGER', 20), ('UBIGINT', 1700), ('HUGEINT', 1700), ('UHUGEINT', 1700), ('BIGNUM', 1700), ('DECIMAL', 1700), ('FLOAT', 700), ('DOUBLE', 701),
	('VARCHAR', 25), ('BLOB', 17), ('BIT', 1562), ('DATE', 1082), ('TIME', 1083), ('TIME_NS', 1083), ('TIME WITH TIME ZONE', 1266), ('TIMESTAMP', 1114),
	('TIMESTAMP_S', 1114), ('TIMESTAMP_MS', 1114), ('TIMESTAMP_NS', 1114), ('TIMESTAMP WITH TIME ZONE', 1184), ('INTERVAL', 1186), ('UUID', 2950),
	('JSON', 114), ('STRUCT', 114), ('MAP', 114), ('UNION', 114), ('ENUM', 25), ('GEOMETRY', 25), ('VARIANT', 25), ('"NULL"', 25);

CREATE VIEW sluice.pg.lake_column AS
	SELECT CASE WHEN c.database_name = 'temp' THEN sluice.pg.named_oid('pg_temp_1', c.table_name) ELSE coalesce(o.id + 16384, sluice.pg.named_oid(c.schema_name, c.table_name)) END AS attrelid,
		c.nspname, c.table_name AS relname, c.column_name AS attname, CAST(c.column_index AS SMALLINT) AS attnum, c.data_type, NOT c.is_nullable AS attnotnull,
		CASE WHEN c.column_default <> 'NULL' THEN CASE WHEN t.typcategory = 'N' AND NOT c.isarray THEN trim(c.column_default, '''') ELSE c.column_default END END AS adbin, c.comment,
		CASE WHEN c.isarray AND d.oid <> 114 THEN t.typarray ELSE t.oid END AS atttypid,
		CASE WHEN c.isarray AND d.oid <> 114 THEN 1 ELSE 0 END AS attndims,
		CASE WHEN d.name = 'DECIMAL' THEN CAST(regexp_extract(c.data_type, '\((\d+),', 1) AS INTEGER) * 65536 + CAST(regexp_extract(c.data_type, ',(\d+)\)', 1) AS INTEGER) + 4 ELSE -1 END AS atttypmod
	FROM (SELECT *, data_type LIKE '%]' AS isarray, split_part(regexp_replace(data_type, '(\[\d*\])+$', ''), '(', 1) AS basetype,
			CASE WHEN database_name = 'temp' THEN 'pg_temp_1' WHEN schema_name = 'main' THEN 'public' ELSE schema_name END AS nspname
		FROM duckdb_columns() WHERE database_name IN ({lake}, 'temp') AND NOT internal) c
	LEFT JOIN sluice.pg.lake_object o ON o.nspname = c.schema_name AND o.relname = c.table_name AND c.database_name = {lake}
	LEFT JOIN sluice.pg.duck_type d ON d.name = c.basetype
	LEFT JOIN sluice.pg.system_type t ON t.oid = coalesce(d.oid, 25);

CREATE VIEW sluice.pg.lake_relation AS
	SELECT coalesce(c.attrelid, v.oid) AS oid, coalesce(c.nspname, v.nspname) AS nspname, coalesce(c.relname, v.relname) AS relname,
		CASE WHEN v.relname IS NULL THEN 'r' ELSE 'v' END AS relkind, coalesce(c.natts, 0) AS relnatts, v.definition, v.comment
	FROM (SELECT attrelid, nspname, relname, count(*) AS natts FROM sluice.pg.lake_column GROUP BY ALL) c
	FULL JOIN (SELECT CASE WHEN w.database_name = 'temp' THEN sluice.pg.named_oid('pg_temp_1', w.view_name) ELSE coalesce(o.id + 16384, sluice.pg.named_oid(w.schema_name, w.view_name)) END AS oid,
			CASE WHEN w.database_name = 'temp' THEN 'pg_temp_1' WHEN w.schema_name = 'main' THEN 'public' ELSE w.schema_name END AS nspname, w.view_name AS relname,
			' ' || regexp_replace(w.sql, '^CREATE (TEMP |TEMPORARY )?VIEW .*? AS ', '', 's') AS definition, w.comment
		FROM duckdb_views() w LEFT JOIN sluice.pg.lake_object o ON o.nspname = w.schema_name AND o.relname = w.view_name AND w.database_name = {lake}
		WHERE w.database_name IN ({lake}, 'temp') AND NOT w.internal) v
	ON v.nspname = c.nspname AND v.relname = c.relname;

-- Every relation, with its place in the search path: NULL where its name alone does not find it.
CREATE VIEW sluice.pg.relation AS
	SELECT oid, nspname, relname, CASE WHEN nspname = 'pg_catalog' THEN 0 WHEN nspname = 'pg_temp_1' THEN -1 ELSE list_position(sluice.pg.session_path(), nspname) END AS place
	FROM (SELECT oid, nspname, relname FROM sluice.pg.system_relation UNION ALL SELECT oid, nspname, relname FROM sluice.pg.lake_relation);

CREATE VIEW sluice.pg.type_name AS
	SELECT oid, typname AS name FROM sluice.pg.system_type UNION ALL SELECT oid, formatted FROM sluice.pg.system_type
	UNION ALL FROM (VALUES (23, 'int'), (1700, 'decimal'), (701, 'float'), (16, 'boolean'), (1114, 'timestamp'), (1083, 'time'), (1042, 'char'), (20, 'serial8'), (23, 'serial'), (20, 'bigserial')) v(oid, name);
