CREATE VIEW sluice.info.schemata AS
	SELECT {lake} AS catalog_name, nspname AS schema_name, sluice.pg.session_name() AS schema_owner, CAST(NULL AS VARCHAR) AS default_character_set_catalog, CAST(NULL AS VARCHAR) AS default_character_set_schema,
		CAST(NULL AS VARCHAR) AS default_character_set_name, CAST(NULL AS VARCHAR) AS sql_path
	FROM sluice.pg.pg_namespace;
