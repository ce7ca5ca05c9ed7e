package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
	"sluice/engine/translate"
	"sluice/lakefs"
)

// Query is one statement of a client's text.
type Query struct {
	Text   string // without its semicolon
	Offset int    // of Text in the client's text, in bytes
	stmt   translate.Stmt
}

// Parse splits a client's text into statements. Text without any, or comments only, has none.
func (s *Session) Parse(sql string) ([]Query, error) {
	stmts, err := translate.Parse(sql, translate.Options{Lake: s.engine.cfg.Lake, Admin: s.cfg.Admin})
	if err != nil {
		return nil, s.pgError(context.Background(), err, nil)
	}
	queries := make([]Query, len(stmts))
	for i, st := range stmts {
		queries[i] = Query{Text: st.Text, Offset: st.Offset, stmt: st}
	}
	return queries, nil
}

// Statement is a prepared one. It belongs to its session; Close it always.
type Statement struct {
	uses     int // until it is freed
	s        *Session
	stmt     *translate.Stmt
	prepared mapping.PreparedStatement // nil Ptr where DuckDB has no part in it
	splices  []splice                  // what was put into stmt.SQL, for positions
	bytea    []splice                  // those of them that have bytea literals read as PostgreSQL does
	boundIn  uint64                    // the transaction that prepared belongs to
	params   []uint32
	casts    []string // of each parameter: the type that its every occurrence is cast to, "" for none
	types    []string // of the parameters as PREPARE declared them, "" for none
	loose    []int    // parameters whose cast is the type of their value
	columns  []pgcodec.Column
	names    []string   // of the columns, where the text that DuckDB gets has others
	writes   bool       // changes the lake
	changes  bool       // changes anything, be it a temporary table
	catalogs bool       // reads pg_catalog or information_schema
	copy     *Copy      // nil unless a COPY
	query    *Statement // DECLARE's; nil unless one
	cursors  bool       // may read pg_cursors
}

// splice is text put into a statement's SQL at an offset of the SQL before any.
type splice struct {
	at   int
	text string
}

// Prepare binds q. paramOIDs are the types that the client declared, 0 where it left one open. Nothing is run. In a
// failed transaction only what ends it can be prepared.
func (s *Session) Prepare(ctx context.Context, q Query, paramOIDs []uint32) (*Statement, error) {
	return s.prepare(ctx, q, paramOIDs, nil)
}

// prepare is Prepare for parameters whose types may also be declared by name, "" where they are not.
func (s *Session) prepare(ctx context.Context, q Query, paramOIDs []uint32, types []string) (*Statement, error) {
	st := &Statement{s: s, stmt: &q.stmt}
	if s.tx.failed && !st.endsTx() {
		return nil, errAborted()
	}
	x := s.newExecution()
	defer x.end()
	defer x.enter(ctx)()
	var err error
	if bound[q.stmt.Kind] {
		err = s.settleActive(x.ctx)
	}
	if err == nil {
		err = s.overRecovery(x.ctx, func() error {
			st.free()
			*st = Statement{s: s, stmt: &q.stmt, types: types, uses: 1}
			return st.prepare(x.ctx, paramOIDs)
		})
	}
	if err != nil {
		st.free()
		return nil, s.failed(x.ctx, err, st.position)
	}
	return st, nil
}

// bound are the kinds of statement that DuckDB binds before they run.
var bound = map[translate.Kind]bool{
	translate.KindQuery: true, translate.KindDML: true, translate.KindDDL: true, translate.KindCopy: true,
	translate.KindExecute: true, translate.KindDeclare: true,
}

// failed turns err into the client's error and the session's transaction into a failed one.
func (s *Session) failed(ctx context.Context, err error, position func(int) int) *pgerr.Error {
	out := s.pgError(ctx, s.noteLost(err), position)
	s.Fail()
	return out
}

// endsTx reports whether the statement may run in a failed transaction.
func (st *Statement) endsTx() bool {
	tx := st.stmt.Tx
	return tx != nil && (tx.Op == translate.TxCommit || tx.Op == translate.TxRollback || tx.Op == translate.TxRollbackTo)
}

