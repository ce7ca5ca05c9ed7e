package lakefs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sluice/lakefs/lakefstest"
)

// errDiskFull is the cause of the faults here.
var errDiskFull = errors.New("no space left on the device")

// bridgeStatements are what DuckDB does with a store, and which calls it makes for it. Each statement finds old.csv, which
// holds a column x with 1, and may make a file.
var bridgeStatements = []struct {
	name, sql string
	ops       []lakefstest.Op // that it fails without
}{
	{"Copy", "COPY (SELECT range AS i FROM range(200000)) TO 'pgvfs://v/new.csv'", writeOps},
	{"CopyParquet", "COPY (SELECT range AS i FROM range(200000)) TO 'pgvfs://v/new.parquet' (ROW_GROUP_SIZE 20480)", writeOps},
	{"CopyOver", "COPY (SELECT range AS x FROM range(200000)) TO 'pgvfs://v/old.csv'", writeOps},
	{"CopyAndMove", "COPY (SELECT 1 AS x) TO 'pgvfs://v/new.csv' (USE_TMP_FILE true)", append([]lakefstest.Op{lakefstest.OpRename}, writeOps...)},
	{"Read", "SELECT * FROM read_csv('pgvfs://v/old.csv')", []lakefstest.Op{lakefstest.OpOpen, lakefstest.OpRead}},
	{"ReadText", "SELECT * FROM read_text('pgvfs://v/old.csv')", []lakefstest.Op{lakefstest.OpOpen, lakefstest.OpRead}},
	{"ReadMany", "SELECT * FROM read_csv('pgvfs://v/*.csv')", []lakefstest.Op{lakefstest.OpGlob, lakefstest.OpOpen, lakefstest.OpRead}},
	{"Glob", "SELECT * FROM glob('pgvfs://v/*')", []lakefstest.Op{lakefstest.OpGlob}},
}

// writeOps are the calls that make a file.
var writeOps = []lakefstest.Op{lakefstest.OpCreate, lakefstest.OpWrite, lakefstest.OpClose}

// bridgeFaults are the ways in which calls fail, and what DuckDB makes of them.
var bridgeFaults = []struct {
	name  string
	fault lakefstest.Fault
	kind  duckdb.ErrorType
	text  string
	done  bool // a change has taken effect all the same
}{
	{"Before", lakefstest.Before(errDiskFull), duckdb.ErrorTypeErrorIO, errDiskFull.Error(), false},
	{"After", lakefstest.After(errDiskFull), duckdb.ErrorTypeErrorIO, errDiskFull.Error(), true},
	{"Torn", lakefstest.Torn(1, errDiskFull), duckdb.ErrorTypeErrorIO, errDiskFull.Error(), true},
	{"Panic", lakefstest.Panic("a bug"), duckdb.ErrorTypeErrorIO, "panic in pgvfs: a bug", false},
}

// faultyDuck is a DuckDB instance on a store that holds old.csv and fails on demand.
func faultyDuck(t *testing.T) (*duck, *lakefstest.Faulty) {
	store := lakefstest.NewFaulty(lakefstest.NewMemory())
	d := openDuck(t, store)
	d.admin.must(t, "SET GLOBAL enable_external_file_cache = false", "SET GLOBAL threads = 1")
	onlyOld(t, store)
	return d, store
}

// onlyOld has a store hold old.csv and nothing else.
func onlyOld(t *testing.T, store *lakefstest.Faulty) {
	t.Helper()
	if _, err := store.RemovePrefix(t.Context(), "v", ""); err != nil {
		t.Fatal(err)
	}
	lakefstest.Put(t, store, "v", "old.csv", []byte("x\n1\n"))
	store.TakeLog()
}

// TestBridge_Faults: whatever call of whatever statement fails, the statement fails with the cause, nothing of what it
// was making is left, no file stays open, and the instance goes on.
func TestBridge_Faults(t *testing.T) {
	for _, s := range bridgeStatements {
		d, store := faultyDuck(t)
		for _, op := range s.ops {
			for _, f := range bridgeFaults {
				t.Run(fmt.Sprint(s.name, "/", op, "/", f.name), func(t *testing.T) {
					onlyOld(t, store)
					store.Inject(lakefstest.Rule{Op: op, Then: f.fault})
					d.admin.wantError(t, s.sql, f.kind, f.text)
					store.Inject()
					made := f.done && (op == lakefstest.OpRename || op == lakefstest.OpClose)
					wantAfterFault(t, d, store, made)
				})
			}
		}
	}
}

