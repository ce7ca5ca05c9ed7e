CREATE VIEW sluice.info."tables" AS
	SELECT {lake} AS table_catalog, nspname AS table_schema, relname AS table_name, CASE WHEN relkind = 'v' THEN 'VIEW' WHEN nspname = 'pg_temp_1' THEN 'LOCAL TEMPORARY' ELSE 'BASE TABLE' END AS table_type,
		CAST(NULL AS VARCHAR) AS self_referencing_column_name, CAST(NULL AS VARCHAR) AS reference_generation, CAST(NULL AS VARCHAR) AS user_defined_type_catalog, CAST(NULL AS VARCHAR) AS user_defined_type_schema,
		CAST(NULL AS VARCHAR) AS user_defined_type_name, CASE WHEN relkind = 'v' THEN 'NO' ELSE 'YES' END AS is_insertable_into, 'NO' AS is_typed, CAST(NULL AS VARCHAR) AS commit_action
	FROM (SELECT nspname, relname, relkind FROM sluice.pg.system_relation UNION ALL SELECT nspname, relname, relkind FROM sluice.pg.lake_relation);
