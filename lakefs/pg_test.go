package lakefs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"sluice/lakefs"
	"sluice/lakefs/embedded"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

const (
	chunkBytes = 8120
	batchBytes = 516 * chunkBytes
)

// fixture is a database and a way to look at it that is not the store's.
type fixture struct {
	dsn    string
	admin  *pgxpool.Pool               // the same role as the store's
	server *embeddedtest.ClusterServer // nil if the server is none of those
	tls    bool                        // whether dsn asks for it
}

// pgCases are run on each server (servers_test.go), each on an empty database.
var pgCases = []struct {
	name string
	run  func(t *testing.T, x *fixture)
}{
	{"Suite", suite},
	{"Geometry", geometry},
	{"Description", description},
	{"Constraints", constraints},
	{"ByHand", byHand},
	{"DamagedByHand", damagedByHand},
	{"Sparse", sparse},
	{"Ours", ours},
	{"Meet", meet},
	{"Uploads", uploads},
	{"QueueTimes", queueTimes},
	{"OldFunctions", oldFunctions},
	{"WriterRole", writerRole},
	{"GrantedBefore", grantedBefore},
	{"ReadersNeedNoLayout", readersNeedNoLayout},
	{"ReaderRole", readerRole},
	{"AbandonedLeavesNothing", abandonedLeavesNothing},
	{"InterruptedWrite", interruptedWrite},
	{"CancelledRead", cancelledRead},
	{"LostConnections", lostConnections},
	{"Reap", reap},
	{"ReapBudget", reapBudget},
	{"ReapOnce", reapOnce},
	{"RenameQueuesTarget", renameQueuesTarget},
	{"Gateway", gateway},
	{"OtherVersion", otherVersion},
	{"StaleFunctions", staleFunctions},
	{"DroppedSchema", droppedSchema},
	{"ConcurrentInstall", concurrentInstall},
	{"TwoStores", twoStores},
	{"Conflict", conflict},
	{"Spill", spill},
	{"Close", closeStore},
	{"CloseWhileWriting", closeWhileWriting},
}

