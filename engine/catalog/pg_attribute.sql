CREATE VIEW sluice.pg.pg_attribute AS
	SELECT a.attrelid, a.attname, a.atttypid, -1 AS attstattarget, CAST(a.attlen AS SMALLINT) AS attlen, CAST(a.attnum AS SMALLINT) AS attnum, CAST(a.attndims AS INTEGER) AS attndims, -1 AS attcacheoff,
		CAST(a.atttypmod AS INTEGER) AS atttypmod, a.attbyval, a.attalign, a.attstorage, '' AS attcompression, a.attnotnull, a.atthasdef, false AS atthasmissing, '' AS attidentity, '' AS attgenerated,
		false AS attisdropped, true AS attislocal, 0 AS attinhcount, a.attcollation, CAST(NULL AS VARCHAR[]) AS attacl, CAST(NULL AS VARCHAR[]) AS attoptions, CAST(NULL AS VARCHAR[]) AS attfdwoptions,
		CAST(NULL AS VARCHAR) AS attmissingval
	FROM (SELECT attrelid, attname, atttypid, attlen, attnum, attndims, atttypmod, attbyval, attalign, attstorage, attnotnull, false AS atthasdef, attcollation FROM sluice.pg.system_column
		UNION ALL
		SELECT c.attrelid, c.attname, c.atttypid, t.typlen, c.attnum, c.attndims, c.atttypmod, t.typbyval, t.typalign, t.typstorage, c.attnotnull, c.adbin IS NOT NULL, t.typcollation
		FROM sluice.pg.lake_column c LEFT JOIN sluice.pg.system_type t ON t.oid = c.atttypid) a;
