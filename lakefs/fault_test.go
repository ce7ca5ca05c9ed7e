package lakefs_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// hangMax is how long anything here may take before it counts as hanging.
const hangMax = time.Minute

// contents is what a volume holds, by path.
type contents map[string][]byte

// change is something that a store does to a volume, step by step.
type change struct {
	name   string
	run    func(ctx context.Context, s lakefs.Store) error
	after  contents // what is different when it is done; nil bytes: the file is gone
	steps  []step
	spills bool // another file has the connection, so this one waits on disk
}

// step is a place in a change's conversation with the server.
type step struct {
	name    string
	rule    rule // where it is; what happens there is the way's matter
	fresh   bool // only a store without connections comes here
	outcome outcome
}

// outcome is what has become of a change that was interrupted at a step.
type outcome int

const (
	undone    outcome = iota // it failed, and nothing has changed
	retried                  // nothing had begun, so a new connection did it all; undone if the store was not told
	answered                 // retried, unless the way lets the server's answer through
	delivered                // undone, unless the way lets the message through to the server
	done                     // it is all there, whatever the store was told
	either                   // undone or done
)

// way is a way to interrupt a conversation.
type way struct {
	name   string
	do     func(x *fixture, tb testing.TB) func(*link, message)
	half   bool // in the middle of the message instead of before it
	silent bool // the store is not told, so its context ends
	lets   bool // the client's message still reaches the server
	pid    bool // needs a session that has been logged in
	rare   bool // tried with -long only, but for
	first  bool // the first change
}

// always is a way's do that needs nothing.
func always(do func(*link, message)) func(*fixture, testing.TB) func(*link, message) {
	return func(*fixture, testing.TB) func(*link, message) { return do }
}

// ways to interrupt.
var ways = []way{
	{name: "Terminated", do: (*fixture).terminate, pid: true},
	{name: "Cut", do: always(cut), rare: true},
	{name: "Reset", do: always(cutHard), rare: true},
	{name: "CutWithin", do: always(cut), half: true, rare: true},
	{name: "ClientGone", do: always(cutClient), lets: true, rare: true, first: true},
	{name: "ServerGone", do: always(cutServer), silent: true, rare: true},
	{name: "RequestsLost", do: always(swallow(client)), silent: true, rare: true},
	{name: "AnswersLost", do: always(swallow(server)), silent: true, lets: true, rare: true, first: true},
}

// seeded is what a volume holds before a change.
var seeded = contents{
	"old":   lakefstest.Content(1, 2*chunkBytes+5),
	"other": lakefstest.Content(2, 3*chunkBytes),
	"dir/a": lakefstest.Content(3, chunkBytes),
	"dir/b": {},
}

// Files that changes put.
var (
	largeFile = lakefstest.Content(4, batchBytes+50*chunkBytes+17)
	smallFile = lakefstest.Content(5, chunkBytes+1)
)

// batchMessages is how many messages of 64 KB pgx makes of the COPY's head and a batch.
const batchMessages = batchBytes/65531 + 3

// Steps that all changes have before and after their own.
var (
	opening = []step{
		{name: "Connect", rule: rule{on: startup}, fresh: true},
		{name: "Login", rule: rule{on: sends(server, 'R')}, fresh: true},
		{name: "Begin", rule: rule{on: query("BEGIN ISOLATION")}, outcome: retried},
		{name: "BeginTwice", rule: rule{on: query("BEGIN ISOLATION"), times: 2}},
		{name: "Begun", rule: rule{on: answers("BEGIN ISOLATION")}, outcome: answered},
	}
	closing = []step{
		{name: "Commit", rule: rule{on: query("COMMIT")}, outcome: delivered},
		{name: "CommitSent", rule: rule{on: query("COMMIT"), place: after}, outcome: either},
		{name: "Committed", rule: rule{on: answers("COMMIT")}, outcome: done},
	}
)

// putSteps are those of a file in the making; the rows of a large one are more than one batch.
func putSteps(large bool) []step {
	steps := []step{
		{name: "NextID", rule: rule{on: statement("SELECT nextval('pgvfs.file_ids')")}},
		{name: "Copy", rule: rule{on: query("COPY pgvfs.chunks")}},
		{name: "CopyAccepted", rule: rule{on: sends(server, 'G')}},
		{name: "FirstRows", rule: rule{on: sends(client, 'd'), nth: 2}},
		{name: "CopyDone", rule: rule{on: sends(client, 'c')}},
		{name: "Copied", rule: rule{on: answers("COPY pgvfs.chunks")}},
		{name: "Unpublish", rule: rule{on: statement("WITH gone AS (DELETE FROM pgvfs.files WHERE volume = $1 AND path = $2")}},
		{name: "Publish", rule: rule{on: statement("INSERT INTO pgvfs.files")}},
	}
	if large {
		steps = append(steps, step{name: "LaterRows", rule: rule{on: sends(client, 'd'), nth: batchMessages + 2}})
	}
	return steps
}

