-- What a person types into psql in a first session. Run by TestClients_Psql as
--   psql -X -A -f session.sql
-- and compared with session.out, which PostgreSQL 15 wrote (TestClients_Psql with -addr and -rewrite), as is each .sql here.
\set VERBOSITY sqlstate
\pset footer on
CREATE TABLE psql_session(id int, name text, price numeric(10,2), day date, ts timestamp);
INSERT INTO psql_session VALUES (1, 'one', 1.50, '2025-01-01', '2025-01-01 10:00:00'), (2, NULL, NULL, NULL, NULL);
SELECT * FROM psql_session ORDER BY id;
\echo == the row count of a command tag
UPDATE psql_session SET name = 'two' WHERE id = 2;
DELETE FROM psql_session WHERE id = 99;
\echo == several statements in one message
SELECT 1 AS a\; SELECT 2 AS b;
\echo == expanded output, nulls shown
\pset null '(null)'
\x on
SELECT * FROM psql_session WHERE id = 2;
\x off
\echo == an error, its SQLSTATE, and the session goes on
SELECT * FROM psql_nosuch;
\echo :SQLSTATE :ERROR
SELECT 1/0;
SELECT 'x'::int;
SELEC 1;
SELECT 'still here' AS state;
\echo == a transaction
BEGIN;
INSERT INTO psql_session(id) VALUES (3);
ROLLBACK;
SELECT count(*) FROM psql_session;
BEGIN;
SELECT * FROM psql_nosuch;
SELECT 1;
COMMIT;
\echo == variables
SELECT max(id) AS top FROM psql_session \gset
\echo :top
SELECT :'top' || '!' AS quoted, :top + 1 AS plain;
\echo == copy in and out
\copy psql_session(id, name) FROM 'rows.csv' (FORMAT csv, HEADER)
\copy (SELECT id, name FROM psql_session WHERE id >= 10 ORDER BY id) TO STDOUT
COPY psql_session(id, name) FROM STDIN;
20	a\tb
21	\N
\.
SELECT id, name FROM psql_session WHERE id >= 20 ORDER BY id;
\copy psql_session(id, name) FROM 'bad.csv' (FORMAT csv)
SELECT count(*) FROM psql_session;
\echo == described, not run
SELECT 1 AS i, 'x'::text AS t, 1.5::numeric(10,2) AS n, now() AS ts \gdesc
\echo == prepared by SQL
PREPARE psql_p(int) AS SELECT name FROM psql_session WHERE id = $1;
EXECUTE psql_p(1);
EXECUTE psql_p(2);
DEALLOCATE psql_p;
\echo == who and where
SELECT current_database();
\encoding
SHOW server_encoding;
SET application_name = 'psql session';
SHOW application_name;
DROP TABLE psql_session;
