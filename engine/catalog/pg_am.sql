CREATE VIEW sluice.pg.pg_am AS
	SELECT CAST(oid AS BIGINT) AS oid, amname, amhandler, amtype FROM (VALUES (2, 'heap', 'heap_tableam_handler', 't'), (403, 'btree', 'bthandler', 'i'), (405, 'hash', 'hashhandler', 'i')) v(oid, amname, amhandler, amtype);
