package lakefs_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// plants are what can be done to a store, and exactly what Verify then says: kind, file, row. The store holds file 1,
// pgvfs://lake/a, of four rows with 17 bytes in the last; file 2, lake/b, of one row; file 3, of none; and file 4, of
// three rows, removed. Where a fault needs a constraint out of the way, the constraint's absence is one too.
var plants = []struct{ name, sql, want string }{
	{"Nothing", ``, ""},
	{"Strangers", `CREATE TABLE pgvfs.other (i int); ALTER TABLE pgvfs.files ADD COLUMN other int; CREATE SCHEMA other; CREATE TABLE other.chunks (i int)`, ""},
	{"PartlyReaped", `DELETE FROM pgvfs.chunks WHERE file_id = 4 AND no = 0`, ""},
	{"Reaped", `DELETE FROM pgvfs.chunks WHERE file_id = 4`, ""},
	{"ByHand", `INSERT INTO pgvfs.files VALUES ('lake', 'hand', nextval('pgvfs.file_ids'), 8125); INSERT INTO pgvfs.chunks SELECT last_value, 0, decode(repeat('00', 8120), 'hex') FROM pgvfs.file_ids; INSERT INTO pgvfs.chunks SELECT last_value, 1, 'hello' FROM pgvfs.file_ids`, ""},

	{"RowMissing", `DELETE FROM pgvfs.chunks WHERE file_id = 1 AND no = 1`, "row-missing 1 1"},
	{"RowsMissing", `DELETE FROM pgvfs.chunks WHERE file_id = 1 AND no IN (0, 2, 3)`, "row-missing 1 0, row-missing 1 2"},
	{"TailMissing", `DELETE FROM pgvfs.chunks WHERE file_id = 1 AND no = 3`, "row-missing 1 3"},
	{"AllMissing", `DELETE FROM pgvfs.chunks WHERE file_id IN (1, 2)`, "row-missing 1 0, row-missing 2 0"},
	{"RemovedGap", `DELETE FROM pgvfs.chunks WHERE file_id = 4 AND no = 1`, "row-missing 4 1"},
	{"RowSurplus", `INSERT INTO pgvfs.chunks VALUES (1, 4, 'x'), (1, 5, 'x'), (1, 7, 'x')`, "row-surplus 1 4, row-surplus 1 7"},
	{"EmptySurplus", `INSERT INTO pgvfs.chunks VALUES (3, 0, 'x')`, "row-surplus 3 0"},
	{"RowNegative", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunk_shape; INSERT INTO pgvfs.chunks VALUES (2, -5, 'x')`, "layout 0 -1, row-surplus 2 -5"},
	{"RowShort", `UPDATE pgvfs.chunks SET data = substr(data, 2) WHERE file_id = 1 AND no IN (0, 1)`, "row-length 1 0"},
	{"RowsDiffer", `UPDATE pgvfs.chunks SET data = substr(data, 2 + no) WHERE file_id = 1 AND no IN (0, 1)`, "row-length 1 0, row-length 1 1"},
	{"RowsSwapped", `UPDATE pgvfs.chunks AS c SET data = o.data FROM pgvfs.chunks AS o WHERE c.file_id = 1 AND o.file_id = 1 AND c.no = 4 - o.no AND c.no IN (1, 3)`, "row-length 1 1"},
	{"RowEmpty", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunk_shape; UPDATE pgvfs.chunks SET data = '' WHERE file_id = 1 AND no = 1`, "layout 0 -1, row-length 1 1"},
	{"RowLong", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunk_shape; UPDATE pgvfs.chunks SET data = data || 'x' WHERE file_id = 1 AND no = 1`, "layout 0 -1, toast 0 -1, row-length 1 1, toast 1 1"},
	{"RowNull", `ALTER TABLE pgvfs.chunks ALTER data DROP NOT NULL; UPDATE pgvfs.chunks SET data = NULL WHERE file_id = 1 AND no = 1`, "layout 0 -1, row-length 1 1"},
	{"RowDuplicate", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunks_pkey; INSERT INTO pgvfs.chunks SELECT * FROM pgvfs.chunks WHERE file_id = 1 AND no IN (1, 2)`, "layout 0 -1, row-duplicate 1 1"},
	{"RowTwiceForAnother", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunks_pkey; UPDATE pgvfs.chunks SET no = 0 WHERE file_id = 1 AND no = 1; INSERT INTO pgvfs.chunks SELECT file_id, 0, data FROM pgvfs.chunks WHERE file_id = 1 AND no = 2; DELETE FROM pgvfs.chunks WHERE file_id = 1 AND no = 2`, "layout 0 -1, row-missing 1 1, row-duplicate 1 0"},
	{"RowUnnumbered", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunks_pkey; ALTER TABLE pgvfs.chunks ALTER no DROP NOT NULL; INSERT INTO pgvfs.chunks VALUES (2, NULL, 'x')`, "layout 0 -1, layout 0 -1, row-surplus 2 -1"},

	{"SizeSmall", `UPDATE pgvfs.files SET size = size - 1 WHERE file_id = 1`, "size 1 -1"},
	{"SizeLarge", `UPDATE pgvfs.files SET size = size + 1 WHERE file_id = 1`, "size 1 -1"},
	{"SizeTail", `UPDATE pgvfs.chunks SET data = data || 'x' WHERE file_id = 1 AND no = 3`, "size 1 -1"},
	{"SizeRows", `UPDATE pgvfs.files SET size = size + 8120 WHERE file_id = 1`, "row-length 1 3, row-missing 1 4"},

	{"OrphanRows", `DELETE FROM pgvfs.files WHERE file_id IN (1, 2)`, "orphan-rows 1 -1, orphan-rows 2 -1"},
	{"OrphanNoID", `ALTER TABLE pgvfs.chunks DROP CONSTRAINT chunks_pkey; ALTER TABLE pgvfs.chunks ALTER file_id DROP NOT NULL; INSERT INTO pgvfs.chunks VALUES (NULL, 0, 'x')`, "layout 0 -1, layout 0 -1, orphan-rows 0 -1"},

	{"GarbagePublished", `INSERT INTO pgvfs.garbage VALUES (1)`, "garbage-published 1 -1"},
	{"GarbageForever", `UPDATE pgvfs.garbage SET queued_at = 'infinity'`, "garbage-shape 4 -1"},
	{"GarbageTwice", `ALTER TABLE pgvfs.garbage DROP CONSTRAINT garbage_pkey; INSERT INTO pgvfs.garbage VALUES (4)`, "layout 0 -1, id-shared 4 -1"},
	{"GarbageNoID", `ALTER TABLE pgvfs.garbage DROP CONSTRAINT garbage_pkey; ALTER TABLE pgvfs.garbage ALTER file_id DROP NOT NULL; INSERT INTO pgvfs.garbage VALUES (NULL)`, "layout 0 -1, layout 0 -1, garbage-shape 0 -1"},

	{"IDShared", `ALTER TABLE pgvfs.files DROP CONSTRAINT files_file_id_key; INSERT INTO pgvfs.files VALUES ('lake', 'a2', 1, 24377)`, "layout 0 -1, id-shared 1 -1"},
	{"IDUnissued", `INSERT INTO pgvfs.files VALUES ('lake', 'next', 5, 0); INSERT INTO pgvfs.garbage VALUES (6)`, "id-unissued 5 -1, id-unissued 6 -1"},
	{"SequenceReset", `ALTER SEQUENCE pgvfs.file_ids RESTART`, "id-unissued 1 -1, id-unissued 2 -1, id-unissued 3 -1, id-unissued 4 -1"},

	{"NameShared", `ALTER TABLE pgvfs.files DROP CONSTRAINT files_pkey; UPDATE pgvfs.files SET path = 'a' WHERE file_id = 3`, "layout 0 -1, name-shared 0 -1"},
	{"NameDirectory", `UPDATE pgvfs.files SET path = 'a/' WHERE file_id = 3`, "file-shape 3 -1"},
	{"NameEmpty", `ALTER TABLE pgvfs.files DROP CONSTRAINT file_shape; UPDATE pgvfs.files SET path = '' WHERE file_id = 3; UPDATE pgvfs.files SET volume = 'A' WHERE file_id = 2`, "layout 0 -1, file-shape 2 -1, file-shape 3 -1"},
	{"SizeNegative", `ALTER TABLE pgvfs.files DROP CONSTRAINT file_shape; UPDATE pgvfs.files SET size = -1 WHERE file_id = 3`, "layout 0 -1, file-shape 3 -1"},
	{"CreatedNever", `UPDATE pgvfs.files SET created_at = '-infinity' WHERE file_id = 3`, "file-shape 3 -1"},
	{"FileNoID", `ALTER TABLE pgvfs.files ALTER file_id DROP NOT NULL; INSERT INTO pgvfs.files VALUES ('lake', 'none', NULL, 0)`, "layout 0 -1, file-shape 0 -1"},

	{"Compressed", `ALTER TABLE pgvfs.chunks ALTER data SET STORAGE MAIN, SET (toast_tuple_target = 2000); UPDATE pgvfs.chunks SET data = decode(repeat('00', 8120), 'hex') WHERE file_id = 1 AND no < 2`, "layout 0 -1, layout 0 -1, page-shared 1 0"},
	{"Toasted", `ALTER TABLE pgvfs.chunks SET (toast_tuple_target = 2000); UPDATE pgvfs.chunks SET data = data || '' WHERE file_id = 1 AND no = 1`, "layout 0 -1, toast 0 -1, toast 1 1"},

	{"Version", `UPDATE pgvfs.layout SET version = 3`, "layout 0 -1"},
	{"VersionNone", `DELETE FROM pgvfs.layout`, "layout 0 -1"},
	{"VersionTwice", `INSERT INTO pgvfs.layout VALUES (2)`, "layout 0 -1"},
	{"TableGone", `DROP TABLE pgvfs.garbage`, "layout 0 -1"},
	{"ColumnGone", `ALTER TABLE pgvfs.files DROP COLUMN created_at`, "layout 0 -1"},
	{"ColumnType", `ALTER TABLE pgvfs.chunks ALTER no TYPE int8`, "layout 0 -1"},
	{"ColumnMore", `ALTER TABLE pgvfs.chunks ADD COLUMN crc int4`, "layout 0 -1"},
	{"Collation", `ALTER TABLE pgvfs.files ALTER path TYPE text COLLATE "default"`, "layout 0 -1"},
	{"Unlogged", `ALTER TABLE pgvfs.chunks SET UNLOGGED`, "layout 0 -1"},
	{"RowSecurity", `ALTER TABLE pgvfs.files ENABLE ROW LEVEL SECURITY`, "layout 0 -1"},
	{"SequenceGone", `DROP SEQUENCE pgvfs.file_ids`, "layout 0 -1"},
	{"SequenceCycle", `ALTER SEQUENCE pgvfs.file_ids CYCLE`, "layout 0 -1"},
	{"FunctionGone", `DROP FUNCTION pgvfs.reap`, "layout 0 -1"},
	{"FunctionOld", `COMMENT ON FUNCTION pgvfs.reap IS NULL`, "layout 0 -1"},
	{"FunctionNew", `COMMENT ON FUNCTION pgvfs.reap IS 'pgvfs functions 4'`, ""},
}

