package lakefs_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// Statements of readers.
const (
	pieceSQL  = `SELECT no, data FROM pgvfs.chunks`
	openedSQL = `SELECT file_id, size, created_at FROM pgvfs.files`
	listedSQL = `SELECT path FROM pgvfs.files`
)

// interruptedReads interrupts a read of three pieces in many places: it is tried once more, for the piece that was
// lost, and comes out right.
func interruptedReads(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.open(t, lakefs.Config{DSN: r.dsn, MaxConns: 8})
	data := lakefstest.Content(1, 2*pieceBytes+17)
	f := lakefstest.Put(t, p, "lake", "f", data)
	rows := []int{1, 2, 3, 100, 1031, 1032, 1033, 1500, 2065}
	if *long {
		for n := 10; n < 2065; n += 23 {
			rows = append(rows, n)
		}
	}
	cases := []rule{
		{on: statement(pieceSQL)},
		{on: statement(pieceSQL), place: within},
		{on: statement(pieceSQL), place: after},
		{on: statement(pieceSQL), nth: 3},
		{on: sends(server, '2')},
		{on: tagged("SELECT"), place: after},
	}
	for _, n := range rows {
		for _, at := range []place{before, within, after} {
			cases = append(cases, rule{on: sends(server, 'D'), nth: n, place: at})
		}
	}
	for i, c := range cases {
		c.do = []func(*link, message){cut, cutHard, x.terminate(t)}[i%3]
		r.clear()
		hit := r.add(c)
		got := make([]byte, f.Size)
		if err := p.ReadAt(t.Context(), f, got, 0); err != nil || !bytes.Equal(got, data) {
			t.Errorf("case %d: %v, %t", i, err, bytes.Equal(got, data))
		}
		hit.acting.Wait()
		// A last piece whose rows had all been sent may have come in whole.
		if n := r.statements(pieceSQL); n > 4 || (n < 4 && c.place != after) {
			t.Errorf("case %d: %d pieces were asked for instead of 4", i, n)
		}
		// Its connection is dead then and back in the pool, where the next case's piece would meet it and lose its one repeat.
		r.clear()
		if err := errors.Join(x.endBackends(t.Context(), `application_name = 'sluice pgvfs'`), p.ReadAt(t.Context(), f, got, 0)); err != nil {
			t.Fatal(err)
		}
	}
	x.wantSound(t)
}

// pieceBytes is what a reader asks for at once.
const pieceBytes = 1032 * chunkBytes

// readLostTwice: a read that is lost twice fails, not as if the file were gone, and the next one works.
func readLostTwice(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.open(t, lakefs.Config{DSN: r.dsn, MaxConns: 8})
	data := lakefstest.Content(1, 2*pieceBytes+17)
	f := lakefstest.Put(t, p, "lake", "f", data)
	for name, c := range map[string]struct {
		bytes int
		rule  rule
		asked int // statements for pieces at most
	}{
		"OnePiece":    {pieceBytes, rule{on: sends(server, 'D'), nth: 50, each: true}, 2},
		"OnePieceEnd": {pieceBytes, rule{on: sends(server, 'D'), nth: 1032, each: true, place: within}, 2},
		"All":         {len(data), rule{on: statement(pieceSQL), times: 1000, place: after}, 6},
		"Refused": {pieceBytes, rule{on: sends(server, 'D'), nth: 50, do: func(l *link, m message) {
			l.relay.refuse(true)
			cut(l, m)
		}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rule.do == nil {
				c.rule.do = cut
			}
			r.heal() // so that each connection has sent as many rows as any other
			lakefstest.WantList(t, p, "lake", "", 0, "f")
			r.clear()
			r.add(c.rule)
			err := p.ReadAt(t.Context(), f, make([]byte, c.bytes), 0)
			if err == nil || errors.Is(err, lakefs.ErrReaped) || errors.Is(err, lakefs.ErrNotExist) {
				t.Errorf("%v", err)
			}
			if n := r.statements(pieceSQL); n > c.asked {
				t.Errorf("%d pieces were asked for, at most %d could be", n, c.asked)
			}
			r.clear()
			lakefstest.WantFile(t, p, "lake", "f", data)
			x.wantSound(t)
		})
	}
}

