CREATE VIEW sluice.pg.pg_tablespace AS
	SELECT CAST(oid AS BIGINT) AS oid, spcname, CAST(10 AS BIGINT) AS spcowner, CAST(NULL AS VARCHAR[]) AS spcacl, CAST(NULL AS VARCHAR[]) AS spcoptions FROM (VALUES (1663, 'pg_default'), (1664, 'pg_global')) v(oid, spcname);
