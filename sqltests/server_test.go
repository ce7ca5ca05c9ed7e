package sqltests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Bounds that no healthy server comes near; with the race detector on two busy cores everything is some ten times slower.
const (
	startTimeout = 3 * time.Minute // a first start fetches the extensions and makes a cluster
	stopTimeout  = 90 * time.Second
)

// passwords are those of the users that every server here knows; admin is the one administrator.
var passwords = map[string]string{"sluice": "an ordinary writer", "admin": "may do more", "reader": "another ordinary user"}

// server is one `sluice serve`: a process, its data directory and its log.
type server struct {
	dir     string   // --data-dir
	args    []string // further flags
	addr    string   // host:port, from the ready line
	ready   string   // the DSN in the ready line
	cmd     *exec.Cmd
	log     *os.File
	done    chan struct{} // closed when the process has ended
	exit    error         // what Wait said; read after done
	allowed *regexp.Regexp
}

// startServer starts a server of the test's own, with the users of passwords, and stops it at the test's end, where a bad exit
// code or a fault in its log fails the test.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	s := newServer(t, args...)
	s.addUsers(t)
	s.start(t)
	return s
}

// newServer prepares a data directory; nothing runs yet.
func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	if *addrFlag != "" {
		t.Skip("needs a server of its own, and -addr names another")
	}
	serverBinary(t)
	s := &server{dir: tempDir(t), args: args}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() || *logFlag {
			t.Logf("log of the server in %s:\n%s", s.dir, tail(s.logPath(), 60))
		}
	})
	return s
}

// tempDir is a directory that any user may pass through: as root, PostgreSQL runs as somebody else, whom t.TempDir locks out.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "sluice-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// prepare makes the data directory and lends it the extensions that earlier runs fetched.
func (s *server) prepare() error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	extensions := filepath.Join(cache, "sluice-test", "extensions")
	if err := os.MkdirAll(extensions, 0o755); err != nil {
		return err
	}
	return os.Symlink(extensions, filepath.Join(s.dir, "extensions"))
}

func (s *server) logPath() string { return filepath.Join(s.dir, "test.log") }

// addUsers writes the user file by the command that people use for it.
func (s *server) addUsers(t testing.TB) {
	t.Helper()
	if err := s.writeUsers(serverBinary(t)); err != nil {
		t.Fatal(err)
	}
}

func (s *server) writeUsers(sluice string) error {
	for name, password := range passwords {
		args := []string{"user", "add", name, "--password", password, "--users", filepath.Join(s.dir, "users.txt")}
		if name == "admin" {
			args = append(args, "--admin")
		}
		if out, err := exec.Command(sluice, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("sluice user add %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// start runs the server until it says that it is ready.
func (s *server) start(t testing.TB) {
	t.Helper()
	if err := s.run(serverBinary(t)); err != nil {
		t.Fatalf("%v\n%s", err, tail(s.logPath(), 60))
	}
}

// run starts the process, with its log appended to one file over all its lives.
func (s *server) run(sluice string) error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	args := append([]string{"serve", "--listen", freeAddr(), "--data-dir", s.dir, "--log-format", "json"}, s.args...)
	s.cmd = exec.Command(sluice, args...)
	s.cmd.Stderr, s.log = log, log
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	s.done = make(chan struct{})
	go s.watch(stdout, ready)
	select {
	case err := <-ready:
		return err
	case <-time.After(startTimeout):
		s.cmd.Process.Kill()
		return errors.New("server: not ready in time")
	}
}

// readyLine is what the server prints for people to paste.
var readyLine = regexp.MustCompile(`psql "(postgres(?:ql)?://[^"]+)"`)

// watch reads the server's standard output to its end and then waits for the process.
func (s *server) watch(stdout io.Reader, ready chan<- error) {
	defer close(s.done)
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		match := readyLine.FindStringSubmatch(scanner.Text())
		if match == nil || s.addr != "" {
			continue
		}
		u, err := url.Parse(match[1])
		if err == nil {
			s.ready, s.addr = match[1], u.Host
		}
		ready <- err
	}
	s.exit = s.cmd.Wait()
	s.log.Close()
	select {
	case ready <- fmt.Errorf("server: ended before it was ready: %w", s.exit):
	default:
	}
}

// stop ends the server as a supervisor would, by SIGTERM, and judges its exit code and its log. Stopping twice is no error.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	return s.stopped()
}

// stopped waits for a server that was told to stop. Another SIGTERM would end it at once.
func (s *server) stopped() error {
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		s.cmd.Process.Signal(syscall.SIGQUIT) // the log then shows where it hangs
		<-s.done
		s.cmd = nil
		return errors.New("server: did not stop on SIGTERM")
	}
	s.cmd, s.addr, s.ready = nil, "", ""
	return errors.Join(s.exit, s.faults())
}

