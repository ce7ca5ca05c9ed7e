package engine

import (
	"context"
	"slices"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// preparedMax bounds the prepared statements of a session: drivers cache a few hundred (pgjdbc 256, pgx 512), and who needs
// more than these leaks them.
const preparedMax = 10_000

// prepared is a statement that has a name. PREPARE knows its text and Parse the statement itself; each is made of the other
// when it is first asked for.
type prepared struct {
	text      *translate.Prepared
	statement *Statement
	empty     bool // Parse's of a text without a statement
}

// addPrepared gives a statement its name.
func (s *Session) addPrepared(name string, p *prepared) error {
	if s.prepared[name] != nil {
		return pgerr.Newf(pgerrcode.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	if len(s.prepared) >= preparedMax {
		return pgerr.New(pgerrcode.ProgramLimitExceeded, "too many prepared statements").
			WithHint("DEALLOCATE those that are not needed.")
	}
	s.prepared[name] = p
	return nil
}

// findPrepared finds a statement by its name.
func (s *Session) findPrepared(name string) (*prepared, error) {
	if p := s.prepared[name]; p != nil {
		return p, nil
	}
	return nil, pgerr.Newf(pgerrcode.InvalidSQLStatementName, "prepared statement %q does not exist", name)
}

// Keep gives a statement, nil for an empty one, a name by which EXECUTE and Kept find it. Unless it fails, the statement is
// closed when the name goes.
func (s *Session) Keep(name string, st *Statement) error {
	return s.addPrepared(name, &prepared{statement: st, empty: st == nil})
}

// Kept finds the statement of a name, be it of Keep or of PREPARE; nil is an empty one. It stays the session's: who
// needs it longer than the name retains it.
func (s *Session) Kept(ctx context.Context, name string) (*Statement, error) {
	p, err := s.findPrepared(name)
	if err != nil {
		return nil, err
	}
	if p.statement == nil && !p.empty {
		q := Query{Text: p.text.Body.Text, Offset: p.text.Body.Offset, stmt: *p.text.Body}
		p.statement, err = s.prepare(ctx, q, nil, p.text.Types)
	}
	return p.statement, err
}

// Forget closes the statement of a name, if there is one.
func (s *Session) Forget(name string) {
	p := s.prepared[name]
	delete(s.prepared, name)
	if p != nil && p.statement != nil {
		p.statement.Close()
	}
}

// forgetAll closes all statements that have names.
func (s *Session) forgetAll() {
	for name := range s.prepared {
		s.Forget(name)
	}
}

// deallocate runs DEALLOCATE.
func (s *Session) deallocate(p *translate.Prepared) error {
	if p.All {
		s.forgetAll()
		return nil
	}
	if _, err := s.findPrepared(p.Name); err != nil {
		return err
	}
	s.Forget(p.Name)
	return nil
}

// executable are the kinds of statement that EXECUTE runs: those that can have parameters.
var executable = []translate.Kind{translate.KindQuery, translate.KindDML, translate.KindDDL, translate.KindNoop}

// preparedText is the text of a statement, as EXECUTE puts its arguments into it.
func (s *Session) preparedText(name string) (*translate.Prepared, error) {
	p, err := s.findPrepared(name)
	switch {
	case err != nil:
		return nil, err
	case p.text != nil:
		return p.text, nil
	case p.empty || !slices.Contains(executable, p.statement.stmt.Kind):
		return nil, pgerr.Newf(pgerrcode.FeatureNotSupported, "prepared statement %q can only be executed by the extended protocol", name)
	}
	p.text = &translate.Prepared{Name: name, Body: p.statement.stmt}
	for _, oid := range p.statement.params {
		p.text.Types = append(p.text.Types, castNames[oid])
	}
	return p.text, nil
}
