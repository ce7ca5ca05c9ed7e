CREATE VIEW sluice.pg.pg_user AS
	SELECT sluice.pg.session_name() AS usename, CAST(10 AS BIGINT) AS usesysid, false AS usecreatedb, coalesce(sluice.pg.session_settings()['is_superuser'] = 'on', false) AS usesuper, false AS userepl,
		false AS usebypassrls, '********' AS passwd, CAST(NULL AS TIMESTAMPTZ) AS valuntil, CAST(NULL AS VARCHAR[]) AS useconfig;
