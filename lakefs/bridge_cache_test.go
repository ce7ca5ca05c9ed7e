package lakefs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// pieces is how many queries for rows this process has sent so far.
func pieces(t *testing.T) int64 {
	t.Helper()
	var stats struct{ Pieces int64 }
	if err := json.Unmarshal([]byte(lakefs.Stats()), &stats); err != nil {
		t.Fatal(err)
	}
	return stats.Pieces
}

// sharedCaches: what one session has read of a file, no other asks PostgreSQL for, until it has other bytes.
func sharedCaches(t *testing.T, _ *lakeDuck, server *embeddedtest.ClusterServer) {
	x := &fixture{dsn: server.DSN(), admin: connect(t, server.DSN())}
	d := openDuck(t, x.open(t, lakefs.Config{}))
	d.admin.must(t, "SET GLOBAL parquet_metadata_cache = true")
	d.admin.want(t, "SELECT value FROM duckdb_settings() WHERE name = 'enable_external_file_cache'", "true")
	sessions := []duckConn{d.administrator(t), d.administrator(t), d.ordinary(t)}

	// reads has each session run a query, of which the first alone asks for rows, if any does.
	reads := func(sql, want string, asks bool) {
		t.Helper()
		for i, c := range sessions {
			before := pieces(t)
			c.want(t, sql, want)
			if asked := pieces(t) > before; asked != (asks && i == 0) {
				t.Errorf("%s: that session %d asks for rows is %t", sql, i, asked)
			}
		}
	}
	write := func(sql string) {
		t.Helper()
		d.admin.must(t, "COPY ("+sql+") TO 'pgvfs://v/x.parquet'")
		x.exec(t, `UPDATE pgvfs.files SET created_at = '2020-02-20'`) // two writes may begin in the same microsecond
	}
	const sum = "SELECT sum(i)::VARCHAR FROM 'pgvfs://v/x.parquet'"
	write("SELECT range AS i FROM range(100000)")
	reads(sum, "4999950000", true)
	reads(sum, "4999950000", false)
	write("SELECT 2 * range AS i FROM range(100000)")
	reads(sum, "9999900000", true)

	// Footers are kept by themselves.
	d.admin.must(t, "SET GLOBAL enable_external_file_cache = false")
	const count = "SELECT count(*)::VARCHAR FROM 'pgvfs://v/x.parquet'"
	reads(count, "100000", false)
	write("SELECT range AS i FROM range(7)")
	reads(count, "7", true)
	write("SELECT range AS i FROM range(8)")
	reads(count, "8", true)
}

// TestBridge_Replaced: a statement whose file is replaced while it reads gets the file that it began with, and what it
// and others read meanwhile is not kept as bytes of the wrong one.
func TestBridge_Replaced(t *testing.T) {
	const rows, groups = 2048, 30
	store := &faulty{Memory: lakefstest.NewMemory()}
	d := openDuck(t, store)
	d.admin.must(t, "SET GLOBAL parquet_metadata_cache = true", "SET GLOBAL threads = 2")
	reader, writer, other := d.administrator(t), d.administrator(t), d.administrator(t)
	write := func(c duckConn, n int) error {
		return c.exec(fmt.Sprintf("COPY (SELECT %d AS i, random() AS r FROM range(%d)) TO 'pgvfs://v/x.parquet' (ROW_GROUP_SIZE %d)", n, rows*groups, rows))
	}
	const sum = "SELECT sum(i + (r > 2)::INT)::VARCHAR FROM 'pgvfs://v/x.parquet'"
	want := func(n int) string { return fmt.Sprint(n * rows * groups) }
	if err := write(writer, 1); err != nil {
		t.Fatal(err)
	}
	for i, at := range []int64{1, 2, 3, 6, 12, 18} { // while the footer is read, and later and later in the pages
		n := i + 1
		var reads atomic.Int64
		var replaced error
		store.onRead = func(context.Context) error {
			if reads.Add(1) != at {
				return nil
			}
			replaced = errors.Join(write(writer, n+1), other.exec(sum))
			return replaced
		}
		reader.want(t, sum, want(n))
		if store.onRead = nil; replaced != nil || reads.Load() < at {
			t.Fatalf("after %d reads: %v", reads.Load(), replaced)
		}
		for _, c := range []duckConn{reader, other, writer} {
			c.want(t, sum, want(n+1))
		}
		if err := write(writer, n+1); err != nil { // nothing of it is kept
			t.Fatal(err)
		}
	}
}
