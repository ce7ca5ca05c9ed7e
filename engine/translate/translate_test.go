package translate

import (
	"reflect"
	"strings"
	"testing"

	"sluice/engine/pgerr"
)

var lake = Options{Lake: "lake"}

// one parses a text of one statement.
func one(t *testing.T, sql string, o Options) Stmt {
	t.Helper()
	stmts, err := Parse(sql, o)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if len(stmts) != 1 {
		t.Fatalf("%s: %d statements, want 1", sql, len(stmts))
	}
	return stmts[0]
}

func TestParse_Unchanged(t *testing.T) {
	for _, sql := range []string{
		`select 1`,
		`FROM t SELECT a, * EXCLUDE (b) WHERE a > 1`,
		`SELECT * FROM t AT (VERSION => 3)`,
		`SELECT [1, 2, 3][1:2], {'a': 1}.a, list_transform([1], lambda x: x + 1)`,
		`ALTER TABLE t SET PARTITIONED BY (tenant, day(ts))`,
		`CREATE OR REPLACE TABLE t AS FROM 'pgvfs://lake/x.parquet'`,
		`MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT`,
		`SELECT 'public.t', "public.t", $$pg_catalog.x$$ -- public.t
, 1`,
		`SELECT e'a\'b' /* ; /* nested ; */ */ || 'x;y'`,
		`SELECT a ~* 'x', a !~* 'y', ~ 5, -1 & ~3`,
		`SELECT * FROM t WHERE a ILIKE 'x%' AND b SIMILAR TO 'y'`,
		`SELECT * FROM t AS public WHERE public.a = 1`,
		`select x'' :: varchar from t`[:6] + ` 1::numeric(10,2), 'x'::character varying(3)`,
		`SELECT 1e5, 1.5, .5, 1_000, 0x1f, a.b.c, 5%2, a->'b'->>'c', x::int[]`,
		`CREATE TEMP TABLE x (a int) ON COMMIT PRESERVE ROWS`,
	} {
		if s := one(t, sql, lake); s.SQL != sql || s.Kind == KindRefused {
			t.Errorf("%s\n got %s (kind %d, %v)", sql, s.SQL, s.Kind, s.Err)
		}
	}
}