// readRefused: what the server refuses is not asked for again.
func readRefused(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.open(t, lakefs.Config{DSN: r.dsn})
	data := lakefstest.Content(1, chunkBytes)
	f := lakefstest.Put(t, p, "lake", "f", data)
	for sql, read := range map[string]func() error{
		pieceSQL: func() error { return p.ReadAt(t.Context(), f, make([]byte, 1), 0) },
		openedSQL: func() error {
			_, err := p.Open(t.Context(), "lake", "none")
			return err
		},
		listedSQL: func() error {
			_, err := p.List(t.Context(), "lake", "", 0)
			return err
		},
	} {
		x.exec(t, `REVOKE SELECT ON pgvfs.chunks, pgvfs.files FROM CURRENT_USER`)
		r.clear()
		if err := read(); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", sql, err)
		}
		if n := r.statements(sql); n != 1 {
			t.Errorf("%s: sent %d times", sql, n)
		}
		x.exec(t, `GRANT SELECT ON pgvfs.chunks, pgvfs.files TO CURRENT_USER`)
		if err := read(); err != nil && !errors.Is(err, lakefs.ErrNotExist) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// interruptedLookups interrupts the other things that readers ask.
func interruptedLookups(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.open(t, lakefs.Config{DSN: r.dsn, MaxConns: faultConns})
	lakefstest.Put(t, p, "lake", "f", []byte("1"))
	for name, c := range map[string]struct {
		sql string
		ask func() error
	}{
		"Open": {openedSQL, func() error {
			_, err := p.Open(t.Context(), "lake", "none")
			if errors.Is(err, lakefs.ErrNotExist) {
				return nil
			}
			return errors.Join(err, errors.New("not: no such file"))
		}},
		"List": {listedSQL, func() error {
			paths, err := p.List(t.Context(), "lake", "", 0)
			if err == nil && len(paths) != 1 {
				return errors.New("not one file")
			}
			return err
		}},
		"ReadOnly": {`SELECT pg_is_in_recovery()`, func() error {
			_, err := p.ReadOnly(t.Context())
			return err
		}},
	} {
		if err := c.ask(); err != nil {
			t.Fatal(err)
		}
		for i, at := range []rule{
			{on: statement(c.sql)},
			{on: statement(c.sql), place: within},
			{on: statement(c.sql), place: after},
			{on: sends(server, '2')},
			{on: sends(server, 'C')},
			{on: sends(server, 'Z')},
		} {
			at.do = []func(*link, message){cut, cutHard, x.terminate(t)}[i%3]
			r.clear()
			hit := r.add(at)
			err := c.ask()
			hit.acting.Wait()
			if n := r.statements(c.sql); err != nil || n > 2 {
				t.Errorf("%s, place %d: %v after %d tries", name, i, err, n)
			}
			r.clear()
			at.times, at.do = 1000, cut
			r.add(at)
			err = c.ask()
			if n := r.statements(c.sql); err == nil || n > 2 {
				t.Errorf("%s, place %d, always: %v after %d tries", name, i, err, n)
			}
			r.clear()
			if err := c.ask(); err != nil {
				t.Errorf("%s, place %d, afterwards: %v", name, i, err)
			}
		}
	}
	x.wantSound(t)
}

// silentRead: a read whose answer does not come ends with its context, and the next one works.
func silentRead(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.open(t, lakefs.Config{DSN: r.dsn, MaxConns: 8})
	data := lakefstest.Content(1, 2*pieceBytes+17)
	f := lakefstest.Put(t, p, "lake", "f", data)
	for _, do := range []func(*link, message){cutServer, swallow(server), swallow(client)} {
		r.clear()
		hit := r.add(rule{on: statement(pieceSQL), nth: 2, do: do})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-hit.reached
			cancel()
		}()
		if err := p.ReadAt(ctx, f, make([]byte, f.Size), 0); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r.clear()
		r.heal()
		lakefstest.WantFile(t, p, "lake", "f", data)
	}
	x.wantSound(t)
}