// prepare does what the statement's kind needs before it can be described.
func (st *Statement) prepare(ctx context.Context, oids []uint32) error {
	switch st.stmt.Kind {
	case translate.KindRefused:
		return st.stmt.Err
	case translate.KindQuery, translate.KindDML, translate.KindDDL:
		return st.prepareDuck(ctx, oids)
	case translate.KindShow:
		return st.describeShow()
	case translate.KindCopy:
		return st.prepareCopy(ctx)
	case translate.KindExecute:
		return st.prepareExecute(ctx)
	case translate.KindDeclare:
		return st.prepareDeclare(ctx, oids)
	}
	return nil
}

// prepareDuck binds the statement in DuckDB and describes it.
func (st *Statement) prepareDuck(ctx context.Context, oids []uint32) error {
	if st.s.tx.kind == txNone {
		if err := st.s.begin(ctx, txBinding); err != nil {
			return err
		}
	}
	st.cursors = st.stmt.Kind == translate.KindQuery && strings.Contains(strings.ToLower(st.stmt.SQL), "pg_cursors")
	if err := st.prepareBytea(ctx); err != nil {
		return err
	}
	if err := st.prepareParams(ctx, oids); err != nil {
		return err
	}
	if err := st.castColumns(ctx); err != nil {
		return err
	}
	return st.admit()
}

// castColumns binds the statement again inside of a query that casts to text what cannot be encoded from its vector, if
// there is any such column.
func (st *Statement) castColumns(ctx context.Context) error {
	needsCast := func(c pgcodec.Column) bool { return pgcodec.NeedsCast(c.Type) }
	if mapping.PreparedStatementType(st.prepared) != mapping.StatementTypeSelect || !slices.ContainsFunc(st.columns, needsCast) {
		return nil
	}
	names, exprs := make([]string, len(st.columns)), make([]string, len(st.columns))
	for i, c := range st.columns {
		st.names = append(st.names, c.Name)
		names[i] = fmt.Sprintf("c%d", i)
		exprs[i] = names[i]
		if needsCast(c) {
			exprs[i] += "::VARCHAR"
		}
	}
	st.splices = append([]splice{{0, "SELECT " + strings.Join(exprs, ", ") + " FROM ("}}, st.splices...)
	st.splices = append(st.splices, splice{len(st.stmt.SQL), ") _(" + strings.Join(names, ", ") + ")"})
	if err := st.bindNow(ctx); err != nil {
		return err
	}
	st.columns = st.describeColumns()
	return nil
}

// bindNow prepares in the transaction that DuckDB has open.
func (st *Statement) bindNow(ctx context.Context) (err error) {
	mapping.DestroyPrepare(&st.prepared)
	st.prepared, err = st.s.conn.prepare(ctx, applySplices(st.stmt.SQL, st.splices))
	st.boundIn = st.s.serial
	return err
}

// rebind prepares the statement again if it was bound in another transaction. What it touches is checked again, and
// the columns must be those that the client was told.
func (st *Statement) rebind(ctx context.Context) error {
	if st.boundIn == st.s.serial {
		return nil
	}
	if err := st.bindNow(ctx); err != nil {
		return err
	}
	if err := st.admit(); err != nil {
		return err
	}
	same := func(a, b pgcodec.Column) bool { return a.OID == b.OID && a.Name == b.Name }
	if told := st.rowColumns(); !slices.EqualFunc(told, st.describeColumns(), same) {
		return errResultChanged()
	}
	return nil
}

// applySplices puts each text in at its offset; they are in order.
func applySplices(sql string, splices []splice) string {
	if len(splices) == 0 {
		return sql
	}
	var b strings.Builder
	last := 0
	for _, sp := range splices {
		b.WriteString(sql[last:sp.at])
		b.WriteString(sp.text)
		last = sp.at
	}
	b.WriteString(sql[last:])
	return b.String()
}

// position maps a byte offset in what DuckDB got to a character of the client's text.
func (st *Statement) position(offset int) int {
	if st.query != nil {
		return st.query.position(offset)
	}
	shift := 0
	for _, sp := range st.splices {
		if sp.at+shift >= offset {
			break
		}
		shift += len(sp.text)
	}
	return st.stmt.Position(max(offset-shift, 0))
}