// connect opens a pool until the test's end.
func connect(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// open opens a store until the test's end.
func (x *fixture) open(tb testing.TB, cfg lakefs.Config) *lakefs.PG {
	tb.Helper()
	if cfg.DSN == "" {
		cfg.DSN = x.dsn
	}
	cfg.Logger = zerolog.New(zerolog.NewTestWriter(tb)).Level(zerolog.WarnLevel)
	p, err := lakefs.OpenPG(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// exec runs SQL.
func (x *fixture) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := x.admin.Exec(context.WithoutCancel(tb.Context()), sql, args...); err != nil {
		tb.Fatal(err)
	}
}

// want compares the one value of a query, as text.
func (x *fixture) want(tb testing.TB, want any, sql string, args ...any) {
	tb.Helper()
	var got any
	if err := x.admin.QueryRow(tb.Context(), sql, args...).Scan(&got); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		tb.Errorf("%s: %v, not %v", sql, got, want)
	}
}

// await is want for what takes a moment.
func (x *fixture) await(tb testing.TB, want any, sql string, args ...any) {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var got any
		if err := x.admin.QueryRow(tb.Context(), sql, args...).Scan(&got); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	x.want(tb, want, sql, args...)
}

// orphansSQL counts chunk rows that are neither a file's nor waiting to be reaped.
const orphansSQL = `SELECT count(*) FROM pgvfs.chunks c
	WHERE NOT EXISTS (SELECT FROM pgvfs.files f WHERE f.file_id = c.file_id)
	AND NOT EXISTS (SELECT FROM pgvfs.garbage g WHERE g.file_id = c.file_id)`

// damagedSQL counts files whose rows are not what their size says, or not dense.
const damagedSQL = `SELECT count(*) FROM (
	SELECT f.size, coalesce(sum(octet_length(c.data)), 0) bytes, count(c.no) n, coalesce(max(c.no), -1) last
	FROM pgvfs.files f LEFT JOIN pgvfs.chunks c USING (file_id) GROUP BY f.file_id, f.size) x
	WHERE size <> bytes OR n <> (size + 8119) / 8120 OR last <> n - 1`

// wantSound checks what must hold after anything: no orphans, no damage, no transaction left open.
func (x *fixture) wantSound(t *testing.T) {
	t.Helper()
	x.await(t, 0, `SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' OR query LIKE 'COPY%' AND state = 'active'`)
	installed := false
	if err := x.admin.QueryRow(t.Context(), `SELECT to_regclass('pgvfs.garbage') IS NOT NULL`).Scan(&installed); err != nil {
		t.Fatal(err)
	}
	if installed {
		x.want(t, 0, orphansSQL)
		x.want(t, 0, damagedSQL)
		x.want(t, 0, `SELECT count(*) FROM pgvfs.garbage JOIN pgvfs.files USING (file_id)`)
	}
}

// geometry: the facts that the format's speed rests on.
func geometry(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	f := lakefstest.Put(t, p, "lake", "f", lakefstest.Content(1, 1000*chunkBytes+17))
	x.want(t, `[1001 0 1000 1000 17]`, `SELECT array[count(*), min(no), max(no),
		count(*) FILTER (WHERE octet_length(data) = 8120), min(octet_length(data))] FROM pgvfs.chunks WHERE file_id = $1`, f.ID)
	x.want(t, 1000, `SELECT count(DISTINCT (ctid::text::point)[0]) FROM pgvfs.chunks WHERE octet_length(data) = 8120`)
	x.want(t, 0, `SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'pgvfs.chunks'::regclass`)
	x.want(t, 1000, `SELECT max((ctid::text::point)[0]) FROM pgvfs.chunks`)   // the table's size says less: it grows by many pages
	x.want(t, 8120, `SELECT max(pg_column_size(data)) - 4 FROM pgvfs.chunks`) // the length word; nothing compressed
}

// readersNeedNoLayout: a store that only reads sees nothing and makes nothing.
func readersNeedNoLayout(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	lakefstest.WantNone(t, p, "lake", "f")
	lakefstest.WantList(t, p, "lake", "", 0)
	if paths, err := p.Glob(t.Context(), "lake", "**"); err != nil || len(paths) != 0 {
		t.Errorf("%v %v", paths, err)
	}
	if standby, err := p.ReadOnly(t.Context()); err != nil || standby {
		t.Errorf("standby %t %v", standby, err)
	}
	x.want(t, nil, `SELECT to_regnamespace('pgvfs')::text`)
}

// readerRole: SELECT is enough to read, and for nothing else.
func readerRole(t *testing.T, x *fixture) {
	owner := x.open(t, lakefs.Config{})
	data := lakefstest.Content(1, 3*chunkBytes)
	lakefstest.Put(t, owner, "lake", "f", data)
	reader := x.open(t, lakefs.Config{DSN: x.readerDSN(t)})
	lakefstest.WantFile(t, reader, "lake", "f", data)
	lakefstest.WantList(t, reader, "lake", "", 0, "f")
	for what, err := range map[string]error{
		"remove": reader.Remove(t.Context(), "lake", "f"),
		"rename": reader.Rename(t.Context(), "lake", "f", "g"),
		"put": func() error {
			_, err := lakefstest.TryPut(t.Context(), reader, "lake", "g", data)
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", what, err)
		}
	}
	lakefstest.WantFile(t, owner, "lake", "f", data)
}

// readerDSN makes a role that may only SELECT.
func (x *fixture) readerDSN(t *testing.T) string {
	t.Helper()
	return x.role(t, `reader`, `GRANT USAGE ON SCHEMA pgvfs TO reader`, `GRANT SELECT ON ALL TABLES IN SCHEMA pgvfs TO reader`)
}

// role makes a role and grants it things. It comes in like the store's own, with its name as its password. It goes when
// the test ends, before the schema does.
func (x *fixture) role(t *testing.T, name string, grants ...string) (dsn string) {
	t.Helper()
	x.server.Super(t, `CREATE ROLE `+name+` LOGIN PASSWORD '`+name+`'`)
	t.Cleanup(func() {
		x.server.Super(t, `DROP OWNED BY `+name)
		x.server.Super(t, `DROP ROLE `+name)
	})
	for _, grant := range grants {
		x.server.Super(t, grant)
	}
	return x.dsn + ` user=` + name + ` password=` + name
}

// begin starts a file and writes more than a batch of it, so that its COPY runs.
func begin(t *testing.T, p *lakefs.PG, path string) lakefs.Writer {
	t.Helper()
	w, err := p.Create(t.Context(), "lake", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abort)
	if err := w.Write(t.Context(), lakefstest.Content(1, 2*batchBytes)); err != nil {
		t.Fatal(err)
	}
	return w
}

// abandonedLeavesNothing: aborted, or its context ended and nobody said anything more.
func abandonedLeavesNothing(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	begin(t, p, "f").Abort()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := p.Create(ctx, "lake", "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, lakefstest.Content(1, 2*batchBytes)); err != nil {
		t.Fatal(err)
	}
	cancel()
	x.await(t, 0, `SELECT count(*) FROM pg_stat_progress_copy`)
	w.Abort()
	x.want(t, 0, `SELECT count(*) FROM pgvfs.chunks`)
	x.want(t, 0, `SELECT count(*) FROM pgvfs.garbage`)
	lakefstest.WantNone(t, p, "lake", "f")
}

// interruptedWrite: a COPY whose connection is cut publishes nothing; the next write works.
func interruptedWrite(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	w := begin(t, p, "f")
	x.await(t, 1, `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY pgvfs.chunks%'`)
	x.want(t, true, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE 'COPY pgvfs.chunks%'`)
	err := w.Write(t.Context(), lakefstest.Content(1, 4*batchBytes))
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err == nil {
		t.Error("the write succeeded")
	}
	lakefstest.WantNone(t, p, "lake", "f")
	x.want(t, 0, `SELECT count(*) FROM pgvfs.chunks`)
	data := lakefstest.Content(2, 2*batchBytes+1)
	lakefstest.Put(t, p, "lake", "f", data)
	lakefstest.WantFile(t, p, "lake", "f", data)
}

// cancelledRead: a read whose context ends stops waiting at once, also on the server.
func cancelledRead(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	f := lakefstest.Put(t, p, "lake", "f", lakefstest.Content(1, 2*batchBytes+batchBytes))
	tx, err := x.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `LOCK TABLE pgvfs.chunks IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err = p.ReadAt(ctx, f, make([]byte, f.Size), 0)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
	x.await(t, 0, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	lakefstest.WantFile(t, p, "lake", "f", lakefstest.Content(1, 3*batchBytes))
}

// lostConnections: after all connections of the pool have been cut, the next call of any kind works.
func lostConnections(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{MaxConns: 8})
	data := lakefstest.Content(1, 6*batchBytes)
	f := lakefstest.Put(t, p, "lake", "f", data)
	calls := map[string]func() error{
		"read": func() error { return p.ReadAt(t.Context(), f, make([]byte, f.Size), 0) },
		"list": func() error {
			_, err := p.List(t.Context(), "lake", "", 0)
			return err
		},
		"open": func() error {
			_, err := p.Exists(t.Context(), "lake", "none")
			return err
		},
		"put": func() error {
			_, err := lakefstest.TryPut(t.Context(), p, "lake", "g", data)
			return err
		},
		"remove": func() error { return p.Remove(t.Context(), "lake", "g") },
	}
	for _, call := range []string{"read", "list", "open", "put", "remove"} {
		if err := calls["read"](); err != nil { // fills the pool
			t.Fatal(err)
		}
		if err := x.endBackends(t.Context(), `application_name = 'sluice pgvfs'`); err != nil {
			t.Fatal(err)
		}
		if err := calls[call](); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// reap: a replaced file's rows last as long as the grace, and no longer.
func reap(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	old := lakefstest.Content(1, 3*chunkBytes)
	f := lakefstest.Put(t, p, "lake", "f", old)
	lakefstest.Put(t, p, "lake", "f", lakefstest.Content(2, chunkBytes))
	x.want(t, 1, `SELECT count(*) FROM pgvfs.garbage WHERE file_id = $1 AND queued_at > now() - interval '1 minute'`, f.ID)
	x.want(t, 0, `SELECT pgvfs.reap()`)
	if err := p.ReadAt(t.Context(), f, make([]byte, f.Size), 0); err != nil {
		t.Error(err)
	}
	x.await(t, 3, `SELECT pgvfs.reap('0')`) // 0 while the store's own reap works
	x.want(t, 0, `SELECT count(*) FROM pgvfs.garbage`)
	err := p.ReadAt(t.Context(), f, make([]byte, f.Size), 0)
	if !errors.Is(err, lakefs.ErrReaped) || !strings.Contains(err.Error(), "missing") || !strings.Contains(err.Error(), "SLUICE_REAP_GRACE") {
		t.Error(err)
	}
}

// reapBudget: what each call deletes and leaves when it may delete only so many rows.
func reapBudget(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	for i, rows := range []int{5, 0, 3} {
		lakefstest.Put(t, p, "lake", fmt.Sprint(i), lakefstest.Content(1, rows*chunkBytes))
		if err := p.Remove(t.Context(), "lake", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for step, want := range []struct{ budget, deleted, rows, queued int }{
		{2, 2, 6, 3}, // of the first file
		{3, 3, 3, 3}, // its last row, but it stays queued as the budget is used up
		{2, 2, 1, 1}, // it and the empty file leave the queue, and two rows of the last
		{2, 1, 0, 0},
		{2, 0, 0, 0},
	} {
		x.await(t, want.deleted, `SELECT pgvfs.reap('0', $1)`, want.budget) // 0 while the store's own reap works
		x.want(t, fmt.Sprintf("[%d %d]", want.rows, want.queued),
			`SELECT array[(SELECT count(*) FROM pgvfs.chunks), (SELECT count(*) FROM pgvfs.garbage)]`)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}

// reapOnce: while one reap works, another does nothing. A store's own, at its first change, is one of them.
func reapOnce(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{ReapGrace: -1})
	lakefstest.Put(t, p, "lake", "f", lakefstest.Content(1, 10*chunkBytes))
	if err := p.Remove(t.Context(), "lake", "f"); err != nil {
		t.Fatal(err)
	}
	tx, err := x.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtext('pgvfs.reap')::int8)`); err != nil {
		t.Fatal(err)
	}
	x.want(t, 0, `SELECT pgvfs.reap('0')`)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	lakefstest.Put(t, x.open(t, lakefs.Config{ReapGrace: -1}), "lake", "g", nil)
	x.await(t, 0, `SELECT count(*) FROM pgvfs.chunks`)
}

// renameQueuesTarget: what a rename replaces is reaped like anything else.
func renameQueuesTarget(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	from, to := lakefstest.Put(t, p, "lake", "from", []byte("new")), lakefstest.Put(t, p, "lake", "to", []byte("old"))
	if err := p.Rename(t.Context(), "lake", "none", "to"); !errors.Is(err, lakefs.ErrNotExist) {
		t.Error(err)
	}
	x.want(t, 0, `SELECT count(*) FROM pgvfs.garbage`)
	if err := p.Rename(t.Context(), "lake", "from", "to"); err != nil {
		t.Error(err)
	}
	x.want(t, to.ID, `SELECT file_id FROM pgvfs.garbage`)
	x.want(t, from.ID, `SELECT file_id FROM pgvfs.files`)
}

// gateway: another program's database is refused, also when it becomes one later.
func gateway(t *testing.T, x *fixture) {
	early := x.open(t, lakefs.Config{})
	x.exec(t, `CREATE SCHEMA s3p; CREATE TABLE s3p.chunks ()`)
	_, err := lakefs.OpenPG(t.Context(), lakefs.Config{DSN: x.dsn})
	_, lateErr := early.Create(t.Context(), "lake", "f")
	for _, err := range []error{err, lateErr} {
		if err == nil || !strings.Contains(err.Error(), "S3 gateway") {
			t.Error(err)
		}
	}
	x.want(t, nil, `SELECT to_regnamespace('pgvfs')::text`)
}

// otherVersion: a layout of another version, or of none, is refused.
func otherVersion(t *testing.T, x *fixture) {
	x.exec(t, `CREATE SCHEMA pgvfs; CREATE TABLE pgvfs.layout (version int4 NOT NULL)`)
	for _, sql := range []string{`SELECT 1`, `INSERT INTO pgvfs.layout VALUES (1)`, `UPDATE pgvfs.layout SET version = 3`} {
		x.exec(t, sql)
		if _, err := lakefs.OpenPG(t.Context(), lakefs.Config{DSN: x.dsn}); err == nil || !strings.Contains(err.Error(), "use a fresh database") {
			t.Error(err)
		}
	}
}

// staleFunctions: a writer brings old functions up to date and leaves newer ones alone.
func staleFunctions(t *testing.T, x *fixture) {
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
	const marker = `SELECT obj_description(to_regprocedure('pgvfs.reap(interval,integer)'), 'pg_proc')`
	for comment, want := range map[string]string{
		`NULL`:                `pgvfs functions 3`,
		`'pgvfs functions 2'`: `pgvfs functions 3`,
		`'pgvfs functions 3'`: `pgvfs functions 3`,
		`'pgvfs functions 4'`: `pgvfs functions 4`,
	} {
		x.exec(t, `COMMENT ON FUNCTION pgvfs.reap(interval, int) IS `+comment)
		lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
		x.want(t, want, marker)
	}
	x.exec(t, `DROP FUNCTION pgvfs.reap`)
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
	x.want(t, `pgvfs functions 3`, marker)
}

// droppedSchema: a schema that goes away under a store is made anew by its next change; its readers see it empty.
func droppedSchema(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	lakefstest.Put(t, p, "lake", "f", []byte("1"))
	for _, change := range []func(){
		func() { lakefstest.Put(t, p, "lake", "g", []byte("2")) },
		func() {
			if n, err := p.RemovePrefix(t.Context(), "lake", ""); err != nil || n != 0 {
				t.Errorf("%d %v", n, err)
			}
		},
	} {
		x.exec(t, `DROP SCHEMA pgvfs CASCADE`)
		lakefstest.WantNone(t, p, "lake", "none")
		lakefstest.WantList(t, p, "lake", "", 0)
		change()
		x.want(t, 2, `SELECT max(version) FROM pgvfs.layout`)
	}
}

// concurrentInstall: stores that all find nothing make it once.
func concurrentInstall(t *testing.T, x *fixture) {
	var writers sync.WaitGroup
	for i := range 6 {
		p := x.open(t, lakefs.Config{})
		writers.Go(func() {
			if _, err := lakefstest.TryPut(t.Context(), p, "lake", fmt.Sprint(i), []byte("1")); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	x.want(t, 1, `SELECT count(*) FROM pgvfs.layout`)
	x.want(t, 6, `SELECT count(*) FROM pgvfs.files`)
}

// twoStores: what one store publishes, another reads; what it replaces, the other sees in time.
func twoStores(t *testing.T, x *fixture) {
	a, b := x.open(t, lakefs.Config{}), x.open(t, lakefs.Config{})
	lakefstest.WantNone(t, b, "lake", "f")
	lakefstest.Put(t, a, "lake", "f", []byte("a"))
	lakefstest.WantFile(t, b, "lake", "f", []byte("a"))
	lakefstest.Put(t, b, "lake", "f", []byte("b"))
	lakefstest.WantFile(t, b, "lake", "f", []byte("b"))
	if data, err := lakefstest.Get(t.Context(), a, "lake", "f"); err != nil || (string(data) != "a" && string(data) != "b") {
		t.Errorf("%q %v", data, err)
	}
}

// conflict: two writers of one path whose last steps overlap. The second waits for the first, then is told.
func conflict(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	w := begin(t, p, "f")
	tx, err := x.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `INSERT INTO pgvfs.files VALUES ('lake', 'f', nextval('pgvfs.file_ids'), 0)`); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() {
		_, err := w.Close(t.Context())
		closed <- err
	}()
	x.await(t, 1, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO pgvfs.files%'`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; !errors.Is(err, lakefs.ErrConflict) || !strings.Contains(err.Error(), "pgvfs://lake/f") {
		t.Error(err)
	}
	lakefstest.WantFile(t, p, "lake", "f", nil)
	x.want(t, 0, `SELECT count(*) FROM pgvfs.chunks`)
}

// spill: writers that get no connection write to disk, where nothing is left to be seen, and to nowhere that is not.
func spill(t *testing.T, x *fixture) {
	dir := t.TempDir()
	p := x.open(t, lakefs.Config{MaxConns: 4, SpillDir: dir})
	first, second := begin(t, p, "first"), begin(t, p, "second")
	x.await(t, 1, `SELECT count(*) FROM pg_stat_progress_copy`)
	rest := lakefstest.Content(2, 2*batchBytes+1)
	for _, w := range []lakefs.Writer{second, first} {
		if err := w.Write(t.Context(), rest); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%v %v", left, err)
		}
	}
	for _, w := range []lakefs.Writer{second, first} {
		if _, err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := append(lakefstest.Content(1, 2*batchBytes), rest...)
	lakefstest.WantFile(t, p, "lake", "first", want)
	lakefstest.WantFile(t, p, "lake", "second", want)

	q := x.open(t, lakefs.Config{MaxConns: 4, SpillDir: filepath.Join(dir, "none")})
	holder := begin(t, q, "first")
	_, err := lakefstest.TryPut(t.Context(), q, "lake", "second", rest)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "spill") {
		t.Error(err)
	}
	holder.Abort()
	lakefstest.WantFile(t, p, "lake", "second", want)
}

// closeStore: closing ends writers, and what comes later fails.
func closeStore(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	f := lakefstest.Put(t, p, "lake", "old", []byte("1"))
	w := begin(t, p, "f")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Close(t.Context()); err == nil {
		t.Error("the file was published")
	}
	if err := p.ReadAt(t.Context(), f, make([]byte, 1), 0); err == nil {
		t.Error("a closed store reads")
	}
	if _, err := lakefstest.TryPut(t.Context(), p, "lake", "g", nil); err == nil {
		t.Error("a closed store writes")
	}
}

// closeMax is far more than ending a COPY properly may take (abortMax), and less than pgx waits for a server that does
// not end.
const closeMax = 10 * time.Second

// wantClosed closes a store, which must not wait for what a server does not do.
func wantClosed(t *testing.T, p *lakefs.PG) {
	t.Helper()
	begin := time.Now()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > closeMax {
		t.Errorf("the store was closed after %s", took)
	}
}

// closeWhileWriting: a store closes although files are being written.
func closeWhileWriting(t *testing.T, x *fixture) {
	for i := range 10 { // who notices first, the writer or the connection, is chance
		p := x.open(t, lakefs.Config{})
		begin(t, p, "idle")
		if i%2 == 0 {
			x.await(t, 1, `SELECT count(*) FROM pg_stat_progress_copy`)
		}
		wantClosed(t, p)
		x.await(t, 0, `SELECT count(*) FROM pg_stat_progress_copy`)
	}
	if *long { // abortMax passes
		closeWhileStuck(t, x)
	}
}

// closeWhileStuck is closeWhileWriting for bytes that the server does not take.
func closeWhileStuck(t *testing.T, x *fixture) {
	x.exec(t, `CREATE FUNCTION pgvfs.stuck() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$`)
	x.exec(t, `CREATE TRIGGER stuck BEFORE INSERT ON pgvfs.chunks FOR EACH ROW EXECUTE FUNCTION pgvfs.stuck()`)
	gate := x.closeGate(t)
	p := x.open(t, lakefs.Config{})
	w, err := p.Create(t.Context(), "lake", "stuck")
	if err != nil {
		t.Fatal(err)
	}
	written := x.begin(t, func(ctx context.Context) error { return w.Write(ctx, lakefstest.Content(1, 8*batchBytes)) })
	x.await(t, 1, waitingSQL, "advisory")
	wantClosed(t, p)
	if err := <-written; err == nil {
		t.Error("a closed store takes bytes")
	}
	w.Abort()
	gate()
	x.await(t, 0, `SELECT count(*) FROM pg_stat_progress_copy`)
	x.want(t, 0, `SELECT count(*) FROM pgvfs.chunks`)
	x.want(t, 0, `SELECT count(*) FROM pgvfs.files`)
}

// TestPG_Restart: PostgreSQL goes and comes back; the calls between fail, those after do not.
func TestPG_Restart(t *testing.T) {
	options := embedded.Options{Dir: embeddedtest.Dir(t), Params: map[string]string{"fsync": "off", "shared_buffers": "128MB"}}
	server, err := embedded.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	p, err := lakefs.OpenPG(t.Context(), lakefs.Config{DSN: server.DSN()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	data := lakefstest.Content(1, 6*batchBytes)
	f := lakefstest.Put(t, p, "lake", "f", data)
	lakefstest.WantFile(t, p, "lake", "f", data)
	w := begin(t, p, "g")
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.ReadAt(t.Context(), f, make([]byte, 1), 0); err == nil || errors.Is(err, lakefs.ErrReaped) {
		t.Error(err)
	}
	if _, err := w.Close(t.Context()); err == nil {
		t.Error("published without a server")
	}
	if server, err = embedded.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer func() {
		p.Close()
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	lakefstest.WantFile(t, p, "lake", "f", data)
	lakefstest.WantNone(t, p, "lake", "g")
	lakefstest.Put(t, p, "lake", "g", data)
	lakefstest.WantFile(t, p, "lake", "g", data)
}
