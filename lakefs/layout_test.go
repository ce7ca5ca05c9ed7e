package lakefs_test

import (
	"bytes"
	"crypto/md5"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// layoutByHand makes the tables without any of Sluice's SQL. Like databases of older releases it has neither the
// autovacuum options nor the function reap.
//
//go:embed testdata/layout-by-hand.sql
var layoutByHand string

// fileByHandSQL makes a file out of bytes: $1 is its path, $2 what it holds. The rows come in no order.
const fileByHandSQL = `
WITH made AS (SELECT nextval('pgvfs.file_ids') AS id, $2::bytea AS bytes),
	stored AS (
		INSERT INTO pgvfs.chunks (file_id, no, data)
		SELECT id, k, substr(bytes, k * 8120 + 1, 8120)
		FROM made, generate_series(0, (octet_length(bytes) + 8119) / 8120 - 1) AS k ORDER BY md5(k::text)
	)
INSERT INTO pgvfs.files (volume, path, file_id, size)
SELECT 'lake', $1, id, octet_length(bytes) FROM made`

// byHand: files whose rows no program of ours has written, in tables that none has made, are read whole and in parts;
// then the store works on with them as with its own.
func byHand(t *testing.T, x *fixture) {
	x.exec(t, layoutByHand)
	sizes := []int{0, 1, 8119, 8120, 8121, 2 * 8120, 3 * 8120, 3*8120 + 1, 1032*8120 + 5}
	for i, size := range sizes {
		x.exec(t, fileByHandSQL, fmt.Sprint(size), lakefstest.Content(uint64(i), size))
	}
	p := x.open(t, lakefs.Config{})
	for i, size := range sizes {
		data := lakefstest.Content(uint64(i), size)
		lakefstest.WantFile(t, p, "lake", fmt.Sprint(size), data)
		f, err := p.Open(t.Context(), "lake", fmt.Sprint(size))
		if err != nil || f.Size != int64(size) {
			t.Fatal(f, err)
		}
		for _, r := range ranges(size) {
			wantBytes(t, p, f, int64(r[0]), data[r[0]:r[0]+r[1]])
		}
	}
	x.want(t, nil, `SELECT to_regprocedure('pgvfs.reap(interval,integer)')::text`) // reading has made nothing
	workOn(t, x, p)
}

// ranges are parts of a file around the bounds of its rows.
func ranges(size int) (all [][2]int) {
	for _, off := range []int{0, 1, size / 2, size - 1, 8119, 8120, 8121, 2*8120 - 1, 1032*8120 - 1} {
		for _, length := range []int{0, 1, 2, 8119, 8120, 8121, 2*8120 + 2, min(size-off, 4*8120)} {
			if off >= 0 && length >= 0 && off+length <= size {
				all = append(all, [2]int{off, length})
			}
		}
	}
	return all
}

// wantBytes fails the test unless a file holds these bytes there.
func wantBytes(t *testing.T, s lakefs.Store, f *lakefs.File, off int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if err := s.ReadAt(t.Context(), f, got, off); err != nil {
		t.Errorf("%d bytes at %d: %v", len(want), off, err)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%d bytes at %d are others", len(want), off)
	}
}

// workOn replaces, renames, removes and reaps files that were made by hand, and adds one.
func workOn(t *testing.T, x *fixture, p *lakefs.PG) {
	t.Helper()
	data := lakefstest.Content(99, 2*8120)
	lakefstest.Put(t, p, "lake", "8121", data)
	lakefstest.Put(t, p, "lake", "new", data)
	err := errors.Join(p.Rename(t.Context(), "lake", "8120", "8119"), p.Remove(t.Context(), "lake", "24360"))
	if err != nil {
		t.Fatal(err)
	}
	lakefstest.WantFile(t, p, "lake", "8121", data)
	lakefstest.WantFile(t, p, "lake", "8119", lakefstest.Content(3, 8120))
	lakefstest.WantNone(t, p, "lake", "24360")
	x.want(t, 3, `SELECT count(*) FROM pgvfs.garbage`) // what was replaced, renamed over and removed
	x.want(t, 0, `SELECT pgvfs.reap()`)
	x.await(t, 2+1+3, `SELECT pgvfs.reap('0')`) // 0 while the store's own reap works
}

// damagedByHand: rows that are not as the format says are an error, never bytes that nobody wrote.
func damagedByHand(t *testing.T, x *fixture) {
	x.exec(t, layoutByHand)
	p := x.open(t, lakefs.Config{})
	data := lakefstest.Content(1, 4*8120)
	for damage, want := range map[string]string{
		`UPDATE pgvfs.chunks SET data = substr(data, 1, 8119) WHERE no = 1`:                    "row 1",
		`UPDATE pgvfs.chunks SET data = substr(data, 1, 1) WHERE no = 3`:                       "row 3",
		`DELETE FROM pgvfs.chunks WHERE no = 2`:                                                "missing",
		`DELETE FROM pgvfs.chunks`:                                                             "missing",
		`UPDATE pgvfs.files SET size = size - 1`:                                               "row 3",
		`UPDATE pgvfs.files SET size = size + 1`:                                               "missing",
		`UPDATE pgvfs.chunks SET no = 7 WHERE no = 0`:                                          "missing",
		`UPDATE pgvfs.chunks SET file_id = file_id + 1 WHERE file_id = $1 AND no IN (0,1,2,3)`: "missing",
	} {
		x.exec(t, fileByHandSQL, damage, data)
		f, err := p.Open(t.Context(), "lake", damage)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(damage, "$1") {
			x.exec(t, damage, f.ID)
		} else {
			x.exec(t, damage)
		}
		// A change of the size is another process's: it is seen by another store.
		other := x.open(t, lakefs.Config{})
		if _, err = lakefstest.Get(t.Context(), other, "lake", damage); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", damage, err)
		}
		x.exec(t, `TRUNCATE pgvfs.files, pgvfs.chunks`)
	}
}

