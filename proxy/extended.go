package proxy

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine"
	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// Bounds of one session. Drivers cache a few hundred statements (pgjdbc 256, pgx 512) and open a portal a
// cursor; who needs more than these leaks them.
const (
	statementsMax = 10_000
	portalsMax    = 1_000
)

// prepared is a prepared statement. Portals keep it when its name is closed or reused.
type prepared struct {
	statement     // nil: an empty query
	uses      int // its name, and each portal
}

// empty tells that the statement's text held no statement.
func (p *prepared) empty() bool { return p.statement == nil }

// unuse closes the statement with its last use.
func (p *prepared) unuse() {
	p.uses--
	if p.uses == 0 && !p.empty() {
		p.statement.Close()
	}
}

// portal is a statement with its arguments, and once executed its place in the result.
type portal struct {
	of      *prepared
	args    []engine.Arg
	formats []int16 // one a result column, or none
	work    *work   // begun by each Execute, over when the portal closes
	cursor  *cursor // nil before the first Execute and for COPY
	done    bool    // ran to completion
}

// parse prepares a statement without running anything.
func (s *session) parse(ctx context.Context, m *pgproto3.Parse) (state, error) {
	s.unsynced = true
	if m.Name == "" {
		s.closeStatement("")
	} else if err := s.checkNewStatement(m.Name); err != nil {
		return s.fail(err)
	}
	queries, err := s.split(m.Query)
	if err != nil {
		return s.fail(err)
	}
	p := &prepared{uses: 1}
	switch len(queries) {
	case 0:
	case 1:
		w := s.begin(newWork(ctx))
		p.statement, err = s.engine.Prepare(w.ctx, queries[0], m.ParameterOIDs)
		s.end(w, true)
	default:
		return s.fail(pgerr.New(pgerrcode.SyntaxError, "cannot insert multiple commands into a prepared statement"))
	}
	if err != nil {
		return s.fail(err)
	}
	s.statements[m.Name] = p
	s.out.send(&pgproto3.ParseComplete{})
	return s.ready, nil
}

