-- Deletes chunk rows of files that were queued longer than p_grace ago, about p_max_rows of them at most, and returns
-- how many. One call at a time does so in a database; the others return 0. A file leaves the queue when its rows are
-- gone: rows are deleted in ascending order and are dense, so a range of numbers as long as what is left of the budget
-- either ends the file or uses the budget up. In the latter case the file stays queued, even if that was its last row.
CREATE OR REPLACE FUNCTION pgvfs.reap(p_grace interval DEFAULT '10 minutes', p_max_rows int DEFAULT 65536)
RETURNS int LANGUAGE plpgsql AS $body$
DECLARE
	victim int8;
	lowest int8;
	deleted int8;
	total int8 := 0;
BEGIN
	IF NOT pg_try_advisory_xact_lock(hashtext('pgvfs.reap')::int8) THEN
		RETURN 0;
	END IF;
	FOR victim IN
		SELECT q.file_id FROM pgvfs.garbage AS q
		WHERE q.queued_at < now() - p_grace
		ORDER BY q.queued_at, q.file_id
	LOOP
		SELECT min(c.no) INTO lowest FROM pgvfs.chunks AS c WHERE c.file_id = victim;
		IF lowest IS NOT NULL THEN
			DELETE FROM pgvfs.chunks AS c WHERE c.file_id = victim AND c.no < lowest + p_max_rows - total;
			GET DIAGNOSTICS deleted = ROW_COUNT;
			total := total + deleted;
			EXIT WHEN total >= p_max_rows;
		END IF;
		DELETE FROM pgvfs.garbage AS q WHERE q.file_id = victim;
	END LOOP;
	RETURN total;
END
$body$;

COMMENT ON FUNCTION pgvfs.reap(interval, int) IS 'pgvfs functions 3';
