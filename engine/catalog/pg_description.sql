-- COMMENT ON tables, views and columns of the lake.
CREATE VIEW sluice.pg.pg_description AS
	SELECT r.oid AS objoid, CAST(1259 AS BIGINT) AS classoid, 0 AS objsubid, coalesce(r.comment, t.comment) AS description
	FROM sluice.pg.lake_relation r LEFT JOIN duckdb_tables() t ON t.database_name = {lake} AND t.table_name = r.relname AND CASE WHEN t.schema_name = 'main' THEN 'public' ELSE t.schema_name END = r.nspname
	WHERE coalesce(r.comment, t.comment) IS NOT NULL
	UNION ALL
	SELECT attrelid, CAST(1259 AS BIGINT), CAST(attnum AS INTEGER), comment FROM sluice.pg.lake_column WHERE comment IS NOT NULL
	UNION ALL
	SELECT CAST(11 AS BIGINT), CAST(2615 AS BIGINT), 0, 'system catalog schema';
