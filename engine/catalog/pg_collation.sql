CREATE VIEW sluice.pg.pg_collation AS
	SELECT CAST(oid AS BIGINT) AS oid, collname, CAST(11 AS BIGINT) AS collnamespace, CAST(10 AS BIGINT) AS collowner, collprovider, true AS collisdeterministic, collencoding, collcollate, collcollate AS collctype,
		CAST(NULL AS VARCHAR) AS colliculocale, CAST(NULL AS VARCHAR) AS collversion
	FROM (VALUES (100, 'default', 'd', -1, NULL), (950, 'C', 'c', -1, 'C'), (951, 'POSIX', 'c', -1, 'POSIX')) v(oid, collname, collprovider, collencoding, collcollate);