func TestParse_Rewritten(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`select * from public.t`, `select * from main.t`},
		{`select public.t.a from "public"."t", lake.public.u`, `select main.t.a from main."t", lake.main.u`},
		{`select public.a, b from public.t as public`, `select public.a, b from main.t as public`},
		{`from t as public select public.a, * exclude (x)`, `from t as public select public.a, * exclude (x)`},
		{`from public.t public select public.a, * exclude (x)`, `from main.t public select public.a, * exclude (x)`},
		{`create table public.t (a int)`, `create table main.t (a int)`},
		{`comment on schema public is 'x'`, `comment on schema main is 'x'`},
		{`insert into public.t values ('public.x')`, `insert into main.t values ('public.x')`},
		{`select * from a, public.b where a.x = any(select y from public.c)`, `select * from a, main.b where a.x = any(select y from main.c)`},
		{`select * from pg_catalog.pg_class c`, `select * from sluice.pg.pg_class c`},
		{`select pg_catalog.format_type(a, b)`, `select format_type(a, b)`},
		{`select 'x'::pg_catalog.text, 1::"pg_catalog"."int4"`, `select 'x'::text, 1::"int4"`},
		{`select pg_catalog.pg_class.oid from lake.pg_catalog.pg_class`, `select pg_class.oid from sluice.pg.pg_class`},
		{`select * from information_schema.tables`, `select * from sluice.info.tables`},
		{`select * from information_schema.key_column_usage, information_schema.nope`, `select * from sluice.info.key_column_usage, information_schema.nope`},
		{`select s from pg_catalog.generate_series(1, 3) s, unnest(a) as x, b`, `select s from generate_series(1, 3) s(s), unnest(a) as x, b`},
		{`select * from unnest(a) where true`, `select * from unnest(a) where true`},
		{`select information_schema._pg_expandarray(i.indkey)`, `select _pg_expandarray(i.indkey)`},
		{`where x OPERATOR(pg_catalog.~) '^(a)$' COLLATE pg_catalog.default`, `where x @~ '^(a)$' `},
		{`select a collate "default", b collate pg_catalog."C"`, `select a , b collate "C"`},
		{`select 1 operator(pg_catalog.+) 2`, `select 1 + 2`},
		{`select a ~ 'x' and b !~ 'y' and not c ~ d`, `select a @~ 'x' and b !@~ 'y' and not c @~ d`},
		{`create view v as select a ~ 'x' b, c !~* d.e from t`, `create view v as select a ~ ('(?s).*(?:' || 'x' || ').*') b, c !~ ('(?is).*(?:' || d.e || ').*') from t`},
		{`select 'pg_class'::regclass`, `select regclass_in('pg_class')`},
		{`select 'a.b'::pg_catalog.regclass::oid, c.oid::regclass, oid::regclass::text`, `select regclass_in('a.b')::oid, regclass_out(c.oid), regclass_out(oid)::text`},
		{`select 't'::regclass::pg_catalog.text`, `select regclass_out(regclass_in('t'))::text`},
		{`where x.oid = lower(a)::regclass`, `where x.oid = regclass_in(lower(a))`},
		{`select cast('t' as regclass), cast(a.x as pg_catalog.regtype), regtype 'int'`, `select regclass_in('t' ), regtype_out(a.x ), regtype_in ('int')`},
		{`select $1::regclass`, `select regclass_in($1)`},
		{`select (a + b)::regtype, f(x)[1]::regtype, x::int::regtype`, `select regtype_out((a + b)), regtype_out(f(x)[1]), regtype_out(x::int)`},
		{`select 'f'::regprocedure, x::regconfig`, `select regproc_in('f'), x::varchar`},
		{`select '{1,2}'::int[], '{"a b",NULL,c}'::text[], '{{1},{2}}'::int[][], '{}'::int[]`, `select ['1', '2']::int[], ['a b', NULL, 'c']::text[], [['1'], ['2']]::int[][], []::int[]`},
		{`select x <> all ('{a,b}')`, `select x <> all (['a', 'b'])`},
		{`select U&'d\0061t\+000061', U&"\0441", u&'!0041' uescape '!', U&'\D83D\DE00'`, `select 'data', "с", 'A', '😀'`},
		{`select B'101', X'1F', N'x'`, `select '101'::BIT, '00011111'::BIT, 'x'`},
		{`select 1 from t for update of t, u nowait`, `select 1 from t `},
		{`select 1 from t for no key update skip locked`, `select 1 from t `},
		{`select now()::timestamptz(3), cast(x as timestamp(3) with time zone), y::timestamp(3)`, `select now()::timestamptz, cast(x as timestamp with time zone), y::timestamp(3)`},
	} {
		if s := one(t, c.in, lake); s.SQL != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, s.SQL, c.want)
		}
	}
}

