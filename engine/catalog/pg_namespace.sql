CREATE VIEW sluice.pg.pg_namespace AS
	SELECT oid, nspname, CAST(10 AS BIGINT) AS nspowner, CAST(NULL AS VARCHAR[]) AS nspacl FROM sluice.pg.schema_name;
