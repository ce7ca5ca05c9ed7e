package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/rs/zerolog"

	"sluice/engine/pgerr"
	"sluice/lakefs"
)

// Config says which lake an engine opens and what it may use for it.
type Config struct {
	DSN            string         // the backing PostgreSQL, a libpq URL or keyword string
	AllowPlaintext bool           // permits connections to it on other machines that are not encrypted and verified
	Lake           string         // the lake's name: DuckDB's catalog, the database that clients ask for
	DataPath       string         // where the lake's files are, e.g. pgvfs://lake/data/
	PgvfsURL       string         // the PostgreSQL of other pgvfs volumes that no secret of an administrator names; may be empty
	MetadataSchema string         // schema of the ducklake_* tables in the backing database
	DataDir        string         // extensions and spill files live here
	MemoryLimit    string         // DuckDB's memory_limit, e.g. "4GB"; empty: DuckDB's own
	SpillLimit     string         // DuckDB's max_temp_directory_size; empty: DuckDB's own
	Threads        int            // DuckDB's threads; 0: DuckDB's own
	ReapGrace      time.Duration  // how long a replaced file's rows stay readable
	Retry          Retry          // how commit conflicts with other processes are retried
	Logger         zerolog.Logger // life of the engine at info, statements at debug
}

// Retry is the budget of decision 8: the whole transaction again, on conflicts only.
type Retry struct {
	Max        uint          // repeats after the first try
	Wait       time.Duration // before the first repeat; doubles each time
	WaitMax    time.Duration
	JitterFrac float64 // each wait is changed by up to this fraction, either way
}

// DefaultRetry is 10 repeats, exponential from 50 ms to 1 s, ±25 % (seeds/003, "Decision").
func DefaultRetry() Retry {
	return Retry{Max: 10, Wait: 50 * time.Millisecond, WaitMax: time.Second, JitterFrac: 0.25}
}

// Engine runs statements of many sessions on one lake.
type Engine struct {
	cfg   Config
	dsn   dsn
	log   zerolog.Logger
	store *lakefs.PG

	started time.Time // pg_postmaster_start_time()

	// commits holds one token: who has it may commit to the lake. Receivers of a channel queue first come, first served.
	commits chan struct{}

	mu      sync.Mutex // guards current; held while an instance is replaced, so that sessions wait for the new one
	current *instance
	closed  bool
}

// Open loads the extensions, connects the chunk store and attaches the lake. A first open of an empty database creates
// the lake's catalog; on a standby the lake is attached read-only.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Retry == (Retry{}) {
		cfg.Retry = DefaultRetry()
	}
	d, err := parseDSN(cfg.DSN)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, dsn: d, log: cfg.Logger, started: time.Now(), commits: make(chan struct{}, 1)}
	e.commits <- struct{}{}
	if err := os.MkdirAll(spillDir(cfg), 0o700); err != nil {
		return nil, fmt.Errorf("make the spill directory: %w", err)
	}
	own := cfg.storeConfig()
	own.DSN = cfg.DSN
	if e.store, err = lakefs.OpenPG(ctx, own); err != nil {
		return nil, fmt.Errorf("open the chunk store: %w", err)
	}
	if e.current, err = openInstance(ctx, e); err != nil {
		return nil, errors.Join(err, e.store.Close())
	}
	return e, nil
}

// storeConfig is what all chunk stores have in common, whichever database they are in.
func (cfg Config) storeConfig() lakefs.Config {
	return lakefs.Config{AllowPlaintext: cfg.AllowPlaintext, ReapGrace: cfg.ReapGrace, SpillDir: spillDir(cfg), Logger: cfg.Logger}
}

// spillDir holds what does not fit into memory: DuckDB's operators, and files being written while all connections are
// taken.
func spillDir(cfg Config) string { return filepath.Join(cfg.DataDir, "spill") }

// Close ends the instance and the store. Sessions must have been closed.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.current.close()
	return e.store.Close()
}

// Lake is the lake's name, the only database there is.
func (e *Engine) Lake() string { return e.cfg.Lake }

// ReadOnly reports whether the backing PostgreSQL was a standby when the lake was attached.
func (e *Engine) ReadOnly() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current.readOnly
}

// instance returns the instance for a new session, replacing one that DuckDB has invalidated (decision 7).
func (e *Engine) instance(ctx context.Context) (*instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, pgerr.New(pgerrcode.AdminShutdown, "the database system is shutting down")
	}
	if !e.current.lost.Load() {
		return e.current, nil
	}
	e.log.Warn().Msg("replacing the DuckDB instance that was invalidated")
	next, err := openInstance(ctx, e)
	if err != nil {
		return nil, pgerr.New(pgerrcode.CannotConnectNow, "the engine is being replaced").WithCause(err)
	}
	e.current.retire()
	e.current = next
	return next, nil
}

// redact takes the backing database's password out of a text that a client or a log will see.
func (e *Engine) redact(text string) string {
	if p := e.dsn["password"]; p != "" {
		return strings.ReplaceAll(text, p, "********")
	}
	return text
}