func TestParse_Kinds(t *testing.T) {
	for _, c := range []struct {
		in     string
		kind   Kind
		tag    string
		writes bool
	}{
		{`SELECT 1`, KindQuery, "SELECT", false},
		{`((select 1) union select 2)`, KindQuery, "SELECT", false},
		{`VALUES (1)`, KindQuery, "SELECT", false},
		{`WITH a AS (SELECT 1) SELECT * FROM a`, KindQuery, "SELECT", false},
		{`with a(x) as materialized (select 1), b as (values (2)) insert into t select * from a`, KindDML, "INSERT 0", true},
		{`with a as (select 1) delete from t using a returning *`, KindQuery, "DELETE", true},
		{`INSERT INTO t VALUES (1)`, KindDML, "INSERT 0", true},
		{`INSERT INTO t VALUES (1) RETURNING a`, KindQuery, "INSERT 0", true},
		{`UPDATE t SET a = (select 1)`, KindDML, "UPDATE", true},
		{`MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE`, KindDML, "MERGE", true},
		{`CREATE TABLE t (a int)`, KindDDL, "CREATE TABLE", true},
		{`CREATE OR REPLACE TEMP TABLE t AS SELECT 1`, KindDML, "SELECT", true},
		{`create table if not exists t(a int default (cast(1 as int)))`, KindDDL, "CREATE TABLE", true},
		{`CREATE OR REPLACE VIEW v AS SELECT 1`, KindDDL, "CREATE VIEW", true},
		{`create macro f(a) as a + 1`, KindDDL, "CREATE MACRO", true},
		{`DROP TABLE IF EXISTS t`, KindDDL, "DROP TABLE", true},
		{`drop materialized view v`, KindDDL, "DROP MATERIALIZED VIEW", true},
		{`ALTER TABLE t ADD COLUMN b int`, KindDDL, "ALTER TABLE", true},
		{`COMMENT ON TABLE t IS 'x'`, KindDDL, "COMMENT", true},
		{`TRUNCATE t`, KindDDL, "TRUNCATE TABLE", true},
		{`EXPLAIN SELECT 1`, KindQuery, "EXPLAIN", false},
		{`EXPLAIN ANALYZE INSERT INTO t VALUES (1)`, KindQuery, "EXPLAIN", true},
		{`CALL ducklake_expire_snapshots('lake', older_than => now())`, KindQuery, "CALL", true},
		{`CALL lake.set_option('x', 1)`, KindQuery, "CALL", true},
		{`FROM ducklake_snapshots('lake')`, KindQuery, "SELECT", false},
		{`SELECT * FROM ducklake_merge_adjacent_files('lake')`, KindQuery, "SELECT", true},
		{`DESCRIBE t`, KindQuery, "SHOW", false},
		{`SHOW TABLES`, KindQuery, "SHOW", false},
		{`SHOW ALL TABLES`, KindQuery, "SHOW", false},
		{`SHOW TRANSACTION ISOLATION LEVEL`, KindShow, "SHOW", false},
		{`VACUUM ANALYZE t`, KindNoop, "VACUUM", false},
		{`ANALYZE`, KindNoop, "ANALYZE", false},
		{`UNLISTEN *`, KindNoop, "UNLISTEN", false},
		{`CLOSE ALL`, KindClose, "CLOSE CURSOR ALL", false},
		{`CLOSE c`, KindClose, "CLOSE CURSOR", false},
		{`DECLARE c CURSOR FOR SELECT 1`, KindDeclare, "DECLARE CURSOR", false},
		{`FETCH 1 FROM c`, KindFetch, "FETCH", false},
		{`MOVE c`, KindFetch, "MOVE", false},
		{`create schema if not exists public`, KindNoop, "CREATE SCHEMA", false},
		{`DISCARD ALL`, KindDiscard, "DISCARD ALL", false},
		{`PRAGMA table_info('t')`, KindQuery, "PRAGMA", false},
		{`UPDATE extensions SET a = 1`, KindDML, "UPDATE", true},
		{`selct 1`, KindQuery, "SELCT", false},
	} {
		s := one(t, c.in, lake)
		if s.Kind != c.kind || s.Tag != c.tag || s.Writes != c.writes {
			t.Errorf("%s: kind %d tag %q writes %v, want %d %q %v (%v)", c.in, s.Kind, s.Tag, s.Writes, c.kind, c.tag, c.writes, s.Err)
		}
	}
}

