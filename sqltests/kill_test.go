package sqltests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	killSessions = 4
	killTables   = 2 // of each session
	killDelayMax = 1200 * time.Millisecond
)

// TestKill kills the server in the middle of what four sessions do, in 200 random moments with -long. After each restart
// every acknowledged commit is there, what was not acknowledged is there whole or not at all, and the chunk store has no
// fault. What a killed transaction had written may lie in the store as files that no snapshot names: that is how DuckLake
// commits, and is counted.
func TestKill(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := newServer(t, "--dsn", c.dsn("lake"))
	s.addUsers(t)
	s.start(t)
	k := &killing{server: s, backing: connectAs(t, c.dsn("lake")), store: []string{"--dsn", c.dsn("lake")}}
	kills := 5
	if *longFlag {
		kills = 200
	}
	k.run(t, kills)
}

// TestKill_Embedded is TestKill with the PostgreSQL that Sluice runs itself, and that ends with it.
func TestKill_Embedded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addUsers(t)
	s.start(t)
	k := &killing{server: s, store: []string{"--data-dir", s.dir}}
	kills := 1
	if *longFlag {
		kills = 20
	}
	k.run(t, kills)
}

// killing is such a run.
type killing struct {
	*server
	backing  *pgconn.PgConn // to PostgreSQL, if that is not the server's own
	store    []string       // flags that lead `sluice files` to the store
	random   *rand.Rand
	unnamed  int // files that no snapshot names, so far
	commits  int // acknowledged
	underWay int // statements that the kills hit
}

// run kills and checks.
func (k *killing) run(t *testing.T, kills int) {
	seed := rand.Uint64()
	k.random = rand.New(rand.NewPCG(seed, 0))
	t.Logf("%d kills, seed %d", kills, seed)
	for n := range kills {
		k.round(t, n)
		if t.Failed() {
			t.Fatalf("kill %d, seed %d", n, seed)
		}
	}
	t.Logf("%d changes were acknowledged, %d were under way; %d files are left that no snapshot names", k.commits, k.underWay, k.unnamed)
}

// round is one kill.
func (k *killing) round(t *testing.T, n int) {
	begun := make(chan struct{}, killSessions)
	workers := make([]*killWorker, killSessions)
	var sessions sync.WaitGroup
	for i := range workers {
		w := &killWorker{
			conn: k.connect(t), random: rand.New(rand.NewPCG(k.random.Uint64(), uint64(i))),
			prefix: fmt.Sprintf("k%d_%d_", n, i), before: killModel{},
		}
		workers[i] = w
		sessions.Go(func() { w.work(t, begun) })
	}
	<-begun
	time.Sleep(time.Duration(k.random.Int64N(int64(killDelayMax))))
	k.kill9()
	sessions.Wait()
	k.awaitGone(t)
	k.start(t)
	conn := k.connect(t)
	for _, w := range workers {
		k.commits += w.commits
		if w.want(t, conn) {
			k.underWay++
		}
	}
	k.wantStore(t)
}

// awaitGone waits until PostgreSQL has noticed that its client is dead.
func (k *killing) awaitGone(t *testing.T) {
	t.Helper()
	if k.backing == nil {
		return
	}
	const left = "select count(*) from pg_stat_activity where datname = 'lake' and backend_type = 'client backend' and pid <> pg_backend_pid()"
	for end := time.Now().Add(stopTimeout); ; time.Sleep(10 * time.Millisecond) {
		if mustExec(t, k.backing, left)[0] == "0" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("PostgreSQL still works for the killed server")
		}
	}
}

// wantStore checks the chunk store by SQL and by the command for it, and that the catalog names no file that is not there.
func (k *killing) wantStore(t *testing.T) {
	t.Helper()
	if k.backing != nil {
		for what, sql := range killFaults {
			if got := mustExec(t, k.backing, sql)[0]; got != "0" {
				t.Errorf("%s: %s", what, got)
			}
		}
		unnamed, err := strconv.Atoi(mustExec(t, k.backing, killUnnamed)[0])
		if err != nil {
			t.Fatal(err)
		}
		if unnamed > k.unnamed {
			t.Logf("%d files more that no snapshot names", unnamed-k.unnamed)
		}
		k.unnamed = unnamed
	}
	out, err := exec.Command(serverBinary(t), append([]string{"files", "verify"}, k.store...)...).CombinedOutput()
	if err != nil {
		t.Errorf("sluice files verify: %v\n%s", err, out)
	}
}

