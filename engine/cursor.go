package engine

import (
	"context"
	"errors"
	"io"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// prepareDeclare binds a cursor's query. DECLARE takes the query's parameters and returns nothing.
func (st *Statement) prepareDeclare(ctx context.Context, oids []uint32) error {
	st.query = &Statement{s: st.s, stmt: st.stmt.Cursor.Query}
	err := st.query.prepare(ctx, oids)
	st.params = st.query.params
	return err
}

// declare runs DECLARE. What the query reads is fixed now; DuckDB computes its rows as they are fetched. Outside of a
// transaction block a cursor WITH HOLD is made, and its rows are taken, in a transaction of its own.
func (st *Statement) declare(x *execution, args []Arg, mode Mode) (*Result, error) {
	s, c := st.s, st.stmt.Cursor
	r := &Result{s: s, x: x, tag: st.stmt.Tag}
	st.noteStmt()
	if !s.idle() || mode == Implicit {
		return r, st.open(x, args)
	}
	if !c.Hold {
		return nil, pgerr.New(pgerrcode.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	return r, s.overRecovery(x.ctx, func() error {
		if err := st.open(x, args); err != nil {
			return err
		}
		return s.commit(x.ctx)
	})
}

// open makes the cursor and starts its query.
func (st *Statement) open(x *execution, args []Arg) error {
	s, c := st.s, st.stmt.Cursor
	if err := s.mayName(c.Name); err != nil {
		return err
	}
	if err := st.query.mayRun(x.ctx); err != nil {
		return err
	}
	if err := st.query.enterTx(x); err != nil {
		return err
	}
	r, err := st.query.pend(x, args)
	if err != nil {
		return err
	}
	p := s.newPortal(c.Name)
	p.noScroll, p.binary, p.hold = c.NoScroll, c.Binary, c.Hold
	p.declared, p.text = true, st.stmt.Text
	p.adopt(r)
	p.rows.scroll = !p.noScroll
	if p.noScroll {
		return nil
	}
	return p.rows.keep(x.ctx)
}

// cursor finds what FETCH, MOVE and CLOSE name.
func (s *Session) cursor(name string) (*Portal, error) {
	p := s.portals[name]
	if p == nil {
		return nil, pgerr.Newf(pgerrcode.InvalidCursorName, "cursor %q does not exist", name)
	}
	return p, nil
}

// fetchColumns describes what a FETCH returns: the rows of whatever has the cursor's name now. That there is none is an
// error when the FETCH runs.
func (st *Statement) fetchColumns() []pgcodec.Column {
	c := st.stmt.Cursor
	if p := st.s.portals[c.Name]; p != nil && !c.Move {
		return p.Columns()
	}
	return nil
}

// fetch runs FETCH and MOVE.
func (st *Statement) fetch(x *execution, mode Mode) (*Result, error) {
	s, c := st.s, st.stmt.Cursor
	st.noteStmt()
	p, err := s.cursor(c.Name)
	if err != nil {
		return nil, err
	}
	if err := s.detach(x.ctx); err != nil {
		return nil, err
	}
	ownTx, err := p.start(x, mode)
	if err != nil {
		return nil, err
	}
	if err := p.ready(x.ctx); err != nil {
		return nil, err
	}
	r, err := p.fetch(x, c)
	if err != nil {
		p.broken = true // matters where no transaction fails with the statement
		return nil, err
	}
	r.tag, r.counted, r.ownTx = st.stmt.Tag, true, ownTx
	return r, nil
}

// fetch brings the portal to where the rows of a FETCH begin, and leaves those to the result; a MOVE passes them.
func (p *Portal) fetch(x *execution, c *translate.Cursor) (*Result, error) {
	if n, stays := p.stays(c); stays {
		return &Result{s: p.s, x: x, count: n}, nil
	}
	m, err := approaches[c.Direction](x.ctx, p, c.Count)
	if err != nil {
		return nil, err
	}
	if c.Move {
		n, err := p.move(x.ctx, m)
		return &Result{s: p.s, x: x, count: n}, err
	}
	r := p.result(x, m)
	r.binary = p.binary
	if m.count == 0 {
		return r, nil
	}
	if err := p.foresee(x.ctx, m); err != nil {
		return nil, err
	}
	p.s.fetching = r
	return r, nil
}

// foresee computes the first row that a FETCH will return, without moving to it: an error in it is then the answer to the
// FETCH, with no RowDescription before it.
func (p *Portal) foresee(ctx context.Context, m motion) error {
	if m.back {
		return nil
	}
	if _, err := p.rows.at(ctx, p.place); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// stays answers a MOVE that goes nowhere, which a cursor may do that only goes forward: to its own row, which counts if
// it is one, or back from before the first row.
func (p *Portal) stays(c *translate.Cursor) (count int64, stays bool) {
	switch {
	case !c.Move || c.Direction == translate.Absolute:
		return 0, false
	case c.Count == 0 && p.onRow():
		return 1, true
	}
	return 0, c.Count == 0 || c.Direction == translate.Backward && c.Count == translate.AllRows && p.place == 0
}

// approaches bring a portal, by a FETCH's direction and count, to where the rows begin that the FETCH returns, and say which
// those are (manual, FETCH, "Description").
var approaches = map[translate.Direction]func(context.Context, *Portal, int64) (motion, error){
	translate.Forward:  func(_ context.Context, p *Portal, n int64) (motion, error) { return p.along(n) },
	translate.Backward: func(_ context.Context, p *Portal, n int64) (motion, error) { return p.along(-n) },
	translate.Absolute: absolute,
	translate.Relative: relative,
}

// along returns the next n rows, the -n before the current one if n is negative, and the current one again for 0.
func (p *Portal) along(n int64) (motion, error) {
	switch {
	case n > 0:
		return motion{count: n}, nil
	case n == 0 && !p.onRow():
		return motion{}, nil
	}
	if err := p.mayGoBack(); err != nil {
		return motion{}, err
	}
	if n == 0 {
		p.place--
		return motion{count: 1}, nil
	}
	return motion{back: true, count: -n}, nil
}

// absolute returns row n, counted from the end if it is negative. 0 is before the first row.
func absolute(ctx context.Context, p *Portal, n int64) (motion, error) {
	if n < 0 || n <= p.place && p.place > 0 {
		if err := p.mayGoBack(); err != nil {
			return motion{}, err
		}
	}
	if n < 0 {
		if _, err := p.move(ctx, motion{count: allRows}); err != nil {
			return motion{}, err
		}
		return p.skip(ctx, motion{back: true, count: -n})
	}
	if before := max(n-1, 0); before < p.place {
		p.place = before
	} else if _, err := p.move(ctx, motion{count: before - p.place}); err != nil {
		return motion{}, err
	}
	return motion{count: min(n, 1)}, nil
}

// relative returns the row that is n after the current one, or before it.
func relative(ctx context.Context, p *Portal, n int64) (motion, error) {
	m, err := p.along(n)
	if err != nil || n == 0 {
		return m, err
	}
	return p.skip(ctx, m)
}

// skip passes all rows of a motion but the last, which it returns.
func (p *Portal) skip(ctx context.Context, m motion) (motion, error) {
	_, err := p.move(ctx, motion{m.back, m.count - 1})
	return motion{m.back, 1}, err
}

// onRow reports whether there is a current row.
func (p *Portal) onRow() bool { return p.place > 0 && p.place <= p.rows.end }

// mayGoBack refuses where the portal only goes forward.
func (p *Portal) mayGoBack() error {
	if !p.noScroll {
		return nil
	}
	return pgerr.New(pgerrcode.ObjectNotInPrerequisiteState, "cursor can only scan forward").
		WithHint("Declare it with SCROLL option to enable backward scan.")
}

// closeCursor runs CLOSE. ALL leaves alone what runs just now, which is the CLOSE itself.
func (s *Session) closeCursor(name string) error {
	if name == "" {
		s.closePortals()
		return nil
	}
	p, err := s.cursor(name)
	if err != nil {
		return err
	}
	if p.running {
		return pgerr.Newf(pgerrcode.InvalidCursorState, "cannot drop active portal %q", name)
	}
	p.Close()
	return nil
}