func TestParse_Refused(t *testing.T) {
	for _, c := range []struct{ in, code string }{
		{`ATTACH 'x.db' AS x`, "42501"},
		{`/* x */ attach 'x'`, "42501"},
		{`DETACH lake`, "42501"},
		{`INSTALL httpfs`, "42501"},
		{`FORCE INSTALL httpfs`, "42501"},
		{`LOAD '/tmp/x'`, "42501"},
		{`EXPORT DATABASE 'x'`, "42501"},
		{`IMPORT DATABASE 'x'`, "42501"},
		{`COPY FROM DATABASE lake TO x`, "42501"},
		{`COPY t TO '/tmp/x'`, "42501"},
		{`COPY (FROM t) TO '/tmp/x' (FORMAT parquet)`, "42501"},
		{`COPY t FROM PROGRAM 'rm'`, "42501"},
		{`COPY t FROM '/etc/passwd'`, "42501"},
		{`COPY t TO $$/tmp/x$$ (partition_by (a))`, "42501"},
		{`CREATE OR REPLACE PERSISTENT SECRET s (TYPE s3)`, "42501"},
		{`DROP SECRET s`, "42501"},
		{`PRAGMA database_list`, "42501"},
		{`PRAGMA threads=4`, "42501"},
		{`UPDATE EXTENSIONS`, "42501"},
		{`CHECKPOINT`, "42501"},
		{`FORCE CHECKPOINT lake`, "42501"},
		{`SET threads = 4`, "42501"},
		{`SET GLOBAL memory_limit = '1GB'`, "42501"},
		{`RESET temp_directory`, "42501"},
		{`SET VARIABLE sluice_user = 'x'`, "42501"},
		{`SET VARIABLE "SLUICE_user" = 'x'`, "42501"},
		{`SET VARIABLE x = (SELECT 1)`, "42501"},
		{`SET VARIABLE x = f('a')`, "42501"},
		{`set schema = 'x'`, "42501"},
		{`USE other.main`, "42501"},
		{`ALTER DATABASE lake SET x`, "42501"},
		{`GRANT SELECT ON t TO x`, "0A000"},
		{`REVOKE ALL ON t FROM x`, "0A000"},
		{`LISTEN x`, "0A000"},
		{`NOTIFY x`, "0A000"},
		{`SAVEPOINT a`, "0A000"},
		{`ROLLBACK TO a`, "0A000"},
		{`LOCK TABLE t`, "0A000"},
		{`PREPARE TRANSACTION 'x'`, "0A000"},
		{`CREATE USER x`, "0A000"},
		{`CREATE EXTENSION x`, "0A000"},
		{`CREATE SCHEMA public`, "42P06"},
		{`DROP SCHEMA IF EXISTS public CASCADE`, "2BP01"},
		{`ALTER SCHEMA public RENAME TO x`, "0A000"},
		{`BEGIN nonsense`, "42601"},
		{`SET x y z`, "42601"},
		{`DISCARD x`, "42601"},
		{`COPY t FRM STDIN`, "42601"},
	} {
		s := one(t, c.in, lake)
		if s.Kind != KindRefused || s.Err == nil || s.Err.Code != c.code {
			t.Errorf("%s: kind %d, %v, want %s", c.in, s.Kind, s.Err, c.code)
		}
	}
	for _, sql := range []string{`ATTACH 'x'`, `COPY t TO '/tmp/x'`, `SET threads = 4`, `SET GLOBAL threads = 4`, `PRAGMA threads=4`, `USE other.main`, `CHECKPOINT`} {
		if s := one(t, sql, Options{Lake: "lake", Admin: true}); s.Kind == KindRefused || s.SQL != sql {
			t.Errorf("administrator's %s: %v, %q", sql, s.Err, s.SQL)
		}
	}
}

