package engine

import (
	"context"
	"io"
	"strconv"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// settledRowsMax bounds what is kept in memory of a suspended portal when another statement takes the connection.
const settledRowsMax = 4 << 20

// heldChunksMax is how much of a RETURNING is held back until its transaction has committed (64 chunks are 131,072
// rows). A longer one streams first and commits at its end, and can then no longer be repeated.
const heldChunksMax = 64

// Result hands out the rows of one run of a statement, chunk by chunk. Close it always.
type Result struct {
	s       *Session
	x       *execution
	st      *Statement
	columns []pgcodec.Column
	tag     string // without its count
	counted bool   // the tag ends in a count
	count   int64  // rows changed, where the statement returns none

	res   mapping.Result      // DuckDB's, while live
	live  bool                // rows still come from DuckDB
	held  []mapping.DataChunk // fetched already, in order
	rows  int                 // rows in held, for its bound
	err   error               // why there are no more rows
	ownTx bool                // the transaction is this statement's own and ends with its last row

	current mapping.DataChunk // what chunk points into
	chunk   pgcodec.Chunk
}

// Columns describes the rows; nil where the statement returns none.
func (r *Result) Columns() []pgcodec.Column { return r.columns }

// Tag is CommandComplete's tag after the last row. rows is how many rows the client got.
func (r *Result) Tag(rows int64) string {
	if !r.counted {
		return r.tag
	}
	if r.columns == nil {
		rows = r.count
	}
	return r.tag + " " + strconv.FormatInt(rows, 10)
}

// Next returns the next chunk, never empty, or io.EOF. It is valid until the next call.
func (r *Result) Next(ctx context.Context) (*pgcodec.Chunk, error) {
	mapping.DestroyDataChunk(&r.current)
	if len(r.held) > 0 {
		r.current, r.held = r.held[0], r.held[1:]
		return r.point(), nil
	}
	if r.err != nil {
		return nil, r.err
	}
	defer r.x.enter(ctx)()
	if r.live {
		chunk, ok, err := r.s.conn.fetch(r.x.ctx, &r.res)
		if err == nil && ok {
			r.current = chunk
			return r.point(), nil
		}
		r.unlive()
		if err != nil {
			return nil, r.fail(err)
		}
	}
	if r.ownTx {
		r.ownTx = false
		if err := r.s.commit(r.x.ctx); err != nil {
			return nil, r.fail(err)
		}
	}
	return nil, io.EOF
}

// fail ends the result with err.
func (r *Result) fail(err error) error {
	r.ownTx = false
	r.err = r.s.failed(r.x.ctx, err, r.st.position)
	return r.err
}

// point makes chunk show the current one.
func (r *Result) point() *pgcodec.Chunk {
	r.chunk.Rows = int(mapping.DataChunkGetSize(r.current))
	for i := range r.chunk.Columns {
		pointVector(&r.chunk.Columns[i], mapping.DataChunkGetVector(r.current, mapping.IdxT(i)), r.chunk.Rows)
	}
	return &r.chunk
}

// Close frees the result. A read that was not finished ends.
func (r *Result) Close() error {
	r.discard()
	if r.ownTx {
		r.ownTx = false
		r.s.rollback()
	}
	r.x.end()
	return nil
}

// discard frees DuckDB's handles.
func (r *Result) discard() {
	mapping.DestroyDataChunk(&r.current)
	for i := range r.held {
		mapping.DestroyDataChunk(&r.held[i])
	}
	r.held = nil
	r.unlive()
}

// unlive ends the stream from DuckDB.
func (r *Result) unlive() {
	if !r.live {
		return
	}
	r.live = false
	mapping.DestroyResult(&r.res)
	if r.s.active == r {
		r.s.active = nil
	}
}

// hold fetches up to limit rows ahead and reports whether the stream has ended.
func (r *Result) hold(ctx context.Context, limit int) (ended bool, err error) {
	for r.rows < limit {
		chunk, ok, err := r.s.conn.fetch(ctx, &r.res)
		if err != nil || !ok {
			r.unlive()
			return true, err
		}
		r.held = append(r.held, chunk)
		r.rows += int(mapping.DataChunkGetSize(chunk))
	}
	return false, nil
}

// settleActive takes the rest of a streaming result into memory, because another statement needs the connection.
func (s *Session) settleActive(ctx context.Context) error {
	r := s.active
	if r == nil {
		return nil
	}
	r.rows = 0
	ended, err := r.hold(ctx, settledRowsMax)
	if err == nil && !ended {
		r.discard()
		err = pgerr.New(pgerrcode.ProgramLimitExceeded, "a suspended portal has too many rows left").
			WithDetail("Another statement ran while it was suspended, so that its rows had to be kept in memory.").
			WithHint("Fetch all rows before the next statement, or use another connection.")
		r.err = err
		return nil // the statement at hand is not the one at fault
	}
	if err != nil {
		r.err = s.pgError(ctx, err, nil)
	}
	return nil
}

// dropActive ends a streaming result whose transaction ends badly.
func (s *Session) dropActive() {
	if r := s.active; r != nil {
		r.discard()
		r.err = pgerr.New(pgerrcode.InvalidCursorName, "the portal's transaction has ended")
	}
}