// between puts a change's own steps into their place.
func between(steps []step) []step {
	return append(append(append([]step{}, opening...), steps...), closing...)
}

// writing is a change that writes a file.
func writing(path string, data []byte) func(context.Context, lakefs.Store) error {
	return func(ctx context.Context, s lakefs.Store) error {
		_, err := lakefstest.TryPut(ctx, s, "lake", path, data)
		return err
	}
}

// changes are all that a store can do to a volume.
var changes = []change{
	{name: "Overwrite", run: writing("old", largeFile), after: contents{"old": largeFile}, steps: between(putSteps(true))},
	{name: "New", run: writing("new", largeFile), after: contents{"new": largeFile}, steps: between(putSteps(true))},
	{name: "Small", run: writing("old", smallFile), after: contents{"old": smallFile}, steps: between(putSteps(false))},
	{name: "Spilled", run: writing("old", largeFile), after: contents{"old": largeFile}, steps: append(putSteps(true), closing...), spills: true},
	{name: "Rename", run: func(ctx context.Context, s lakefs.Store) error {
		return s.Rename(ctx, "lake", "other", "old")
	}, after: contents{"old": seeded["other"], "other": nil}, steps: between([]step{
		{name: "Unpublish", rule: rule{on: statement("WITH gone AS (DELETE FROM pgvfs.files WHERE volume = $1 AND path = $2")}},
		{name: "Update", rule: rule{on: statement("UPDATE pgvfs.files SET path")}},
	})},
	{name: "Remove", run: func(ctx context.Context, s lakefs.Store) error {
		return s.Remove(ctx, "lake", "old")
	}, after: contents{"old": nil}, steps: between([]step{
		{name: "Unpublish", rule: rule{on: statement("WITH gone AS (DELETE FROM pgvfs.files WHERE volume = $1 AND path = $2")}},
	})},
	{name: "RemovePrefix", run: func(ctx context.Context, s lakefs.Store) error {
		_, err := s.RemovePrefix(ctx, "lake", "dir/")
		return err
	}, after: contents{"dir/a": nil, "dir/b": nil}, steps: between([]step{
		{name: "Unpublish", rule: rule{on: statement("WITH gone AS (DELETE FROM pgvfs.files\n")}},
	})},
}

// faultCases are run on one server, each on an empty database.
var faultCases = []struct {
	name string
	run  func(t *testing.T, x *fixture)
}{
	{"Relay", relayFaithful},
	{"Changes", interruptedChanges},
	{"Reads", interruptedReads},
	{"ReadTwice", readLostTwice},
	{"ReadRefused", readRefused},
	{"Reap", interruptedReap},
	{"Lookups", interruptedLookups},
	{"SilentRead", silentRead},
	{"CrossedRenames", crossedRenames},
	{"StatementTimeout", statementTimeout},
	{"IdleTimeout", idleTimeout},
	{"DiskFull", diskFull},
	{"FileTooLarge", fileTooLarge},
	{"SpillFull", spillFull},
}

// TestFault: what the network, the server and the disk can do to a store.
func TestFault(t *testing.T) {
	srv := embeddedtest.Start(t)
	x := &fixture{dsn: srv.DSN(), admin: connect(t, srv.DSN())}
	for _, c := range faultCases {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, x)
			x.wantSound(t)
		})
		x.exec(t, `DROP SCHEMA IF EXISTS pgvfs CASCADE`)
	}
}

// interruptedChanges interrupts every change at every step in every way. After each, the volume holds what it held
// before or what the change has made of it, whole; nothing else is left of it anywhere; and the store goes on.
func interruptedChanges(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	for i, c := range changes {
		for _, s := range c.steps {
			for _, w := range ways {
				tried := i == 0 && (w.first || !w.rare) || !w.rare && !s.fresh && s.outcome != retried && c.name != "New"
				if !(tried || *long) || (w.silent && s.commits()) || (w.pid && s.fresh) {
					continue
				}
				t.Run(c.name+"/"+s.name+"/"+w.name, func(t *testing.T) { interrupt(t, x, r, c, s, w) })
			}
		}
	}
}

// TestFault_SilentCommit: a COMMIT whose answer does not come is waited for, whatever its caller's context says, and
// then the outcome is unknown to the store but whole in the database. The wait is a minute, so all cases share it.
func TestFault_SilentCommit(t *testing.T) {
	if !*long {
		t.Skip("NOT TESTED without -long: takes a minute")
	}
	for _, s := range closing {
		for _, w := range ways {
			if !w.silent {
				continue
			}
			t.Run(s.name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				srv := embeddedtest.Start(t)
				x := &fixture{dsn: srv.DSN(), admin: connect(t, srv.DSN())}
				interrupt(t, x, newRelay(t, x.dsn), changes[0], s, w)
			})
		}
	}
}

