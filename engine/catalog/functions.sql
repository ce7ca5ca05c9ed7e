-- Functions that look things up in the catalogs, as macros. DuckDB binds a macro when it is made, so the files before this
-- one have what these refer to.

-- Names and object ids.
-- The parts of a possibly quoted, possibly qualified name.
CREATE MACRO sluice.pg.name_parts(a) AS list_transform(regexp_extract_all(trim(CAST(a AS VARCHAR)), '"(?:[^"]|"")*"|[^.]+'),
	lambda p: CASE WHEN starts_with(p, '"') THEN replace(p[2:-2], '""', '"') ELSE lower(trim(p)) END);
CREATE MACRO sluice.pg.quote_ident(a) AS CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_]*') AND NOT EXISTS (SELECT 1 FROM sluice.pg.keyword k WHERE k.word = a AND k.catcode <> 'U')
	THEN a ELSE '"' || replace(a, '"', '""') || '"' END;
CREATE MACRO sluice.pg.quote_literal(a) AS '''' || replace(CAST(a AS VARCHAR), '''', '''''') || '''';
CREATE MACRO sluice.pg.quote_nullable(a) AS coalesce('''' || replace(CAST(a AS VARCHAR), '''', '''''') || '''', 'NULL');
-- The first relation of this name: in its schema if one is said, else along the search path.
CREATE MACRO sluice.pg.relation_oid(a) AS (SELECT arg_min(r.oid, coalesce(r.place, 1000)) FROM sluice.pg.relation r
	WHERE r.relname = sluice.pg.name_parts(a)[-1] AND CASE WHEN len(sluice.pg.name_parts(a)) > 1 THEN r.nspname = sluice.pg.name_parts(a)[-2] ELSE r.place IS NOT NULL END);
CREATE MACRO sluice.pg.to_regclass(a) AS CASE WHEN regexp_full_match(CAST(a AS VARCHAR), '[0-9]+') THEN TRY_CAST(a AS BIGINT) ELSE sluice.pg.relation_oid(a) END;
CREATE MACRO sluice.pg.regclass_in(a) AS CASE WHEN a IS NULL THEN NULL ELSE coalesce(sluice.pg.to_regclass(a), error('relation "' || CAST(a AS VARCHAR) || '" does not exist')) END;
CREATE MACRO sluice.pg.regclass_out(a) AS coalesce((SELECT first(CASE WHEN r.place IS NOT NULL THEN '' ELSE sluice.pg.quote_ident(r.nspname) || '.' END || sluice.pg.quote_ident(r.relname))
	FROM sluice.pg.relation r WHERE r.oid = TRY_CAST(a AS BIGINT)), CASE WHEN CAST(a AS VARCHAR) = '0' THEN '-' ELSE CAST(a AS VARCHAR) END);
CREATE MACRO sluice.pg.to_regtype(a) AS CASE WHEN regexp_full_match(CAST(a AS VARCHAR), '[0-9]+') THEN TRY_CAST(a AS BIGINT) ELSE
	(SELECT min(t.oid) FROM sluice.pg.type_name t WHERE t.name = regexp_replace(lower(trim(CAST(a AS VARCHAR), ' "')), '^pg_catalog\.|\([0-9, ]*\)', '', 'g')) END;
CREATE MACRO sluice.pg.regtype_in(a) AS CASE WHEN a IS NULL THEN NULL ELSE coalesce(sluice.pg.to_regtype(a), error('type "' || CAST(a AS VARCHAR) || '" does not exist')) END;
CREATE MACRO sluice.pg.regtype_out(a) AS coalesce((SELECT first(t.formatted) FROM sluice.pg.system_type t WHERE t.oid = TRY_CAST(a AS BIGINT)), CASE WHEN CAST(a AS VARCHAR) = '0' THEN '-' ELSE CAST(a AS VARCHAR) END);
CREATE MACRO sluice.pg.to_regnamespace(a) AS CASE WHEN regexp_full_match(CAST(a AS VARCHAR), '[0-9]+') THEN TRY_CAST(a AS BIGINT) ELSE
	(SELECT min(n.oid) FROM sluice.pg.schema_name n WHERE n.nspname = sluice.pg.name_parts(a)[-1]) END;
CREATE MACRO sluice.pg.regnamespace_in(a) AS CASE WHEN a IS NULL THEN NULL ELSE coalesce(sluice.pg.to_regnamespace(a), error('schema "' || CAST(a AS VARCHAR) || '" does not exist')) END;
CREATE MACRO sluice.pg.regnamespace_out(a) AS coalesce((SELECT first(sluice.pg.quote_ident(n.nspname)) FROM sluice.pg.schema_name n WHERE n.oid = TRY_CAST(a AS BIGINT)), CAST(a AS VARCHAR));
CREATE MACRO sluice.pg.regrole_in(a) AS CASE WHEN sluice.pg.name_parts(a)[1] = sluice.pg.session_name() OR CAST(a AS VARCHAR) = '10' THEN CAST(10 AS BIGINT) ELSE error('role "' || CAST(a AS VARCHAR) || '" does not exist') END;
CREATE MACRO sluice.pg.regrole_out(a) AS CASE WHEN CAST(a AS VARCHAR) = '10' THEN sluice.pg.session_name() ELSE CAST(a AS VARCHAR) END;
-- Functions have no ids here: regproc is the name.
CREATE MACRO sluice.pg.regproc_in(a) AS regexp_replace(CAST(a AS VARCHAR), '^pg_catalog\.', '');
CREATE MACRO sluice.pg.regproc_oid(a) AS CAST(error('function "' || CAST(a AS VARCHAR) || '" does not exist') AS BIGINT);
CREATE MACRO sluice.pg.regproc_out(a) AS CAST(a AS VARCHAR);
CREATE MACRO sluice.pg.to_regproc(a) AS regexp_replace(CAST(a AS VARCHAR), '^pg_catalog\.', '');
-- What the catalogs say in words.
-- A map rather than a look-up by the row: a join would put the rows of psql's \gdesc in another order.
CREATE MACRO sluice.pg.format_type(a, b) AS CASE WHEN a IS NULL THEN NULL ELSE coalesce((SELECT map(list(t.oid), list(t.formatted)) FROM sluice.pg.system_type t)[CAST(a AS BIGINT)], '???') ||
	CASE WHEN a = 1700 AND b >= 4 THEN '(' || CAST((b - 4) >> 16 AS VARCHAR) || ',' || CAST((b - 4) & 65535 AS VARCHAR) || ')' WHEN a IN (1042, 1043) AND b >= 4 THEN '(' || CAST(b - 4 AS VARCHAR) || ')' ELSE '' END END;
CREATE MACRO sluice.pg.pg_get_expr(a, b) AS CAST(a AS VARCHAR), (a, b, c) AS CAST(a AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_userbyid(a) AS CASE WHEN a = 10 THEN sluice.pg.session_name() ELSE 'unknown (OID=' || CAST(a AS VARCHAR) || ')' END;
CREATE MACRO sluice.pg.pg_get_viewdef(a) AS (SELECT first(v.definition) FROM sluice.pg.lake_relation v WHERE v.oid = sluice.pg.to_regclass(a)),
	(a, b) AS (SELECT first(v.definition) FROM sluice.pg.lake_relation v WHERE v.oid = sluice.pg.to_regclass(a));
CREATE MACRO sluice.pg.pg_get_ruledef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_indexdef(a) AS CAST(NULL AS VARCHAR), (a, b, c) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_constraintdef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_triggerdef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_partkeydef(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_statisticsobjdef_columns(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_functiondef(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_function_arguments(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_function_identity_arguments(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_function_result(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_function_sqlbody(a) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_get_serial_sequence(a, b) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_describe_object(a, b, c) AS CAST(NULL AS VARCHAR);
CREATE MACRO sluice.pg.pg_tablespace_location(a) AS '';
CREATE MACRO sluice.pg.pg_relation_is_publishable(a) AS false;
CREATE MACRO sluice.pg.obj_description(a) AS (SELECT first(d.description) FROM sluice.pg.pg_description d WHERE d.objoid = a AND d.objsubid = 0),
	(a, b) AS (SELECT first(d.description) FROM sluice.pg.pg_description d WHERE d.objoid = a AND d.objsubid = 0 AND d.classoid = sluice.pg.to_regclass(b));
CREATE MACRO sluice.pg.col_description(a, b) AS (SELECT first(d.comment) FROM sluice.pg.lake_column d WHERE d.attrelid = a AND d.attnum = b);
CREATE MACRO sluice.pg.shobj_description(a, b) AS CAST(NULL AS VARCHAR);

-- Visibility: along the search path, pg_catalog always.
CREATE MACRO sluice.pg.pg_table_is_visible(a) AS a IN (SELECT r.oid FROM sluice.pg.relation r WHERE r.place IS NOT NULL);
CREATE MACRO sluice.pg.pg_type_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_function_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_operator_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_opclass_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_opfamily_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_collation_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_conversion_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_statistics_obj_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_ts_config_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_ts_dict_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_ts_parser_is_visible(a) AS a IS NOT NULL;
CREATE MACRO sluice.pg.pg_ts_template_is_visible(a) AS a IS NOT NULL;

-- Privileges: whoever is let in reads and writes the whole lake.
CREATE MACRO sluice.pg.has_table_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_any_column_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_column_privilege(a, b, c) AS true, (a, b, c, d) AS true;
CREATE MACRO sluice.pg.has_schema_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_database_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_function_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_sequence_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_tablespace_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_type_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.has_language_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO sluice.pg.pg_has_role(a, b) AS true, (a, b, c) AS true;

-- Sizes: what DuckLake counts for a table once its ids are known (lake_object), else unknown.
CREATE MACRO sluice.pg.pg_relation_size(a) AS (SELECT sum(i.file_size_bytes + i.delete_file_size_bytes)::BIGINT FROM ducklake_table_info({lake}) i WHERE i.table_id = sluice.pg.to_regclass(a) - 16384),
	(a, b) AS (SELECT sum(i.file_size_bytes + i.delete_file_size_bytes)::BIGINT FROM ducklake_table_info({lake}) i WHERE i.table_id = sluice.pg.to_regclass(a) - 16384);
CREATE MACRO sluice.pg.pg_table_size(a) AS sluice.pg.pg_relation_size(a);
CREATE MACRO sluice.pg.pg_total_relation_size(a) AS sluice.pg.pg_relation_size(a);
CREATE MACRO sluice.pg.pg_indexes_size(a) AS CAST(0 AS BIGINT);
CREATE MACRO sluice.pg.pg_database_size(a) AS (SELECT coalesce(sum(i.file_size_bytes + i.delete_file_size_bytes), 0)::BIGINT FROM ducklake_table_info({lake}) i);
CREATE MACRO sluice.pg.pg_tablespace_size(a) AS CAST(NULL AS BIGINT);
CREATE MACRO sluice.pg.pg_size_pretty(a) AS CASE WHEN abs(a) < 10240 THEN CAST(CAST(a AS BIGINT) AS VARCHAR) || ' bytes' WHEN abs(a) < 10485760 THEN CAST(CAST(round(a / 1024) AS BIGINT) AS VARCHAR) || ' kB'
	WHEN abs(a) < 10737418240 THEN CAST(CAST(round(a / 1048576) AS BIGINT) AS VARCHAR) || ' MB' WHEN abs(a) < 10995116277760 THEN CAST(CAST(round(a / 1073741824) AS BIGINT) AS VARCHAR) || ' GB'
	ELSE CAST(CAST(round(a / 1099511627776) AS BIGINT) AS VARCHAR) || ' TB' END;

-- Arrays. DuckDB's lists have one dimension each and count from 1.
CREATE MACRO sluice.pg.array_upper(a, b) AS CASE WHEN b = 1 AND len(a) > 0 THEN CAST(len(a) AS INTEGER) END;
CREATE MACRO sluice.pg.array_lower(a, b) AS CASE WHEN b = 1 AND len(a) > 0 THEN 1 END;
CREATE MACRO sluice.pg.array_ndims(a) AS CASE WHEN len(a) > 0 THEN 1 END;
CREATE MACRO sluice.pg.array_remove(a, b) AS list_filter(a, lambda x: x IS DISTINCT FROM b);
CREATE MACRO sluice.pg._pg_expandarray(a) AS unnest(list_transform(a, lambda x, i: {'x': x, 'n': i}));
CREATE MACRO sluice.pg.pg_get_keywords() AS TABLE SELECT word, catcode, barelabel, catdesc, baredesc FROM sluice.pg.keyword;