// sparseRowsSQL makes the rows $2 to $3 of the file $1, of $4 bytes. What a row holds follows from its number.
const sparseRowsSQL = `INSERT INTO pgvfs.chunks (file_id, no, data)
	SELECT $1, k, substr(decode(repeat(md5(k::text), 508), 'hex'), 1, least(8120, $4 - k * 8120)::int)
	FROM generate_series($2::int8, $3::int8) AS k ON CONFLICT DO NOTHING`

// sparseBytes is what sparseRowsSQL's rows hold from off on.
func sparseBytes(off int64, length int) []byte {
	var all []byte
	first := off / chunkBytes
	for no := first; int64(len(all)) < off-first*chunkBytes+int64(length); no++ {
		sum := md5.Sum([]byte(fmt.Sprint(no)))
		all = append(all, bytes.Repeat(sum[:], 508)[:chunkBytes]...)
	}
	return all[off-first*chunkBytes:][:length]
}

// sparse: offsets beyond 4 GiB and row numbers up to the last one there can be. The files are whole only where they are
// read, which is nothing that any program may write.
func sparse(t *testing.T, x *fixture) {
	const most = int64(2147483648) * chunkBytes // the size that file_shape allows
	x.exec(t, layoutByHand)
	p := x.open(t, lakefs.Config{})
	for size, parts := range map[int64][]struct {
		off    int64
		length int
	}{
		5_000_000_000: {
			{0, 3},
			{1<<31 - 1, 2},
			{1<<19*chunkBytes - 1, 2},
			{1<<32 - 1, 1},
			{1 << 32, 1},
			{1<<32 - 5, 10},
			{1<<32 - 3*chunkBytes, 6 * chunkBytes},
			{4_500_000_000, 100_000},
			{4_600_000_000, 1040 * chunkBytes},
			{4_999_999_999, 1},
			{4_999_980_000, 20_000},
		},
		most:     {{0, 1}, {1<<30*chunkBytes - 1, 2}, {1<<43 - 1, 2}, {most - 1, 1}, {most - 20_000, 20_000}, {most - 1100*chunkBytes, 1100 * chunkBytes}},
		most - 1: {{most - 2, 1}, {most - chunkBytes, chunkBytes - 1}},
	} {
		f := sparseFile(t, x, p, size)
		for _, part := range parts {
			x.exec(t, sparseRowsSQL, f.ID, part.off/chunkBytes, (part.off+int64(part.length)-1)/chunkBytes, size)
			wantBytes(t, p, f, part.off, sparseBytes(part.off, part.length))
		}
		for _, off := range []int64{size, size - 1} {
			if err := p.ReadAt(t.Context(), f, make([]byte, 2), off); err == nil || errors.Is(err, lakefs.ErrReaped) {
				t.Errorf("2 bytes at %d of %d: %v", off, size, err)
			}
		}
		if err := p.ReadAt(t.Context(), f, make([]byte, 1), 1<<29); !errors.Is(err, lakefs.ErrReaped) {
			t.Error(err)
		}
	}
	x.exec(t, `TRUNCATE pgvfs.files, pgvfs.chunks`) // reaping counts on files without gaps
}

