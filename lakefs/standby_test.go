package lakefs_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// pair is a primary and its streaming standby.
type pair struct {
	primary, standby *fixture
}

// standbyCases are run in this order on one pair; the last makes the standby a primary.
var standbyCases = []struct {
	name string
	run  func(t *testing.T, p pair)
}{
	{"Empty", standbyEmpty},
	{"Suite", standbySuite},
	{"Refuses", standbyRefuses},
	{"OnlyReads", standbyOnlyReads},
	{"Verify", standbyVerify},
	{"Reaped", standbyReaped},
	{"Cancelled", standbyCancelled},
	{"CancelledForGood", standbyCancelledForGood},
	{"Promoted", standbyPromoted},
}

// TestStandby: a store on a streaming standby reads all there is, and changes nothing.
func TestStandby(t *testing.T) {
	for _, major := range versions() {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			primary := embeddedtest.Cluster(t, embeddedtest.ClusterOptions{Major: major, TLS: true, Params: map[string]string{
				"max_standby_streaming_delay": "0", // a conflict is settled at once, to the reader's loss
				"autovacuum":                  "off",
			}})
			p := pair{newFixture(t, primary, byTLS), newFixture(t, primary.Standby(t), byTLS)}
			for _, c := range standbyCases {
				t.Run(c.name, func(t *testing.T) {
					c.run(t, p)
					p.standby.wantTLS(t)
					p.primary.wantSound(t)
				})
			}
			if strings.Contains(p.standby.server.Log(t), "ERROR:  cannot execute") {
				t.Error("a change was tried on the standby, in the background perhaps")
			}
		})
	}
}

// catchUp waits until the standby shows what the primary has.
func (p pair) catchUp(t *testing.T) {
	t.Helper()
	p.standby.server.CatchUp(t)
}

// wantReadOnly checks what a store says of its server.
func wantReadOnly(t *testing.T, s *lakefs.PG, want bool) {
	t.Helper()
	if got, err := s.ReadOnly(t.Context()); err != nil || got != want {
		t.Errorf("read-only: %t %v", got, err)
	}
}

// standbyEmpty: before there is a schema on the primary, and before it has come over, there is nothing to read. What
// comes over is seen by whoever had looked before.
func standbyEmpty(t *testing.T, p pair) {
	early := p.standby.open(t, lakefs.Config{})
	wantReadOnly(t, early, true)
	lakefstest.WantNone(t, early, "lake", "f")
	lakefstest.WantList(t, early, "lake", "", 0)
	if _, err := lakefstest.TryPut(t.Context(), early, "lake", "f", oldBytes); !errors.Is(err, lakefs.ErrReadOnly) {
		t.Error(err)
	}
	writer := p.primary.open(t, lakefs.Config{})
	wantReadOnly(t, writer, false)
	for i := range 3 {
		path := fmt.Sprint(i)
		lakefstest.WantNone(t, early, "lake", path)
		lakefstest.Put(t, writer, "lake", path, lakefstest.Content(uint64(i), i*chunkBytes+i))
		p.catchUp(t)
		lakefstest.WantFile(t, early, "lake", path, lakefstest.Content(uint64(i), i*chunkBytes+i))
	}
	lakefstest.WantList(t, early, "lake", "", 0, "0", "1", "2")
	lakefstest.Put(t, writer, "lake", "1", oldBytes)
	p.catchUp(t)
	lakefstest.WantFile(t, p.standby.open(t, lakefs.Config{}), "lake", "1", oldBytes)
	if data, err := lakefstest.Get(t.Context(), early, "lake", "1"); err != nil || (len(data) != chunkBytes+1 && len(data) != len(oldBytes)) {
		t.Errorf("%d bytes %v", len(data), err) // up to 10 seconds old
	}
	early.Forget()
	lakefstest.WantFile(t, early, "lake", "1", oldBytes)
}

// replicated is a store that writes to the primary and reads from the standby, when that has caught up. To the suite
// that is a store like any other.
type replicated struct {
	writes, reads *lakefs.PG
	standby       *embeddedtest.ClusterServer
}

// replicated opens one.
func (p pair) replicated(t *testing.T) lakefs.Store {
	if strings.HasSuffix(t.Name(), "/ManyOpenWriters") && !*long {
		t.Skip("NOT TESTED without -long: 150 MB that only the primary has to do with")
	}
	return replicated{p.primary.open(t, lakefs.Config{MaxConns: 4}), p.standby.open(t, lakefs.Config{MaxConns: 4}), p.standby.server}
}

