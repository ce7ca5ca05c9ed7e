package lakefs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

const (
	startWait    = 50 * time.Millisecond // after the first try to reach a server that is starting; doubles each time
	startWaitMax = time.Second

	rollbackMax = 5 * time.Second
	commitMax   = time.Minute // a commit under way is not given up with its caller: its outcome would be unknown
)

const (
	// unpublishSQL takes a file out of sight and queues its rows. Not the default for queued_at, which is when the
	// transaction began: that would take the upload's time off the grace of the file it replaces.
	unpublishSQL = `WITH gone AS (DELETE FROM pgvfs.files WHERE volume = $1 AND path = $2 RETURNING file_id)
		INSERT INTO pgvfs.garbage (file_id, queued_at) SELECT file_id, clock_timestamp() FROM gone`

	// unpublishRangeSQL does so for the paths from $2 up to before $3.
	unpublishRangeSQL = `WITH gone AS (DELETE FROM pgvfs.files
			WHERE volume = $1 AND path >= $2 AND path < $3 RETURNING file_id)
		INSERT INTO pgvfs.garbage (file_id, queued_at) SELECT file_id, clock_timestamp() FROM gone`

	// lockSQL and lockRangeSQL come before changes of more than one row. They lock the rows in the order of their paths, so
	// that changes that meet wait for each other in turn, not in a circle.
	lockSQL      = `SELECT FROM pgvfs.files WHERE volume = $1 AND path IN ($2, $3) ORDER BY path FOR UPDATE`
	lockRangeSQL = `SELECT count(*) FROM (
		SELECT FROM pgvfs.files WHERE volume = $1 AND path >= $2 AND path < $3 ORDER BY path FOR UPDATE) AS locked`

	renameSQL = `UPDATE pgvfs.files SET path = $3 WHERE volume = $1 AND path = $2`
)

// errClosed is what ends calls when the store is closed under them.
var errClosed = errors.New("the store has been closed")

// PG is a Store in a PostgreSQL database.
type PG struct {
	pool  *pgxpool.Pool
	log   zerolog.Logger
	grace time.Duration
	cache openCache
	slots slots
	spill string // directory

	ctx    context.Context // ends with the store
	cancel context.CancelFunc

	writable   atomic.Bool   // the schema has been seen or made
	installing chan struct{} // held while it is
	reaped     atomic.Int64  // when the last reap began, Unix nanoseconds

	mu     sync.Mutex // guards closed against start
	closed bool
	tasks  sync.WaitGroup // goroutines that Close waits for
}

// OpenPG connects to a database and checks that it can hold or holds a store. Nothing is written: the schema is made by
// the first change. A server that is just starting is waited for until ctx ends.
func OpenPG(ctx context.Context, cfg Config) (*PG, error) {
	pc, err := cfg.poolConfig()
	if err != nil {
		return nil, fmt.Errorf("open the chunk store: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open the chunk store: %w", err)
	}
	p := &PG{
		pool:       pool,
		log:        cfg.Logger,
		grace:      cfg.grace(),
		slots:      newSlots(cfg.maxConns()),
		spill:      cfg.SpillDir,
		installing: make(chan struct{}, 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if err := p.awaitServer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the chunk store: %w", err), p.Close())
	}
	return p, nil
}

// awaitServer makes the first connection and checks the layout.
func (p *PG) awaitServer(ctx context.Context) error {
	var last error // says more than that ctx has ended
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = p.onConn(ctx, func(conn *pgx.Conn) error {
			_, err := checkLayout(ctx, conn)
			return err
		})
		if last != nil && sqlstate(last) != pgerrcode.CannotConnectNow {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: startWait,
		MaxInterval:     startWaitMax,
		Multiplier:      2,
	}), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		p.log.Debug().Err(err).Msg("postgresql is not ready yet")
	}))
	if err != nil {
		return last
	}
	return nil
}

// ReadOnly reports whether the server is a standby.
func (p *PG) ReadOnly(ctx context.Context) (bool, error) {
	standby := false
	err := p.onConn(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, recoverySQL).Scan(&standby) })
	if err != nil {
		return false, fmt.Errorf("ask whether the server is a standby: %w", err)
	}
	return standby, nil
}

// Close ends writers and the reap, waits until every call has returned (they have contexts of their own), and
// disconnects. Unpublished files are gone. Always nil; closing twice does no harm.
func (p *PG) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.tasks.Wait()
	p.pool.Close()
	return nil
}

// start runs a task that Close waits for. It is not run after Close.
func (p *PG) start(task func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.tasks.Go(task)
	}
	return !p.closed
}

// Remove implements Store.
func (p *PG) Remove(ctx context.Context, volume, path string) error {
	return p.act("remove", fileURL(volume, path), func() error {
		if err := checkVolume(volume); err != nil {
			return err
		}
		name := fileName{volume, path}
		p.cache.evict(name)
		defer p.cache.evict(name)
		defer p.reapSoon()
		return p.change(ctx, func(conn *pgx.Conn) error {
			if CheckPath(path) != nil {
				return ErrNotExist
			}
			tag, err := conn.Exec(ctx, unpublishSQL, volume, path)
			if err == nil && tag.RowsAffected() == 0 {
				return ErrNotExist
			}
			return err
		})
	})
}

