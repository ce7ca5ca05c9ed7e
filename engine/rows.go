package engine

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"sluice/engine/pgcodec"
)

// rows are what one run of a query returns, counted from 0. DuckDB gives them once, in order, and only as long as its
// connection has nothing else to do. From the first row that is to stay on, they go through a spool.
type rows struct {
	s       *Session
	columns []pgcodec.Column
	pending mapping.PendingResult // DuckDB's, before it runs
	res     mapping.Result        // DuckDB's, while it does
	live    bool                  // more may come from DuckDB
	end     int64                 // how many have come
	err     error                 // why no more come, if that is not their end
	gone    error                 // why none can be read any more
	newest  piece                 // what came last, where there is no spool
	spool   *spool                // nil: rows pass by
	scroll  bool                  // rows are read more than once; else each is given up when it was read
	portals int                   // that are open on these rows
}

// newRows takes over a query of the session's connection that is ready to run, for one portal.
func (s *Session) newRows(pending mapping.PendingResult, columns []pgcodec.Column) *rows {
	w := &rows{s: s, pending: pending, live: true, columns: columns, portals: 1}
	s.active = w
	return w
}

// at finds the chunk with row n, which is valid until the next call of a method; io.EOF says that there are no more than
// n rows. Unless scroll is set, n never decreases.
func (w *rows) at(ctx context.Context, n int64) (*piece, error) {
	if w.gone != nil {
		return nil, w.gone
	}
	if err := w.reach(ctx, n+1); err != nil {
		return nil, err
	}
	if n >= w.end {
		return nil, io.EOF
	}
	if w.spool == nil {
		return &w.newest, nil
	}
	if !w.scroll && w.portals == 1 {
		if err := w.spool.forget(ctx, n); err != nil {
			return nil, err
		}
	}
	return w.spool.at(ctx, n)
}

// reach has DuckDB give rows until there are n of them, or no more.
func (w *rows) reach(ctx context.Context, n int64) error {
	for w.live && w.end < n {
		if err := w.more(ctx); err != nil {
			return err
		}
	}
	if w.end < n {
		return w.err
	}
	return nil
}

// run has DuckDB run the query, up to its first rows, if it does not yet.
func (w *rows) run(ctx context.Context) error {
	if w.pending.Ptr == nil {
		return nil
	}
	err := w.s.conn.execute(ctx, &w.pending, &w.res)
	if err == nil && int(mapping.ColumnCount(&w.res)) != len(w.columns) {
		err = errResultChanged()
	}
	if err != nil {
		w.stop()
		w.err = err
	}
	return err
}

// more takes the next chunk. The error is DuckDB's about the query; that the chunk could not be kept is left in err.
func (w *rows) more(ctx context.Context) error {
	if err := w.run(ctx); err != nil {
		return err
	}
	chunk, ok, err := w.s.conn.fetch(ctx, &w.res)
	if err != nil || !ok {
		w.stop()
		w.err = err
		return err
	}
	p := piece{chunk, w.end, int(mapping.DataChunkGetSize(chunk))}
	w.end = p.end()
	if w.spool == nil {
		w.newest.free()
		w.newest = p
		return nil
	}
	if err := w.spool.add(ctx, p); err != nil {
		w.stop()
		w.err = err
	}
	return nil
}

// keep has the spool hold what comes from now on, and the newest chunk.
func (w *rows) keep(ctx context.Context) error {
	if w.spool != nil {
		return nil
	}
	types := make([]*pgcodec.LogicalType, len(w.columns))
	for i := range types {
		types[i] = w.columns[i].Type
	}
	w.spool = &spool{connect: w.s.in.spoolConn, types: types, first: w.end, end: w.end}
	if w.newest.chunk.Ptr == nil {
		return nil
	}
	p := w.newest
	w.newest, w.spool.first = piece{}, p.first
	return w.spool.add(ctx, p)
}

// settle takes all that DuckDB has left into the spool, so that its connection is free. The error is DuckDB's about the
// query.
func (w *rows) settle(ctx context.Context) error {
	if !w.live {
		return nil
	}
	if err := w.keep(ctx); err != nil {
		return err
	}
	for w.live {
		if err := w.more(ctx); err != nil {
			return err
		}
	}
	return nil
}

// all settles and reports any failure to get or to keep a row.
func (w *rows) all(ctx context.Context) error {
	if err := w.settle(ctx); err != nil {
		return err
	}
	return w.reach(ctx, math.MaxInt64)
}

// stop ends the stream from DuckDB.
func (w *rows) stop() {
	if !w.live {
		return
	}
	w.live = false
	mapping.DestroyPending(&w.pending)
	mapping.DestroyResult(&w.res)
	if w.s.active == w {
		w.s.active = nil
	}
}

// discard gives all rows up; whoever still reads them gets why.
func (w *rows) discard(why error) {
	w.gone = why
	w.stop()
	w.newest.free()
	if w.spool != nil {
		w.spool.close()
	}
}

// release says that a portal on the rows has closed; with the last one they go.
func (w *rows) release() {
	if w.portals--; w.portals == 0 {
		w.discard(errPortalOver)
	}
}

// errPortalOver is what reading from a closed portal says. Nobody should.
var errPortalOver = errors.New("the portal is closed")

// spoolConn opens a connection for a spool. It runs our own statements only; all the same it is held to what any
// client's is, and to its own tables.
func (in *instance) spoolConn() (*duckConn, func(), error) {
	c, err := connect(in.db)
	if err != nil {
		return nil, nil, err
	}
	client := in.bridge.BindClient(c.conn.Ptr)
	hangUp := func() {
		client.Release()
		c.close()
	}
	if err := client.AllowDatabases([]string{"temp", "system"}, []string{"temp"}); err != nil {
		hangUp()
		return nil, nil, err
	}
	return c, hangUp, nil
}