// TestWhole: what looks at a store as a whole, each case on an empty database of one server.
func TestWhole(t *testing.T) {
	majors := versions()
	if !*long {
		majors = []int{slices.Max(majors)} // TestPG verifies on the others
	}
	for _, major := range majors {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			x := newFixture(t, embeddedtest.Cluster(t, embeddedtest.ClusterOptions{Major: major}), bySocket)
			for _, c := range wholeCases {
				t.Run(c.name, func(t *testing.T) { c.run(t, x) })
				x.exec(t, "DROP SCHEMA IF EXISTS pgvfs CASCADE")
			}
		})
	}
}

// wholeCases are those of verify_test.go and usage_test.go.
var wholeCases = []struct {
	name string
	run  func(t *testing.T, x *fixture)
}{
	{"VerifyPlants", verifyPlants},
	{"VerifyReaders", verifyReaders},
	{"VerifyWindows", verifyWindows},
	{"VerifyLarge", verifyLarge},
	{"VerifyWriting", verifyWriting},
	{"VerifyEnded", verifyEnded},
	{"Usage", usage},
	{"ListFiles", listFiles},
}

// verifyPlants: each fault that is planted is found, and nothing else.
func verifyPlants(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{MaxConns: 4})
	for _, c := range plants {
		t.Run(c.name, func(t *testing.T) {
			verifyStore(t, p)
			x.exec(t, c.sql)
			wantFaults(t, p, c.want)
		})
		x.exec(t, undo(c.sql))
	}
}

