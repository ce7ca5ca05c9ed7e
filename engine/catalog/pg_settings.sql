-- The session's settings as the engine tells them, and a few that clients ask for and nothing here depends on.
CREATE VIEW sluice.pg.pg_settings AS
	SELECT s.name, s.setting, CAST(NULL AS VARCHAR) AS unit, 'Sluice' AS category, '' AS short_desc, CAST(NULL AS VARCHAR) AS extra_desc, s.context, s.vartype, 'default' AS source,
		CAST(NULL AS VARCHAR) AS min_val, CAST(NULL AS VARCHAR) AS max_val, CAST(NULL AS VARCHAR[]) AS enumvals, s.setting AS boot_val, s.setting AS reset_val, CAST(NULL AS VARCHAR) AS sourcefile,
		CAST(NULL AS INTEGER) AS sourceline, false AS pending_restart
	FROM (SELECT e.key AS name, e.value AS setting, 'user' AS context, 'string' AS vartype FROM (SELECT unnest(map_entries(sluice.pg.session_settings())) AS e)
		UNION ALL FROM (VALUES ('max_index_keys', '32', 'internal', 'integer'), ('block_size', '8192', 'internal', 'integer'), ('max_identifier_length', '63', 'internal', 'integer')) v(name, setting, context, vartype)) s;
