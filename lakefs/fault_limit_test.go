package lakefs_test

import (
	"strings"
	"testing"
	"time"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// statementTimeout: a COPY that takes longer than the role may publishes nothing, and says why.
func statementTimeout(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.openThrough(t, r)
	if err := x.endBackends(t.Context(), `application_name = 'sluice pgvfs'`); err != nil {
		t.Fatal(err)
	}
	x.exec(t, `ALTER ROLE CURRENT_USER SET statement_timeout = '500ms'`)
	defer x.exec(t, `ALTER ROLE CURRENT_USER RESET statement_timeout`)
	r.clear()
	r.add(rule{on: sends(client, 'd'), nth: batchMessages + 2, do: pause(time.Second)})
	err := writing("old", largeFile)(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("%v", err)
	}
	x.exec(t, `ALTER ROLE CURRENT_USER RESET statement_timeout`)
	x.wantUndone(t, p, r)
}

// wantUndone checks that a put of largeFile to "old" has left nothing, and that its store goes on with new connections.
func (x *fixture) wantUndone(t *testing.T, p *lakefs.PG, r *faultyRelay) {
	t.Helper()
	if n := r.statements("COPY pgvfs.chunks"); n > 1 {
		t.Errorf("%d COPYs were begun for one file", n)
	}
	r.clear()
	if err := x.endBackends(t.Context(), `application_name = 'sluice pgvfs'`); err != nil {
		t.Fatal(err)
	}
	x.wantClean(t, p)
	if is := x.volume(t); !is.same(seeded) {
		t.Errorf("changed: %v", is)
	}
	x.goesOn(t, p, seeded)
}

// idleTimeout: a session that the server ends because its transaction has been idle for too long publishes nothing. A
// store idles in a transaction for as long as the network holds its next statement up, and at no other time: not
// between a writer's calls.
func idleTimeout(t *testing.T, x *fixture) {
	const minutes, millis = `idle_in_transaction_session_timeout = '5min'`, `idle_in_transaction_session_timeout = '90ms'`
	r := newRelay(t, x.dsn)
	for name, at := range map[string]rule{
		"NextID":    {on: statement("SELECT nextval('pgvfs.file_ids')")},
		"Copy":      {on: query("COPY pgvfs.chunks")},
		"Unpublish": {on: statement("WITH gone AS (DELETE FROM pgvfs.files WHERE volume = $1 AND path = $2")},
		"Commit":    {on: query("COMMIT")},
	} {
		t.Run(name, func(t *testing.T) {
			p := x.openThrough(t, r)
			defer x.empty(t)
			r.clear()
			r.heal()
			impatient := r.add(rule{on: query("SET "), times: 1000, do: replace(minutes, millis)})
			at.do = pause(500 * time.Millisecond)
			r.add(at)
			err := writing("old", largeFile)(t.Context(), p)
			// Rows on their way to a server that has gone may fail before its last words are read.
			if err == nil || (name != "Copy" && !strings.Contains(err.Error(), "25P03")) {
				t.Errorf("%v", err)
			}
			select {
			case <-impatient.reached:
			default:
				t.Error("the session's setting was not shortened")
			}
			x.wantUndone(t, p, r)
		})
	}
	p := x.openThrough(t, r)
	r.clear()
	r.heal()
	r.add(rule{on: query("SET "), times: 1000, do: replace(minutes, millis)})
	w, err := p.Create(t.Context(), "lake", "old")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	data := lakefstest.Content(6, 3*batchBytes)
	for _, part := range [][]byte{data[:100], data[100 : batchBytes+5], data[batchBytes+5 : batchBytes+6], data[batchBytes+6:]} {
		if err := w.Write(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // several times the timeout
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lakefstest.WantFile(t, p, "lake", "old", data)
}

// interruptedReap: a reap that is cut off is tried once more, and in the end deletes all that it should and nothing else.
func interruptedReap(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	kept := lakefstest.Content(2, 3*chunkBytes)
	for i, at := range []rule{
		{on: statement("SELECT pgvfs.reap")},
		{on: statement("SELECT pgvfs.reap"), place: within},
		{on: statement("SELECT pgvfs.reap"), place: after},
		{on: sends(client, 'S')},
		{on: sends(client, 'S'), place: after},
		{on: sends(server, 'D')},
		{on: sends(server, 'Z')},
	} {
		p := x.open(t, lakefs.Config{DSN: r.dsn, ReapGrace: -1})
		lakefstest.Put(t, p, "lake", "kept", kept)
		if _, err := p.Reap(t.Context(), nil); err != nil { // waits for the one that its first change began
			t.Fatal(err)
		}
		lakefstest.Put(t, p, "lake", "gone", lakefstest.Content(1, 20*chunkBytes))
		if err := p.Remove(t.Context(), "lake", "gone"); err != nil {
			t.Fatal(err)
		}
		r.clear()
		at.do = []func(*link, message){cut, x.terminate(t)}[i%2]
		hit := r.add(at)
		_, err := p.Reap(t.Context(), nil)
		hit.acting.Wait()
		if err != nil {
			t.Errorf("place %d: %v", i, err)
		}
		x.want(t, 3, `SELECT count(*) FROM pgvfs.chunks`)
		x.want(t, 0, `SELECT count(*) FROM pgvfs.garbage`)
		x.wantClean(t, p)
		lakefstest.WantFile(t, p, "lake", "kept", kept)
		x.empty(t)
	}
}
