package lakefs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// storesMax bounds the databases beside the lake's that are connected to at once. Each has a pool and a reap of its own;
// an administrator moves files between a handful. One that nobody uses makes room for another.
const storesMax = 16

// storesOpened numbers the stores of this process: the first part of DuckDB's version tags.
var storesOpened atomic.Int64

// access says for whom a path is asked for.
type access uint8

const (
	accessInternal access = iota // DuckDB's or DuckLake's own connection, which is nobody's
	accessClient                 // a client's statement, also where an administrator's view or macro is in it
	accessAdmin                  // an administrator's statement
)

// Errors that the bridge gives to DuckDB as others than IO errors.
var (
	errDenied      = errors.New("permission denied")
	errCredentials = errors.New("no usable credentials")
)

// credentials are what a client's session says about other databases.
type credentials interface {
	// secret finds one of DuckDB's secrets by name.
	secret(name string) (s secret, found bool, err error)
	// setting is what DuckDB's setting is for the session, "" if it is not set.
	setting(name string) string
}

// router says in which store a path's file is, and refuses whom it is not for.
type router interface {
	route(ctx context.Context, who access, c credentials, volume, path string) (lease, error)
}

// lease is a store until it is given back.
type lease struct {
	store   Store
	number  int64 // among the stores of this process
	release func()
}

// keep gives back what needs no giving back.
func keep() {}

// everywhere has every volume in one store, for everybody.
type everywhere struct{ lease }

// newEverywhere is the router of Register.
func newEverywhere(store Store) everywhere {
	return everywhere{lease{store, storesOpened.Add(1), keep}}
}

func (e everywhere) route(context.Context, access, credentials, string, string) (lease, error) {
	return e.lease, nil
}

// StoresConfig says which stores there are.
type StoresConfig struct {
	Own      Store  // the lake's
	DataPath string // where the lake's files are, a URL; nothing of the lake is in pgvfs if it is not pgvfs://
	URL      string // PGVFS_URL: the database of volumes that no secret names; never logged
	Other    Config // of the stores that are opened; their DSN comes from the secrets
}

// Stores finds the store of a path: the lake's own, or one in another database that an administrator has the secret of.
type Stores struct {
	cfg    StoresConfig
	own    lease
	volume string // the lake's; "", which no volume is called, if the lake is elsewhere
	prefix string // of the paths of the lake's files

	closing sync.WaitGroup // stores that made room

	mu     sync.Mutex // guards what follows
	others map[string]*otherStore
	uses   uint64 // counts leases, to know which store was left longest ago
	closed bool
}

// otherStore is a store in a database that is not the lake's. Its users are counted by Stores.
type otherStore struct {
	ready  chan struct{} // closed when store or err is set
	store  *PG
	err    error
	gaveUp bool // err is because whoever opened it stopped waiting
	number int64
	users  int    // leases
	left   uint64 // when the last of them was given back
}

// NewStores makes the lake's stores; only its own is open. It fails for a data path that cannot be.
func NewStores(cfg StoresConfig) (*Stores, error) {
	s := &Stores{
		cfg: cfg, own: lease{cfg.Own, storesOpened.Add(1), keep}, others: map[string]*otherStore{},
	}
	if !strings.HasPrefix(cfg.DataPath, Scheme) {
		return s, nil
	}
	var err error
	if s.volume, s.prefix, err = SplitURL(cfg.DataPath); err != nil {
		return nil, fmt.Errorf("data path: %w", err)
	}
	if strings.ContainsAny(s.prefix, wildcards) { // a glob of it would not be of it alone
		return nil, fmt.Errorf("data path %q must not have any of %s in it", cfg.DataPath, wildcards)
	}
	if s.prefix != "" && !strings.HasSuffix(s.prefix, "/") {
		s.prefix += "/"
	}
	return s, nil
}

// Close closes the stores but the lake's own. The DuckDB instance must have been closed.
func (s *Stores) Close() {
	s.mu.Lock()
	s.closed = true
	others := s.others
	s.others = nil
	s.mu.Unlock()
	for _, o := range others {
		<-o.ready
		o.close()
	}
	s.closing.Wait()
}

// close closes a store that nobody uses, if it was opened.
func (o *otherStore) close() {
	if o.store != nil {
		_ = o.store.Close() // always nil
	}
}