// checkNewStatement refuses a name in use and one too many.
func (s *session) checkNewStatement(name string) error {
	if _, taken := s.statements[name]; taken {
		return pgerr.Newf(pgerrcode.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	if len(s.statements) >= statementsMax {
		return pgerr.New(pgerrcode.ProgramLimitExceeded, "too many prepared statements").
			WithDetail(fmt.Sprintf("A session can have %d.", statementsMax)).
			WithHint("Close statements that are no longer used.")
	}
	return nil
}

// bind makes a portal. The message dies at the next Receive, so its arguments are copied.
func (s *session) bind(_ context.Context, m *pgproto3.Bind) (state, error) {
	s.unsynced = true
	of, err := s.statementNamed(m.PreparedStatement)
	if err == nil {
		err = s.checkBind(m, of)
	}
	if err == nil {
		err = s.checkNewPortal(m.DestinationPortal)
	}
	if err != nil {
		return s.fail(err)
	}
	of.uses++
	s.portals[m.DestinationPortal] = &portal{
		of:      of,
		args:    copyArgs(m),
		formats: append([]int16(nil), m.ResultFormatCodes...),
	}
	s.out.send(&pgproto3.BindComplete{})
	return s.ready, nil
}

// checkBind compares a Bind's counts with its statement, in PostgreSQL's words.
func (s *session) checkBind(m *pgproto3.Bind, of *prepared) error {
	var params, columns int
	if !of.empty() {
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

// checkNewPortal refuses a name in use and one too many. The unnamed portal is replaced.
func (s *session) checkNewPortal(name string) error {
	if name == "" {
		s.closePortal("")
	} else if _, taken := s.portals[name]; taken {
		return pgerr.Newf(pgerrcode.DuplicateCursor, "cursor %q already exists", name)
	}
	if len(s.portals) >= portalsMax {
		return pgerr.New(pgerrcode.ProgramLimitExceeded, "too many portals").
			WithDetail(fmt.Sprintf("A session can have %d.", portalsMax)).
			WithHint("Close portals that are no longer used.")
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
func (s *session) describe(m *pgproto3.Describe) (state, error) {
	s.unsynced = true
	switch m.ObjectType {
	case 'S':
		p, err := s.statementNamed(m.Name)
		if err != nil {
			return s.fail(err)
		}
		var oids []uint32
		if !p.empty() {
			oids = p.Params()
		}
		s.out.send(&pgproto3.ParameterDescription{ParameterOIDs: oids})
		s.describeColumns(p, nil)
	case 'P':
		p, ok := s.portals[m.Name]
		if !ok {
			return s.fail(noPortal(m.Name))
		}
		s.describeColumns(p.of, p.formats)
	default:
		return s.fail(pgerr.Newf(pgerrcode.ProtocolViolation, "invalid DESCRIBE message subtype %d", m.ObjectType))
	}
	return s.ready, nil
}

// describeColumns sends RowDescription, or NoData for a statement without rows.
func (s *session) describeColumns(p *prepared, formats []int16) {
	if p.empty() || p.Columns() == nil {
		s.out.send(&pgproto3.NoData{})
		return
	}
	s.out.send(rowDescription(p.Columns(), formats))
}

// execute runs a portal, or goes on with it.
func (s *session) execute(ctx context.Context, m *pgproto3.Execute) (state, error) {
	s.unsynced = true
	p, ok := s.portals[m.Portal]
	switch {
	case !ok:
		return s.fail(noPortal(m.Portal))
	case p.work != nil && s.engine.TxStatus() == 'E':
		return s.fail(pgerr.New(pgerrcode.InFailedSQLTransaction,
			"current transaction is aborted, commands ignored until end of transaction block"))
	case p.of.empty():
		s.out.send(&pgproto3.EmptyQueryResponse{})
		return s.ready, nil
	case p.done && p.cursor == nil:
		return s.fail(pgerr.Newf(pgerrcode.ObjectNotInPrerequisiteState, "portal %q cannot be run", m.Portal))
	}
	if p.work == nil {
		p.work = newWork(ctx)
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
	if c := p.of.Copy(); c != nil {
		p.done = true
		return s.copy(p.work, p.of, c, p.args, mode)
	}
	if p.cursor == nil {
		r, err := p.of.Run(p.work.ctx, p.args, mode)
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
		s.closeStatement(m.Name)
	case 'P':
		s.closePortal(m.Name)
	default:
		return s.fail(pgerr.Newf(pgerrcode.ProtocolViolation, "invalid CLOSE message subtype %d", m.ObjectType))
	}
	s.out.send(&pgproto3.CloseComplete{})
	return s.ready, nil
}

// statementNamed finds a prepared statement.
func (s *session) statementNamed(name string) (*prepared, error) {
	p, ok := s.statements[name]
	switch {
	case ok:
		return p, nil
	case name == "":
		return nil, pgerr.New(pgerrcode.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerr.Newf(pgerrcode.InvalidSQLStatementName, "prepared statement %q does not exist", name)
}

// noPortal is the error for a portal that is not there.
func noPortal(name string) error {
	return pgerr.Newf(pgerrcode.InvalidCursorName, "portal %q does not exist", name)
}

// closeStatement forgets a prepared statement's name.
func (s *session) closeStatement(name string) {
	if p, ok := s.statements[name]; ok {
		delete(s.statements, name)
		p.unuse()
	}
}

// closeAllStatements forgets every prepared statement. Portals keep theirs.
func (s *session) closeAllStatements() {
	for name := range s.statements {
		s.closeStatement(name)
	}
}

// closePortal forgets a portal and ends its work.
func (s *session) closePortal(name string) {
	if p, ok := s.portals[name]; ok {
		delete(s.portals, name)
		s.abandon(p)
		p.of.unuse()
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
		s.closePortal(name)
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
