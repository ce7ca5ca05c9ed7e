package proxy

import (
	"bytes"
	"context"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine"
	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// prepared holds the unnamed prepared statement.
type prepared struct {
	statement // nil: an empty query
}

// portal is a statement with its arguments, and once executed its place in the result. The engine knows it by its name
// too, for FETCH. A cursor of SQL that the client executes is a portal without statement, made for the moment.
type portal struct {
	bound    bound     // the engine's side
	of       statement // nil for an empty query, and for a cursor
	declared bool      // a cursor, which the engine alone keeps
	args     []engine.Arg
	formats  []int16 // one a result column, or none
	work     *work   // begun by each Execute, over when the portal closes
	cursor   *cursor // nil before the first Execute and for COPY
	done     bool    // ran to completion
}

// empty tells that the portal's statement held no statement.
func (p *portal) empty() bool { return p.of == nil && !p.declared }

// copy describes the portal's COPY; nil where it is none.
func (p *portal) copy() *engine.Copy {
	if p.of == nil {
		return nil
	}
	return p.of.Copy()
}

// parse prepares a statement without running anything.
func (s *session) parse(ctx context.Context, m *pgproto3.Parse) (state, error) {
	s.unsynced = true
	if m.Name == "" {
		s.closeUnnamed()
	}
	st, err := s.prepare(ctx, m)
	if err != nil {
		return s.fail(err)
	}
	if m.Name == "" {
		s.unnamed = &prepared{st}
	} else if err := s.engine.Keep(m.Name, st); err != nil {
		if st != nil {
			st.Close()
		}
		return s.fail(err)
	}
	s.out.send(&pgproto3.ParseComplete{})
	return s.ready, nil
}

// prepare has the engine prepare a Parse's statement; nil for an empty query.
func (s *session) prepare(ctx context.Context, m *pgproto3.Parse) (statement, error) {
	queries, err := s.split(m.Query)
	switch {
	case err != nil || len(queries) == 0:
		return nil, err
	case len(queries) > 1:
		return nil, pgerr.New(pgerrcode.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	w := s.begin(newWork(ctx))
	defer s.end(w, true)
	return s.engine.Prepare(w.ctx, queries[0], m.ParameterOIDs)
}

// bind makes a portal. The message dies at the next Receive, so its arguments are copied. The unnamed portal is
// replaced, and so is one that SQL has closed.
func (s *session) bind(ctx context.Context, m *pgproto3.Bind) (state, error) {
	s.unsynced = true
	of, err := s.statementNamed(ctx, m.PreparedStatement)
	if err == nil {
		err = s.checkBind(m, of)
	}
	if err != nil {
		return s.fail(err)
	}
	if p := s.portals[m.DestinationPortal]; p != nil && (m.DestinationPortal == "" || p.bound.Closed()) {
		s.forgetPortal(m.DestinationPortal)
	}
	args := copyArgs(m)
	b, err := s.engine.Bind(m.DestinationPortal, of, args)
	if err != nil {
		return s.fail(err)
	}
	if of != nil {
		of.Retain()
	}
	s.portals[m.DestinationPortal] = &portal{
		bound:   b,
		of:      of,
		args:    args,
		formats: append([]int16(nil), m.ResultFormatCodes...),
	}
	s.out.send(&pgproto3.BindComplete{})
	return s.ready, nil
}

// checkBind compares a Bind's counts with its statement, in PostgreSQL's words.
func (s *session) checkBind(m *pgproto3.Bind, of statement) error {
	var params, columns int
	if of != nil {
		params, columns = len(of.Params()), len(of.Columns())
	}
	formats, given, results := len(m.ParameterFormatCodes), len(m.Parameters), len(m.ResultFormatCodes)
	switch {
	case formats > 1 && formats != given:
		return pgerr.Newf(pgerrcode.ProtocolViolation,
			"bind message has %d parameter formats but %d parameters", formats, given)
	case given != params:
		return pgerr.Newf(pgerrcode.ProtocolViolation,
			"bind message supplies %d parameters, but prepared statement %q requires %d", given, m.PreparedStatement, params)
	case results > 1 && results != columns:
		return pgerr.Newf(pgerrcode.ProtocolViolation,
			"bind message has %d result formats but query has %d columns", results, columns)
	}
	return checkFormats(m.ParameterFormatCodes, m.ResultFormatCodes)
}

// checkFormats refuses format codes other than text and binary.
func checkFormats(lists ...[]int16) error {
	for _, list := range lists {
		for _, code := range list {
			if code != pgcodec.FormatText && code != pgcodec.FormatBinary {
				return pgerr.Newf(pgerrcode.InvalidParameterValue, "unsupported format code: %d", code)
			}
		}
	}
	return nil
}

// copyArgs takes the arguments out of a Bind.
func copyArgs(m *pgproto3.Bind) []engine.Arg {
	args := make([]engine.Arg, len(m.Parameters))
	for i, data := range m.Parameters {
		args[i] = engine.Arg{Format: pgcodec.FormatOf(m.ParameterFormatCodes, i), Data: bytes.Clone(data)}
	}
	return args
}

// describe answers what a statement takes and returns. Nothing runs.
func (s *session) describe(ctx context.Context, m *pgproto3.Describe) (state, error) {
	s.unsynced = true
	switch m.ObjectType {
	case 'S':
		st, err := s.statementNamed(ctx, m.Name)
		if err != nil {
			return s.fail(err)
		}
		var oids []uint32
		var columns []pgcodec.Column
		if st != nil {
			oids, columns = st.Params(), st.Columns()
		}
		s.out.send(&pgproto3.ParameterDescription{ParameterOIDs: oids})
		s.describeColumns(columns, nil)
	case 'P':
		p, err := s.portalNamed(m.Name)
		if err != nil {
			return s.fail(err)
		}
		s.describeColumns(p.bound.Columns(), p.formats)
	default:
		return s.fail(pgerr.Newf(pgerrcode.ProtocolViolation, "invalid DESCRIBE message subtype %d", m.ObjectType))
	}
	return s.ready, nil
}

// describeColumns sends RowDescription, or NoData for a statement without rows.
func (s *session) describeColumns(columns []pgcodec.Column, formats []int16) {
	if columns == nil {
		s.out.send(&pgproto3.NoData{})
		return
	}
	s.out.send(rowDescription(columns, formats))
}

// execute runs a portal, or goes on with it.
func (s *session) execute(ctx context.Context, m *pgproto3.Execute) (state, error) {
	s.unsynced = true
	p, err := s.portalNamed(m.Portal)
	switch {
	case err != nil:
		return s.fail(err)
	case p.work != nil && s.engine.TxStatus() == 'E':
		return s.fail(pgerr.New(pgerrcode.InFailedSQLTransaction,
			"current transaction is aborted, commands ignored until end of transaction block"))
	case p.empty():
		s.out.send(&pgproto3.EmptyQueryResponse{})
		return s.ready, nil
	case p.done && p.cursor == nil:
		return s.fail(pgerr.Newf(pgerrcode.ObjectNotInPrerequisiteState, "portal %q cannot be run", m.Portal))
	}
	if p.work == nil {
		p.work = newWork(ctx)
	}
	if p.declared {
		defer s.abandon(p)
	}
	before := s.engine.TxStatus()
	limit := max(0, int64(int32(m.MaxRows))) // the manual: zero denotes no limit; PostgreSQL takes negatives so too
	mode := s.mode(limit)                    // looks into the receiver, which begin lends away
	s.begin(p.work)
	tag, err := s.runPortal(p, mode, limit)
	s.end(p.work, false)
	if err != nil {
		state, err := s.fail(err)
		s.abandon(p)
		return state, err
	}
	if !p.done {
		s.sendNotices()
		s.out.send(&pgproto3.PortalSuspended{})
		return s.ready, nil
	}
	s.complete(tag, s.block && before == 'I' && s.engine.TxStatus() == 'I')
	s.afterStatement(before)
	return s.ready, nil
}

// runPortal sends up to limit rows of a portal (0: all) and returns the tag when it is done.
func (s *session) runPortal(p *portal, mode engine.Mode, limit int64) (tag string, err error) {
	if c := p.copy(); c != nil {
		p.done = true
		return s.copy(p.work, p.of, c, p.args, mode)
	}
	if p.cursor == nil {
		r, err := p.bound.Run(p.work.ctx, mode)
		if err != nil {
			return "", err
		}
		p.cursor = s.newCursor(r, p.formats)
	}
	rows, err := s.sendRows(p.work.ctx, p.cursor, limit)
	if err != nil {
		return "", err
	}
	p.done = p.cursor.ended
	if !p.done {
		return "", nil
	}
	tag = p.cursor.result.Tag(rows)
	if p.cursor.columns == nil {
		err = p.cursor.close()
		p.cursor = nil
	}
	return tag, err
}

// mode decides how an Execute stands to transactions. If the client's Sync is already here and nothing
// else ran since the last one, the statement is alone and may commit, and be retried, by itself.
// Otherwise it opens or joins the implicit block. A portal that may be suspended joins as well: its
// transaction has to outlive this Execute.
func (s *session) mode(limit int64) engine.Mode {
	if !s.block && limit == 0 && s.in.nextIs('S') {
		return engine.Auto
	}
	s.block = true
	return engine.Implicit
}

// closeObject closes a statement or portal. One that does not exist is no error.
func (s *session) closeObject(m *pgproto3.Close) (state, error) {
	s.unsynced = true
	switch m.ObjectType {
	case 'S':
		if m.Name == "" {
			s.closeUnnamed()
		} else {
			s.engine.Forget(m.Name)
		}
	case 'P':
		s.closePortal(m.Name)
	default:
		return s.fail(pgerr.Newf(pgerrcode.ProtocolViolation, "invalid CLOSE message subtype %d", m.ObjectType))
	}
	s.out.send(&pgproto3.CloseComplete{})
	return s.ready, nil
}

// statementNamed finds a prepared statement; nil is an empty query.
func (s *session) statementNamed(ctx context.Context, name string) (statement, error) {
	if name != "" {
		w := s.begin(newWork(ctx)) // a statement of PREPARE is bound when the protocol first asks for it
		defer s.end(w, true)
		return s.engine.Kept(w.ctx, name)
	}
	if s.unnamed == nil {
		return nil, pgerr.New(pgerrcode.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return s.unnamed.statement, nil
}

// portalNamed finds a portal, which may be a cursor of SQL.
func (s *session) portalNamed(name string) (*portal, error) {
	if p := s.portals[name]; p != nil && !p.bound.Closed() {
		return p, nil
	}
	if b := s.engine.Cursor(name); b != nil {
		return &portal{bound: b, declared: true}, nil
	}
	return nil, pgerr.Newf(pgerrcode.InvalidCursorName, "portal %q does not exist", name)
}

// closeUnnamed forgets the unnamed prepared statement. Portals keep theirs.
func (s *session) closeUnnamed() {
	if s.unnamed != nil && s.unnamed.statement != nil {
		s.unnamed.Close()
	}
	s.unnamed = nil
}

// closePortal ends a portal or cursor, if there is one of that name.
func (s *session) closePortal(name string) {
	if p := s.portals[name]; p != nil && !p.bound.Closed() {
		s.forgetPortal(name)
		return
	}
	if b := s.engine.Cursor(name); b != nil {
		b.Close()
	}
}

// forgetPortal forgets a portal of the protocol and ends its work.
func (s *session) forgetPortal(name string) {
	p := s.portals[name]
	if p == nil {
		return
	}
	delete(s.portals, name)
	s.abandon(p)
	p.bound.Close()
	if p.of != nil {
		p.of.Close()
	}
}

// abandon gives back what a portal holds in the engine. Its error has nobody left to interest.
func (s *session) abandon(p *portal) {
	p.done = true
	if p.cursor != nil {
		p.cursor.close()
		p.cursor = nil
	}
	if p.work != nil {
		p.work.cancel(nil)
	}
}

// closeAllPortals ends every portal.
func (s *session) closeAllPortals() {
	for name := range s.portals {
		s.forgetPortal(name)
	}
}

// closeFinishedPortals ends every portal once there is no transaction: they live no longer than it.
func (s *session) closeFinishedPortals() {
	if len(s.portals) > 0 && s.engine.TxStatus() == 'I' {
		s.closeAllPortals()
	}
}

// afterStatement ends the portals of a transaction block that the statement ended.
func (s *session) afterStatement(before byte) {
	if before != 'I' && s.engine.TxStatus() == 'I' {
		s.closeAllPortals()
	}
}
