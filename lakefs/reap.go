package lakefs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	reapGraceDefault = 600 * time.Second
	reapInterval     = time.Minute
)

// reapSQL deletes up to 65536 rows (half a gigabyte), the function's default.
const reapSQL = `SELECT pgvfs.reap(make_interval(secs => $1))`

// reapSoon begins a reap in the background if the last one began a minute ago or longer. Called when something may
// have been queued, so a store that only reads never reaps.
func (p *PG) reapSoon() {
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