// route implements router. The lake's volume is in the lake's own database for everybody, whatever secrets there are.
// Its files are all that a client reaches who is no administrator, and all that DuckDB reaches for nobody.
func (s *Stores) route(ctx context.Context, who access, c credentials, volume, path string) (lease, error) {
	if volume == s.volume && (who == accessAdmin || strings.HasPrefix(path, s.prefix)) {
		return s.own, nil
	}
	if who != accessAdmin {
		return lease{}, fmt.Errorf("%w for %s", errDenied, fileURL(volume, path))
	}
	dsn, err := s.dsn(volume, c)
	if err != nil {
		return lease{}, fmt.Errorf("volume %q: %w", volume, err)
	}
	l, err := s.lease(ctx, dsn)
	if err != nil {
		return lease{}, fmt.Errorf("volume %q: %w", volume, err)
	}
	return l, nil
}

// dsn finds the connection string of a volume. The first of four ways that exists is taken; one that exists and is not
// right is an error.
func (s *Stores) dsn(volume string, c credentials) (string, error) {
	if dsn, found, err := secretDSN(c, "pgvfs_"+volume); found || err != nil {
		return dsn, err
	}
	if name := c.setting("pgvfs_secret"); name != "" {
		dsn, found, err := secretDSN(c, name)
		if !found && err == nil {
			err = fmt.Errorf("%w: the setting pgvfs_secret names %q, which is no secret", errCredentials, name)
		}
		return dsn, err
	}
	if s.cfg.URL != "" {
		return s.cfg.URL, nil
	}
	if dsn, found, err := secretDSN(c, "__default_postgres"); found || err != nil {
		return dsn, err
	}
	return "", fmt.Errorf("%w: create a postgres secret named pgvfs_%s, name one by the setting pgvfs_secret, "+
		"set PGVFS_URL, or create an unnamed postgres secret", errCredentials, volume)
}

// lease opens the store of a connection string, or finds it open, and counts the caller in. What fails is tried again
// by the next caller.
func (s *Stores) lease(ctx context.Context, dsn string) (lease, error) {
	for {
		o, first, err := s.claim(dsn)
		if err != nil {
			return lease{}, err
		}
		if first {
			s.open(ctx, dsn, o)
		}
		if err := o.wait(ctx); err != nil {
			s.giveBack(o)
			return lease{}, err
		}
		if o.err == nil {
			return lease{o.store, o.number, sync.OnceFunc(func() { s.giveBack(o) })}, nil
		}
		s.giveBack(o)
		if first || !o.gaveUp {
			return lease{}, o.err
		}
	}
}

// wait waits until the store has been opened, or could not be. One that is open is there for whoever comes, also to
// clean up after a statement whose time is over.
func (o *otherStore) wait(ctx context.Context) error {
	select {
	case <-o.ready:
		return nil
	default:
	}
	select {
	case <-o.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// claim counts a user in. The first one has to open the store. If there are as many as can be, the one that was left
// longest ago makes room.
func (s *Stores) claim(dsn string) (o *otherStore, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errClosed
	}
	if o = s.others[dsn]; o == nil {
		if len(s.others) >= storesMax && !s.evict() {
			return nil, false, fmt.Errorf("files of %d other databases are in use, which is as many as can be", storesMax)
		}
		o, first = &otherStore{ready: make(chan struct{}), number: storesOpened.Add(1)}, true
		s.others[dsn] = o
	}
	o.users++
	return o, first, nil
}

// evict closes the store that was left longest ago, in the background, or reports that all are in use. s.mu is held.
func (s *Stores) evict() bool {
	var oldest *otherStore
	key := ""
	for dsn, o := range s.others {
		if o.users == 0 && (oldest == nil || o.left < oldest.left) {
			oldest, key = o, dsn
		}
	}
	if oldest == nil {
		return false
	}
	delete(s.others, key)
	s.closing.Go(oldest.close)
	return true
}

// open connects for whoever waits. A failure is forgotten at once.
func (s *Stores) open(ctx context.Context, dsn string, o *otherStore) {
	defer close(o.ready)
	cfg := s.cfg.Other
	cfg.DSN = dsn
	if o.store, o.err = OpenPG(ctx, cfg); o.err == nil {
		return
	}
	o.gaveUp = ctx.Err() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others[dsn] == o {
		delete(s.others, dsn)
	}
}

// giveBack counts a user out.
func (s *Stores) giveBack(o *otherStore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	o.users--
	o.left = s.uses
}