// describeColumns reads the columns of the rows that the statement returns, none where it returns a count. They are
// named as PostgreSQL names them.
func (st *Statement) describeColumns() []pgcodec.Column {
	if st.stmt.Kind != translate.KindQuery && st.stmt.Kind != translate.KindCopy {
		return nil
	}
	names := make([]string, mapping.PreparedStatementColumnCount(st.prepared))
	for i := range names {
		names[i] = mapping.PreparedStatementColumnName(st.prepared, mapping.IdxT(i))
	}
	if st.names != nil {
		copy(names, st.names)
	} else {
		st.stmt.NameColumns(names)
	}
	columns := make([]pgcodec.Column, len(names))
	for i := range columns {
		columns[i] = pgcodec.Describe(names[i], ownedType(mapping.PreparedStatementColumnLogicalType(st.prepared, mapping.IdxT(i))))
	}
	return columns
}

// admitted are the kinds of statement that DuckDB may run for a client that is no administrator. The kind is what
// DuckDB parsed, whatever the text looked like.
var admitted = map[mapping.StatementType]bool{
	mapping.StatementTypeSelect: true, mapping.StatementTypeInsert: true, mapping.StatementTypeUpdate: true,
	mapping.StatementTypeDelete: true, mapping.StatementTypeExplain: true, mapping.StatementTypeCreate: true,
	mapping.StatementTypeCreateFunc: true, mapping.StatementTypeDrop: true, mapping.StatementTypeAlter: true,
	mapping.StatementTypeAnalyze: true, mapping.StatementTypeVacuum: true, mapping.StatementTypeCall: true,
	statementTypeMergeInto: true,
}

// statementTypeMergeInto is duckdb.h's DUCKDB_STATEMENT_TYPE_MERGE_INTO, which the Go binding does not name.
const statementTypeMergeInto mapping.StatementType = 30

// admit reads from what DuckDB has bound whether the statement writes, and checks its kind. Databases that the session
// may not reach are refused while DuckDB binds (lakefs.Client.AllowDatabases).
func (st *Statement) admit() error {
	s := st.s
	reads, writes, err := lakefs.StatementDatabases(st.prepared.Ptr)
	if err != nil {
		return fmt.Errorf("read what the statement touches: %w", err)
	}
	st.writes = slices.Contains(writes, s.engine.cfg.Lake) || st.stmt.Writes && len(writes) == 0
	st.changes = len(writes) > 0 || st.stmt.Kind != translate.KindQuery && st.stmt.Kind != translate.KindCopy
	st.catalogs = slices.Contains(reads, catalogDB)
	if s.cfg.Admin {
		return nil
	}
	if t := mapping.PreparedStatementType(st.prepared); !admitted[t] {
		return pgerr.New(pgerrcode.InsufficientPrivilege, "permission denied for this kind of statement").
			WithHint("Only an administrator of the lake may run it.")
	}
	return nil
}

// readable are the databases that a session may read. The lake's metadata database is not one of them.
func readable(lake string) []string { return []string{lake, "temp", "system", catalogDB} }

// writable are the databases that a session may modify.
func writable(lake string) []string { return []string{lake, "temp"} }

// Params are the parameters' type OIDs, as ParameterDescription wants them.
func (st *Statement) Params() []uint32 { return st.params }

// Columns describes the rows; nil where there are none (NoData).
func (st *Statement) Columns() []pgcodec.Column {
	if st.stmt.Kind == translate.KindFetch {
		return st.fetchColumns()
	}
	return st.columns
}

// Retain has the statement stay open for one more Close.
func (st *Statement) Retain() { st.uses++ }

// Close frees what DuckDB holds for the statement, once all who retained it have closed it too.
func (st *Statement) Close() {
	if st.uses--; st.uses == 0 {
		st.free()
	}
}

// free frees what DuckDB holds for the statement.
func (st *Statement) free() {
	mapping.DestroyPrepare(&st.prepared)
	if st.query != nil {
		st.query.free()
	}
}

// Arg is a parameter's value as the client sent it.
type Arg = pgcodec.Arg

// Run executes the statement. Its rows come from the result, which the caller closes. On an error the transaction, if
// there is one, has failed.
func (st *Statement) Run(ctx context.Context, args []Arg, mode Mode) (*Result, error) {
	s := st.s
	if s.tx.failed && !st.endsTx() {
		return nil, errAborted()
	}
	x := s.newExecution()
	leave := x.enter(ctx)
	defer leave()
	res, err := st.run(x, args, mode)
	if err != nil {
		defer x.end()
		return nil, s.failed(x.ctx, err, st.position)
	}
	return res, nil
}

