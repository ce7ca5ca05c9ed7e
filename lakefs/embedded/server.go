package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
)

const (
	superuser   = "postgres" // sets up; nobody else's business
	serviceRole = "sluice"   // owns the lake's database

	// port is only part of the socket's name: nothing listens on TCP.
	port = "5432"

	// readyPoll is the pause between two tries to connect while the server starts. A warm start takes about 0.1 s.
	readyPoll = 20 * time.Millisecond

	// patienceLog is how often a start that takes long (crash recovery of up to max_wal_size) says so.
	patienceLog = 10 * time.Second

	// quitGrace is what a server that was told to quit at once has left before it is killed.
	quitGrace = 10 * time.Second
)

// Options say where a server lives and what it serves.
type Options struct {
	Dir      string            // Sluice's data directory; made if missing
	Database string            // the database to make and serve; empty: lake
	CacheDir string            // where fetched programs are kept; empty: the user's cache directory
	Params   map[string]string // further settings of PostgreSQL, over Sluice's own
	Existing bool              // cluster and database must be there already: none is made
	Logger   zerolog.Logger
}

// Server is a running PostgreSQL.
type Server struct {
	home     home
	who      *account // whom it runs as; nil: as this process
	database string
	secrets  secrets
	child    *child
	lock     *os.File
	log      zerolog.Logger
}

// Start makes the cluster of a data directory if there is none and runs it until Stop. A second start on a directory
// in use fails. ctx bounds the start, not the server's life.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	return s, nil
}

// start is Start without its name in front of the errors. What it has taken is given back when it fails.
func start(ctx context.Context, o Options) (_ *Server, err error) {
	begin := time.Now()
	s := &Server{database: databaseName(o.Database), log: o.Logger}
	if s.who, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.home, err = makeHome(o.Dir, s.who, o.Logger); err != nil {
		return nil, err
	}
	if s.lock, err = lockHome(ctx, s.home, o.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := endLeftover(ctx, s.home, s.log); err != nil {
		return nil, err
	}
	if err := s.launch(ctx, o); err != nil {
		return nil, err
	}
	if err := s.setUp(ctx, o.Existing); err != nil {
		return nil, err
	}
	s.log.Info().Dur("took", time.Since(begin)).Str("home", s.home.dir).Msg("embedded postgresql is ready")
	return s, nil
}

// databaseName applies the default.
func databaseName(name string) string {
	if name == "" {
		return "lake"
	}
	return name
}

// launch prepares the cluster and its settings and runs the server's program.
func (s *Server) launch(ctx context.Context, o Options) error {
	major, err := s.home.major()
	if err != nil {
		return err
	}
	if major == 0 && o.Existing {
		return fmt.Errorf("%w in %q", ErrNoCluster, o.Dir)
	}
	programs, err := findPrograms(ctx, major, s.who, o)
	if err != nil {
		return err
	}
	if s.secrets, err = loadSecrets(s.home, major != 0); err != nil {
		return err
	}
	if major == 0 {
		if err := s.initCluster(ctx, programs); err != nil {
			return err
		}
	}
	if err := s.home.makeSockets(s.who); err != nil {
		return err
	}
	if err := writeSettings(s.home, o.Params, s.who); err != nil {
		return err
	}
	s.child, err = startChild(programs.command("postgres", s.who,
		"-D", s.home.cluster,
		// What safety rests on is no setting that a file could change.
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+quoteList(s.home.sockets), "-c", "unix_socket_permissions=0700",
		"-c", "hba_file="+filepath.Join(s.home.cluster, hbaFile), "-c", "port="+port,
	), s.home.log)
	return err
}

// setUp waits for the server and makes the role and its database. A server that ends meanwhile says why in its log.
func (s *Server) setUp(ctx context.Context, existing bool) error {
	conn, err := s.awaitReady(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if err := makeRole(ctx, conn, s.secrets.service); err != nil {
		return err
	}
	return makeDatabase(ctx, conn, s.database, existing)
}

// awaitReady connects as the superuser as soon as that can be done.
func (s *Server) awaitReady(ctx context.Context) (*pgconn.PgConn, error) {
	ticker := time.NewTicker(patienceLog)
	defer ticker.Stop()
	for {
		conn, err := s.connectSuperuser(ctx)
		if err == nil {
			return conn, nil
		}
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && strings.HasPrefix(pgErr.Code, "28") {
			return nil, fmt.Errorf("the passwords in %q are not this cluster's: %w", s.home.passwords, err)
		}
		select {
		case <-s.child.done:
			return nil, s.child.failure()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the server: %w (last try: %w)", context.Cause(ctx), err)
		case <-ticker.C:
			s.log.Info().Str("log", s.home.log).Msg("embedded postgresql is still starting, perhaps recovering from a crash")
		case <-time.After(readyPoll):
		}
	}
}

// DSN is the service role's way in, as a libpq keyword string. It holds a password.
func (s *Server) DSN() string {
	return s.dsn(serviceRole, s.secrets.service, s.database)
}

// dsn builds a keyword string that libpq and pgx both read.
func (s *Server) dsn(user, password, database string) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	pairs := [][2]string{
		{"host", s.home.sockets},
		{"port", port},
		{"user", user},
		{"password", password},
		{"dbname", database},
		{"sslmode", "disable"}, // a Unix socket has none; libpq would not ask, pgx would
	}
	var b strings.Builder
	for i, pair := range pairs {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(pair[0] + "='" + quote.Replace(pair[1]) + "'")
	}
	return b.String()
}

// Done is closed when the server has ended, whether stopped or crashed.
func (s *Server) Done() <-chan struct{} { return s.child.done }

// Err says how the server ended. It is nil while it runs and after a Stop that went well.
func (s *Server) Err() error {
	select {
	case <-s.child.done:
	default:
		return nil
	}
	if s.child.stopping.Load() && s.child.exit == nil {
		return nil
	}
	return s.child.failure()
}

// Stop is a fast shutdown: clients are disconnected, a checkpoint is written. When ctx ends first the server is told
// to quit at once and recovers at its next start; that is reported as an error. Stopping twice is no error.
func (s *Server) Stop(ctx context.Context) error {
	err := s.child.stop(ctx)
	if err == nil {
		s.log.Info().Msg("embedded postgresql has stopped")
	}
	return errors.Join(err, s.release())
}

// release gives back what a start has taken, in reverse order: the process, the socket's folder, the lock.
func (s *Server) release() error {
	var err error
	if s.child != nil {
		ctx, cancel := context.WithTimeout(context.Background(), quitGrace)
		defer cancel()
		err = s.child.stop(ctx)
	}
	s.home.removeSockets()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}

// interrupt asks for a fast shutdown, quit for an immediate one (PostgreSQL manual, 18.5 "Shutting Down the Server").
const (
	interrupt = syscall.SIGINT
	quit      = syscall.SIGQUIT
)