func TestParse_Utilities(t *testing.T) {
	for _, c := range []struct {
		in   string
		want any
	}{
		{`BEGIN`, &Tx{Op: TxBegin}},
		{`start transaction isolation level serializable, read only, deferrable`, &Tx{Op: TxBegin, Isolation: "serializable", ReadOnly: true, Deferrable: true}},
		{`begin read write not deferrable`, &Tx{Op: TxBegin, ReadWrite: true, NotDeferrable: true}},
		{`COMMIT AND CHAIN`, &Tx{Op: TxCommit, Chain: true}},
		{`END`, &Tx{Op: TxCommit}},
		{`ABORT`, &Tx{Op: TxRollback}},
		{`SET TRANSACTION READ ONLY`, &Tx{Op: TxSetTransaction, ReadOnly: true}},
		{`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED`, &Tx{Op: TxSetCharacteristics, Isolation: "read committed"}},
		{`SET Application_Name = 'x''y'`, &Set{Name: "application_name", Values: []string{"x'y"}}},
		{`SET search_path TO public, "My", 'x'`, &Set{Name: "search_path", Values: []string{"public", "My", "x"}}},
		{`SET LOCAL statement_timeout = 500`, &Set{Name: "statement_timeout", Values: []string{"500"}, Local: true}},
		{`SET extra_float_digits = -3`, &Set{Name: "extra_float_digits", Values: []string{"-3"}}},
		{`SET client_encoding TO DEFAULT`, &Set{Name: "client_encoding"}},
		{`SET NAMES 'utf8'`, &Set{Name: "client_encoding", Values: []string{"utf8"}}},
		{`SET TIME ZONE 'UTC'`, &Set{Name: "timezone", Values: []string{"UTC"}}},
		{`SET x.y = on`, &Set{Name: "x.y", Values: []string{"on"}}},
		{`RESET ALL`, &Set{All: true}},
		{`RESET datestyle`, &Set{Name: "datestyle"}},
		{`SET pivot_limit = 10`, &Set{Name: "pivot_limit", Values: []string{"10"}, Duck: true}},
		{`SET VARIABLE x = [1, 'a', -2.5]`, &Set{Name: "x", Duck: true}},
		{`USE lake`, &Set{Name: "search_path"}},
		{`USE lake.staging`, &Set{Name: "search_path", Values: []string{"staging"}}},
		{`use main`, &Set{Name: "search_path", Values: []string{"public"}}},
		{`SHOW ALL`, &Show{All: true}},
		{`SHOW DateStyle`, &Show{Name: "datestyle"}},
		{`SHOW TIME ZONE`, &Show{Name: "timezone"}},
		{`COPY public.t (a, "B") FROM STDIN WITH (FORMAT csv, HEADER, NULL '', FORCE_NULL (a), DELIMITER ';')`, &Copy{
			In: true, Schema: "main", Table: "t", Columns: []string{"a", "B"},
			Opts: []CopyOpt{{Name: "format", Value: "csv"}, {Name: "header"}, {Name: "null"}, {Name: "force_null", List: []string{"a"}}, {Name: "delimiter", Value: ";"}},
		}},
		{`copy t from stdin csv header quote '''' where a ~ 'x'`, &Copy{
			In: true, Table: "t", Where: "a @~ 'x'",
			Opts: []CopyOpt{{Name: "format", Value: "csv"}, {Name: "header", Value: "true"}, {Name: "quote", Value: "'"}},
		}},
		{`COPY (FROM public.t SELECT * EXCLUDE (a)) TO STDOUT (FORMAT binary)`, &Copy{Query: "FROM main.t SELECT * EXCLUDE (a)", Opts: []CopyOpt{{Name: "format", Value: "binary"}}}},
		{`EXECUTE p (1, f(2, 3), 'a'::regclass)`, &Prepared{Name: "p", Args: []string{"1", "f(2, 3)", "regclass_in('a')"}}},
		{`EXECUTE p`, &Prepared{Name: "p"}},
		{`DEALLOCATE PREPARE "P"`, &Prepared{Name: "P"}},
		{`DEALLOCATE ALL`, &Prepared{All: true}},
	} {
		s := one(t, c.in, lake)
		got := map[bool]any{true: s.Tx}[s.Tx != nil]
		switch {
		case s.Set != nil:
			got = s.Set
		case s.Show != nil:
			got = s.Show
		case s.Copy != nil:
			got = s.Copy
		case s.Prepared != nil:
			got = s.Prepared
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %+v (%v)\nwant %+v", c.in, got, s.Err, c.want)
		}
	}
}

func TestParse_Prepare(t *testing.T) {
	s := one(t, ` prepare p (int, varchar(10), timestamp with time zone) as from public.t where a = $1 and b = $2`, lake)
	if want := []string{"int", "varchar(10)", "timestamp with time zone"}; !reflect.DeepEqual(s.Prepared.Types, want) {
		t.Errorf("types %q", s.Prepared.Types)
	}
	b := s.Prepared.Body
	if b.SQL != `from main.t where a = $1 and b = $2` || b.Params != 2 || b.Offset != strings.Index(s.message, "from") || b.Kind != KindQuery {
		t.Errorf("body %+v", b)
	}
}

func TestParse_Split(t *testing.T) {
	stmts, err := Parse(" ; select ';' ;;-- x;\n select $a$;$a$, \"a;b\"; /* ; */", lake)
	if err != nil || len(stmts) != 2 || stmts[0].Text != "select ';'" || stmts[1].Text != `select $a$;$a$, "a;b"` || stmts[1].Offset != 23 {
		t.Errorf("%+v %v", stmts, err)
	}
	if stmts, err := Parse(" /* nothing */ -- at all", lake); err != nil || len(stmts) != 0 {
		t.Errorf("%+v %v", stmts, err)
	}
}

