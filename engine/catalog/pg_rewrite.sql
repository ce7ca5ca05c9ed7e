CREATE VIEW sluice.pg.pg_rewrite AS
	SELECT sluice.pg.named_oid('rule', CAST(oid AS VARCHAR)) AS oid, '_RETURN' AS rulename, oid AS ev_class, '1' AS ev_type, 'O' AS ev_enabled, true AS is_instead, '<>' AS ev_qual, '' AS ev_action
	FROM sluice.pg.lake_relation WHERE relkind = 'v';
