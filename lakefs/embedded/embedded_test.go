package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"sluice/lakefs/embedded"
	"sluice/lakefs/embedded/embeddedtest"
)

// helperDir tells the test binary to be a Sluice that runs a server on this directory until it is killed.
const helperDir = "SLUICE_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		s, err := embedded.Start(context.Background(), embedded.Options{Dir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.DSN())
		<-s.Done()
		return
	}
	os.Exit(m.Run())
}

// options are those of a durable server that logs to the test.
func options(t *testing.T, dir string) embedded.Options {
	return embedded.Options{Dir: dir, Logger: zerolog.New(zerolog.NewTestWriter(t))}
}

func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	begin := time.Now()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(begin))
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// query runs SQL as whom a connection string says and gives the first field of the last result.
func query(t *testing.T, dsn, sql string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 || len(results[len(results)-1].Rows) == 0 {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

func want(t *testing.T, dsn, sql, value string) {
	t.Helper()
	got, err := query(t, dsn, sql)
	if err != nil || got != value {
		t.Errorf("%s: %q, %v, want %q", sql, got, err, value)
	}
}

// refused wants a statement to fail with a SQLSTATE.
func refused(t *testing.T, dsn, sql, code string) {
	t.Helper()
	_, err := query(t, dsn, sql)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		t.Errorf("%s: %v, want %s", sql, err, code)
	}
}

// TestServer_SecondStart: what was written is there after a stop and a start.
func TestServer_SecondStart(t *testing.T) {
	o := options(t, embeddedtest.Dir(t))
	s := start(t, o)
	want(t, s.DSN(), "CREATE TABLE t AS SELECT 7 AS a; SELECT a FROM t", "7")
	stop(t, s)
	if err := s.Err(); err != nil {
		t.Errorf("after a stop: %v", err)
	}
	s = start(t, o)
	want(t, s.DSN(), "SELECT a FROM t", "7")
}

// TestServer_Rights: the service role owns its database and nothing else, and nobody comes in without a password.
func TestServer_Rights(t *testing.T) {
	dir := embeddedtest.Dir(t)
	o := options(t, dir)
	o.Database = `it's "a" lake`
	dsn := start(t, o).DSN()
	want(t, dsn, "SELECT current_database()", o.Database)
	want(t, dsn, "SELECT usesuper OR usecreatedb OR userepl FROM pg_user WHERE usename = current_user", "f")
	want(t, dsn, "CREATE SCHEMA s; CREATE TABLE s.t(i int); CREATE TABLE u(i int); SELECT 1", "1")
	refused(t, dsn, "CREATE ROLE r", "42501")
	refused(t, dsn, "COPY u FROM PROGRAM 'id'", "42501")
	refused(t, dsn, "SELECT pg_read_file('PG_VERSION')", "42501")
	refused(t, strings.Replace(dsn, "dbname='it\\'s \"a\" lake'", "dbname='postgres'", 1), "SELECT 1", "42501")
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, strings.Replace(dsn, config.Password, "wrong", 1), "SELECT 1", "28P01")
	for name, value := range map[string]string{
		"fsync": "on", "wal_level": "replica", "hot_standby_feedback": "on", "max_wal_size": "4GB", "max_connections": "200",
		"listen_addresses": "", "TimeZone": "UTC", "server_encoding": "UTF8", "data_checksums": "on", "wal_compression": "pglz",
	} {
		want(t, dsn, "SELECT setting FROM (VALUES (current_setting('"+name+"'))) v(setting)", value)
	}
	want(t, dsn, "SELECT 'a' > 'B'", "t") // by code point
}

