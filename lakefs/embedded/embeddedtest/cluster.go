package embeddedtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/lakefs/embedded"
)

const (
	clusterConf = "test.conf" // ends postgresql.conf, so that it counts
	superuser   = "postgres"
	serviceRole = "sluice" // no superuser; owns the database lake
	database    = "lake"

	readyPoll  = 20 * time.Millisecond
	replayPoll = 2 * time.Millisecond
	replayMax  = time.Minute

	portTries = 3 // a port that was free may be taken by the time that PostgreSQL wants it
)

// clusterSettings are over PostgreSQL's own. Nothing here would survive a power cut. Commits are synchronous all the
// same: a standby is sent only what the primary has written.
var clusterSettings = map[string]string{
	"fsync":                       "off",
	"full_page_writes":            "off",
	"shared_buffers":              "128MB",
	"max_connections":             "200",
	"wal_init_zero":               "off",
	"wal_level":                   "replica",
	"wal_keep_size":               "1GB", // a standby has no slot, and begins where its copy began
	"max_wal_size":                "4GB",
	"hot_standby_feedback":        "off",
	"wal_retrieve_retry_interval": "50ms", // after a restart of the primary
	"deadlock_timeout":            "50ms", // whoever has to wait for it waits for this
	"jit":                         "off",
	"timezone":                    "UTC",
	"lc_messages":                 "C",
	"password_encryption":         "scram-sha-256",
	"unix_socket_permissions":     "0700",
	"listen_addresses":            "127.0.0.1",
}

// clusterHBA asks everybody for a password.
const clusterHBA = `local   all          all       scram-sha-256
local   replication  postgres  scram-sha-256
host    all          all       127.0.0.1/32  scram-sha-256
`

// ClusterOptions say what a cluster is like.
type ClusterOptions struct {
	Major  int               // version of PostgreSQL; 0: the newest that is installed
	TLS    bool              // serves TLS, with a certificate for localhost and 127.0.0.1
	Params map[string]string // further settings of PostgreSQL
}

// ClusterServer is a PostgreSQL of a test's own: unlike embedded.Server it is of any version, listens on TCP too, may
// serve TLS and have a standby.
type ClusterServer struct {
	tools   embedded.Tools
	dir     string // of cluster, socket, log and certificates
	port    string
	params  map[string]string
	tls     *authority // nil without TLS
	process *embedded.Process
	super   *pgxpool.Pool  // the superuser's, in the database lake
	primary *ClusterServer // nil if this is one

	superPassword, servicePassword string
}

// Cluster runs a server with an empty database `lake` until the test's end. The test is skipped if that version can
// neither be found nor fetched.
func Cluster(tb testing.TB, o ClusterOptions) *ClusterServer {
	tb.Helper()
	s := newCluster(tb, o)
	s.initdb(tb)
	s.write(tb, filepath.Join("data", "pg_hba.conf"), clusterHBA)
	s.start(tb)
	s.look(tb, superuser)
	s.Super(tb, `CREATE ROLE `+serviceRole+` LOGIN PASSWORD '`+s.servicePassword+`'`)
	s.Super(tb, `CREATE DATABASE `+database+` OWNER `+serviceRole)
	s.look(tb, database)
	return s
}

// newCluster finds the programs and makes the folders.
func newCluster(tb testing.TB, o ClusterOptions) *ClusterServer {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	tools, err := embedded.FindTools(ctx, o.Major, embedded.Options{})
	if err != nil {
		tb.Skipf("NOT TESTED: PostgreSQL %d: %v", o.Major, err)
	}
	s := &ClusterServer{
		tools: tools, dir: Dir(tb), params: maps.Clone(clusterSettings),
		superPassword: rand.Text(), servicePassword: rand.Text(),
	}
	maps.Copy(s.params, o.Params)
	for _, name := range []string{"data", "socket"} {
		s.mkdir(tb, name)
	}
	s.params["unix_socket_directories"] = s.path("socket")
	if o.TLS {
		s.tls = newAuthority(tb)
		s.params["ssl"], s.params["ssl_cert_file"], s.params["ssl_key_file"] = "on", s.path("server.crt"), s.path("server.key")
		s.params["ssl_ca_file"] = s.path("ca.crt")
		s.writeCertificate(tb, "localhost", "127.0.0.1")
	}
	return s
}

// Major is the version of PostgreSQL.
func (s *ClusterServer) Major() int { return s.tools.Major() }

// Password is the service role's, for tests that look for it where it must not be.
func (s *ClusterServer) Password() string { return s.servicePassword }