// sparseFile makes a file of a size, without rows.
func sparseFile(t *testing.T, x *fixture, p *lakefs.PG, size int64) *lakefs.File {
	t.Helper()
	x.exec(t, `INSERT INTO pgvfs.files VALUES ('lake', $1, nextval('pgvfs.file_ids'), $2)`, fmt.Sprint(size), size)
	f, err := p.Open(t.Context(), "lake", fmt.Sprint(size))
	if err != nil || f.Size != size {
		t.Fatal(f, err)
	}
	return f
}

// ours: what the store leaves in its tables fits into those made by hand, and each file's rows are dense.
func ours(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	for i, size := range []int{0, 1, 8119, 8120, 8121, 3 * 8120, batchBytes, batchBytes + 1, 3*batchBytes + 17} {
		lakefstest.Put(t, p, "lake", fmt.Sprint(size), lakefstest.Content(uint64(i), size))
		lakefstest.Put(t, p, strings.Repeat("v", 63), strings.Repeat("é", 512), lakefstest.Content(uint64(i), size)) // replaces the last one
	}
	if err := errors.Join(p.Rename(t.Context(), "lake", "1", "8119"), p.Remove(t.Context(), "lake", "24360")); err != nil {
		t.Fatal(err)
	}
	x.exec(t, strings.ReplaceAll(layoutByHand, "pgvfs", "byhand"))
	defer x.exec(t, `DROP SCHEMA byhand CASCADE`)
	for _, table := range []string{"files", "chunks", "garbage"} {
		x.exec(t, fmt.Sprintf(`INSERT INTO byhand.%s SELECT * FROM pgvfs.%[1]s`, table))
	}
	x.want(t, 8, `SELECT count(*) FROM byhand.files`)
	x.want(t, 10, `SELECT count(*) FROM byhand.garbage`)
	x.want(t, 0, strings.ReplaceAll(damagedSQL, "pgvfs", "byhand"))
	x.want(t, 0, strings.ReplaceAll(orphansSQL, "pgvfs", "byhand"))
	x.want(t, 0, `SELECT count(*) FROM (SELECT no, lead(no) OVER w AS next, octet_length(data) AS bytes FROM byhand.chunks
		WINDOW w AS (PARTITION BY file_id ORDER BY no)) AS rows WHERE next <> no + 1 OR (next IS NOT NULL AND bytes <> 8120)`)
	x.want(t, 0, `SELECT count(*) FROM (SELECT file_id, min(no) AS first FROM byhand.chunks GROUP BY file_id) AS files WHERE first <> 0`)
	x.want(t, true, `SELECT last_value >= (SELECT max(file_id) FROM byhand.chunks) FROM pgvfs.file_ids`)
}