// definitions are words that change more than rows.
var definitions = regexp.MustCompile(`\b(CREATE|ALTER|DROP|COMMENT|layout)\b`)

// undo is what makes the store empty again after a plant.
func undo(plant string) string {
	if definitions.MatchString(plant) {
		return `DROP SCHEMA IF EXISTS pgvfs CASCADE; DROP SCHEMA IF EXISTS other CASCADE`
	}
	return `DELETE FROM pgvfs.files; DELETE FROM pgvfs.garbage; DELETE FROM pgvfs.chunks; SELECT setval('pgvfs.file_ids', 1, false)`
}

// verifyStore fills a store as plants says.
func verifyStore(t *testing.T, p *lakefs.PG) {
	t.Helper()
	lakefstest.Put(t, p, "lake", "a", lakefstest.Content(1, 3*chunkBytes+17))
	lakefstest.Put(t, p, "lake", "b", lakefstest.Content(2, chunkBytes))
	lakefstest.Put(t, p, "lake", "empty", nil)
	lakefstest.Put(t, p, "lake", "gone", lakefstest.Content(3, 3*chunkBytes))
	if err := p.Remove(t.Context(), "lake", "gone"); err != nil {
		t.Fatal(err)
	}
}

// wantFaults verifies a store and compares.
func wantFaults(t *testing.T, p *lakefs.PG, want string) lakefs.Verified {
	t.Helper()
	var got, full []string
	found, err := p.Verify(t.Context(), func(f lakefs.Fault) {
		got = append(got, fmt.Sprint(f.Kind, " ", f.FileID, " ", f.Row))
		full = append(full, f.String())
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q:\n%s", got, want, strings.Join(full, "\n"))
	}
	if found.Faults != int64(len(got)) {
		t.Errorf("%d faults counted, %d reported", found.Faults, len(got))
	}
	return found
}

// verifyReaders: an empty database is a clean store, and SELECT is enough to find a fault.
func verifyReaders(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	if found := wantFaults(t, p, ""); found.Files != 0 || found.Skipped != nil {
		t.Errorf("%+v", found)
	}
	x.want(t, nil, `SELECT to_regnamespace('pgvfs')::text`)
	verifyStore(t, p)
	found := wantFaults(t, p, "")
	if found.Files != 3 || found.Rows != 8 || found.Bytes != 7*chunkBytes+17 || found.Skipped != nil {
		t.Errorf("%+v", found)
	}
	reader := x.open(t, lakefs.Config{DSN: x.readerDSN(t)})
	if found := wantFaults(t, reader, ""); found.Files != 3 || len(found.Skipped) != 1 {
		t.Errorf("%+v", found)
	}
	x.exec(t, `DELETE FROM pgvfs.chunks WHERE file_id = 1 AND no = 0`)
	wantFaults(t, reader, "row-missing 1 0")
	x.exec(t, `REVOKE SELECT ON pgvfs.chunks FROM reader`)
	if _, err := reader.Verify(t.Context(), func(lakefs.Fault) {}); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Error(err)
	}
}

