package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// utility runs what DuckDB has no part in, and returns the command tag.
func (st *Statement) utility(ctx context.Context, mode Mode) (string, error) {
	s, stmt := st.s, st.stmt
	st.noteStmt()
	switch stmt.Kind {
	case translate.KindSet:
		return stmt.Tag, s.set(ctx, stmt, mode)
	case translate.KindPrepare:
		return stmt.Tag, s.addPrepared(stmt.Prepared.Name, &prepared{text: stmt.Prepared})
	case translate.KindDeallocate:
		return stmt.Tag, s.deallocate(stmt.Prepared)
	case translate.KindDiscard:
		return stmt.Tag, s.discard(ctx, stmt.Discard)
	case translate.KindClose:
		return stmt.Tag, s.closeCursor(stmt.Cursor.Name)
	}
	return stmt.Tag, nil
}

// noteStmt sends what is to be said about the statement's text.
func (st *Statement) noteStmt() {
	if n := st.stmt.Notice; n != nil {
		st.s.notice(n)
	}
}

// set runs SET and RESET.
func (s *Session) set(ctx context.Context, stmt *translate.Stmt, mode Mode) error {
	set := stmt.Set
	if set.Duck {
		return s.conn.exec(ctx, stmt.SQL)
	}
	if err := s.settleActive(ctx); err != nil {
		return err
	}
	if mode == Implicit { // undone if the rest of the block fails
		if err := s.join(ctx); err != nil {
			return err
		}
	}
	if set.All {
		s.resetAll()
		return s.applySettings(ctx)
	}
	if set.Local && s.idle() {
		s.notice(pgerr.Notice(pgerr.SeverityWarning, pgerrcode.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks"))
		return nil
	}
	if err := s.setOne(set.Name, set.Values, set.Local); err != nil {
		return err
	}
	return s.applySettings(ctx)
}

// setOne checks and stores one setting; no words mean its initial value.
func (s *Session) setOne(name string, words []string, local bool) error {
	def := settingByName[name]
	if words == nil {
		initial, known := s.settings.initial[name]
		if !known {
			if !strings.Contains(name, ".") {
				return pgerr.Newf(pgerrcode.UndefinedObject, "unrecognized configuration parameter %q", name)
			}
			initial = ""
		}
		s.settings.set(name, initial, local)
		return nil
	}
	value, err := checkSetting(name, words)
	if err != nil {
		return err
	}
	if def != nil && def.fixed {
		if strings.EqualFold(value, s.settings.value(name)) {
			return nil
		}
		return pgerr.Newf(pgerrcode.CantChangeRuntimeParam, "parameter %q cannot be changed", def.name)
	}
	if name == "transaction_read_only" && !s.idle() {
		if value == "off" && s.in.readOnly {
			return pgerr.New(pgerrcode.FeatureNotSupported, "cannot set transaction read-write mode during recovery")
		}
		s.tx.readOnly, local = value == "on", true
	}
	s.settings.set(name, value, local)
	return nil
}

// resetAll puts every setting that can change back to what the connection began with.
func (s *Session) resetAll() {
	for name := range s.settings.all() {
		if def := settingByName[name]; def != nil && (def.fixed || strings.HasPrefix(name, "transaction_")) {
			continue
		}
		s.settings.set(name, s.settings.initial[name], false)
	}
}

// describeShow says which columns SHOW returns.
func (st *Statement) describeShow() error {
	text := &pgcodec.LogicalType{ID: pgcodec.Varchar}
	if st.stmt.Show.All {
		for _, name := range []string{"name", "setting", "description"} {
			st.columns = append(st.columns, pgcodec.Describe(name, text))
		}
		return nil
	}
	name, _, err := st.s.show(st.stmt.Show.Name)
	if err != nil {
		return err
	}
	st.columns = []pgcodec.Column{pgcodec.Describe(name, text)}
	return nil
}

// show reads a setting and its name as PostgreSQL writes it.
func (s *Session) show(name string) (shown, value string, err error) {
	value, ok := s.settings.get(name)
	if !ok {
		return "", "", pgerr.Newf(pgerrcode.UndefinedObject, "unrecognized configuration parameter %q", name)
	}
	if def := settingByName[name]; def != nil {
		return def.name, value, nil
	}
	return name, value, nil
}

// show returns SHOW's rows. They come from DuckDB as all rows do, so that there is one way to the encoders.
func (st *Statement) show(x *execution) (*Result, error) {
	s := st.s
	var rows []string
	if st.stmt.Show.All {
		for i := range settingTable {
			name := settingTable[i].name
			rows = append(rows, fmt.Sprintf("(%s, %s, '')", quoteLiteral(name), quoteLiteral(s.settings.value(strings.ToLower(name)))))
		}
	} else {
		_, value, err := s.show(st.stmt.Show.Name)
		if err != nil {
			return nil, err
		}
		rows = []string{"(" + quoteLiteral(value) + ")"}
	}
	if err := s.settleActive(x.ctx); err != nil {
		return nil, err
	}
	shown := *st.stmt
	shown.SQL = "VALUES " + strings.Join(rows, ", ")
	st.stmt = &shown
	if err := st.bindNow(x.ctx); err != nil {
		return nil, err
	}
	r, err := st.stream(x, nil)
	if err == nil {
		r.counted = false
	}
	return r, err
}

// prepareExecute turns EXECUTE into the statement that PREPARE named, with the arguments' expressions in the
// parameters' places.
func (st *Statement) prepareExecute(ctx context.Context) error {
	exec := st.stmt.Prepared
	p, err := st.s.preparedText(exec.Name)
	if err != nil {
		return err
	}
	if want := max(p.Body.Params, len(p.Types)); len(exec.Args) != want {
		return pgerr.Newf(pgerrcode.SyntaxError, "wrong number of parameters for prepared statement %q", exec.Name).
			WithDetail(fmt.Sprintf("Expected %d parameters but got %d.", want, len(exec.Args)))
	}
	body := *p.Body
	body.SQL, body.Params, body.ParamAt = placeArgs(p, exec.Args), 0, nil
	st.stmt = &body
	return st.prepare(ctx, nil)
}

// placeArgs writes each argument, in the type that PREPARE declared, where its parameter stood.
func placeArgs(p *translate.Prepared, args []string) string {
	var b strings.Builder
	last := 0
	for _, at := range p.Body.ParamAt {
		b.WriteString(p.Body.SQL[last:at.Start])
		arg := "(" + args[at.N-1] + ")"
		if t := declaredType(p.Types, at.N-1); t != "" {
			arg = "CAST(" + arg + " AS " + t + ")"
		}
		b.WriteString(arg)
		last = at.End
	}
	b.WriteString(p.Body.SQL[last:])
	return b.String()
}

// declaredType is the type that PREPARE gave parameter i, counted from 0; "" if it left that open.
func declaredType(types []string, i int) string {
	if i >= len(types) || strings.EqualFold(types[i], "unknown") {
		return ""
	}
	return types[i]
}

// discard runs DISCARD.
func (s *Session) discard(ctx context.Context, what string) error {
	switch what {
	case "ALL":
		if s.tx.kind == txExplicit {
			return pgerr.New(pgerrcode.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
		}
		s.closePortals()
		s.forgetAll()
		s.resetAll()
		if err := s.applySettings(ctx); err != nil {
			return err
		}
		return s.dropTemp(ctx)
	case "TEMP":
		return s.dropTemp(ctx)
	}
	return nil // PLANS and SEQUENCES: nothing is kept that they would drop
}

// dropTemp drops the session's temporary tables and views.
func (s *Session) dropTemp(ctx context.Context) error {
	if err := s.settleActive(ctx); err != nil {
		return err
	}
	var drops []string
	err := s.conn.rows(ctx, `
SELECT 'VIEW', view_name FROM duckdb_views() WHERE database_name = 'temp' AND NOT internal
UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables() WHERE database_name = 'temp' AND NOT internal`,
		func(row []string) { drops = append(drops, "DROP "+row[0]+" temp.main."+quoteIdent(row[1])) })
	if err != nil {
		return err
	}
	for _, sql := range drops {
		if err := s.conn.exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
