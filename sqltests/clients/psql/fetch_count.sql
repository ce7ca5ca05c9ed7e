-- Rows fetched two at a time: psql declares a cursor and fetches from it.
\set VERBOSITY sqlstate
CREATE TABLE psql_fetch(id int);
INSERT INTO psql_fetch VALUES (1), (2), (3), (4), (5);
\set FETCH_COUNT 2
SELECT id FROM psql_fetch ORDER BY id;
BEGIN;
SELECT id FROM psql_fetch WHERE id > 1 ORDER BY id;
COMMIT;
SELECT id FROM psql_fetch WHERE false;
\unset FETCH_COUNT
DROP TABLE psql_fetch;