// run executes by the statement's kind.
func (st *Statement) run(x *execution, args []Arg, mode Mode) (*Result, error) {
	switch st.stmt.Kind {
	case translate.KindQuery, translate.KindDML, translate.KindDDL, translate.KindExecute:
		return st.runDuck(x, args, mode)
	case translate.KindTx:
		tag, err := st.s.transact(x.ctx, st.stmt)
		return &Result{s: st.s, x: x, tag: tag}, err
	case translate.KindShow:
		return st.show(x)
	case translate.KindCopy:
		return st.runDuck(x, args, mode) // TO STDOUT: a result like any other
	case translate.KindDeclare:
		return st.declare(x, args, mode)
	case translate.KindFetch:
		return st.fetch(x, mode)
	}
	tag, err := st.utility(x.ctx, mode)
	return &Result{s: st.s, x: x, tag: tag}, err
}

// mayNotWrite reports whether a statement that changes the lake is refused where the session stands.
func (s *Session) mayNotWrite() bool {
	if s.idle() {
		return s.readOnlyDefault()
	}
	return s.in.readOnly || s.tx.readOnly
}

// runDuck executes in DuckDB, in the transaction that mode and the session's state ask for.
func (st *Statement) runDuck(x *execution, args []Arg, mode Mode) (*Result, error) {
	s := st.s
	if err := st.mayRun(x.ctx); err != nil {
		return nil, err
	}
	if !s.idle() || mode == Implicit {
		return st.runInside(x, args)
	}
	if st.writes {
		return st.runAlone(x, args)
	}
	return st.runRead(x, args)
}

