package sqltests

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestTwoServers_SeeCommits: what one Sluice commits, another one on the same PostgreSQL sees in its very next statement.
func TestTwoServers_SeeCommits(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a := startServer(t, "--dsn", c.dsn("lake")).connect(t)
	mustExec(t, a, "create table t(n int)")
	b := startServer(t, "--dsn", c.dsn("lake")).connect(t)
	for i := range 20 {
		writer, reader := a, b
		if i%2 == 1 {
			writer, reader = b, a
		}
		mustExec(t, writer, fmt.Sprintf("insert into t values (%d)", i))
		wantRow(t, reader, "select count(*), max(n) from t", fmt.Sprintf("%d\t%d", i+1, i))
	}
	mustExec(t, a, "alter table t add column late text; update t set late = 'a' where n = 3")
	wantRow(t, b, "select late from t where n = 3", "a")
	mustExec(t, b, "drop table t")
	if err := run(a, "select * from t"); sqlstate(err) != "42P01" {
		t.Errorf("a table that the other server dropped: %v, want 42P01", err)
	}
}

// TestBacking_ChunkRowsAreDense holds the facts of the chunk store against what a real load leaves in PostgreSQL: every row but
// a file's last has 8,120 bytes and fills a page, and nothing goes out of line.
func TestBacking_ChunkRowsAreDense(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	conn := startServer(t, "--dsn", c.dsn("lake")).connect(t)
	mustExec(t, conn, "create table t as select i, md5(i::varchar) as h from range(200000) r(i)")
	backing := connectAs(t, c.dsn("lake"))
	wantRow(t, backing, "select count(*) > 0 from pgvfs.files where path like '%.parquet'", "t")
	wantRow(t, backing, `select count(*) from (
		select octet_length(data) n, no, max(no) over (partition by file_id) last from pgvfs.chunks) c
		where no < last and n <> 8120 or n not between 1 and 8120`, "0")
	wantRow(t, backing, "select max(rows) from (select count(*) rows from pgvfs.chunks where octet_length(data) = 8120 group by (ctid::text::point)[0]) p", "1")
	wantRow(t, backing, "select pg_relation_size(reltoastrelid) from pg_class where oid = 'pgvfs.chunks'::regclass", "0")
}

// TestStandby_ReadsAndRefusesWrites: a Sluice on a streaming standby needs nothing but the standby. It reads, also what the
// primary commits later, says what it is in each way that drivers ask, and refuses writes as PostgreSQL does.
func TestStandby_ReadsAndRefusesWrites(t *testing.T) {
	t.Parallel()
	primary := startCluster(t)
	writer := startServer(t, "--dsn", primary.dsn("lake")).connect(t)
	mustExec(t, writer, "create table t as select i, i % 7 as k from range(50000) r(i); create view v as select count(*) as n from t")
	standby := primary.standby(t)
	reader := startServer(t, "--dsn", standby.dsn("lake")).connect(t)

	wantRow(t, reader, "select count(*), sum(i) from t where k = 3", "7143\t178575000")
	wantRow(t, reader, "select n from v", "50000")
	wantRow(t, reader, "select pg_is_in_recovery()", "t")
	wantRow(t, reader, "show transaction_read_only", "on")
	wantRow(t, writer, "select pg_is_in_recovery()", "f")
	wantRow(t, writer, "show transaction_read_only", "off")
	for name, want := range map[string]string{"in_hot_standby": "on", "default_transaction_read_only": "off"} {
		if got := reader.ParameterStatus(name); got != want {
			t.Errorf("ParameterStatus %s = %q, want %q as PostgreSQL's standby", name, got, want)
		}
	}
	for _, sql := range []string{
		"insert into t values (1, 1)", "update t set k = 0", "delete from t", "create table n(i int)", "drop table t",
		"alter table t add column c int", "create view w as select 1", "create schema s", "truncate t", "drop view v",
		"create table n as select 1", "merge into t using (select 1 as i) s on t.i = s.i when matched then delete",
	} {
		if err := run(reader, sql); sqlstate(err) != "25006" {
			t.Errorf("%s: %v, want 25006", sql, err)
		}
		run(reader, "rollback")
	}
	if err := run(reader, "begin read write"); sqlstate(err) != "0A000" { // as PostgreSQL has it
		t.Errorf("begin read write: %v, want 0A000", err)
	}
	run(reader, "rollback")
	mustExec(t, writer, "insert into t select i, 0 from range(50000, 60000) r(i)")
	deadline := time.Now().Add(time.Minute)
	for got := ""; got != "60000"; got = mustExec(t, reader, "select count(*) from t")[0] {
		if time.Now().After(deadline) {
			t.Fatalf("the standby's reader still counts %s rows", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestStandby_RecoveryConflicts: a standby that never waits cancels whatever reads what the primary has vacuumed away. Each
// statement of a reader comes through nevertheless: none shows the client rows before it is past the catalog, and what
// is cancelled until then is run again.
func TestStandby_RecoveryConflicts(t *testing.T) {
	t.Parallel()
	primary := startCluster(t)
	writer := startServer(t, "--dsn", primary.dsn("lake"), "--reap-grace", "1s").connect(t)
	mustExec(t, writer, "create table t as select i, md5(i::varchar) as h from range(50000) r(i)")
	standby := primary.standby(t)
	backing := connectAs(t, standby.dsn("lake"))
	mustExec(t, backing, "alter system set max_standby_streaming_delay = 0")
	mustExec(t, backing, "select pg_reload_conf()")
	server := startServer(t, "--dsn", standby.dsn("lake"))

	done := make(chan struct{})
	var churning sync.WaitGroup
	churning.Go(func() {
		vacuum := connectAs(t, primary.dsn("lake"))
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			mustExec(t, writer, fmt.Sprintf("update t set h = 'x' where i = %d", i))
			mustExec(t, vacuum, "vacuum")
		}
	})
	var reading sync.WaitGroup
	for range 3 {
		reading.Go(func() {
			conn := server.connect(t)
			for range 25 {
				wantRow(t, conn, "select count(*), count(h) from t", "50000\t50000")
				if err := run(conn, "select * from t limit 30000"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reading.Wait()
	close(done)
	churning.Wait()
	conflicts := mustExec(t, backing, "select sum(confl_snapshot + confl_lock + confl_bufferpin) from pg_stat_database_conflicts")[0]
	t.Log("conflicts on the standby: ", conflicts)
	if conflicts == "0" {
		t.Error("the standby has cancelled nothing, so nothing was tried")
	}
}