// kill9 ends the server as a crash would.
func (s *server) kill9() {
	s.cmd.Process.Kill()
	<-s.done
	s.cmd, s.addr, s.ready = nil, "", ""
}

// restart is stop and start on the same data.
func (s *server) restart(t testing.TB) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s.start(t)
}

// fault finds lines that a healthy server never logs. An error line means that Sluice itself is at fault.
var fault = regexp.MustCompile(`"level":"(error|fatal|panic)"|WARNING: DATA RACE|^panic:|^fatal error:|SIGSEGV|INTERNAL Error`)

// faults reads the log for them.
func (s *server) faults() error {
	log, err := os.Open(s.logPath())
	if err != nil {
		return err
	}
	defer log.Close()
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if fault.MatchString(line) && (s.allowed == nil || !s.allowed.MatchString(line)) {
			return fmt.Errorf("server log: %s", line)
		}
	}
	return scanner.Err()
}

// dsn is a URL for a user of passwords.
func (s *server) dsn(user string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, passwords[user]), Host: s.addr, Path: "/lake"}
	return u.String()
}

// config is the ordinary user's way in.
func (s *server) config(t testing.TB) *pgconn.Config {
	config, err := pgconn.ParseConfig(s.dsn("sluice"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// connect opens a session as the ordinary user and closes it at the test's end.
func (s *server) connect(t testing.TB) *pgconn.PgConn {
	t.Helper()
	return connectAs(t, s.dsn("sluice"))
}

func connectAs(t testing.TB, dsn string) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn.Close(ctx)
	})
	return conn
}

// mustExec runs SQL that has to work and gives the last result's rows, fields joined by tabs.
func mustExec(t testing.TB, conn *pgconn.PgConn, sql string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*recordTimeout)
	defer cancel()
	o := simple(ctx, conn, sql)
	if o.err != nil {
		t.Fatalf("%s: %s", sql, describe(o.err))
	}
	return render(o, false)
}

// wantRow runs a query that gives one row.
func wantRow(t testing.TB, conn *pgconn.PgConn, sql, want string) {
	t.Helper()
	if got := strings.Join(mustExec(t, conn, sql), "\n"); got != want {
		t.Fatalf("%s: got %q, want %q", sql, got, want)
	}
}

// sqlstate is the code of an error from the server, else its text.
func sqlstate(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return fmt.Sprint(err)
}

// freeAddr is a loopback address that was free a moment ago.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer l.Close()
	return l.Addr().String()
}

// tail is the end of a file, for a failed test's output.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// built is the server's binary, made once for all tests.
var built struct {
	once sync.Once
	path string
	err  error
}

// serverBinary builds the server, with the race detector when the tests have it.
func serverBinary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() { built.path, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func build() (string, error) {
	if *serverFlag != "" {
		return *serverFlag, nil
	}
	dir, err := os.MkdirTemp("", "sluice-build-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sluice")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "sluice/cmd/sluice")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build sluice/cmd/sluice: %w\n%s", err, out)
	}
	return path, nil
}

// sharedServer serves all tests that neither stop nor break it. It outlives them: TestMain stops it.
var sharedServer struct {
	once sync.Once
	s    *server
	err  error
}

// shared is the server of most tests, started by the first of them.
func shared(t testing.TB) *server {
	t.Helper()
	if *addrFlag != "" {
		t.Skip("needs a Sluice, and -addr names another server")
	}
	sluice := serverBinary(t)
	sharedServer.once.Do(func() { sharedServer.s, sharedServer.err = startShared(sluice) })
	if sharedServer.err != nil {
		t.Fatal(sharedServer.err)
	}
	return sharedServer.s
}

func startShared(sluice string) (*server, error) {
	dir, err := os.MkdirTemp("", "sluice-shared-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	if err := errors.Join(os.Chmod(dir, 0o755), s.prepare()); err != nil {
		return s, err
	}
	if err := s.writeUsers(sluice); err != nil {
		return s, err
	}
	if err := s.run(sluice); err != nil {
		return s, fmt.Errorf("%w\n%s", err, tail(s.logPath(), 60))
	}
	return s, nil
}

// stopShared ends what outlived the tests and removes what it left.
func stopShared() error {
	var err error
	if s := sharedServer.s; s != nil {
		if err = s.stop(); err != nil || *logFlag {
			fmt.Fprintf(os.Stderr, "log of the shared server:\n%s\n", tail(s.logPath(), 400))
		}
		os.RemoveAll(s.dir)
	}
	if built.path != "" && built.path != *serverFlag {
		os.RemoveAll(filepath.Dir(built.path))
	}
	return err
}
