CREATE VIEW sluice.pg.pg_class AS
	SELECT c.oid, c.relname, n.oid AS relnamespace, CAST(0 AS BIGINT) AS reltype, CAST(0 AS BIGINT) AS reloftype, CAST(10 AS BIGINT) AS relowner,
		CAST(CASE WHEN c.relkind = 'r' THEN 2 ELSE 0 END AS BIGINT) AS relam, CAST(0 AS BIGINT) AS relfilenode, CAST(0 AS BIGINT) AS reltablespace,
		0 AS relpages, CAST(-1 AS FLOAT) AS reltuples, 0 AS relallvisible, CAST(0 AS BIGINT) AS reltoastrelid, false AS relhasindex, false AS relisshared,
		CASE WHEN c.nspname = 'pg_temp_1' THEN 't' ELSE 'p' END AS relpersistence, c.relkind, CAST(c.relnatts AS SMALLINT) AS relnatts, CAST(0 AS SMALLINT) AS relchecks,
		c.relkind = 'v' AS relhasrules, false AS relhastriggers, false AS relhassubclass, false AS relrowsecurity, false AS relforcerowsecurity, true AS relispopulated,
		CASE WHEN c.relkind = 'r' AND c.nspname NOT IN ('pg_catalog', 'information_schema') THEN 'd' ELSE 'n' END AS relreplident, false AS relispartition, CAST(0 AS BIGINT) AS relrewrite,
		CAST(0 AS BIGINT) AS relfrozenxid, CAST(0 AS BIGINT) AS relminmxid, CAST(NULL AS VARCHAR[]) AS relacl, CAST(NULL AS VARCHAR[]) AS reloptions, CAST(NULL AS VARCHAR) AS relpartbound
	FROM (SELECT oid, nspname, relname, relkind, relnatts FROM sluice.pg.system_relation UNION ALL SELECT oid, nspname, relname, relkind, relnatts FROM sluice.pg.lake_relation) c
	JOIN sluice.pg.schema_name n ON n.nspname = c.nspname;
