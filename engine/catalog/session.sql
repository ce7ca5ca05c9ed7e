-- Operators and functions that know the session or nothing at all, as macros. They come first in the search path after the lake, so they answer before DuckDB's own.
-- What a session is told by the engine comes from variables of its connection, all of the prefix sluice_.

-- Regular expressions: PostgreSQL's operators search; a dot matches a new line too. package translate writes ~ as @~.
CREATE MACRO sluice.pg."@~"(a, b) AS system.main.regexp_matches(a, b, 's');
CREATE MACRO sluice.pg."!@~"(a, b) AS NOT system.main.regexp_matches(a, b, 's');
CREATE MACRO sluice.pg."~*"(a, b) AS system.main.regexp_matches(a, b, 'is');
CREATE MACRO sluice.pg."!~*"(a, b) AS NOT system.main.regexp_matches(a, b, 'is');

-- Session.
CREATE MACRO sluice.pg.session_path() AS coalesce(CAST(getvariable('sluice_search_path') AS VARCHAR[]), ['public']);
CREATE MACRO sluice.pg.session_name() AS coalesce(CAST(getvariable('sluice_user') AS VARCHAR), 'sluice');
CREATE MACRO sluice.pg."version"() AS {version};
CREATE MACRO sluice.pg.current_database() AS {lake};
CREATE MACRO sluice.pg."current_catalog"() AS {lake};
CREATE MACRO sluice.pg."current_user"() AS sluice.pg.session_name();
CREATE MACRO sluice.pg."session_user"() AS sluice.pg.session_name();
CREATE MACRO sluice.pg."current_role"() AS sluice.pg.session_name();
CREATE MACRO sluice.pg."user"() AS sluice.pg.session_name();
CREATE MACRO sluice.pg."current_schema"() AS sluice.pg.session_path()[1];
CREATE MACRO sluice.pg.current_schemas(implicit) AS CASE WHEN implicit THEN list_concat(['pg_catalog'], sluice.pg.session_path()) ELSE sluice.pg.session_path() END;
CREATE MACRO sluice.pg.pg_backend_pid() AS coalesce(CAST(getvariable('sluice_pid') AS INTEGER), 0);
CREATE MACRO sluice.pg.pg_is_in_recovery() AS coalesce(CAST(getvariable('sluice_read_only') AS BOOLEAN), false);
CREATE MACRO sluice.pg.session_settings() AS coalesce(CAST(getvariable('sluice_settings') AS MAP(VARCHAR, VARCHAR)), MAP {'server_version': {server_version}}::MAP(VARCHAR, VARCHAR));
CREATE MACRO sluice.pg.current_setting(a) AS coalesce(sluice.pg.session_settings()[lower(a)], error('unrecognized configuration parameter "' || a || '"')),
	(a, missing_ok) AS CASE WHEN missing_ok THEN sluice.pg.session_settings()[lower(a)] ELSE coalesce(sluice.pg.session_settings()[lower(a)], error('unrecognized configuration parameter "' || a || '"')) END;
-- A macro cannot change anything; package engine would have to run it as SET.
CREATE MACRO sluice.pg.set_config(a, b, c) AS error('set_config is not supported: use SET ' || a);
CREATE MACRO sluice.pg.pg_postmaster_start_time() AS {started}::TIMESTAMPTZ;
CREATE MACRO sluice.pg.pg_conf_load_time() AS {started}::TIMESTAMPTZ;
CREATE MACRO sluice.pg.inet_server_addr() AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.inet_server_port() AS CAST(NULL AS INTEGER);
CREATE MACRO sluice.pg.inet_client_addr() AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.inet_client_port() AS CAST(NULL AS INTEGER);
-- The same within a transaction and greater in a later one. DuckDB's own is an internal error in a DuckLake transaction.
CREATE MACRO sluice.pg.txid_current() AS epoch_us(transaction_timestamp());
CREATE MACRO sluice.pg.pg_current_xact_id() AS epoch_us(transaction_timestamp());
CREATE MACRO sluice.pg.getdatabaseencoding() AS 'UTF8';
CREATE MACRO sluice.pg.pg_client_encoding() AS 'UTF8';
CREATE MACRO sluice.pg.pg_encoding_to_char(a) AS CASE a WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' WHEN 8 THEN 'LATIN1' ELSE '' END;
CREATE MACRO sluice.pg.pg_char_to_encoding(a) AS CASE replace(upper(a), '-', '') WHEN 'UTF8' THEN 6 WHEN 'SQL_ASCII' THEN 0 WHEN 'LATIN1' THEN 8 ELSE -1 END;
CREATE MACRO sluice.pg.pg_my_temp_schema() AS CAST(15000 AS BIGINT);
CREATE MACRO sluice.pg.pg_is_other_temp_schema(a) AS false;

-- The id of an object of the lake that has none of DuckLake's yet: the same in every process, from its names alone.
CREATE MACRO sluice.pg.named_oid(a, b) AS CAST(md5_number_lower(a || '/' || b) % 1073741824 + 1073741824 AS BIGINT);

-- Division by zero is an error for every type of number; DuckDB gives NULL or infinity. Operators are looked up by name like
-- functions, so these are found first. The check costs 1.3 ns a row (10 M rows of integers: 43 ms with it, 30 ms without).
-- What the lake keeps (views) has the operator in its text, and DuckDB's own meaning in other DuckDBs.
CREATE MACRO sluice.pg."/"(a, b) AS system.main."/"(a, CASE WHEN b = 0 THEN error('division by zero') ELSE b END);
-- The engine runs with integer_division, which makes / of any two types the operator //; intervals have only /.
CREATE MACRO sluice.pg."//"(a, b) AS system.main."//"(a, CASE WHEN b = 0 THEN error('division by zero') ELSE b END),
	(a INTERVAL, b DOUBLE) AS system.main."/"(a, CASE WHEN b = 0 THEN error('division by zero') ELSE b END);
CREATE MACRO sluice.pg."%"(a, b) AS system.main."%"(a, CASE WHEN b = 0 THEN error('division by zero') ELSE b END);
CREATE MACRO sluice.pg.mod(a, b) AS system.main."%"(a, CASE WHEN b = 0 THEN error('division by zero') ELSE b END);

CREATE MACRO sluice.pg.octet_length(a VARCHAR) AS CAST(strlen(a) AS INTEGER), (a BLOB) AS CAST(system.main.octet_length(a) AS INTEGER), (a BIT) AS CAST(system.main.octet_length(a) AS INTEGER);