// bounds are rows that the tables take (an empty code) or refuse, with the constraint that does so.
var bounds = []struct{ table, values, code, constraint string }{
	{"files", `'a', 'p', 1, 0`, "", ""},
	{"files", `'a', 'p', 2, 0`, "23505", "files_pkey"},
	{"files", `'b', 'p', 1, 0`, "23505", "files_file_id_key"},
	{"files", `'b', 'p', 3, 0`, "", ""},
	{"files", `'a', 'P', 4, 0`, "", ""},
	{"files", `'0', ' ', 5, 0`, "", ""},
	{"files", `'a.b_c-', 'x/', 6, 0`, "", ""},
	{"files", `repeat('v', 63), '/', 7, 0`, "", ""},
	{"files", `repeat('v', 64), '/', 8, 0`, "23514", "file_shape"},
	{"files", `'', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'A', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'-a', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'.a', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'_a', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'a/b', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'é', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `E'a\n', 'p', 8, 0`, "23514", "file_shape"},
	{"files", `'a', '', 8, 0`, "23514", "file_shape"},
	{"files", `'a', repeat('é', 512), 9, 0`, "", ""},
	{"files", `'a', repeat('é', 512) || 'e', 10, 0`, "23514", "file_shape"},
	{"files", `'a', 'q', 10, -1`, "23514", "file_shape"},
	{"files", `'a', 'q', 11, 17437567221760`, "", ""},
	{"files", `'a', 'r', 12, 17437567221761`, "23514", "file_shape"},
	{"files", `NULL, 'r', 12, 0`, "23502", ""},
	{"files", `'a', NULL, 12, 0`, "23502", ""},
	{"files", `'a', 'r', NULL, 0`, "23502", ""},
	{"files", `'a', 'r', 12, NULL`, "23502", ""},
	{"files", `'a', 'r', 12, 0, NULL`, "23502", ""},
	{"chunks", `1, 0, '\x00'`, "", ""},
	{"chunks", `1, 0, '\x00'`, "23505", "chunks_pkey"},
	{"chunks", `1, 2147483647, decode(repeat('ff', 8120), 'hex')`, "", ""},
	{"chunks", `1, 1, decode(repeat('ff', 8121), 'hex')`, "23514", "chunk_shape"},
	{"chunks", `1, 1, ''`, "23514", "chunk_shape"},
	{"chunks", `1, -1, '\x00'`, "23514", "chunk_shape"},
	{"chunks", `NULL, 1, '\x00'`, "23502", ""},
	{"chunks", `1, NULL, '\x00'`, "23502", ""},
	{"chunks", `1, 1, NULL`, "23502", ""},
	{"garbage", `1`, "", ""},
	{"garbage", `1`, "23505", "garbage_pkey"},
	{"garbage", `NULL`, "23502", ""},
	{"garbage", `2, NULL`, "23502", ""},
	{"layout", `NULL`, "23502", ""},
}

// constraints: the store's tables and those made by hand take and refuse the same.
func constraints(t *testing.T, x *fixture) {
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
	x.exec(t, `TRUNCATE pgvfs.files`)
	x.exec(t, strings.ReplaceAll(layoutByHand, "pgvfs", "byhand"))
	defer x.exec(t, `DROP SCHEMA byhand CASCADE`)
	for _, schema := range []string{"pgvfs", "byhand"} {
		for _, b := range bounds {
			_, err := x.admin.Exec(t.Context(), fmt.Sprintf(`INSERT INTO %s.%s VALUES (%s)`, schema, b.table, b.values))
			var pgErr *pgconn.PgError
			if !errors.As(err, &pgErr) {
				pgErr = &pgconn.PgError{}
			}
			if (err == nil) != (b.code == "") || pgErr.Code != b.code || pgErr.ConstraintName != b.constraint {
				t.Errorf("%s.%s (%s): %v", schema, b.table, b.values, err)
			}
		}
	}
	x.exec(t, `TRUNCATE pgvfs.files, pgvfs.chunks, pgvfs.garbage`)
}

// description: the whole schema, as PostgreSQL sees it, is what the layout says; testdata/layout.txt has been read
// against that. The tables made by hand become the same but for the options that nobody adds to older ones.
func description(t *testing.T, x *fixture) {
	file := filepath.Join("testdata", "layout.txt")
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
	got := describe(t, x)
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the layout has changed; REWRITE=1 accepts it:\n%s", got)
	}
	x.exec(t, `DROP SCHEMA pgvfs CASCADE`)
	x.exec(t, layoutByHand)
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
	if byHand := describe(t, x); withoutTexts(byHand) != withoutTexts(got) {
		t.Errorf("the layout made by hand is another one:\n%s", byHand)
	}
}

// withoutTexts takes out of a description what two makers of one layout need not have in common: the words of the
// checks (constraints compares what they say) and the options that are not checked.
func withoutTexts(description string) string {
	text := regexp.MustCompile(`(?m)(_shape) CHECK .*$|(autovacuum_[a-z_]+=[0-9.]+,?)`).ReplaceAllString(description, "$1")
	return strings.ReplaceAll(text, ",}", "}")
}

// describe is the schema in words, a line for everything there is in it.
func describe(t *testing.T, x *fixture) string {
	t.Helper()
	rows, err := x.admin.Query(t.Context(), describeSQL)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n") + "\n"
}

// describeSQL lists schema, columns, constraints, relations, indexes, sequences, functions, and whatever else hangs on
// the schema. pg_constraint has had the NOT NULLs since PostgreSQL 18; the columns' lines have them always.
const describeSQL = `
WITH relations AS (SELECT * FROM pg_class WHERE relnamespace = 'pgvfs'::regnamespace),
lines AS (
	SELECT 1 AS part, '' AS a, 0 AS b, format('schema owner=%s acl=%s comment=%s', nspowner::regrole = current_user::regrole,
		nspacl, obj_description(oid, 'pg_namespace')) AS line FROM pg_namespace WHERE nspname = 'pgvfs'
	UNION ALL
	SELECT 2, c.relname, a.attnum, format('column %s.%s %s%s%s storage=%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
		CASE WHEN co.collname <> 'default' THEN ' collate ' || co.collname ELSE '' END,
		CASE WHEN a.attnotnull THEN ' not null' ELSE '' END, a.attstorage,
		coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''),
		CASE WHEN a.attidentity <> '' OR a.attgenerated <> '' OR a.attcompression <> '' THEN ' odd' ELSE '' END)
	FROM relations c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
		LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
	WHERE c.relkind = 'r'
	UNION ALL
	SELECT 3, conrelid::regclass::text || conname, 0, format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
	FROM pg_constraint WHERE connamespace = 'pgvfs'::regnamespace AND contype <> 'n'
	UNION ALL
	SELECT 4, relname, 0, format('relation %s kind=%s persistence=%s options=%s acl=%s toast=%s partition=%s rules=%s triggers=%s policies=%s',
		relname, relkind, relpersistence, reloptions, relacl, reltoastrelid <> 0, relispartition, relhasrules, relhastriggers, relrowsecurity)
	FROM relations
	UNION ALL
	SELECT 5, relname, 0, pg_get_indexdef(oid) FROM relations WHERE relkind = 'i'
	UNION ALL
	SELECT 6, sequencename, 0, format('sequence %s %s start=%s increment=%s min=%s max=%s cycle=%s cache=%s owned=%s', sequencename, data_type,
		start_value, increment_by, min_value, max_value, cycle, cache_size, EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_class'::regclass AND objid = 'pgvfs.file_ids'::regclass AND deptype = 'a'))
	FROM pg_sequences WHERE schemaname = 'pgvfs'
	UNION ALL
	SELECT 7, proname, 0, format('function %s(%s) %s language=%s kind=%s volatile=%s strict=%s security_definer=%s settings=%s acl=%s comment=%s', proname,
		pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), lanname, prokind, provolatile, proisstrict, prosecdef, proconfig, proacl,
		obj_description(p.oid, 'pg_proc'))
	FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE pronamespace = 'pgvfs'::regnamespace
	UNION ALL
	SELECT 8, typname, 0, format('type %s', typname) FROM pg_type
	WHERE typnamespace = 'pgvfs'::regnamespace AND typrelid = 0 AND typcategory <> 'A'
	UNION ALL
	SELECT 9, '', 0, format('default privileges %s', defaclacl) FROM pg_default_acl
	UNION ALL
	SELECT 9, pubname, 0, format('publication %s', pubname) FROM pg_publication
	UNION ALL
	SELECT 9, extname, 0, format('extension %s', extname) FROM pg_extension WHERE extname <> 'plpgsql'
)
SELECT line FROM lines ORDER BY part, a COLLATE "C", b`