// mayRun refuses a write where nothing may be written, and gets ready what the statement needs: DuckDB's connection for
// itself, and the catalogs up to date.
func (st *Statement) mayRun(ctx context.Context) error {
	s := st.s
	if st.writes && s.mayNotWrite() {
		return pgerr.Newf(pgerrcode.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", st.verb())
	}
	if err := s.settleActive(ctx); err != nil {
		return err
	}
	if !st.catalogs {
		return nil
	}
	return s.overRecovery(ctx, func() error { return s.in.ids.refresh(ctx, s.engine.cfg) })
}

// runInside executes in the session's transaction, opening an implicit one if there is none.
func (st *Statement) runInside(x *execution, args []Arg) (*Result, error) {
	if err := st.enterTx(x); err != nil {
		return nil, err
	}
	r, err := st.stream(x, args)
	if err != nil {
		return nil, err
	}
	return r, st.afterDDL(x.ctx)
}

// enterTx makes sure of a transaction for the statement and notes what it does to that. Before a change, portals that are
// bound see what there is.
func (st *Statement) enterTx(x *execution) error {
	s := st.s
	if err := s.join(x.ctx); err != nil {
		return err
	}
	if st.changes {
		if err := s.startBound(x); err != nil {
			return err
		}
		if err := s.settleActive(x.ctx); err != nil {
			return err
		}
	}
	s.tx.writes = s.tx.writes || st.writes
	s.tx.changes = s.tx.changes || st.changes
	return nil
}

// runRead executes a read as a transaction of its own, which ends with its last row.
func (st *Statement) runRead(x *execution, args []Arg) (r *Result, err error) {
	err = st.s.overRecovery(x.ctx, func() error {
		r, err = st.readOnce(x, args)
		return err
	})
	return r, err
}

// readOnce is one try of runRead. On a standby it waits for the first rows: a try that recovery cancels before them can
// be repeated.
func (st *Statement) readOnce(x *execution, args []Arg) (*Result, error) {
	if err := st.s.begin(x.ctx, txImplicit); err != nil {
		return nil, err
	}
	st.s.tx.changes = st.changes
	r, err := st.stream(x, args)
	if err != nil {
		return nil, err
	}
	if r.portal == nil {
		return r, st.s.commit(x.ctx)
	}
	if st.s.in.readOnly {
		if err := r.portal.rows.reach(x.ctx, 1); err != nil {
			r.drop()
			return nil, err
		}
	}
	r.ownTx = true
	return r, nil
}

// afterDDL searches schemas again that search_path names and that may exist now.
func (st *Statement) afterDDL(ctx context.Context) error {
	if st.stmt.Kind == translate.KindDDL && st.s.pathGaps {
		return st.s.applySearchPath(ctx)
	}
	return nil
}

// verb is the statement's first words, as PostgreSQL's errors name it.
func (st *Statement) verb() string { return strings.TrimSuffix(st.stmt.Tag, " 0") }

// runAlone executes a write as a transaction of its own. What it returns waits for the commit.
func (st *Statement) runAlone(x *execution, args []Arg) (*Result, error) {
	var r *Result
	err := st.s.alone(x.ctx, func() (err error) {
		if r != nil { // of the last try
			r.drop()
		}
		if r, err = st.stream(x, args); err != nil || r.portal == nil {
			return err
		}
		return r.portal.rows.all(x.ctx)
	})
	if err != nil {
		if r != nil {
			r.drop()
		}
		return nil, err
	}
	return r, st.afterDDL(x.ctx)
}

// stream starts the statement in DuckDB's open transaction. A count of changed rows is read at once; rows are left to
// the result.
func (st *Statement) stream(x *execution, args []Arg) (*Result, error) {
	r, err := st.pend(x, args)
	if err != nil || r.portal == nil {
		return r, err
	}
	return r, r.portal.rows.run(x.ctx)
}

// pend is stream without the first rows: what the statement reads is fixed, but nothing of it is computed before a row is
// asked for.
func (st *Statement) pend(x *execution, args []Arg) (*Result, error) {
	if err := st.castByValues(x.ctx, args); err != nil {
		return nil, err
	}
	if st.cursors {
		if err := st.s.tellCursors(x.ctx); err != nil {
			return nil, err
		}
		st.boundIn = 0 // a variable is read when a statement is bound
	}
	if err := st.rebind(x.ctx); err != nil {
		return nil, err
	}
	if err := st.bindArgs(args); err != nil {
		return nil, err
	}
	pending, err := st.s.conn.pend(st.prepared)
	if err != nil {
		return nil, err
	}
	columns, counted := st.rowColumns(), countedTags[st.stmt.Tag]
	if columns == nil {
		n, err := st.changedRows(x.ctx, &pending, counted)
		return &Result{s: st.s, x: x, tag: st.stmt.Tag, counted: counted, count: n}, err
	}
	p := &Portal{s: st.s, columns: columns, rows: st.s.newRows(pending, columns), noScroll: true}
	r := p.result(x, motion{count: allRows})
	r.own, r.tag, r.counted, r.position = true, st.stmt.Tag, counted, st.position
	return r, nil
}

// errResultChanged is PostgreSQL's answer where a statement's columns are no longer those that the client was told.
func errResultChanged() *pgerr.Error {
	return pgerr.New(pgerrcode.FeatureNotSupported, "cached plan must not change result type")
}

// changedRows runs a statement that returns no rows and reads the count that DuckDB returns in their place.
func (st *Statement) changedRows(ctx context.Context, pending *mapping.PendingResult, counted bool) (n int64, err error) {
	var res mapping.Result
	if err := st.s.conn.execute(ctx, pending, &res); err != nil {
		return 0, err
	}
	defer mapping.DestroyResult(&res)
	for {
		chunk, ok, err := st.s.conn.fetch(ctx, &res)
		if err != nil || !ok {
			return n, err
		}
		// CREATE TABLE AS has the tag SELECT and returns its count without saying that it is one.
		if mapping.ResultReturnType(res) == mapping.ResultTypeChangedRows || counted {
			n += *(*int64)(mapping.VectorGetData(mapping.DataChunkGetVector(chunk, 0)))
		}
		mapping.DestroyDataChunk(&chunk)
	}
}

// rowColumns are the columns of the rows that DuckDB returns, which a COPY TO sends as its data.
func (st *Statement) rowColumns() []pgcodec.Column {
	if st.copy != nil {
		return st.copy.Columns
	}
	return st.columns
}

// countedTags are the command tags that end in a number of rows (manual, 55.7 "CommandComplete").
var countedTags = map[string]bool{
	"SELECT": true, "INSERT 0": true, "UPDATE": true, "DELETE": true, "MERGE": true, "COPY": true, "FETCH": true, "MOVE": true,
}
