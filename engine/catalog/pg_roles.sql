-- The session's own user; others are nobody's business, and no object has an owner of its own.
CREATE VIEW sluice.pg.pg_roles AS
	SELECT sluice.pg.session_name() AS rolname, coalesce(sluice.pg.session_settings()['is_superuser'] = 'on', false) AS rolsuper, true AS rolinherit, false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin,
		false AS rolreplication, -1 AS rolconnlimit, '********' AS rolpassword, CAST(NULL AS TIMESTAMPTZ) AS rolvaliduntil, false AS rolbypassrls, CAST(NULL AS VARCHAR[]) AS rolconfig, CAST(10 AS BIGINT) AS oid;
