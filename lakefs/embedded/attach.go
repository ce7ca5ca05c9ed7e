package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
)

// ErrNoCluster says that no Sluice has kept a PostgreSQL in a data directory yet.
var ErrNoCluster = errors.New("no embedded PostgreSQL has been made yet")

const (
	// attachPoll is the pause between two looks at what other processes do.
	attachPoll = 50 * time.Millisecond

	// attachPatience is what a server that has just been started has to let its first client in. A crash recovery, of
	// which PostgreSQL tells, may take longer.
	attachPatience = 10 * time.Second

	// guestLog is when waiting for other processes is said to be why nothing happens.
	guestLog = 2 * time.Second

	attachedStopMax = time.Minute // for the last checkpoint
)

// errHeld is another process's lock.
var errHeld = errors.New("locked by another process")

// notYet is what another process is about to change.
type notYet struct {
	cause   error
	forever bool // it says itself that it is on its way
}

func (n notYet) Error() string { return n.cause.Error() }
func (n notYet) Unwrap() error { return n.cause }

// Attached is a way to the server of a data directory, for as long as one command needs it.
type Attached struct {
	dsn    string
	server *Server // nil: another process's
	guests *os.File
	log    zerolog.Logger
}

// Attach leads to the server of a data directory: to that of the Sluice that runs there, or else to one that it starts
// on the cluster that is there. Commands that do so at the same time share the server of the first, which stops it when
// the last has gone. Neither a cluster nor a database is made: ErrNoCluster says that there is none. The caller closes
// what it gets.
func Attach(ctx context.Context, o Options) (*Attached, error) {
	o.Existing = true
	a, err := awaitAttach(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	return a, nil
}

// awaitAttach tries until what other processes are doing is done.
func awaitAttach(ctx context.Context, o Options) (*Attached, error) {
	h, err := findHome(o.Dir)
	if err != nil {
		return nil, err
	}
	for begin := time.Now(); ; {
		a, err := attach(ctx, h, o)
		var wait notYet
		if !errors.As(err, &wait) || (!wait.forever && time.Since(begin) > attachPatience) {
			return a, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another sluice: %w (last try: %w)", context.Cause(ctx), err)
		case <-time.After(attachPoll):
		}
	}
}

// findHome finds the home of a data directory and makes nothing.
func findHome(dataDir string) (home, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return home{}, err
	}
	who, err := unprivileged()
	if err != nil {
		return home{}, err
	}
	dir, _ := homeDir(dataDir, who)
	h := homeIn(dir)
	if _, err := os.Stat(h.cluster); errors.Is(err, fs.ErrNotExist) {
		return home{}, fmt.Errorf("%w in %q", ErrNoCluster, dataDir)
	} else if err != nil {
		return home{}, err
	}
	return h, nil
}

// attach is one try. The guests' lock, which is held meanwhile, keeps a command from stopping the server that this one
// is about to use; a serving Sluice does not ask.
func attach(ctx context.Context, h home, o Options) (_ *Attached, err error) {
	a := &Attached{log: o.Logger}
	if a.guests, err = os.OpenFile(h.guests(), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.guests.Close())
		}
	}()
	if err := tryLock(a.guests, syscall.LOCK_SH); err != nil {
		return nil, err
	}
	running, err := isLocked(h.lock)
	if err != nil {
		return nil, err
	}
	if running {
		a.dsn, err = runningDSN(ctx, h, o.Database)
		return a, err
	}
	if a.server, err = start(ctx, o); err != nil {
		if taken, lockErr := isLocked(h.lock); lockErr == nil && taken {
			err = notYet{err, true} // another process was faster
		}
		return nil, err
	}
	a.dsn = a.server.DSN()
	return a, nil
}

// guests is the lock that is held, shared, by whoever uses another process's server.
func (h home) guests() string { return filepath.Join(h.dir, "guests") }

// tryLock takes a lock or says that somebody is in the way for now.
func tryLock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return notYet{fmt.Errorf("%q: %w", f.Name(), errHeld), true}
	}
	if err != nil {
		return fmt.Errorf("lock %q: %w", f.Name(), err)
	}
	return nil
}

// isLocked reports whether a process holds a lock. Who wants it at this very moment has the patience to try again.
func isLocked(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = tryLock(f, syscall.LOCK_SH)
	if errors.Is(err, errHeld) {
		return true, nil
	}
	return false, err
}

// runningDSN is the way to another process's server, which may have been started a moment ago.
func runningDSN(ctx context.Context, h home, database string) (string, error) {
	known, err := loadSecrets(h, true)
	if err != nil {
		return "", err
	}
	dsn := (&Server{home: h, secrets: known, database: databaseName(database)}).DSN()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		var pgErr *pgconn.PgError
		starting := errors.As(err, &pgErr) && pgErr.Code == pgerrcode.CannotConnectNow
		return "", notYet{fmt.Errorf("connect to the server of the sluice that runs here: %w", err), starting}
	}
	return dsn, conn.Close(ctx)
}

// DSN is as a Server's.
func (a *Attached) DSN() string { return a.dsn }

// Close gives the server up. One that was started here is stopped, after other commands that use it have ended, or ctx
// has.
func (a *Attached) Close(ctx context.Context) error {
	var err error
	if a.server != nil {
		a.awaitGuests(ctx)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attachedStopMax)
		defer cancel()
		err = a.server.Stop(ctx)
	}
	return errors.Join(err, a.guests.Close())
}

// awaitGuests keeps the server for others. Whoever comes now waits until it has stopped.
func (a *Attached) awaitGuests(ctx context.Context) {
	said := time.After(guestLog)
	for errors.Is(tryLock(a.guests, syscall.LOCK_EX), errHeld) {
		select {
		case <-ctx.Done():
			return
		case <-a.server.Done():
			return
		case <-said:
			a.log.Warn().Msg("waiting for other sluice commands, which use the embedded postgresql that this one started")
		case <-time.After(attachPoll):
		}
	}
}
