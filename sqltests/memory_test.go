package sqltests

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSpill_DiskFull: a sort that needs more than memory and the spill folder's disk hold ends with 53100, and the session goes on.
// The disk is a small file system of the test's own where the test may mount one, else DuckDB's own limit.
func TestSpill_DiskFull(t *testing.T) {
	s := newServer(t, "--memory-limit", "300MB", "--threads", "2")
	spill := filepath.Join(s.dir, "spill")
	if err := os.Mkdir(spill, 0o755); err != nil {
		t.Fatal(err)
	}
	mounted := syscall.Mount("tmpfs", spill, "tmpfs", 0, "size=32m") == nil
	if mounted {
		t.Cleanup(func() { syscall.Unmount(spill, syscall.MNT_DETACH) })
	}
	s.addUsers(t)
	s.start(t)
	if !mounted {
		t.Log("may not mount a small disk; limits the spill folder by a setting instead")
		mustExec(t, connectAs(t, s.dsn("admin")), "set global max_temp_directory_size = '32MB'")
	}
	conn := s.connect(t)
	mustExec(t, conn, "create table kept as select 1 as i")
	big := "select hash(i) as h, md5(i::varchar) as a, md5((i * 7)::varchar) as b, i from range(30000000) r(i) order by h, a"
	for name, sql := range map[string]string{
		"read": fmt.Sprintf("select count(*), sum(n) from (select i, row_number() over (order by h, a, b) as n from (%s)) s", big), "write": "create table half as " + big,
	} {
		if err := run(conn, sql); sqlstate(err) != "53100" {
			t.Errorf("%s: %v, want 53100", name, err)
		}
	}
	if err := run(conn, "select * from half"); sqlstate(err) != "42P01" {
		t.Errorf("the failed create table is half there: %v, want 42P01", err)
	}
	wantRow(t, conn, "select i from kept", "1")
}

// TestStream_FlatMemory reads a wide table as a slow client would: the server must not gather the result. The six
// million rows with -long, one million else.
func TestStream_FlatMemory(t *testing.T) {
	rows, growthMax := 1_000_000, 200<<20
	if *longFlag {
		rows = 6_000_000
	}
	s := startServer(t, "--memory-limit", "1GB")
	conn := s.connect(t)
	mustExec(t, conn, fmt.Sprintf(`create table wide as select i as a, i + 1 as b, i %% 7 as c, i %% 1000 as d, i * 0.5 as e,
		i::double as f, (i %% 100)::decimal(12,2) as g, date '2020-01-01' + (i %% 3000)::int as h, timestamp '2020-01-01' + to_seconds(i) as j,
		md5(i::varchar) as k, 'row ' || i as l, i %% 2 = 0 as m, (i %% 50)::varchar as n, (i %% 9)::smallint as o, hash(i) as p, 'a fixed comment' as q
		from range(%d) r(i)`, rows))
	time.Sleep(time.Second) // so that what the load took is given back
	idle, peak, read := rss(t, s), 0, 0
	result := conn.Exec(t.Context(), "select * from wide")
	for result.NextResult() {
		for reader := result.ResultReader(); reader.NextRow(); read++ {
			if read%20_000 == 0 {
				peak = max(peak, rss(t, s))
			}
		}
	}
	if err := result.Close(); err != nil || read != rows {
		t.Fatalf("%d rows of %d: %v", read, rows, err)
	}
	cached, err := strconv.Atoi(mustExec(t, conn, "select coalesce(sum(memory_usage_bytes), 0)::bigint from duckdb_memory() where tag = 'EXTERNAL_FILE_CACHE'")[0])
	if err != nil {
		t.Fatal(err)
	}
	// DuckDB keeps the files' bytes for the next reader, within its memory limit: that is the cache's, not the stream's.
	t.Logf("idle %d MB, peak %d MB, of which %d MB are cached files", idle>>20, peak>>20, cached>>20)
	if grown := peak - idle - cached; grown > growthMax && !raceEnabled { // the race detector's shadow memory is several times the real one
		t.Errorf("resident memory grew by %d MB beside the cache, allowed are %d", grown>>20, growthMax>>20)
	}
}

// rss is the server's resident memory in bytes.
func rss(t *testing.T, s *server) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Skip("needs Linux's /proc")
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
