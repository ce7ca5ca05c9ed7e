package lakefs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/lakefs/embedded/embeddedtest"
)

// TestNewStores_DataPath: what a data path makes reachable, and for whom.
func TestNewStores_DataPath(t *testing.T) {
	for _, c := range []struct {
		dataPath, volume, path  string
		internal, client, admin bool
	}{
		{"pgvfs://lake/data/", "lake", "data/x", true, true, true},
		{"pgvfs://lake/data", "lake", "data/x", true, true, true},
		{"pgvfs://lake/data/", "lake", "data/", true, true, true},
		{"pgvfs://lake/data/", "lake", "data/../x", true, true, true}, // a name like any other
		{"pgvfs://lake/data", "lake", "data2/x", false, false, true},
		{"pgvfs://lake/data/", "lake", "data", false, false, true},
		{"pgvfs://lake/data/", "lake", "", false, false, true},
		{"pgvfs://lake", "lake", "x", true, true, true},
		{"pgvfs://lake/", "lake", "", true, true, true},
		{"pgvfs://lake", "lake2", "x", false, false, false},
		{"s3://bucket/lake/", "lake", "x", false, false, false},
		{"/srv/lake/", "lake", "x", false, false, false},
	} {
		s, err := NewStores(StoresConfig{DataPath: c.dataPath})
		if err != nil {
			t.Fatal(err)
		}
		for who, want := range map[access]bool{accessInternal: c.internal, accessClient: c.client, accessAdmin: c.admin} {
			l, err := s.route(t.Context(), who, noCredentials{}, c.volume, c.path)
			if (err == nil) != want || (err == nil && l.number != s.own.number) {
				t.Errorf("%s: %s/%s for access %d: %v", c.dataPath, c.volume, c.path, who, err)
			}
		}
	}
	for _, bad := range []string{"pgvfs://", "pgvfs:///x", "pgvfs://Lake/x", "pgvfs://lake/a*/", "pgvfs://lake/[ab]", "pgvfs://lake/?"} {
		if _, err := NewStores(StoresConfig{DataPath: bad}); err == nil || !strings.Contains(err.Error(), "data path") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// noCredentials has no secrets and no settings.
type noCredentials struct{}

func (noCredentials) secret(string) (secret, bool, error) { return secret{}, false, nil }
func (noCredentials) setting(string) string               { return "" }

// TestSecret_DSN: what a secret's keys make.
func TestSecret_DSN(t *testing.T) {
	for _, c := range []struct {
		kind      string
		keys      [][2]string
		dsn, fail string
	}{
		{"postgres", nil, "password=''", ""},
		{"postgres", [][2]string{{"dbname", "a b"}, {"host", "h"}, {"password", `it's a \`}}, `password='' dbname='a b' host='h' password='it\'s a \\'`, ""},
		{"postgres", [][2]string{{"host", "h"}, {"uri", "postgres://u@h/d?sslmode=disable"}}, "postgres://u@h/d?sslmode=disable", ""},
		{"postgres", [][2]string{{"uri", "postgres://u@h/d?passfile=/x"}}, "", "has a uri that"},
		{"postgres", [][2]string{{"uri", "host=h sslcert=/x"}}, "", "has a uri that"},
		{"postgres", [][2]string{{"host", "h"}, {"hostaddr", "127.0.0.1"}}, "", "has the key hostaddr"},
		{"postgres", [][2]string{{"aws_rds_secret", "x"}}, "", "has the key aws_rds_secret"},
		{"postgres", [][2]string{{"search_path", "x"}}, "", "has the key search_path"},
		{"s3", [][2]string{{"host", "h"}}, "", "is of type s3"},
	} {
		dsn, err := secret{c.kind, c.keys}.dsn()
		if c.fail == "" && (err != nil || dsn != c.dsn) || c.fail != "" && (err == nil || !strings.HasPrefix(err.Error(), c.fail)) {
			t.Errorf("%v: %q, %v", c.keys, dsn, err)
		}
	}
	// What is written is what pgx reads.
	dsn, err := secret{"postgres", [][2]string{{"host", "h"}, {"user", `o'b\r`}, {"password", `' \' host=evil`}}}.dsn()
	if err != nil {
		t.Fatal(err)
	}
	pc, err := Config{DSN: dsn, AllowPlaintext: true}.poolConfig()
	if err != nil || pc.ConnConfig.Host != "h" || pc.ConnConfig.User != `o'b\r` || pc.ConnConfig.Password != `' \' host=evil` {
		t.Errorf("%s is read as host %q, user %q, password %q: %v", dsn, pc.ConnConfig.Host, pc.ConnConfig.User, pc.ConnConfig.Password, err)
	}
}

// TestStores_Lease: one store for each connection string, as many as may be, and none that does not work.
func TestStores_Lease(t *testing.T) {
	server := embeddedtest.Start(t)
	s, err := NewStores(StoresConfig{DataPath: "pgvfs://lake/"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dsn := func(n int) string { return fmt.Sprintf("%s application_name=lease%d", server.DSN(), n) }
	take := func(n int) lease {
		t.Helper()
		l, err := s.lease(t.Context(), dsn(n))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}

	// Failures are not remembered, and one who gives up does not fail those who wait with him.
	if _, err := s.lease(t.Context(), server.DSN()+" dbname=nosuch"); sqlstate(err) != "3D000" || len(s.others) != 0 {
		t.Errorf("a database that is not there: %v; %d stores", err, len(s.others))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.lease(ended, dsn(0)); !errors.Is(err, context.Canceled) || len(s.others) != 0 {
		t.Errorf("with an ended context: %v; %d stores", err, len(s.others))
	}

	// Those who come at the same time get the same store.
	found := make(chan lease)
	for range 8 {
		go func() {
			l, err := s.lease(t.Context(), dsn(0))
			if err != nil {
				t.Error(err)
			}
			found <- l
		}()
	}
	first := <-found
	for range 7 {
		if l := <-found; l.number != first.number || l.store != first.store {
			t.Error("one connection string has two stores")
		} else {
			l.release()
			l.release() // counts once
		}
	}

	// The store that was left longest ago makes room. One in use does not.
	leases := []lease{first}
	for n := 1; n < storesMax; n++ {
		leases = append(leases, take(n))
	}
	if _, err := s.lease(t.Context(), dsn(storesMax)); err == nil {
		t.Error("there is no bound")
	}
	leases[3].release()
	leases[2].release()
	take(storesMax).release()
	if again := take(2); again.number != leases[2].number {
		t.Error("a store was closed that was used later than another")
	}
	s.closing.Wait()
	if _, err := leases[3].store.Exists(t.Context(), "v", "x"); err == nil {
		t.Error("the store that made room is still open")
	}
	if ok, err := first.store.Exists(t.Context(), "v", "x"); ok || err != nil {
		t.Errorf("a store in use: %v", err)
	}
	s.Close()
	if _, err := s.lease(t.Context(), dsn(0)); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestReadings_Versions: a version that DuckDB keeps something of keeps the others out until its last handle is closed.
func TestReadings_Versions(t *testing.T) {
	var r readings
	one, two, same := version{1, 7}, version{1, 8}, version{2, 7}
	for _, step := range []struct {
		v     version
		begin bool
		kept  bool
	}{
		{one, true, true},
		{one, true, true},
		{two, true, false},
		{same, true, false},
		{one, false, false},
		{two, true, false},
		{one, false, false},
		{two, true, true},
		{one, true, false},
		{two, false, false},
		{same, true, true},
	} {
		if !step.begin {
			r.end("u")
		} else if kept := r.begin("u", step.v); kept != step.kept {
			t.Errorf("%+v: kept is %t", step, kept)
		}
	}
	if !r.begin("another", two) {
		t.Error("another URL is kept out")
	}
}

// TestPins_Statements: an open file is found again by the statement that runs, and for a while by the next ones.
func TestPins_Statements(t *testing.T) {
	var p pins
	begin := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		p.next(ctx)
		return ctx
	}
	bind := begin()
	f := &File{ID: 1}
	at := p.add("u", 1, f)
	if p.find("u", 1) != f || p.find("u", 2) != nil || p.find("w", 1) != nil {
		t.Error("the file is not found where it is open")
	}
	run := begin()
	if p.find("u", 1) != f {
		t.Error("what was opened to bind is not found in the run")
	}
	at.opened = at.opened.Add(-time.Hour)
	if p.find("u", 1) != nil {
		t.Error("a file that another statement opened long ago is found")
	}
	p.next(bind)
	if p.find("u", 1) != f {
		t.Error("a statement does not find what it opened long ago")
	}
	p.next(run)
	newer := &File{ID: 2}
	second := p.add("u", 1, newer)
	if p.remove("u", at); p.find("u", 1) != newer {
		t.Error("the end of an old handle took the new one's file away")
	}
	if p.forget(); p.find("u", 1) != nil {
		t.Error("a client finds what it has just replaced")
	}
	third := p.add("u", 1, newer)
	if p.remove("u", second); p.find("u", 1) != newer {
		t.Error("the end of a forgotten handle took another's file away")
	}
	if p.remove("u", third); p.find("u", 1) != nil || len(p.open) != 0 {
		t.Error("a file that is open no more is found")
	}
}
