package embeddedtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby runs a streaming standby of the server until the test's end. It has the same roles, certificates and
// settings. It is a copy of the files made as the manual says (26.3.3, "Making a Base Backup Using the Low Level API"):
// the programs that can be fetched have no pg_basebackup.
func (s *ClusterServer) Standby(tb testing.TB) *ClusterServer {
	tb.Helper()
	b := *s
	b.dir, b.params, b.primary, b.super, b.process = Dir(tb), maps.Clone(s.params), s, nil, nil
	b.mkdir(tb, "data")
	b.mkdir(tb, "socket")
	b.params["unix_socket_directories"] = b.path("socket")
	b.params["primary_conninfo"] = s.SuperDSN(superuser)
	if s.tls != nil {
		b.writeCertificate(tb, "localhost", "127.0.0.1")
		b.params["ssl_cert_file"], b.params["ssl_key_file"], b.params["ssl_ca_file"] = b.path("server.crt"), b.path("server.key"), b.path("ca.crt")
	}
	label := s.backUp(tb, b.path("data"))
	b.write(tb, filepath.Join("data", "backup_label"), label)
	b.write(tb, filepath.Join("data", "standby.signal"), "")
	b.start(tb)
	b.look(tb, database)
	b.CatchUp(tb)
	return &b
}

// backUp copies a running server's files to a folder, and returns the backup's label.
func (s *ClusterServer) backUp(tb testing.TB, to string) (label string) {
	tb.Helper()
	start, stop := `SELECT pg_backup_start('test', true)`, `SELECT labelfile FROM pg_backup_stop(false)`
	if s.Major() < 15 {
		start, stop = `SELECT pg_start_backup('test', true, false)`, `SELECT labelfile FROM pg_stop_backup(false, false)`
	}
	conn, err := pgx.Connect(tb.Context(), s.SuperDSN(superuser)) // the same session has to end what it has started
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(tb.Context()))
	if _, err := conn.Exec(tb.Context(), start); err != nil {
		tb.Fatal(err)
	}
	if err := s.copyData(to); err != nil {
		tb.Fatal(err)
	}
	if err := conn.QueryRow(tb.Context(), stop).Scan(&label); err != nil {
		tb.Fatal(err)
	}
	return label
}

// copyData copies the data directory, without the WAL, which is streamed, and the process's own files.
func (s *ClusterServer) copyData(to string) error {
	from := s.path("data")
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file that has gone
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return s.copyEntry(entry, path, filepath.Join(to, name), name)
	})
}

// copyEntry copies one folder, without what is in it, or one file.
func (s *ClusterServer) copyEntry(entry fs.DirEntry, from, to, name string) error {
	switch {
	case name == ".", name == "postmaster.pid", name == "postmaster.opts":
		return nil
	case filepath.Dir(name) == "pg_wal" && !entry.IsDir():
		return nil
	case entry.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		return s.tools.Own(to)
	}
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy the cluster: %w", err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	return s.tools.Own(to)
}

// CatchUp waits until a standby shows everything that was committed on its primary before.
func (s *ClusterServer) CatchUp(tb testing.TB) {
	tb.Helper()
	if err := s.TryCatchUp(tb.Context()); err != nil {
		tb.Fatalf("%v\n%s", err, s.Log(tb))
	}
}

// TryCatchUp is CatchUp for any goroutine.
func (s *ClusterServer) TryCatchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replayMax)
	defer cancel()
	target, err := s.primary.flushed(ctx)
	for replayed := false; err == nil && !replayed; {
		err = s.super.QueryRow(ctx, `SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, target).Scan(&replayed)
		if err == nil && !replayed {
			time.Sleep(replayPoll)
		}
	}
	if err != nil {
		return fmt.Errorf("wait for the standby: %w", err)
	}
	return nil
}

// Received waits until a standby has everything that was committed on its primary before, shown or not.
func (s *ClusterServer) Received(tb testing.TB) {
	tb.Helper()
	target, err := s.primary.flushed(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for end := time.Now().Add(replayMax); time.Now().Before(end); time.Sleep(replayPoll) {
		if s.Value(tb, `SELECT pg_last_wal_receive_lsn() >= $1::text::pg_lsn`, target) == true {
			return
		}
	}
	tb.Fatalf("the standby receives nothing\n%s", s.Log(tb))
}

// flushed is the end of what a primary has written, everything done so far included: the message's commit sees to it.
func (s *ClusterServer) flushed(ctx context.Context) (lsn string, err error) {
	if _, err := s.super.Exec(ctx, `SELECT pg_logical_emit_message(true, 'test', '')`); err != nil {
		return "", err
	}
	err = s.super.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn()::text`).Scan(&lsn)
	return lsn, err
}

// Promote makes a standby a primary.
func (s *ClusterServer) Promote(tb testing.TB) {
	tb.Helper()
	if s.Value(tb, `SELECT pg_promote(true)`) != true {
		tb.Fatalf("the standby has not been promoted:\n%s", s.Log(tb))
	}
	s.primary = nil
}