// killFaults count what must not be. The first three are the store's, the last are DuckLake's.
var killFaults = map[string]string{
	"chunk rows that are nobody's": `select count(*) from pgvfs.chunks c
		where not exists (select from pgvfs.files f where f.file_id = c.file_id)
		and not exists (select from pgvfs.garbage g where g.file_id = c.file_id)`,
	"files whose rows are not what their size says": `select count(*) from (
		select f.size, coalesce(sum(octet_length(c.data)), 0) bytes, count(c.no) n, coalesce(max(c.no), -1) last
		from pgvfs.files f left join pgvfs.chunks c using (file_id) group by f.file_id, f.size) x
		where size <> bytes or n <> (size + 8119) / 8120 or last <> n - 1`,
	"files that are also garbage": `select count(*) from pgvfs.garbage join pgvfs.files using (file_id)`,
	"data files of the catalog that are not in the store": `select count(*) from ducklake_data_file d
		where not exists (select from pgvfs.files f where f.path like '%/' || d.path)`,
	"delete files of the catalog that are not in the store": `select count(*) from ducklake_delete_file d
		where not exists (select from pgvfs.files f where f.path like '%/' || d.path)`,
}

// killUnnamed counts files that the catalog does not know.
const killUnnamed = `select count(*) from pgvfs.files f
	where not exists (select from ducklake_data_file d where f.path like '%/' || d.path)
	and not exists (select from ducklake_delete_file d where f.path like '%/' || d.path)
	and not exists (select from ducklake_files_scheduled_for_deletion d where f.path like '%/' || d.path)`

// killModel is what a session's tables hold.
type killModel map[string][]int64

// killWorker is a session that makes changes until its server is gone.
type killWorker struct {
	conn    *pgconn.PgConn
	random  *rand.Rand
	prefix  string // of its tables' names
	before  killModel
	after   killModel // before, with the change that is under way; nil: none is
	commits int
}

// work makes changes. A server that is gone sends no error, so one that it has sent is a fault.
func (w *killWorker) work(t *testing.T, begun chan<- struct{}) {
	for first := true; ; first = false {
		change, after := w.choose()
		w.after = after
		if first {
			begun <- struct{}{}
		}
		err := change(t.Context(), w.conn)
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) {
			t.Error(err)
		}
		if err != nil {
			return
		}
		w.before, w.after = after, nil
		w.commits++
	}
}

// killChange is something that a session does.
type killChange func(context.Context, *pgconn.PgConn) error

// killKinds make a change of a table with these rows: what to do and which rows there are then.
var killKinds = []func(w *killWorker, table string, rows []int64) (killChange, []int64){
	(*killWorker).insert, (*killWorker).insert, (*killWorker).values, (*killWorker).copy, (*killWorker).delete, (*killWorker).update,
	(*killWorker).transaction,
}

// choose invents the next change: of a table, or that it comes or goes.
func (w *killWorker) choose() (killChange, killModel) {
	table := fmt.Sprint(w.prefix, w.random.IntN(killTables))
	after := killModel{}
	for name, rows := range w.before {
		after[name] = rows
	}
	rows, exists := w.before[table]
	if !exists {
		from, n := w.span()
		after[table] = extend(nil, from, n)
		return statement(fmt.Sprintf("create table %s as select v from range(%d, %d) r(v)", table, from, from+n)), after
	}
	if len(rows) > 200_000 || w.random.IntN(12) == 0 {
		delete(after, table)
		return statement("drop table " + table), after
	}
	change, rows := killKinds[w.random.IntN(len(killKinds))](w, table, rows)
	after[table] = rows
	return change, after
}

// statement is a change that commits by itself.
func statement(sql string) killChange {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, sql).ReadAll()
		return err
	}
}

// span invents values: a few, which DuckLake keeps in its catalog, or as many as make a file.
func (w *killWorker) span() (from, n int64) {
	from = w.random.Int64N(1_000_000)
	if w.random.IntN(2) == 0 {
		return from, 1 + w.random.Int64N(20)
	}
	return from, bigRows + w.random.Int64N(bigRows)
}