func (r replicated) Create(ctx context.Context, volume, path string) (lakefs.Writer, error) {
	w, err := r.writes.Create(ctx, volume, path)
	if err != nil {
		return nil, err
	}
	return replicatedWriter{w, r}, nil
}

func (r replicated) Remove(ctx context.Context, volume, path string) error {
	defer r.reads.Forget()
	return r.writes.Remove(ctx, volume, path)
}

func (r replicated) RemovePrefix(ctx context.Context, volume, prefix string) (int64, error) {
	defer r.reads.Forget()
	return r.writes.RemovePrefix(ctx, volume, prefix)
}

func (r replicated) Rename(ctx context.Context, volume, from, to string) error {
	defer r.reads.Forget()
	return r.writes.Rename(ctx, volume, from, to)
}

func (r replicated) Open(ctx context.Context, volume, path string) (*lakefs.File, error) {
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	return r.reads.Open(ctx, volume, path)
}

func (r replicated) ReadAt(ctx context.Context, f *lakefs.File, p []byte, off int64) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	return r.reads.ReadAt(ctx, f, p, off)
}

func (r replicated) List(ctx context.Context, volume, prefix string, limit int) ([]string, error) {
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	return r.reads.List(ctx, volume, prefix, limit)
}

func (r replicated) Exists(ctx context.Context, volume, path string) (bool, error) {
	if err := r.catchUp(ctx); err != nil {
		return false, err
	}
	return r.reads.Exists(ctx, volume, path)
}

func (r replicated) Glob(ctx context.Context, volume, pattern string) ([]string, error) {
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	return r.reads.Glob(ctx, volume, pattern)
}

// catchUp waits for the standby, unless the caller has given up: what the store says to that is the suite's to judge.
func (r replicated) catchUp(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return r.standby.TryCatchUp(context.WithoutCancel(ctx))
}

// replicatedWriter has the standby's store look again when the file is there.
type replicatedWriter struct {
	lakefs.Writer
	store replicated
}

func (w replicatedWriter) Close(ctx context.Context) (*lakefs.File, error) {
	defer w.store.reads.Forget()
	return w.Writer.Close(ctx)
}

// standbySuite: every rule for stores, with a standby to read from.
func standbySuite(t *testing.T, p pair) {
	p.primary.exec(t, `DROP SCHEMA pgvfs CASCADE`)
	lakefstest.Run(t, p.replicated)
	lakefstest.RunShared(t, lakefstest.Shared{Open: p.replicated, Reap: p.primary.reapAll})
}

// changesOf are all calls that change a store.
func changesOf(ctx context.Context, s *lakefs.PG) map[string]error {
	_, createErr := s.Create(ctx, "lake", "f")
	_, prefixErr := s.RemovePrefix(ctx, "lake", "")
	errs := map[string]error{
		"create":        createErr,
		"remove":        s.Remove(ctx, "lake", "f"),
		"remove none":   s.Remove(ctx, "lake", "none"),
		"remove prefix": prefixErr,
		"rename":        s.Rename(ctx, "lake", "f", "g"),
	}
	_, errs["reap"] = s.Reap(ctx, nil) // last: it keeps the others from beginning one in the background
	return errs
}