// verifyWindows: many files are checked in windows, each once, and each window's faults are found.
func verifyWindows(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	lakefstest.Put(t, p, "lake", "first", []byte("1"))
	x.exec(t, `INSERT INTO pgvfs.files SELECT 'lake', 'f' || i, nextval('pgvfs.file_ids'), 5 FROM generate_series(1, 10000) AS i`)
	x.exec(t, `INSERT INTO pgvfs.chunks SELECT file_id, 0, 'hello' FROM pgvfs.files WHERE path <> 'first'`)
	x.exec(t, `WITH gone AS (DELETE FROM pgvfs.files WHERE file_id % 10 = 0 RETURNING file_id) INSERT INTO pgvfs.garbage SELECT file_id FROM gone`)
	var bytes, total int64
	found, err := p.VerifyProgress(t.Context(), func(f lakefs.Fault) { t.Error(f) }, func(b, of int64) {
		if b < bytes {
			t.Errorf("progress from %d to %d", bytes, b)
		}
		bytes, total = b, of
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.Files != 9001 || found.Rows != 10001 || bytes != total || total != 1+9000*5 {
		t.Errorf("%+v, %d bytes of %d", found, bytes, total)
	}
	x.exec(t, `DELETE FROM pgvfs.chunks WHERE file_id IN (2, 5001, 9999); INSERT INTO pgvfs.chunks VALUES (20000, 0, 'x'), (-7, 0, 'x')`)
	wantFaults(t, p, "orphan-rows -7 -1, row-missing 2 0, row-missing 5001 0, row-missing 9999 0, orphan-rows 20000 -1")
}

// verifyLarge: the rows of a large file are looked at in steps, which are no borders. With -long a sound one is, too.
func verifyLarge(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	lakefstest.Put(t, p, "lake", "first", []byte("1"))
	const rows = 100_000
	x.exec(t, `INSERT INTO pgvfs.files VALUES ('lake', 'large', nextval('pgvfs.file_ids'), $1)`, rows*chunkBytes-1)
	x.exec(t, `INSERT INTO pgvfs.chunks SELECT 2, no, decode(repeat('00', 8120), 'hex') FROM unnest(ARRAY[0, 1, 32767, 32768, 40000, 99999, 100000]) AS no`)
	x.exec(t, `INSERT INTO pgvfs.chunks VALUES (1000, 0, 'orphan'), (1000, 90000, 'orphan'), (1000, 2147483647, 'orphan')`)
	lakefstest.Put(t, p, "lake", "last", []byte("1"))
	wantFaults(t, p, "row-missing 2 2, row-missing 2 32769, row-missing 2 40001, row-surplus 2 100000, orphan-rows 1000 -1")
	if !*long {
		return
	}
	x.exec(t, `DELETE FROM pgvfs.chunks WHERE file_id IN (2, 1000)`)
	x.exec(t, `INSERT INTO pgvfs.chunks SELECT 2, no, decode(repeat('00', CASE no WHEN 99999 THEN 8119 ELSE 8120 END), 'hex') FROM generate_series(0, 99999) AS no`)
	if found := wantFaults(t, p, ""); found.Rows != rows+2 || found.Bytes != rows*chunkBytes+1 {
		t.Errorf("%+v", found)
	}
	x.exec(t, `UPDATE pgvfs.chunks SET data = substr(data, 2) WHERE file_id = 2 AND no IN (65535, 65536)`)
	wantFaults(t, p, "row-length 2 65535")
}

// verifyWriting: a store that is written to meanwhile is sound in every snapshot.
func verifyWriting(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{ReapGrace: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := 0; ctx.Err() == nil && err == nil; i++ {
			path := fmt.Sprint(i % 7)
			if _, err = lakefstest.TryPut(context.WithoutCancel(ctx), p, "lake", path, lakefstest.Content(uint64(i), i%5*chunkBytes+i)); err == nil && i%3 == 0 {
				err = p.Remove(context.WithoutCancel(ctx), "lake", path)
			}
		}
		ended <- err
	}()
	for range 50 {
		wantFaults(t, p, "")
		x.exec(t, `DO $$ BEGIN IF to_regclass('pgvfs.layout') IS NOT NULL THEN PERFORM pgvfs.reap('0'); END IF; END $$`)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// verifyEnded: a verification ends with its context, which is no finding.
func verifyEnded(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	verifyStore(t, p)
	x.exec(t, `DELETE FROM pgvfs.chunks WHERE file_id = 1 AND no = 0; COMMENT ON FUNCTION pgvfs.reap IS NULL`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.Verify(ctx, func(lakefs.Fault) { cancel() })
	if err == nil {
		t.Error("it went on")
	}
	wantFaults(t, p, "layout 0 -1, row-missing 1 0")
}

// standbyVerify: a standby shows what is wrong on its primary.
func standbyVerify(t *testing.T, p pair) {
	primary, standby := p.primary.open(t, lakefs.Config{}), p.standby.open(t, lakefs.Config{})
	f := lakefstest.Put(t, primary, "verify", "f", lakefstest.Content(1, 3*chunkBytes))
	p.catchUp(t)
	wantFaults(t, standby, "")
	p.primary.exec(t, `DELETE FROM pgvfs.chunks WHERE file_id = $1 AND no > 0`, f.ID)
	p.catchUp(t)
	wantFaults(t, standby, fmt.Sprint("row-missing ", f.ID, " 1"))
	p.primary.exec(t, `DELETE FROM pgvfs.chunks WHERE file_id = $1`, f.ID)
	p.primary.exec(t, `DELETE FROM pgvfs.files WHERE file_id = $1`, f.ID)
	p.catchUp(t)
}
