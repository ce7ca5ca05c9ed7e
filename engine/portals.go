package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// portalsMax bounds the named portals of a session, far above what any client opens: each may hold rows.
const portalsMax = 1_000

// errTxOver is what a portal says whose transaction has ended.
func errTxOver() *pgerr.Error {
	return pgerr.New(pgerrcode.InvalidCursorName, "the portal's transaction has ended")
}

// mayName refuses a portal's name that is in use, and one portal too many.
func (s *Session) mayName(name string) error {
	if s.portals[name] != nil {
		return pgerr.Newf(pgerrcode.DuplicateCursor, "cursor %q already exists", name)
	}
	if len(s.portals) >= portalsMax {
		return pgerr.New(pgerrcode.ProgramLimitExceeded, "too many portals").
			WithDetail(fmt.Sprintf("A session can have %d.", portalsMax)).
			WithHint("Close portals that are no longer used.")
	}
	return nil
}

// newPortal makes a portal and, if it has a name, has it found by that.
func (s *Session) newPortal(name string) *Portal {
	p := &Portal{s: s, name: name, noScroll: true, made: time.Now()}
	if name != "" {
		s.portals[name] = p
	}
	return p
}

// Bind makes a portal of a statement, nil for an empty one. Its first Execute or FETCH starts it, or the first statement
// after it that changes something. Without a name nobody but the caller can reach it. The statement must not be closed
// before the portal.
func (s *Session) Bind(name string, st *Statement, args []Arg) (*Portal, error) {
	if name != "" {
		if err := s.mayName(name); err != nil {
			return nil, err
		}
	}
	p := s.newPortal(name)
	p.st, p.args = st, args
	if st != nil {
		p.text = st.stmt.Text
	}
	return p, nil
}

// Cursor finds a cursor that DECLARE made; nil if there is none of that name.
func (s *Session) Cursor(name string) *Portal {
	if p := s.portals[name]; p != nil && p.declared {
		return p
	}
	return nil
}

// startBound starts the portals that are bound and not yet executed: their rows are those of now, before a statement that
// changes something.
func (s *Session) startBound(x *execution) error {
	for _, p := range s.portals {
		if p.rows != nil || p.running || p.st == nil || p.st.stmt.Kind != translate.KindQuery || p.st.changes {
			continue
		}
		if _, err := p.start(x, Implicit); err != nil {
			return err
		}
	}
	return nil
}

// holdCursors takes the rows of cursors WITH HOLD out of the transaction that is about to commit.
func (s *Session) holdCursors(ctx context.Context) error {
	for _, p := range s.portals {
		if p.hold && !p.held {
			if err := p.rows.all(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropRows gives up the rows of a transaction that failed. Its portals keep their names until it is over.
func (s *Session) dropRows() {
	if r := s.fetching; r != nil && !r.portal.held {
		s.fetching = nil
	}
	for _, p := range s.portals {
		if !p.held && p.rows != nil {
			p.rows.discard(errTxOver())
		}
	}
	if s.active != nil {
		s.active.discard(errTxOver())
	}
}

// endPortals ends the portals of a transaction. Cursors WITH HOLD outlive its commit.
func (s *Session) endPortals(committed bool) {
	for _, p := range s.portals {
		switch {
		case p.held:
		case p.hold && committed:
			p.held = true
		default:
			p.Close()
		}
	}
}

// closePortals ends all portals but those whose statement runs.
func (s *Session) closePortals() {
	for _, p := range s.portals {
		if !p.running {
			p.Close()
		}
	}
}

// tellCursors hands the session's cursors over to pg_cursors, which reads a variable of the connection.
func (s *Session) tellCursors(ctx context.Context) error {
	list := make([]string, 0, len(s.portals))
	for _, name := range slices.Sorted(maps.Keys(s.portals)) {
		p := s.portals[name]
		list = append(list, fmt.Sprintf("{'name': %s, 'statement': %s, 'is_holdable': %t, 'is_binary': %t, 'is_scrollable': %t, 'made': %s}",
			quoteLiteral(name), quoteLiteral(p.text), p.hold, p.binary, !p.noScroll, strconv.FormatInt(p.made.UnixMicro(), 10)))
	}
	return s.conn.exec(ctx, "SET VARIABLE sluice_cursors = ["+strings.Join(list, ", ")+"]")
}