// Log is all that the server has logged.
func (s *ClusterServer) Log(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(s.path("log"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// DSN is the service role's way to the database, by the Unix socket.
func (s *ClusterServer) DSN() string {
	return s.dsn(s.path("socket"), serviceRole, s.servicePassword, database) + " sslmode=disable"
}

// SuperDSN is the superuser's, into any database.
func (s *ClusterServer) SuperDSN(database string) string {
	return s.dsn(s.path("socket"), superuser, s.superPassword, database) + " sslmode=disable"
}

// TCP is the service role's way by a host name, with more settings for the client.
func (s *ClusterServer) TCP(host, more string) string {
	return s.dsn(host, serviceRole, s.servicePassword, database) + " " + more
}

// TLSDSN is the service role's way by TLS, with everything verified.
func (s *ClusterServer) TLSDSN() string {
	return s.TCP("127.0.0.1", "sslmode=verify-full sslrootcert='"+s.CA()+"'")
}

// dsn is a keyword string. None of the values needs escaping.
func (s *ClusterServer) dsn(host, user, password, database string) string {
	return fmt.Sprintf("host='%s' port=%s user=%s password=%s dbname=%s", host, s.port, user, password, database)
}

// Super runs one statement as the superuser, in the database lake.
func (s *ClusterServer) Super(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := s.super.Exec(context.WithoutCancel(tb.Context()), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// Value is the one value of a superuser's query.
func (s *ClusterServer) Value(tb testing.TB, sql string, args ...any) any {
	tb.Helper()
	var value any
	if err := s.super.QueryRow(context.WithoutCancel(tb.Context()), sql, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return value
}

// Set changes settings that a reload is enough for.
func (s *ClusterServer) Set(tb testing.TB, params map[string]string) {
	tb.Helper()
	maps.Copy(s.params, params)
	s.writeSettings(tb)
	s.reload(tb)
}

// reload has the server read its files again, and waits until a new session is under them.
func (s *ClusterServer) reload(tb testing.TB) {
	tb.Helper()
	before := s.Value(tb, `SELECT pg_conf_load_time()::text`)
	s.Super(tb, `SELECT pg_reload_conf()`)
	for end := time.Now().Add(startMax); time.Now().Before(end); time.Sleep(readyPoll) {
		conn, err := s.connect(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		result := conn.ExecParams(tb.Context(), `SELECT pg_conf_load_time()::text`, nil, nil, nil, nil).Read()
		conn.Close(tb.Context())
		if result.Err == nil && string(result.Rows[0][0]) != before {
			return
		}
	}
	tb.Fatal("the server does not reload its settings")
}

// Restart shuts the server down and starts it again.
func (s *ClusterServer) Restart(tb testing.TB) {
	tb.Helper()
	s.stop(tb)
	s.run(tb)
}

// initdb makes the cluster, with the first locale that this machine has.
func (s *ClusterServer) initdb(tb testing.TB) {
	tb.Helper()
	s.write(tb, "password", s.superPassword+"\n")
	var failures error
	for _, locale := range s.tools.Locales() {
		args := append([]string{
			"-D", s.path("data"), "-U", superuser, "--pwfile", s.path("password"), "-E", "UTF8", "-A", "scram-sha-256",
			"--no-sync", "--no-instructions",
		}, locale...)
		out, err := s.tools.Command(tb.Context(), "initdb", args...).CombinedOutput()
		if err == nil {
			s.appendTo(tb, filepath.Join("data", "postgresql.conf"), "\ninclude '"+clusterConf+"'\n")
			return
		}
		failures = errors.Join(failures, fmt.Errorf("initdb %s: %w\n%s", strings.Join(locale, " "), err, out))
	}
	tb.Fatal(failures)
}

// start runs the server until the test's end, on a free port. The superuser's connections must end before.
func (s *ClusterServer) start(tb testing.TB) {
	tb.Helper()
	for try := 1; ; try++ {
		s.port = freePort(tb)
		s.writeSettings(tb)
		err := s.tryRun(tb.Context())
		if err == nil {
			break
		}
		if try == portTries || !strings.Contains(s.Log(tb), "could not bind") {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() { s.stop(tb) })
}

// look connects the superuser to a database, for Super and Value.
func (s *ClusterServer) look(tb testing.TB, database string) {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), s.SuperDSN(database)+" pool_max_conns=4")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	s.super = pool
}

// run is tryRun for a port that has been the server's before.
func (s *ClusterServer) run(tb testing.TB) {
	tb.Helper()
	if err := s.tryRun(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	s.super.Reset()
}

// tryRun starts the process and waits until it takes connections.
func (s *ClusterServer) tryRun(ctx context.Context) (err error) {
	if s.process, err = s.tools.Serve(s.path("log"), "-D", s.path("data")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	for {
		conn, err := s.connect(ctx)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.process.Done():
			return s.process.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w", err)
		case <-time.After(readyPoll):
		}
	}
}

// stop shuts the server down.
func (s *ClusterServer) stop(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopMax)
	defer cancel()
	if err := s.process.Stop(ctx); err != nil {
		tb.Error(err)
	}
}

// connect makes a connection of the superuser's own.
func (s *ClusterServer) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, s.SuperDSN(superuser))
}

// writeSettings writes the settings file.
func (s *ClusterServer) writeSettings(tb testing.TB) {
	tb.Helper()
	s.params["port"] = s.port
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.params)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(s.params[name], "'", "''"))
	}
	s.write(tb, filepath.Join("data", clusterConf), b.String())
}

// path is that of something in the server's folder.
func (s *ClusterServer) path(name string) string { return filepath.Join(s.dir, name) }

// mkdir makes a folder that PostgreSQL alone may enter.
func (s *ClusterServer) mkdir(tb testing.TB, name string) {
	tb.Helper()
	if err := errors.Join(os.Mkdir(s.path(name), 0o700), s.tools.Own(s.path(name))); err != nil {
		tb.Fatal(err)
	}
}

// write writes a file that PostgreSQL alone may read.
func (s *ClusterServer) write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := errors.Join(os.WriteFile(s.path(name), []byte(text), 0o600), s.tools.Own(s.path(name))); err != nil {
		tb.Fatal(err)
	}
}

// appendTo adds to the end of a file.
func (s *ClusterServer) appendTo(tb testing.TB, name, text string) {
	tb.Helper()
	f, err := os.OpenFile(s.path(name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		tb.Fatal(err)
	}
}

// freePort is a port of the loopback address that nobody listens on.
func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	return port
}