// standbyRefuses: every change is refused with a word about standbys, again and again, and nothing has changed.
func standbyRefuses(t *testing.T, p pair) {
	writer := p.primary.open(t, lakefs.Config{})
	lakefstest.Put(t, writer, "lake", "f", firstBytes)
	lakefstest.Put(t, writer, "lake", "f", oldBytes) // so that there is something to reap
	p.catchUp(t)
	s := p.standby.open(t, lakefs.Config{ReapGrace: -1})
	for range 2 {
		for what, err := range changesOf(t.Context(), s) {
			if !errors.Is(err, lakefs.ErrReadOnly) || !strings.Contains(err.Error(), "standby") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	lakefstest.WantFile(t, s, "lake", "f", oldBytes)
	p.catchUp(t)
	lakefstest.WantFile(t, p.primary.open(t, lakefs.Config{}), "lake", "f", oldBytes)
}

// sessionPrefix begins each line of a log for standbyOnlyReads.
const sessionPrefix = "%a|%p|"

// loggedSQL finds a store's statements in such a log: SQL of either protocol, on one line as far as it goes.
var loggedSQL = regexp.MustCompile(`(?m)^sluice pgvfs\|\d+\|LOG:  (?:statement|execute [^:]*): (.*)$`)

// standbyOnlyReads: what a store asks of a standby to read is SELECT, and no locks. A change that is refused has tried
// nothing else either.
func standbyOnlyReads(t *testing.T, p pair) {
	lakefstest.Put(t, p.primary.open(t, lakefs.Config{}), "lake", "f", oldBytes)
	p.catchUp(t)
	server := p.standby.server
	server.Set(t, map[string]string{"log_statement": "all", "log_line_prefix": sessionPrefix})
	defer server.Set(t, map[string]string{"log_statement": "none"})

	s := p.standby.open(t, lakefs.Config{})
	lakefstest.WantFile(t, s, "lake", "f", oldBytes)
	lakefstest.WantNone(t, s, "lake", "none")
	if paths, err := s.Glob(t.Context(), "lake", "[f]"); err != nil || !slices.Equal(paths, []string{"f"}) {
		t.Errorf("%q %v", paths, err)
	}
	wantReadOnly(t, s, true)
	readers := wantStatements(t, server.Log(t), `^(SELECT|SET|BEGIN|COMMIT)\b`)
	if strings.Contains(readers, "advisory") || strings.Contains(readers, "LOCK") || strings.Contains(readers, "TEMP") {
		t.Errorf("readers take locks or make tables:\n%s", readers)
	}
	changesOf(t.Context(), s)
	wantStatements(t, server.Log(t), `^(SELECT|SET|BEGIN|COMMIT|ROLLBACK)\b`)
}

// wantStatements checks how all of a store's statements in a log begin, and returns them.
func wantStatements(t *testing.T, log, pattern string) string {
	t.Helper()
	begins := regexp.MustCompile(pattern)
	var all []string
	for _, match := range loggedSQL.FindAllStringSubmatch(log, -1) {
		all = append(all, match[1])
		if !begins.MatchString(match[1]) {
			t.Errorf("a standby was asked for: %s", match[1])
		}
	}
	if len(all) == 0 {
		t.Fatalf("the log has no statement:\n%s", log)
	}
	return strings.Join(all, "\n")
}

// standbyReaped: who has a file open on the standby reads on after it has been removed, and is told when its rows have
// gone there too.
func standbyReaped(t *testing.T, p pair) {
	writer, s := p.primary.open(t, lakefs.Config{}), p.standby.open(t, lakefs.Config{})
	lakefstest.Put(t, writer, "lake", "f", oldBytes)
	lakefstest.Put(t, writer, "lake", "kept", firstBytes)
	p.catchUp(t)
	f, err := s.Open(t.Context(), "lake", "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Remove(t.Context(), "lake", "f"); err != nil {
		t.Fatal(err)
	}
	p.catchUp(t)
	wantBytes(t, s, f, 0, oldBytes)
	p.primary.reapAll(t)
	p.primary.server.Super(t, `VACUUM pgvfs.chunks`)
	p.catchUp(t)
	if err := s.ReadAt(t.Context(), f, make([]byte, f.Size), 0); !errors.Is(err, lakefs.ErrReaped) {
		t.Error(err)
	}
	lakefstest.WantNone(t, s, "lake", "f") // the failed read has had it forgotten
	lakefstest.WantFile(t, s, "lake", "kept", firstBytes)
}

// conflictRows is how much of an answer a reader gets before the standby cancels it.
const conflictRows = 50

// conflictTries is how often a test tries to have reads cancelled: a conflict can come too late for its reader.
const conflictTries = 5

// slowReader is a store on the standby each of whose answers stops after some rows, until go-ahead.
type slowReader struct {
	*lakefs.PG
	stopped chan struct{} // an answer has stopped
	resume  chan struct{} // lets it go on
}

// slowReader opens one. Its answers come through a relay, on a Unix socket from the server: the server's snapshot stays
// open while it cannot send.
func (p pair) slowReader(t *testing.T) slowReader {
	t.Helper()
	r := newRelay(t, p.standby.server.DSN())
	s := slowReader{stopped: make(chan struct{}), resume: make(chan struct{})}
	rows := 0
	r.add(rule{
		on: func(m message) bool {
			const bindComplete, dataRow = '2', 'D'
			switch {
			case m.from == server && m.kind == bindComplete:
				rows = 0
			case m.from == server && m.kind == dataRow:
				rows++
			}
			return m.from == server && m.kind == dataRow && rows == conflictRows
		},
		times: 1 << 30,
		do: func(*link, message) {
			select {
			case s.stopped <- struct{}{}:
				<-s.resume
			case <-r.ended:
			}
		},
	})
	s.PG = p.standby.open(t, lakefs.Config{DSN: r.dsn + " application_name='slow reader'", MaxConns: 4})
	return s
}

// conflict removes rows on the primary for good that a reader on the standby has in its snapshot, and waits until the
// standby cannot go on for that: it then cancels the reader.
func (p pair) conflict(t *testing.T, writer *lakefs.PG) {
	t.Helper()
	lakefstest.Put(t, writer, "lake", "gone", secondBytes)
	if err := writer.Remove(t.Context(), "lake", "gone"); err != nil {
		t.Fatal(err)
	}
	p.primary.reapAll(t)
	p.primary.server.Super(t, `VACUUM pgvfs.chunks`)
	p.standby.server.Received(t)
	const replayedSQL = `SELECT pg_last_wal_replay_lsn()::text`
	for before := any(nil); ; time.Sleep(20 * time.Millisecond) {
		now := p.standby.server.Value(t, replayedSQL)
		if now == before {
			return
		}
		before = now
	}
}

// cancelled counts the queries that the standby has cancelled. The server's own count, in pg_stat_database_conflicts,
// comes a second late.
func (p pair) cancelled(t *testing.T) int {
	t.Helper()
	return strings.Count(p.standby.server.Log(t), "ERROR:  canceling statement due to conflict with recovery")
}

// readThrough reads a file slowly while the first of its tries meet with conflicts.
func (p pair) readThrough(t *testing.T, conflicts int) error {
	t.Helper()
	writer, s := p.primary.open(t, lakefs.Config{}), p.slowReader(t)
	data := lakefstest.Content(7, 2*conflictRows*chunkBytes)
	f := lakefstest.Put(t, writer, "lake", "big", data)
	p.catchUp(t)
	got := make([]byte, len(data))
	done := p.standby.begin(t, func(ctx context.Context) error { return s.ReadAt(ctx, f, got, 0) })
	for try := 0; ; try++ {
		select {
		case err := <-done:
			if err == nil && string(got) != string(data) {
				t.Error("other bytes have been read")
			}
			return err
		case <-s.stopped:
			if try < conflicts {
				p.conflict(t, writer)
			}
			s.resume <- struct{}{}
		}
	}
}

// standbyCancelled: a read that the standby cancels is tried again, and the file is read.
func standbyCancelled(t *testing.T, p pair) {
	before := p.cancelled(t)
	for range conflictTries {
		if err := p.readThrough(t, 2); err != nil {
			t.Fatal(err)
		}
		if p.cancelled(t) > before+1 {
			return
		}
	}
	t.Error("the standby has not cancelled one read twice")
}

// standbyCancelledForGood: a read that is cancelled each time fails in the end, and the error says what helps.
func standbyCancelledForGood(t *testing.T, p pair) {
	before := p.cancelled(t)
	for range conflictTries {
		err := p.readThrough(t, 1<<30)
		if err == nil {
			continue
		}
		if !errors.Is(err, lakefs.ErrRecovery) || !strings.Contains(err.Error(), "hot_standby_feedback") || !strings.Contains(err.Error(), "40001") {
			t.Error(err)
		}
		if n := p.cancelled(t) - before; n < 3 {
			t.Errorf("given up after %d tries", n)
		}
		return
	}
	t.Error("the standby has not cancelled every try")
}

// standbyPromoted: a store on a standby writes as soon as that is the primary, without being opened anew.
func standbyPromoted(t *testing.T, p pair) {
	writer, s := p.primary.open(t, lakefs.Config{}), p.standby.open(t, lakefs.Config{})
	lakefstest.Put(t, writer, "lake", "f", oldBytes)
	p.catchUp(t)
	lakefstest.WantFile(t, s, "lake", "f", oldBytes)
	if err := s.Remove(t.Context(), "lake", "f"); !errors.Is(err, lakefs.ErrReadOnly) {
		t.Error(err)
	}
	p.standby.server.Promote(t)
	wantReadOnly(t, s, false)
	lakefstest.Put(t, s, "lake", "f", firstBytes)
	lakefstest.Put(t, s, "lake", "g", secondBytes)
	lakefstest.WantFile(t, s, "lake", "f", firstBytes)
	if err := s.Rename(t.Context(), "lake", "g", "f"); err != nil {
		t.Error(err)
	}
	lakefstest.WantFile(t, s, "lake", "f", secondBytes)
	p.standby.wantSound(t)
}
