package lakefs

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
)

const (
	reapGraceDefault = 600 * time.Second
	reapInterval     = time.Minute
	reapBusyWait     = 200 * time.Millisecond
)

// dueSQL asks whether a file has been in the queue for longer than the grace.
const dueSQL = `SELECT EXISTS (SELECT FROM pgvfs.garbage WHERE queued_at < now() - make_interval(secs => $1))`

// errReapBusy says that another process holds the lock that lets one reap at a time.
var errReapBusy = errors.New("another process is reaping")

// reapSQL deletes up to 65536 rows (half a gigabyte), the function's default.
const reapSQL = `SELECT pgvfs.reap(make_interval(secs => $1))`

// reapSoon begins a reap in the background if the last one began a minute ago or longer. Called when something may
// have been queued, so a store that only reads never reaps.
func (p *PG) reapSoon() {
	if !p.writable.Load() {
		return // nothing has been changed: a reader's, or a standby's
	}
	last, now := p.reaped.Load(), time.Now().UnixNano()
	if now-last < int64(reapInterval) || !p.reaped.CompareAndSwap(last, now) {
		return
	}
	p.start(func() {
		rows, err := p.reap(p.ctx)
		switch {
		case err != nil && p.ctx.Err() == nil && !undefined(err):
			p.log.Warn().Err(err).Msg("rows of deleted files could not be reaped")
		case rows > 0:
			p.log.Debug().Int32("rows", rows).Msg("reaped rows of deleted files")
		}
	})
}

// Reap deletes all rows that the grace allows, also when another process is reaping: then it waits for its turns.
// progress, if not nil, is told after each step how many rows have been deleted so far. Repeatable. ErrReadOnly: the server
// is a standby.
func (p *PG) Reap(ctx context.Context, progress func(rows int64)) (total int64, err error) {
	err = p.act("reap", "pgvfs", func() error {
		p.reaped.Store(time.Now().UnixNano()) // no reap in the background, whose rows would not be counted
		if err := p.ensureWritable(ctx); err != nil {
			return err
		}
		_, err := backoff.Retry(ctx, func() (struct{}, error) {
			err := p.reapAll(ctx, func(rows int64) {
				total += rows
				if progress != nil {
					progress(total)
				}
			})
			if err != nil && !errors.Is(err, errReapBusy) {
				err = backoff.Permanent(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(backoff.NewConstantBackOff(reapBusyWait)), backoff.WithMaxElapsedTime(0))
		return err
	})
	return total, err
}

// reapAll reaps until nothing is due. errReapBusy: another reap works at the moment.
func (p *PG) reapAll(ctx context.Context, add func(rows int64)) error {
	for {
		rows, err := p.reap(ctx)
		if err != nil {
			return err
		}
		add(int64(rows))
		due := false
		err = p.onConn(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, dueSQL, p.grace.Seconds()).Scan(&due)
		})
		switch {
		case err != nil || !due:
			return err
		case rows == 0: // the one call would have taken what is due, or some of it
			return errReapBusy
		}
	}
}

// reap deletes rows of files that were removed longer than the grace ago and returns how many.
func (p *PG) reap(ctx context.Context) (rows int32, err error) {
	err = p.onConn(ctx, func(conn *pgx.Conn) error {
		return withIndexScans(ctx, conn, reapSQL, []any{p.grace.Seconds()}, func(found pgx.Rows) error {
			rows, err = pgx.CollectExactlyOneRow(found, pgx.RowTo[int32])
			return err
		})
	})
	return rows, err
}

// withIndexScans runs a query with the index scans that sessionSettings turn off, in a transaction and in one round
// trip.
func withIndexScans(ctx context.Context, conn *pgx.Conn, sql string, args []any, read func(pgx.Rows) error) error {
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN`)
	batch.Queue(`SET LOCAL enable_indexscan = on`)
	batch.Queue(sql, args...).Query(read)
	batch.Queue(`COMMIT`)
	return conn.SendBatch(ctx, batch).Close()
}