func TestParse_Unterminated(t *testing.T) {
	for sql, position := range map[string]int{`select 'a`: 8, `select 1; select é"b`: 19, `/* /* */`: 1, `$x$ $y$`: 1, `e'\'`: 1, `U&'x`: 1} {
		_, err := Parse(sql, lake)
		if e := pgerr.From(err); e == nil || e.Code != "42601" || e.Position != position {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestStmt_Position(t *testing.T) {
	const text = `select 'é'; select x from public.t where a ~ nope`
	stmts, err := Parse(text, lake)
	if err != nil {
		t.Fatal(err)
	}
	s := stmts[1]
	for _, word := range []string{"x", "t where", "nope"} {
		if got, want := s.Position(strings.Index(s.SQL, word)), charPosition(text, strings.Index(text, word)); got != want {
			t.Errorf("%s is at %d, want %d", word, got, want)
		}
	}
	s = one(t, `copy (select a from public.t where x ~ nope) to stdout`, lake)
	if got, want := s.Position(strings.Index(s.SQL, "nope")), strings.Index(s.Text, "nope")+1; got != want {
		t.Errorf("copy: %d, want %d", got, want)
	}
}

func TestStmt_ParamAt(t *testing.T) {
	s := one(t, `select $2, '$9', public.f($1), $2 from public.t`, lake)
	var at []string
	for _, p := range s.ParamAt {
		at = append(at, s.SQL[p.Start:p.End])
	}
	if strings.Join(at, " ") != "$2 $1 $2" || s.Params != 2 {
		t.Errorf("%q %d in %s", at, s.Params, s.SQL)
	}
}

func FuzzParse(f *testing.F) {
	for _, sql := range []string{
		`select 1; select 'a''b' -- x`, `U&"d\0061" uescape '!'`, `copy (select 1) to stdout`, `prepare p(int as`, `$a$b$a$ $1 $`,
		`select x::regclass::text, cast(a as regtype) ~ b`, `create view v as select a ~`, `'{a,"b\"c",{}}'::int[]`, `for update of`, `a operator(pg_catalog.~`,
		`with with ( insert`, `]::regclass`, `pg_catalog.`, `set variable`, `0x 1e+ 1..2 .5.`, `execute p(`, `public.public.public`, "\xff\x00é",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		tokens, err := lex(sql)
		if err != nil {
			return
		}
		last := 0
		for _, tok := range tokens { // no byte is lost and none comes twice
			if tok.start != last || tok.end <= tok.start {
				t.Fatalf("token %+v after %d in %q", tok, last, sql)
			}
			last = tok.end
		}
		if last != len(sql) {
			t.Fatalf("%d of %d bytes in %q", last, len(sql), sql)
		}
		stmts, err := Parse(sql, lake)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stmts {
			if sql[s.Offset:s.Offset+len(s.Text)] != s.Text {
				t.Fatalf("%q is not at %d of %q", s.Text, s.Offset, sql)
			}
			s.Position(len(s.SQL))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	const sql = `SELECT id, tenant, value FROM public.sensors WHERE tenant = $1 AND id > $2 ORDER BY id`
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(sql, lake); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTypedLiterals gives DuckDB the bytes and the era that PostgreSQL reads.
func TestTypedLiterals(t *testing.T) {
	for in, want := range map[string]string{
		`SELECT '\xdeAD'::bytea`:                                         `SELECT '\xDE\xAD'::bytea`,
		`SELECT '\x'::bytea`:                                             `SELECT ''::bytea`,
		`SELECT CAST('a\\b\001' AS bytea)`:                               `SELECT CAST('\x61\x5C\x62\x01' AS bytea)`,
		`SELECT bytea '\x01'`:                                            `SELECT bytea '\x01'`,
		`SELECT E'\\x0a'::pg_catalog.bytea`:                              `SELECT '\x0A'::bytea`,
		`SELECT '\xdead'`:                                                `SELECT '\xdead'`,
		`SELECT '0044-03-15 BC'::date`:                                   `SELECT '0044-03-15 (BC)'::date`,
		`SELECT timestamp '0001-01-01 00:00 bc'`:                         `SELECT timestamp '0001-01-01 (BC) 00:00'`,
		`SELECT '0044-03-15 BC'::text`:                                   `SELECT '0044-03-15 BC'::text`,
		`SELECT $x$\x0a$x$::bytea`:                                       `SELECT '\x0A'::bytea`,
		`SELECT try_cast('\x0a' AS blob)`:                                `SELECT try_cast('\x0a' AS blob)`,
		`SELECT '{"\\xdead",NULL}'::bytea[]`:                             `SELECT ['\xDE\xAD', NULL]::bytea[]`,
		`SELECT date '0044-03-15 AD'`:                                    `SELECT date '0044-03-15'`,
		`SELECT timestamp(3) with time zone '0044-03-15T10:00:00+00 BC'`: `SELECT timestamp with time zone '0044-03-15 (BC) 10:00:00+00'`,
		`SELECT CAST('0044-3-15 1:00 BC' AS timestamptz)`:                `SELECT CAST('0044-3-15 (BC) 1:00' AS timestamptz)`,
	} {
		stmts, err := Parse(in, Options{Lake: "lake"})
		if err != nil || len(stmts) != 1 {
			t.Fatalf("%s: %v", in, err)
		}
		if got := stmts[0].SQL; got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// TestTypedLiterals_Refused answers for bytea that PostgreSQL cannot read, in its words and at the literal.
func TestTypedLiterals_Refused(t *testing.T) {
	for in, want := range map[string]struct {
		code     string
		position int
	}{
		`SELECT '\xabc'::bytea`:                         {"22023", 8},
		`SELECT 'é', '\xzz'::bytea`:                     {"22023", 13},
		`INSERT INTO t VALUES (CAST('\q' AS bytea))`:    {"22P02", 28},
		`COPY (SELECT '\x1'::bytea) TO STDOUT`:          {"22023", 14},
		`PREPARE p AS SELECT '\x1'::bytea`:              {"22023", 21},
		`SELECT '{"\\x1"}'::bytea[]`:                    {"22023", 8},
		`EXECUTE p (1, '\x1'::bytea)`:                   {"22023", 15},
		`CREATE VIEW v AS SELECT bytea '\x1', '\xz'::x`: {"22023", 31},
	} {
		s := one(t, in, lake)
		if s.Kind != KindRefused || s.Err == nil || s.Err.Code != want.code || s.Err.Position != want.position {
			t.Errorf("%s: kind %d, %+v", in, s.Kind, s.Err)
		}
	}
}

// TestAtNames quotes the name and leaves the operator and DuckDB's clause.
func TestAtNames(t *testing.T) {
	for in, want := range map[string]string{
		`select at from t`:                                        `select "at" from t`,
		`select t.AT at from t order by at`:                       `select t."at" "at" from t order by "at"`,
		`create table t (at int, b int)`:                          `create table t ("at" int, b int)`,
		`create table t (a int, at time)`:                         `create table t (a int, "at" time)`,
		`create table at (a int)`:                                 `create table "at" (a int)`,
		`insert into t (at) values (1)`:                           `insert into t ("at") values (1)`,
		`update t set at = at + 1 where at > 1`:                   `update t set "at" = "at" + 1 where "at" > 1`,
		`select at at time zone 'UTC' from t`:                     `select "at" at time zone 'UTC' from t`,
		`select now() AT TIME ZONE 'UTC' as at`:                   `select now() AT TIME ZONE 'UTC' as "at"`,
		`select a at, "at" from t at (version => 3)`:              `select a "at", "at" from t at (version => 3)`,
		`from t AT (TIMESTAMP => now())`:                          `from t AT (TIMESTAMP => now())`,
		`select at::regclass, at.x, at time from t as at`:         `select regclass_out("at"), "at".x, "at" time from t as "at"`,
		`create view v as select at, (a) at time zone 'x' from t`: `create view v as select "at", (a) at time zone 'x' from t`,
	} {
		if s := one(t, in, lake); s.SQL != want {
			t.Errorf("%s\n got %s\nwant %s", in, s.SQL, want)
		}
	}
}