// extend adds rows to a copy.
func extend(rows []int64, from, n int64) []int64 {
	rows = slices.Clone(rows)
	for v := from; v < from+n; v++ {
		rows = append(rows, v)
	}
	return rows
}

func (w *killWorker) insert(table string, rows []int64) (killChange, []int64) {
	from, n := w.span()
	return statement(fmt.Sprintf("insert into %s select v from range(%d, %d) r(v)", table, from, from+n)), extend(rows, from, n)
}

func (w *killWorker) values(table string, rows []int64) (killChange, []int64) {
	from := w.random.Int64N(1_000_000)
	return statement(fmt.Sprintf("insert into %s values (%d), (%d)", table, from, from+1)), extend(rows, from, 2)
}

func (w *killWorker) copy(table string, rows []int64) (killChange, []int64) {
	from, n := w.span()
	var text strings.Builder
	for v := from; v < from+n; v++ {
		fmt.Fprintln(&text, v)
	}
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.CopyFrom(ctx, strings.NewReader(text.String()), "copy "+table+" from stdin")
		return err
	}, extend(rows, from, n)
}

func (w *killWorker) delete(table string, rows []int64) (killChange, []int64) {
	rest := w.random.Int64N(7)
	left := slices.DeleteFunc(slices.Clone(rows), func(v int64) bool { return v%7 == rest })
	return statement(fmt.Sprintf("delete from %s where v %% 7 = %d", table, rest)), left
}

func (w *killWorker) update(table string, rows []int64) (killChange, []int64) {
	rest, changed := w.random.Int64N(11), slices.Clone(rows)
	for i, v := range changed {
		if v%11 == rest {
			changed[i] += 1_000_000
		}
	}
	return statement(fmt.Sprintf("update %s set v = v + 1000000 where v %% 11 = %d", table, rest)), changed
}

// transaction is two changes that are one.
func (w *killWorker) transaction(table string, rows []int64) (killChange, []int64) {
	first, rows := w.insert(table, rows)
	second, rows := w.delete(table, rows)
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		for _, change := range []killChange{statement("begin"), first, second, statement("commit")} {
			if err := change(ctx, conn); err != nil {
				return err
			}
		}
		return nil
	}, rows
}

// want checks that the tables are what they were before the change that was under way, or what it made of them. It reports
// whether one was, and drops them.
func (w *killWorker) want(t *testing.T, conn *pgconn.PgConn) (underWay bool) {
	t.Helper()
	got := map[string]string{}
	for i := range killTables {
		table := fmt.Sprint(w.prefix, i)
		got[table] = tableDigest(t, conn, table)
		mustExec(t, conn, "drop table if exists "+table)
	}
	if !w.before.same(got) && (w.after == nil || !w.after.same(got)) {
		t.Errorf("the tables hold %v, wanted %v or %v", got, w.before.digests(got), w.after.digests(got))
	}
	return w.after != nil
}

// tableDigest tells one table's rows from another's; empty: there is none.
func tableDigest(t *testing.T, conn *pgconn.PgConn, table string) string {
	t.Helper()
	o := simple(t.Context(), conn, "select count(*), coalesce(sum(v), 0), coalesce(sum((v % 100003) * (v % 1009)), 0) from "+table)
	if o.err != nil {
		if sqlstate(o.err) != "42P01" {
			t.Errorf("%s: %v", table, o.err)
		}
		return ""
	}
	return strings.Join(render(o, false), "\n")
}

// digests are what tableDigest would give for these tables.
func (m killModel) digests(of map[string]string) map[string]string {
	want := map[string]string{}
	for table := range of {
		rows, exists := m[table]
		if !exists {
			want[table] = ""
			continue
		}
		var sum, mixed int64
		for _, v := range rows {
			sum += v
			mixed += (v % 100003) * (v % 1009)
		}
		want[table] = fmt.Sprintf("%d\t%d\t%d", len(rows), sum, mixed)
	}
	return want
}

// same compares digests.
func (m killModel) same(got map[string]string) bool {
	for table, want := range m.digests(got) {
		if got[table] != want {
			return false
		}
	}
	return true
}
