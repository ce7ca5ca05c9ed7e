-- One lake, one database.
CREATE VIEW sluice.pg.pg_database AS
	SELECT CAST(16384 AS BIGINT) AS oid, {lake} AS datname, CAST(10 AS BIGINT) AS datdba, 6 AS encoding, 'c' AS datlocprovider, false AS datistemplate, true AS datallowconn, -1 AS datconnlimit,
		CAST(0 AS BIGINT) AS datfrozenxid, CAST(1 AS BIGINT) AS datminmxid, CAST(1663 AS BIGINT) AS dattablespace, 'C.UTF-8' AS datcollate, 'C.UTF-8' AS datctype, CAST(NULL AS VARCHAR) AS daticulocale,
		CAST(NULL AS VARCHAR) AS datcollversion, CAST(NULL AS VARCHAR[]) AS datacl;
