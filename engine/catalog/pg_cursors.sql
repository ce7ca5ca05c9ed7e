-- The session's cursors and named portals, as the engine tells them before a statement that names this view.
CREATE VIEW sluice.pg.pg_cursors AS
	SELECT c.name, c.statement, c.is_holdable, c.is_binary, c.is_scrollable, CAST(make_timestamptz(c.made) AS TIMESTAMPTZ) AS creation_time
	FROM (SELECT unnest(CAST(getvariable('sluice_cursors') AS STRUCT(name VARCHAR, statement VARCHAR, is_holdable BOOLEAN, is_binary BOOLEAN, is_scrollable BOOLEAN, made BIGINT)[])) AS c);