// wantAfterFault checks what holds after a statement that failed; made says that its file is there all the same.
func wantAfterFault(t *testing.T, d *duck, store *lakefstest.Faulty, made bool) {
	t.Helper()
	if n := store.OpenWriters(); n != 0 {
		t.Errorf("%d writers are still open; the calls were\n%s", n, strings.Join(store.TakeLog(), "\n"))
	}
	if !made {
		lakefstest.WantFile(t, store, "v", "old.csv", []byte("x\n1\n"))
		lakefstest.WantList(t, store, "v", "", 0, "old.csv")
	}
	d.admin.must(t, "COPY (SELECT 2 AS x) TO 'pgvfs://v/old.csv'")
	d.admin.want(t, "SELECT x::VARCHAR FROM read_csv('pgvfs://v/old.csv')", "2")
}

// TestBridge_LaterWrites: a write that fails late, after others, leaves nothing either.
func TestBridge_LaterWrites(t *testing.T) {
	d, store := faultyDuck(t)
	for _, s := range bridgeStatements[:3] {
		onlyOld(t, store)
		d.admin.must(t, s.sql)
		writes := strings.Count(strings.Join(store.TakeLog(), "\n"), string(lakefstest.OpWrite)+" v/")
		if writes < 3 {
			t.Errorf("%s: only %d writes", s.name, writes)
		}
		for _, n := range []int{2, writes / 2, writes} {
			onlyOld(t, store)
			store.Inject(lakefstest.Rule{Op: lakefstest.OpWrite, When: lakefstest.Nth(n), Then: lakefstest.Before(errDiskFull)})
			d.admin.wantError(t, s.sql, duckdb.ErrorTypeErrorIO, errDiskFull.Error())
			store.Inject()
			wantAfterFault(t, d, store, false)
		}
	}
}

// TestBridge_Interrupts: whatever call a client's statement waits in, the end of its context ends the statement, as an
// interrupt, and leaves nothing.
func TestBridge_Interrupts(t *testing.T) {
	for _, s := range bridgeStatements {
		d, store := faultyDuck(t)
		for _, op := range s.ops {
			t.Run(fmt.Sprint(s.name, "/", op), func(t *testing.T) {
				onlyOld(t, store)
				ctx, cancel := context.WithCancel(t.Context())
				c, client := d.client(t)
				client.SetContext(ctx)
				block := lakefstest.Block()
				store.Inject(lakefstest.Rule{Op: op, Then: func(ctx context.Context, call lakefstest.Call) error {
					cancel() // it has come to where it waits
					return block(ctx, call)
				}})
				c.wantError(t, s.sql, duckdb.ErrorTypeInterrupt, "")
				store.Inject()
				wantAfterFault(t, d, store, false)
			})
		}
	}
}

// TestBridge_Operations: the calls that statements make, in their order. testdata/operations.txt holds them: a change
// there, by another DuckDB or by the bridge, is to be seen.
func TestBridge_Operations(t *testing.T) {
	store := lakefstest.NewFaulty(lakefstest.NewMemory())
	d := openDuck(t, store)
	d.admin.must(t, "SET threads = 1")
	var got strings.Builder
	for _, sql := range []string{
		"COPY (SELECT 1 AS x) TO 'pgvfs://v/a.csv'",
		"COPY (SELECT 2 AS x) TO 'pgvfs://v/a.csv'",
		"COPY (SELECT 3 AS x) TO 'pgvfs://v/b.csv' (USE_TMP_FILE true)",
		"COPY (SELECT range AS i FROM range(3000)) TO 'pgvfs://v/c.parquet'",
		"COPY (SELECT 1 AS x, 2 AS part) TO 'pgvfs://v/parts' (FORMAT csv, PARTITION_BY part)",
		"COPY (SELECT 1 AS x, 2 AS part) TO 'pgvfs://v/parts' (FORMAT csv, PARTITION_BY part, OVERWRITE)",
		"SELECT x FROM read_csv('pgvfs://v/a.csv', header = true, columns = {'x': 'INT'})",
		"SELECT x FROM read_csv('pgvfs://v/a.csv', header = true, columns = {'x': 'INT'})",
		"SELECT sum(i) FROM 'pgvfs://v/c.parquet'",
		"SELECT sum(i) FROM 'pgvfs://v/c.parquet'",
		"SELECT content FROM read_text('pgvfs://v/*.csv')",
		"SELECT * FROM glob('pgvfs://v/**/*.csv')",
		"SELECT * FROM 'pgvfs://v/none.parquet'",
		"COPY (SELECT error('stop') FROM range(10)) TO 'pgvfs://v/never.csv'",
	} {
		fmt.Fprintf(&got, "%s\n", sql)
		if err := d.admin.exec(sql); err != nil {
			fmt.Fprintf(&got, "\t(fails)\n")
		}
		for _, line := range store.TakeLog() {
			fmt.Fprintf(&got, "\t%s\n", line)
		}
	}
	wantGolden(t, filepath.Join("testdata", "operations.txt"), got.String())
}

// wantGolden compares a text with a file, which REWRITE=1 makes anew.
func wantGolden(t *testing.T, file, got string) {
	t.Helper()
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
		t.Errorf("%s holds something else; REWRITE=1 accepts this:\n%s", file, got)
	}
}