// TestServer_Private: secrets are readable by their owner alone.
func TestServer_Private(t *testing.T) {
	dir := embeddedtest.Dir(t)
	start(t, options(t, dir))
	for name, mode := range map[string]os.FileMode{"pgpass": 0o600, "cluster": 0o700, "sockets": 0o700, "postgresql.log": 0o600} {
		info, err := os.Stat(filepath.Join(dir, "postgres", name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
}

// TestServer_Lock: a second Sluice on one directory is told who is there.
func TestServer_Lock(t *testing.T) {
	o := options(t, embeddedtest.Dir(t))
	start(t, o)
	_, err := embedded.Start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("second start: %v", err)
	}
}

// TestServer_LongPath: a data directory whose path is too long for a socket.
func TestServer_LongPath(t *testing.T) {
	dir := filepath.Join(embeddedtest.Dir(t), strings.Repeat("long/", 20)+"it's long")
	s := start(t, options(t, dir))
	want(t, s.DSN(), "SELECT 1", "1")
	config, err := pgconn.ParseConfig(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	if _, err := os.Stat(config.Host); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", config.Host, err)
	}
}

// TestServer_Crash: a server that dies is reported.
func TestServer_Crash(t *testing.T) {
	dir := embeddedtest.Dir(t)
	s := start(t, options(t, dir))
	if err := s.Err(); err != nil {
		t.Errorf("running: %v", err)
	}
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not noticed")
	}
	if s.Err() == nil {
		t.Error("no error after a crash")
	}
}

// TestServer_Orphans: the postmaster was killed while a backend is too busy to notice; the next start ends that first.
func TestServer_Orphans(t *testing.T) {
	dir := embeddedtest.Dir(t)
	o := options(t, dir)
	s := start(t, o)
	busy := make(chan error, 1)
	go func() {
		_, err := query(t, s.DSN(), "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b")
		busy <- err
	}()
	time.Sleep(500 * time.Millisecond) // so that it runs
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	stop(t, s)
	want(t, start(t, o).DSN(), "SELECT 1", "1")
	if err := <-busy; err == nil {
		t.Error("the busy backend finished")
	}
}

// TestServer_SluiceKilled: Sluice is killed, PostgreSQL goes with it, committed rows are there at the next start, which
// does not wait to be asked.
func TestServer_SluiceKilled(t *testing.T) {
	dir := embeddedtest.Dir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dsn, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(dsn, "host=") {
		t.Fatalf("%s %v", dsn, err)
	}
	want(t, dsn, "CREATE TABLE t AS SELECT 7 AS a; SELECT a FROM t", "7")
	old := postmaster(t, dir)
	if err := errors.Join(cmd.Process.Kill(), cmd.Process.Release()); err != nil {
		t.Fatal(err)
	}
	s := start(t, options(t, dir))
	want(t, s.DSN(), "SELECT a FROM t", "7")
	if old == postmaster(t, dir) {
		t.Error("still the old server")
	}
}

// TestServer_StalePID: in a container the process id of a killed server soon is somebody else's. Here it is the test's.
func TestServer_StalePID(t *testing.T) {
	dir := embeddedtest.Dir(t)
	o := options(t, dir)
	s := start(t, o)
	pidFile := filepath.Join(dir, "postgres", "cluster", "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getppid())+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, start(t, o).DSN(), "SELECT 1", "1")
}

// TestServer_OtherVersion: a cluster of a version that nobody has programs for is named in the error and left alone.
func TestServer_OtherVersion(t *testing.T) {
	dir := embeddedtest.Dir(t)
	cluster := filepath.Join(dir, "postgres", "cluster")
	if err := os.MkdirAll(cluster, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("99\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), options(t, dir))
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL 99") || !strings.Contains(err.Error(), "--dsn") {
		t.Fatalf("%v", err)
	}
}

// TestServer_LostPasswords: without its password file a cluster cannot be used, and the error says which file that is.
func TestServer_LostPasswords(t *testing.T) {
	dir := embeddedtest.Dir(t)
	o := options(t, dir)
	stop(t, start(t, o))
	path := filepath.Join(dir, "postgres", "pgpass")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("%v", err)
	}
}

// TestServer_ClosedDirectory: root's data directory, which PostgreSQL's user cannot reach.
func TestServer_ClosedDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's PostgreSQL runs as another user")
	}
	dir := embeddedtest.Dir(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, options(t, dir))
	want(t, s.DSN(), "SELECT 1", "1")
	config, err := pgconn.ParseConfig(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(config.Host)
	if !strings.HasPrefix(home, "/var/lib/sluice/") {
		t.Fatalf("home %q", home)
	}
	stop(t, s)
	os.RemoveAll(home)
}

// postmaster is the process id of a directory's server.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "postgres", "cluster", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
