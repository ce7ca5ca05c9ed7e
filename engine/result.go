package engine

import (
	"context"
	"errors"
	"io"
	"strconv"

	"sluice/engine/pgcodec"
)

// Result hands out the rows of one run of a statement, chunk by chunk. Close it always.
type Result struct {
	s        *Session
	x        *execution
	position func(int) int // for errors, see Session.pgError
	columns  []pgcodec.Column
	tag      string // without its count
	counted  bool   // the tag ends in a count
	count    int64  // rows changed, where the statement returns none

	portal *Portal // where the rows come from; nil without any
	own    bool    // the portal is this result's alone and closes with it
	left   motion  // what is still to be read
	binary bool    // a FETCH from a BINARY cursor
	ownTx  bool    // the transaction is this statement's own and ends with its last row
	err    error   // why there are no more rows

	chunk pgcodec.Chunk
}

// Columns describes the rows; nil where the statement returns none.
func (r *Result) Columns() []pgcodec.Column { return r.columns }

// Binary reports whether the simple protocol, which cannot ask for a format, is to get the rows in binary.
func (r *Result) Binary() bool { return r.binary }

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

// Next returns the next rows, one at least and no more than rowsMax unless that is 0, or io.EOF. They are valid until the
// next call.
func (r *Result) Next(ctx context.Context, rowsMax int64) (*pgcodec.Chunk, error) {
	if r.err != nil {
		return nil, r.err
	}
	defer r.x.enter(ctx)()
	if r.portal != nil && r.left.count > 0 {
		m := r.left
		if rowsMax > 0 {
			m.count = min(m.count, rowsMax)
		}
		err := r.portal.step(r.x.ctx, m, &r.chunk)
		if err == nil {
			if r.left.count != allRows {
				r.left.count -= int64(r.chunk.Rows)
			}
			return &r.chunk, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, r.fail(err)
		}
	}
	r.left.count = 0
	if r.s.fetching == r {
		r.s.fetching = nil
	}
	if r.ownTx {
		r.ownTx = false
		if err := r.s.commit(r.x.ctx); err != nil {
			return nil, r.fail(err)
		}
	}
	return nil, io.EOF
}

// fail ends the result with err, and spoils a cursor that outlives the transaction.
func (r *Result) fail(err error) error {
	r.ownTx = false
	if r.portal != nil {
		r.portal.broken = true
	}
	r.err = r.s.failed(r.x.ctx, err, r.position)
	return r.err
}

// Close frees the result. A read that was not finished ends; a FETCH leaves its cursor where it would have gone.
func (r *Result) Close() error {
	if r.s.fetching == r {
		r.s.fetching, r.portal.debt = nil, r.left
	}
	r.drop()
	if r.ownTx {
		r.ownTx = false
		r.s.rollback()
	}
	r.x.end()
	return nil
}

// drop gives up rows that are the result's alone.
func (r *Result) drop() {
	if !r.own {
		return
	}
	r.own, r.left = false, motion{}
	if r.portal.rows != nil {
		r.portal.rows.release()
	}
}

// settleActive frees DuckDB's connection for another statement: what streams from it goes into a spool, once a FETCH that
// was not read to its end has its share. An error has cost DuckDB its transaction.
func (s *Session) settleActive(ctx context.Context) error {
	if err := s.detach(ctx); err != nil {
		return err
	}
	if s.active == nil {
		return nil
	}
	return s.active.settle(ctx)
}

// detach gives a FETCH that was not read to its end a place of its own, and moves its cursor to where the FETCH ends, as
// if it had been read.
func (s *Session) detach(ctx context.Context) error {
	r := s.fetching
	if r == nil {
		return nil
	}
	s.fetching = nil
	p := r.portal
	if err := p.rows.keep(ctx); err != nil {
		return err
	}
	p.rows.portals++
	r.portal, r.own = &Portal{s: s, rows: p.rows, place: p.place}, true
	_, err := p.move(ctx, r.left)
	return err
}
