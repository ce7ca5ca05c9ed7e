package sqltests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// cluster is a PostgreSQL that a test runs behind its servers: one directory with a Unix socket, a log and the data; no TCP.
type cluster struct {
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

// startCluster makes and starts a cluster with an empty database `lake`.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: clusterDir(t)}
	c.tool(t, "initdb", "-D", c.data(), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
	settings := "\nlisten_addresses = ''\nwal_level = replica\nmax_wal_senders = 4\nhot_standby = on\nmax_connections = 200\nfsync = off\n"
	c.append(t, "postgresql.conf", settings+fmt.Sprintf("unix_socket_directories = '%s'\n", c.dir))
	c.start(t)
	conn := connectAs(t, c.dsn("postgres"))
	mustExec(t, conn, "CREATE DATABASE lake")
	return c
}

// standby makes and starts a streaming standby of c.
func (c *cluster) standby(t *testing.T) *cluster {
	t.Helper()
	s := &cluster{dir: clusterDir(t)}
	s.tool(t, "pg_basebackup", "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync", "-h", c.dir, "-U", "postgres")
	s.append(t, "postgresql.conf", fmt.Sprintf("unix_socket_directories = '%s'\n", s.dir))
	s.start(t)
	return s
}

// data is PostgreSQL's data directory.
func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// dsn is a libpq keyword string, as --dsn takes it.
func (c *cluster) dsn(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s", c.dir, database)
}

// clusterDir is an empty directory that belongs to whoever PostgreSQL is going to run as.
func clusterDir(t *testing.T) string {
	if *addrFlag != "" {
		t.Skip("needs servers of its own, and -addr names another")
	}
	dir := tempDir(t)
	if id := unprivileged(t); id != nil {
		if err := os.Chown(dir, int(id.Uid), int(id.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unprivileged is whom PostgreSQL runs as, since it refuses root; nil when these tests are not root themselves.
func unprivileged(t *testing.T) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Skip("runs as root, and there is neither a user postgres nor nobody to run PostgreSQL as")
	return nil
}

// postgresProgram finds one of PostgreSQL's programs: on the PATH, else in the newest versioned folder.
func postgresProgram(t *testing.T, name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/", "/usr/pgsql-*/bin/", "/usr/local/pgsql/bin/"} {
		matches, _ := filepath.Glob(pattern + name) // only a malformed pattern is an error
		found = append(found, matches...)
	}
	if len(found) == 0 {
		t.Skipf("PostgreSQL's %s is not installed", name)
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
}

// version is the first number in a path like /usr/lib/postgresql/15/bin/initdb.
func version(path string) int {
	start := strings.IndexAny(path, "0123456789")
	if start < 0 {
		return 0
	}
	end := start
	for end < len(path) && path[end] >= '0' && path[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(path[start:end]) // digits only
	return n
}

// command is a program of PostgreSQL's, run as whom it may run as, from a directory that everybody may enter.
func (c *cluster) command(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(postgresProgram(t, name), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(t)}
	return cmd
}

// tool runs a program to its end.
func (c *cluster) tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := c.command(t, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// append adds to a configuration file; the last setting of a name wins.
func (c *cluster) append(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(c.data(), file), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// start runs the cluster and waits until it takes connections. It stops at the test's end, if not before.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, "test.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := c.command(t, "postgres", "-D", c.data())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); cmd.Wait() }()
	c.cmd, c.done = cmd, done
	t.Cleanup(c.stop)
	for range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		conn, err := pgconn.Connect(ctx, c.dsn("postgres"))
		cancel()
		if err == nil {
			conn.Close(t.Context())
			return
		}
		select {
		case <-done:
			t.Fatalf("PostgreSQL ended:\n%s", tail(filepath.Join(c.dir, "test.log"), 30))
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("PostgreSQL does not come up:\n%s", tail(filepath.Join(c.dir, "test.log"), 30))
}

// stop is an immediate shutdown: to its clients, a PostgreSQL that is suddenly gone.
func (c *cluster) stop() {
	c.cmd.Process.Signal(syscall.SIGQUIT)
	<-c.done
}
