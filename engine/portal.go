package engine

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// Portal stands at a row of a query's result. It is PostgreSQL's portal: Bind makes one, DECLARE makes one (a cursor),
// and whoever knows the name may read it, by Execute or by FETCH.
type Portal struct {
	s       *Session
	name    string // "": nobody can name it
	columns []pgcodec.Column
	rows    *rows // nil before the start, and where the statement returns none
	place   int64 // the current row, counted from 1: 0 before the first one, one more than there are after the last
	tag     string
	counted bool

	st   *Statement // Bind's, to start with; nil for a cursor
	args []Arg

	text     string    // that made it, for pg_cursors
	made     time.Time // likewise
	declared bool      // by DECLARE
	noScroll bool      // goes forward only
	binary   bool
	hold     bool // outlives its transaction's commit
	held     bool // has outlived it
	running  bool // its own statement runs
	broken   bool // a statement that read it has failed
	closed   bool
	debt     motion // what a FETCH that was given up in the middle still had to go
}

// motion is how far a portal goes: count rows forward or back.
type motion struct {
	back  bool
	count int64
}

// allRows is a motion's count that no result reaches.
const allRows = math.MaxInt64

// Columns describes the portal's rows; nil where there are none.
func (p *Portal) Columns() []pgcodec.Column {
	if p.st != nil {
		return p.st.Columns()
	}
	return p.columns
}

// Closed reports whether the portal has ended, by CLOSE or with its transaction.
func (p *Portal) Closed() bool { return p.closed }

// Run starts the portal's statement, or goes on where the last Execute or FETCH stopped. The caller closes the result.
func (p *Portal) Run(ctx context.Context, mode Mode) (*Result, error) {
	s := p.s
	if s.tx.failed && (p.st == nil || !p.st.endsTx()) {
		return nil, errAborted()
	}
	if p.rows == nil && p.st != nil {
		p.running = true
		defer func() { p.running = false }()
		r, err := p.st.Run(ctx, p.args, mode)
		if err == nil {
			p.adopt(r)
		}
		return r, err
	}
	x := s.newExecution()
	defer x.enter(ctx)()
	r, err := p.forward(x)
	if err != nil {
		defer x.end()
		return nil, s.failed(x.ctx, err, nil)
	}
	return r, nil
}

// start runs the statement of a portal that was bound and is not executed yet, and reports whether its transaction ends
// with its rows. x is whose time it takes.
func (p *Portal) start(x *execution, mode Mode) (ownTx bool, err error) {
	if p.rows != nil || p.running {
		return false, nil
	}
	if p.Columns() == nil || p.st.stmt.Kind == translate.KindFetch {
		return false, pgerr.Newf(pgerrcode.ObjectNotInPrerequisiteState, "portal %q cannot be run", p.name)
	}
	p.running = true
	defer func() { p.running = false }()
	r, err := p.st.run(x, p.args, mode)
	if err != nil {
		return false, err
	}
	p.adopt(r)
	return r.ownTx, nil
}

// forward reads what is left of the portal, as Execute does.
func (p *Portal) forward(x *execution) (*Result, error) {
	if err := p.ready(x.ctx); err != nil {
		return nil, err
	}
	r := p.result(x, motion{count: allRows})
	r.tag, r.counted = p.tag, p.counted
	return r, nil
}

// adopt makes the rows that r was started with the portal's.
func (p *Portal) adopt(r *Result) {
	if !r.own {
		return // it returns none, or is a FETCH from another portal
	}
	p.rows, p.columns, p.tag, p.counted = r.portal.rows, r.columns, r.tag, r.counted
	r.portal, r.own = p, false
}

// ready tells whether the portal can be read, and pays its debt.
func (p *Portal) ready(ctx context.Context) error {
	if p.running || p.broken || p.rows == nil {
		return pgerr.Newf(pgerrcode.ObjectNotInPrerequisiteState, "portal %q cannot be run", p.name)
	}
	debt := p.debt
	p.debt = motion{}
	_, err := p.move(ctx, debt)
	return err
}

// result reads the portal's rows by a motion.
func (p *Portal) result(x *execution, m motion) *Result {
	r := &Result{s: p.s, x: x, columns: p.columns, portal: p, left: m}
	for i := range p.columns {
		r.chunk.Columns = append(r.chunk.Columns, newVector(p.columns[i].Type))
	}
	return r
}

// step moves over up to m.count rows of one chunk and shows them in c. io.EOF says that there are no more: then the portal
// stands before the first row or after the last.
func (p *Portal) step(ctx context.Context, m motion, c *pgcodec.Chunk) error {
	n := p.place // the next row, counted from 0
	if m.back {
		if n = p.place - 2; n < 0 {
			p.place = 0
			return io.EOF
		}
	}
	in, err := p.rows.at(ctx, n)
	if errors.Is(err, io.EOF) {
		p.place = p.rows.end + 1
	}
	if err != nil {
		return err
	}
	c.First, c.Backward = int(n-in.first), m.back
	if m.back {
		c.Rows = int(min(n-in.first+1, m.count))
		p.place -= int64(c.Rows)
	} else {
		c.Rows = int(min(in.end()-n, m.count))
		p.place += int64(c.Rows)
	}
	for i := range c.Columns {
		pointVector(&c.Columns[i], mapping.DataChunkGetVector(in.chunk, mapping.IdxT(i)), in.rows)
	}
	return nil
}

// move goes without reading and returns how many rows it passed, the one arrived at included.
func (p *Portal) move(ctx context.Context, m motion) (int64, error) {
	from := p.place
	if m.count == 0 {
		return 0, nil
	}
	if m.back {
		p.place = max(from-m.count, 0)
		return max(from-max(p.place, 1), 0), nil
	}
	to := from + min(m.count, allRows-from)
	if err := p.rows.reach(ctx, to); err != nil {
		return 0, err
	}
	if to <= p.rows.end {
		p.place = to
		return to - from, nil
	}
	p.place = p.rows.end + 1
	return max(p.rows.end-from, 0), nil
}

// Close ends the portal. A FETCH from it that is not read to its end keeps the rows.
func (p *Portal) Close() {
	if p.closed {
		return
	}
	p.closed = true
	if p.s.portals[p.name] == p {
		delete(p.s.portals, p.name)
	}
	if r := p.s.fetching; r != nil && r.portal == p {
		r.own, p.s.fetching = true, nil
		return
	}
	if p.rows != nil {
		p.rows.release()
	}
}
