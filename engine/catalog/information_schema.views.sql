CREATE VIEW sluice.info."views" AS
	SELECT {lake} AS table_catalog, schemaname AS table_schema, viewname AS table_name, definition AS view_definition, 'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into,
		'NO' AS is_trigger_updatable, 'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into
	FROM sluice.pg.pg_views;
