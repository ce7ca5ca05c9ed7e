CREATE VIEW sluice.pg.pg_authid AS
	SELECT CAST(10 AS BIGINT) AS oid, sluice.pg.session_name() AS rolname, coalesce(sluice.pg.session_settings()['is_superuser'] = 'on', false) AS rolsuper, true AS rolinherit, false AS rolcreaterole,
		false AS rolcreatedb, true AS rolcanlogin, false AS rolreplication, false AS rolbypassrls, -1 AS rolconnlimit, CAST(NULL AS VARCHAR) AS rolpassword, CAST(NULL AS TIMESTAMPTZ) AS rolvaliduntil;
