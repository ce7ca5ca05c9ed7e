CREATE VIEW sluice.pg.pg_views AS
	SELECT nspname AS schemaname, relname AS viewname, sluice.pg.session_name() AS viewowner, definition
	FROM (SELECT nspname, relname, relkind, CAST(NULL AS VARCHAR) AS definition FROM sluice.pg.system_relation UNION ALL SELECT nspname, relname, relkind, definition FROM sluice.pg.lake_relation) WHERE relkind = 'v';
