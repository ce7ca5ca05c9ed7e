CREATE VIEW sluice.pg.pg_language AS
	SELECT CAST(14 AS BIGINT) AS oid, 'sql' AS lanname, CAST(10 AS BIGINT) AS lanowner, false AS lanispl, true AS lanpltrusted, CAST(0 AS BIGINT) AS lanplcallfoid, CAST(0 AS BIGINT) AS laninline,
		CAST(0 AS BIGINT) AS lanvalidator, CAST(NULL AS VARCHAR[]) AS lanacl;
