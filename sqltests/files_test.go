package sqltests

import (
	"os"
	"strings"
	"testing"
)

// TestFiles_OtherDatabases: an administrator reads and writes files of other databases by their secrets, and moves them
// into the lake and out of it. Nobody else does, and passwords are told to nobody.
func TestFiles_OtherDatabases(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	backing := connectAs(t, c.dsn("postgres"))
	databases := []string{"by_secret", "by_setting", "by_url"}
	for _, name := range databases {
		mustExec(t, backing, "CREATE DATABASE "+name)
	}
	s := startServer(t, "--dsn", c.dsn("lake"), "--pgvfs-url", c.dsn("by_url"), "--log-level", "trace")
	sharedCaches(t, s) // before anything else reads
	admin, user := connectAs(t, s.dsn("admin")), s.connect(t)
	const password = "do-not-tell"
	secret := func(name, database string) {
		t.Helper()
		mustExec(t, admin, "CREATE OR REPLACE SECRET "+name+" (TYPE postgres, HOST '"+c.dir+"', USER 'postgres', PASSWORD '"+password+"', DATABASE '"+database+"')")
	}
	files := func(want ...string) { // of each database
		t.Helper()
		for i, name := range databases {
			got := mustExec(t, connectAs(t, c.dsn(name)), "SELECT volume || '/' || path FROM pgvfs.files ORDER BY 1")
			if strings.Join(got, " ") != want[i] {
				t.Errorf("database %s has the files %q, want %q", name, got, want[i])
			}
		}
	}

	mustExec(t, admin, "CREATE TABLE t AS SELECT i FROM range(20000) r(i)")
	mustExec(t, admin, "COPY t TO 'pgvfs://v/1.parquet'")
	secret("mine", "by_setting")
	mustExec(t, admin, "SET pgvfs_secret = 'mine'")
	mustExec(t, admin, "COPY t TO 'pgvfs://v/2.parquet'")
	secret("pgvfs_v", "by_secret")
	mustExec(t, admin, "COPY t TO 'pgvfs://v/3.parquet'")
	mustExec(t, admin, "COPY t TO 'pgvfs://w/4.parquet'")
	files("v/3.parquet", "v/2.parquet w/4.parquet", "v/1.parquet")
	wantRow(t, admin, "SELECT string_agg(file, ' ') FROM glob('pgvfs://v/*')", "pgvfs://v/3.parquet")
	mustExec(t, admin, "CREATE TABLE back AS FROM 'pgvfs://v/3.parquet'")
	wantRow(t, user, "SELECT count(*), sum(i) FROM back", "20000\t199990000")

	for _, sql := range []string{
		"SELECT * FROM 'pgvfs://v/3.parquet'", "COPY t TO 'pgvfs://v/5.parquet'", "SELECT pgvfs_drop_volume('v')", "DROP SECRET pgvfs_v",
	} {
		if err := run(user, sql); sqlstate(err) != "42501" {
			t.Errorf("%s: %v, want 42501", sql, err)
		}
	}
	mustExec(t, admin, "DROP SECRET pgvfs_v")
	mustExec(t, admin, "COPY t TO 'pgvfs://v/6.parquet'")
	wantRow(t, admin, "SELECT pgvfs_drop_volume('v')", "2")
	wantRow(t, admin, "SELECT pgvfs_drop_volume('v')", "0")
	wantRow(t, admin, "SELECT pgvfs_drop_volume(NULL)", "NULL")
	mustExec(t, admin, "RESET pgvfs_secret")
	wantRow(t, admin, "SELECT pgvfs_drop_volume(v) FROM (VALUES ('v'), ('w'), ('v')) x(v)", "1\n0\n0")
	files("v/3.parquet", "w/4.parquet", "")

	// The lake's own files are where they were, whatever a secret says of its volume.
	secret("pgvfs_lake", "by_secret")
	wantRow(t, user, "SELECT count(*) FROM t", "20000")
	mustExec(t, user, "INSERT INTO t SELECT i FROM range(20000) r(i)")
	wantRow(t, admin, "SELECT count(*) FROM t", "40000")
	files("v/3.parquet", "w/4.parquet", "")

	mustExec(t, admin, "CREATE OR REPLACE SECRET pgvfs_v (TYPE postgres, HOST '192.0.2.1', SSLMODE 'disable', PASSWORD '"+password+"')")
	err := run(admin, "SELECT * FROM 'pgvfs://v/3.parquet'")
	if err == nil || strings.Contains(describe(err), password) || !strings.Contains(describe(err), "would not be encrypted") {
		t.Errorf("a server on another machine, without TLS: %v", err)
	}
	log, err := os.ReadFile(s.logPath())
	if err != nil || strings.Contains(string(log), password) {
		t.Errorf("the log has the password in it: %v", err)
	}
}

// sharedCaches: what one session has read of the lake, no other asks PostgreSQL for.
func sharedCaches(t *testing.T, s *server) {
	one, two, admin := s.connect(t), s.connect(t), connectAs(t, s.dsn("admin"))
	for name, value := range map[string]string{"enable_external_file_cache": "true", "parquet_metadata_cache": "true"} {
		wantRow(t, admin, "SELECT value FROM duckdb_settings() WHERE name = '"+name+"'", value)
	}
	const stats = "SELECT pgvfs_stats()::json->>'pieces'"
	mustExec(t, one, "CREATE TABLE cached AS SELECT i FROM range(200000) r(i); DELETE FROM cached WHERE i % 7 = 0")
	before := mustExec(t, one, stats)
	wantRow(t, one, "SELECT count(*), sum(i) FROM cached", "171428\t17142742858")
	after := mustExec(t, one, stats)
	if before[0] == after[0] {
		t.Error("the first session has read nothing")
	}
	wantRow(t, two, "SELECT count(*), sum(i) FROM cached", "171428\t17142742858")
	wantRow(t, two, stats, after[0])
	mustExec(t, two, "UPDATE cached SET i = -i WHERE i < 100")
	wantRow(t, one, "SELECT count(*), sum(i) FROM cached", "171428\t17142734428")
}