// commits reports whether the step belongs to a change's COMMIT.
func (s step) commits() bool {
	return s.outcome == delivered || s.outcome == done || s.outcome == either
}

// faultConns is how many connections stores have here: the fewest, so that one streams. Where a leaked one would be
// waited for, it hangs; where it would be done without, the missing spill directory shows it.
const faultConns = 4

// openThrough opens a store whose connections go through a relay, and warms it up: the schema is there, and a
// connection.
func (x *fixture) openThrough(t *testing.T, r *faultyRelay) *lakefs.PG {
	t.Helper()
	return x.openSpilling(t, r, filepath.Join(t.TempDir(), "none"))
}

// openSpilling is openThrough with a directory for what finds no connection.
func (x *fixture) openSpilling(t *testing.T, r *faultyRelay, spill string) *lakefs.PG {
	t.Helper()
	r.clear()
	p := x.open(t, lakefs.Config{DSN: r.dsn, MaxConns: faultConns, SpillDir: spill})
	// Its first change begins a reap, which must not be taken for what comes later. No other commits by the extended protocol.
	reaped := r.add(rule{on: func(m message) bool { return m.sql == "" && tagged("COMMIT")(m) }, place: after, do: pause(0)})
	for path, data := range seeded {
		lakefstest.Put(t, p, "lake", path, data)
	}
	select {
	case <-reaped.reached:
		reaped.acting.Wait()
	case <-time.After(hangMax):
		t.Fatal("the store's first reap does not end")
	}
	x.await(t, 0, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice pgvfs' AND state <> 'idle'`)
	return p
}

// interrupt is one case of TestFault_Changes.
func interrupt(t *testing.T, x *fixture, r *faultyRelay, c change, s step, w way) {
	dir := t.TempDir()
	if !c.spills {
		dir = filepath.Join(dir, "none")
	}
	p := x.openSpilling(t, r, dir)
	defer x.empty(t)
	if s.fresh {
		if err := x.endBackends(t.Context(), `application_name = 'sluice pgvfs'`); err != nil {
			t.Fatal(err)
		}
	}
	at := s.rule
	at.do = w.do(x, t)
	if w.half {
		at.place = within
	}
	free := func() {}
	if c.spills {
		free = begin(t, p, "holder").Abort
		x.await(t, batchBytes/chunkBytes, `SELECT sum(tuples_processed)::int8 FROM pg_stat_progress_copy`) // and sends no more
	}
	r.clear()
	hit := r.add(at)
	err := runInterrupted(t, p, c, w, hit)
	hit.acting.Wait()
	free()
	if n := r.statements("COPY pgvfs.chunks"); n > 1 {
		t.Errorf("%d COPYs were begun for one file", n)
	}
	r.clear()
	if w.silent || w.lets {
		r.heal()
	}
	x.settle(t, p, r, s.want(w, at.place), c, err)
}

// runInterrupted makes the change and returns its error.
func runInterrupted(t *testing.T, p *lakefs.PG, c change, w way, hit *trap) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, p) }()
	if w.silent {
		select {
		case <-hit.reached:
			time.Sleep(5 * time.Millisecond) // so that the store waits when its context ends
			cancel()
		case err := <-ended:
			t.Fatalf("the step was not reached: %v", err)
		}
	}
	select {
	case err := <-ended:
		select {
		case <-hit.reached:
		default:
			t.Fatalf("the step was not reached: %v", err)
		}
		return err
	case <-time.After(2 * hangMax): // a COMMIT is waited for half that long
		t.Fatal("the change hangs")
		return nil
	}
}

// want is what becomes of a change that is interrupted at a step in a way.
func (s step) want(w way, at place) outcome {
	switch {
	case s.outcome == retried && w.silent, s.outcome == answered && (w.silent || w.pid):
		return undone
	case s.outcome == answered:
		return retried
	case s.outcome == delivered && (w.lets || at == after):
		return done
	case s.outcome == delivered:
		return undone
	case s.outcome == either && at == within: // COMMIT was not sent whole
		return undone
	}
	return s.outcome
}