// RemovePrefix implements Store.
func (p *PG) RemovePrefix(ctx context.Context, volume, prefix string) (int64, error) {
	var count int64
	err := p.act("remove everything under", fileURL(volume, prefix), func() error {
		if err := checkVolume(volume); err != nil {
			return err
		}
		if !storable(prefix) {
			return nil
		}
		p.cache.evictVolume(volume)
		defer p.cache.evictVolume(volume)
		defer p.reapSoon()
		return p.change(ctx, func(conn *pgx.Conn) error {
			batch := &pgx.Batch{}
			batch.Queue(lockRangeSQL, volume, prefix, prefixEndArg(prefix))
			batch.Queue(unpublishRangeSQL, volume, prefix, prefixEndArg(prefix)).Exec(func(tag pgconn.CommandTag) error {
				count = tag.RowsAffected()
				return nil
			})
			return conn.SendBatch(ctx, batch).Close()
		})
	})
	if err != nil {
		return 0, err
	}
	return count, nil
}

// Rename implements Store.
func (p *PG) Rename(ctx context.Context, volume, from, to string) error {
	return p.act("rename", fileURL(volume, from)+" to "+fileURL(volume, to), func() error {
		if err := errors.Join(checkVolume(volume), CheckPath(to)); err != nil {
			return err
		}
		if from == to {
			_, err := p.open(ctx, fileName{volume, from})
			return err
		}
		names := []fileName{{volume, from}, {volume, to}}
		p.cache.evict(names...)
		defer p.cache.evict(names...)
		return p.change(ctx, func(conn *pgx.Conn) error {
			if CheckPath(from) != nil {
				return ErrNotExist
			}
			return rename(ctx, conn, volume, from, to)
		})
	})
}

// rename is Rename's transaction. It unpublishes the target first, which comes back if there is nothing to rename.
func rename(ctx context.Context, conn *pgx.Conn, volume, from, to string) error {
	batch := &pgx.Batch{}
	batch.Queue(lockSQL, volume, from, to)
	batch.Queue(unpublishSQL, volume, to)
	var renamed int64
	batch.Queue(renameSQL, volume, from, to).Exec(func(tag pgconn.CommandTag) error {
		renamed = tag.RowsAffected()
		return nil
	})
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if renamed == 0 {
		return ErrNotExist
	}
	return nil
}

// change runs a change in a transaction, after making sure that there is something to change. If the schema has been
// dropped meanwhile it is made anew, once.
func (p *PG) change(ctx context.Context, fn func(*pgx.Conn) error) error {
	return p.onSchema(ctx, func() error { return p.inTx(ctx, fn) })
}

// onSchema runs fn when the schema is there, and again if it turns out not to be.
func (p *PG) onSchema(ctx context.Context, fn func() error) error {
	if err := p.ensureWritable(ctx); err != nil {
		return err
	}
	err := fn()
	if !undefined(err) {
		return err
	}
	p.writable.Store(false)
	if err := p.ensureWritable(ctx); err != nil {
		return err
	}
	return fn()
}

// act says in an error what was being done to what, and turns SQLSTATEs into what callers ask for.
func (p *PG) act(verb, what string, fn func() error) error {
	err := fn()
	switch sqlstate(err) {
	case pgerrcode.UniqueViolation, pgerrcode.DeadlockDetected:
		err = fmt.Errorf("%w (%w)", ErrConflict, err)
	case pgerrcode.ReadOnlySQLTransaction:
		err = fmt.Errorf("%w (%w)", ErrReadOnly, err)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, what, err)
	}
	return nil
}

// begin opens a transaction on a connection of the pool; a dead one is replaced as by onConn. The caller releases it.
// The level is what the protocol of publishing counts on, whatever the role's default is.
func (p *PG) begin(ctx context.Context) (*pgxpool.Conn, error) {
	for retried := false; ; retried = true {
		conn, err := p.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL READ COMMITTED`)
		if err == nil {
			return conn, nil
		}
		what := judge(ctx, conn, err)
		release(conn)
		if what != lost || retried {
			return nil, err
		}
		p.pool.Reset()
	}
}

// inTx runs fn in a transaction of its own.
func (p *PG) inTx(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer release(conn)
	if err := fn(conn.Conn()); err != nil {
		return err
	}
	return commit(ctx, conn)
}

// commit ends a transaction well.
func commit(ctx context.Context, conn *pgxpool.Conn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitMax)
	defer cancel()
	tag, err := conn.Exec(ctx, `COMMIT`)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if tag.String() != "COMMIT" {
		return fmt.Errorf("commit: the server answered %s", tag)
	}
	return nil
}

// release gives a connection back, without a transaction.
func release(conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackMax)
		defer cancel()
		_, _ = conn.Exec(ctx, `ROLLBACK`) // if it fails, the pool drops the connection, which has the same effect
	}
	conn.Release()
}

// prefixEndArg is prefixEnd as a parameter. Where nothing ends the range it is a text beyond every path: a plan that is
// made once, for all values, then still knows a range.
func prefixEndArg(prefix string) string {
	if end, bounded := prefixEnd(prefix); bounded {
		return end
	}
	return beyondPaths
}

// beyondPaths is longer than a path may be and made of the last character.
var beyondPaths = strings.Repeat(string(utf8.MaxRune), pathBytesMax/utf8.UTFMax+1)

// sqlstate is the code of a server's error, empty for any other.
func sqlstate(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}
