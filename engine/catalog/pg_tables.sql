CREATE VIEW sluice.pg.pg_tables AS
	SELECT nspname AS schemaname, relname AS tablename, sluice.pg.session_name() AS tableowner, CAST(NULL AS VARCHAR) AS tablespace, false AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity
	FROM (SELECT nspname, relname, relkind FROM sluice.pg.system_relation UNION ALL SELECT nspname, relname, relkind FROM sluice.pg.lake_relation) WHERE relkind = 'r';