// settle checks what is left of a change that ended with an error or without.
func (x *fixture) settle(t *testing.T, p *lakefs.PG, r *faultyRelay, want outcome, c change, err error) {
	t.Helper()
	x.wantClean(t, p)
	is := x.volume(t)
	changed := maps.Clone(seeded)
	for path, data := range c.after {
		if data == nil {
			delete(changed, path)
		} else {
			changed[path] = data
		}
	}
	now, isUndone, isDone := seeded, is.same(seeded), is.same(changed)
	if isDone {
		now = changed
	}
	switch {
	case !isUndone && !isDone:
		t.Errorf("neither undone nor done: %v", is)
	case err == nil && !isDone:
		t.Error("reported as done, and is not")
	case want == retried && err != nil:
		t.Errorf("not retried: %v", err)
	case want == undone && (err == nil || !isUndone), want == done && !isDone:
		t.Errorf("outcome undone=%t done=%t, wanted %d; %v", isUndone, isDone, want, err)
	}
	x.wantSessions(t)
	x.goesOn(t, p, now)
}

// goesOn checks that a store sees what there is, can write, and ends.
func (x *fixture) goesOn(t *testing.T, p *lakefs.PG, now contents) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangMax)
	defer cancel()
	for path, data := range now {
		lakefstest.WantFile(t, p, "lake", path, data)
	}
	next := lakefstest.Content(9, batchBytes+chunkBytes+1)
	if _, err := lakefstest.TryPut(ctx, p, "lake", "old", next); err != nil {
		t.Errorf("the next write: %v", err)
		return
	}
	lakefstest.WantFile(t, p, "lake", "old", next)
	x.wantSessions(t)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = p.Close() // never an error
	}()
	select {
	case <-closed: // the pool has got all its connections back
	case <-time.After(hangMax):
		t.Fatal("a connection was not given back")
	}
}

// wantSessions checks that the pool keeps its bound.
func (x *fixture) wantSessions(t *testing.T) {
	t.Helper()
	x.want(t, true, `SELECT count(*) <= $1 FROM pg_stat_activity WHERE application_name = 'sluice pgvfs'`, faultConns)
}

// empty makes the next case's beginning.
func (x *fixture) empty(t *testing.T) {
	x.exec(t, `TRUNCATE pgvfs.files, pgvfs.chunks, pgvfs.garbage`)
}

// digests is what a volume holds, as the database computes it.
type digests map[string]string

// volume reads the digests of volume lake without the store's help.
func (x *fixture) volume(t *testing.T) digests {
	t.Helper()
	rows, err := x.admin.Query(t.Context(), `SELECT f.path, encode(sha256(coalesce(string_agg(c.data, '' ORDER BY c.no), '')), 'hex')
		FROM pgvfs.files f LEFT JOIN pgvfs.chunks c USING (file_id) WHERE volume = 'lake' GROUP BY f.file_id, f.path`)
	if err != nil {
		t.Fatal(err)
	}
	found := digests{}
	var path, digest string
	if _, err := pgx.ForEachRow(rows, []any{&path, &digest}, func() error {
		found[path] = digest
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// same compares with contents.
func (d digests) same(c contents) bool {
	return maps.Equal(d, c.digests())
}

// digests computes them.
func (c contents) digests() digests {
	of := digests{}
	for path, data := range c {
		sum := sha256.Sum256(data)
		of[path] = hex.EncodeToString(sum[:])
	}
	return of
}

// String shows which digest is where, short enough to be read.
func (d digests) String() string {
	short := map[string]string{}
	for path, digest := range d {
		short[path] = digest[:8]
	}
	return fmt.Sprint(short)
}

// crossedRenames: two renames that lock the same files in opposite order. One is rolled back, and is told why in the words
// that callers ask for.
func crossedRenames(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p, other := x.openThrough(t, r), x.open(t, lakefs.Config{})
	deleted := make(chan struct{})
	r.clear()
	first := r.add(rule{on: statement("UPDATE pgvfs.files SET path"), do: hold(deleted)})
	ended := make(chan error, 2)
	go func() { ended <- p.Rename(t.Context(), "lake", "old", "other") }()
	<-first.reached
	go func() { ended <- other.Rename(t.Context(), "lake", "other", "old") }()
	x.await(t, 1, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'sluice pgvfs'`)
	close(deleted)
	done := 0
	for range 2 {
		switch err := <-ended; {
		case err == nil:
			done++
		case !errors.Is(err, lakefs.ErrConflict) && !errors.Is(err, lakefs.ErrNotExist):
			t.Errorf("%v", err)
		}
	}
	if done == 0 {
		t.Error("neither rename has been made")
	}
	x.wantSound(t)
	got := fmt.Sprint(x.volume(t))
	var possible []string // one of them alone, or one after the other
	for _, end := range [][2]string{{"other", "old"}, {"old", "other"}, {"old", "old"}, {"other", "other"}} {
		c := maps.Clone(seeded)
		delete(c, "old")
		delete(c, "other")
		c[end[0]] = seeded[end[1]]
		possible = append(possible, fmt.Sprint(c.digests()))
	}
	if !slices.Contains(possible, got) {
		t.Errorf("neither rename whole: %s", got)
	}
}
