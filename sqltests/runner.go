package sqltests

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// recordTimeout ends a record that hangs; nothing in a file takes more than a few seconds on two cores, race detector on.
const recordTimeout = 120 * time.Second

// Target is the server that a script runs on.
type Target struct {
	Config *pgconn.Config    // whom to connect as, and where
	Kind   string            // "sluice" or "postgres": what onlyif, skipif and only compare with
	Users  map[string]string // passwords of the users that `connection NAME as USER` may name
}

// Run is one pass of a script over one server.
type Run struct {
	Script *Script
	Target Target
	Mode   string // "simple" or "extended": the protocol that carries statements and queries
	Schema string // made for this run, put first on each connection's search path, dropped at the end

	// Report is told of each record that did not do what the file says, Log of what is worth knowing.
	Report, Log func(line int, format string, args ...any)

	conns   map[string]*pgconn.PgConn
	current string
	vars    map[string]string
	labels  map[string]string    // label → the rows first seen under it
	actual  map[*record][]string // what records with a ---- gave, for Rewrite
}

// outcome is what the server made of one record.
type outcome struct {
	fields []pgconn.FieldDescription
	rows   [][][]byte
	tag    string
	err    error
}

// Do runs the whole script. The error is about the server (no connection); failed records go to Report.
func (r *Run) Do(ctx context.Context) error {
	r.conns, r.current = map[string]*pgconn.PgConn{}, "default"
	r.vars = map[string]string{"schema": r.Schema, "mode": r.Mode}
	r.labels, r.actual = map[string]string{}, map[*record][]string{}
	defer r.closeAll()
	if err := r.setUp(ctx); err != nil {
		return err
	}
	r.block(ctx, r.Script.records)
	return r.tearDown()
}

// setUp makes the script's schema.
func (r *Run) setUp(ctx context.Context) error {
	conn, err := pgconn.ConnectConfig(ctx, r.Target.Config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+r.Schema).ReadAll(); err != nil {
		return fmt.Errorf("create the script's schema: %w", err)
	}
	return nil
}

// tearDown drops the script's schema, whatever state the script left its connections in.
func (r *Run) tearDown() error {
	r.closeAll()
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, r.Target.Config)
	if err != nil {
		return fmt.Errorf("connect after the script: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+r.Schema+" CASCADE").ReadAll(); err != nil {
		return fmt.Errorf("drop the script's schema: %w", err)
	}
	return nil
}

// closeAll hangs up on every named connection.
func (r *Run) closeAll() {
	for _, conn := range r.conns {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn.Close(ctx)
		cancel()
	}
	clear(r.conns)
}

// block runs records in order, loops included.
func (r *Run) block(ctx context.Context, records []*record) {
	for _, rec := range records {
		switch {
		case rec.skip == r.Target.Kind, rec.only != "" && rec.only != r.Target.Kind:
		case rec.body != nil:
			for _, value := range rec.values {
				r.vars[rec.args[0]] = value
				r.block(ctx, rec.body)
			}
		default:
			r.step(ctx, rec)
		}
	}
}

// step runs one record and reports what is wrong with it; a mark turns failure into what is expected.
func (r *Run) step(ctx context.Context, rec *record) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	problem := steps[rec.kind](r, ctx, rec)
	marked := rec.fails != "" && r.Target.Kind == "sluice"
	switch {
	case problem != "" && marked:
		r.Log(rec.line, "fails as marked (%s): %s", rec.fails, problem)
	case problem != "":
		r.Report(rec.line, "%s\n%s", problem, r.expand(rec.sql))
	case marked:
		r.Report(rec.line, "passes, but is marked as expected to fail (%s): take the mark off", rec.fails)
	}
}

// steps runs one record of each kind and says what is wrong, "" when nothing is.
var steps map[string]func(*Run, context.Context, *record) string

func init() { // not a literal: its functions reach the table through step
	steps = map[string]func(*Run, context.Context, *record) string{
		"statement": (*Run).statement, "query": (*Run).query, "copy": (*Run).copy, "let": (*Run).let,
		"connection": (*Run).connection, "disconnect": (*Run).disconnect, "status": (*Run).status,
	}
}

// variable is a reference in SQL or in expected lines; $1, $$ and a lone $ are SQL's own.
var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expand puts the values of variables in; an unknown one stays as it is and shows in the failure.
func (r *Run) expand(s string) string {
	return variable.ReplaceAllStringFunc(s, func(ref string) string {
		if v, ok := r.vars[ref[2:len(ref)-1]]; ok {
			return v
		}
		return ref
	})
}

// conn is the current connection, opened when first asked for, with the script's schema first on its path.
func (r *Run) conn(ctx context.Context) (*pgconn.PgConn, error) {
	if conn := r.conns[r.current]; conn != nil && !conn.IsClosed() {
		return conn, nil
	}
	return r.open(ctx, r.current, "")
}

// open opens a named connection; user "" is the target's own.
func (r *Run) open(ctx context.Context, name, user string) (*pgconn.PgConn, error) {
	config := r.Target.Config.Copy()
	if user != "" {
		config.User, config.Password = user, r.Target.Users[user]
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	r.conns[name] = conn
	_, err = conn.Exec(ctx, "SET search_path TO "+r.Schema).ReadAll()
	return conn, err
}

// run sends one record's SQL by the protocol that is asked for and reads all of the answer.
func (r *Run) run(ctx context.Context, rec *record, binary bool) outcome {
	conn, err := r.conn(ctx)
	if err != nil {
		return outcome{err: err}
	}
	sql := r.expand(rec.sql)
	if r.Mode == "simple" && len(rec.binds) == 0 && !binary {
		return simple(ctx, conn, sql)
	}
	b, err := r.parameters(rec.binds)
	if err != nil {
		return outcome{err: err}
	}
	var formats []int16
	if binary {
		formats = []int16{1}
	}
	return collect(conn.ExecParams(ctx, sql, b.values, b.oids, b.formats, formats))
}

// simple sends a Query message. The rows are those of the last statement that has columns, the tag the last one's.
func simple(ctx context.Context, conn *pgconn.PgConn, sql string) outcome {
	var o outcome
	results := conn.Exec(ctx, sql)
	for results.NextResult() {
		last := collect(results.ResultReader())
		o.tag = last.tag
		if last.fields != nil {
			o.fields, o.rows = last.fields, last.rows
		}
	}
	o.err = results.Close()
	return o
}

// collect reads a result to its end. (pgconn's own Read forgets the columns of a result without rows.)
func collect(result *pgconn.ResultReader) outcome {
	var o outcome
	for result.NextRow() {
		row := make([][]byte, len(result.Values()))
		for i, value := range result.Values() {
			row[i] = bytes.Clone(value) // nil stays nil
		}
		o.rows = append(o.rows, row)
	}
	o.fields = slices.Clone(result.FieldDescriptions())
	tag, err := result.Close()
	o.tag, o.err = tag.String(), err
	return o
}

// bound is a Bind message's parameters.
type bound struct {
	values  [][]byte
	oids    []uint32
	formats []int16
}

// parameters reads `bind TYPE VALUE` lines: TYPE is a PostgreSQL type name or ? for none, `bind binary TYPE HEX` sends bytes,
// NULL alone is a null.
func (r *Run) parameters(lines []string) (bound, error) {
	var b bound
	for _, line := range lines {
		line, isBinary := strings.CutPrefix(line, "binary ")
		name, value, _ := strings.Cut(line, " ")
		oid, err := typeOID(name)
		if err != nil {
			return b, err
		}
		data := []byte(r.expand(value))
		switch {
		case value == "NULL":
			data = nil
		case isBinary:
			if data, err = hex.DecodeString(value); err != nil {
				return b, fmt.Errorf("bind %s: %w", line, err)
			}
		}
		format := int16(0)
		if isBinary {
			format = 1
		}
		b.values, b.oids, b.formats = append(b.values, data), append(b.oids, oid), append(b.formats, format)
	}
	return b, nil
}

// types knows PostgreSQL's type names and OIDs. Only read after start-up, so safe for scripts that run side by side.
var types = func() *pgtype.Map {
	m := pgtype.NewMap()
	m.RegisterType(&pgtype.Type{Name: "timetz", OID: 1266, Codec: pgtype.TextCodec{}}) // the one that pgx leaves out
	return m
}()

// typeOID is the OID of a type name, arrays as _name; ? is 0, "let the server find out".
func typeOID(name string) (uint32, error) {
	if name == "?" {
		return 0, nil
	}
	t, ok := types.TypeForName(name)
	if !ok {
		return 0, fmt.Errorf("no type %q", name)
	}
	return t.OID, nil
}

// typeName is the name of a type OID, or its number.
func typeName(oid uint32) string {
	if t, ok := types.TypeForOID(oid); ok {
		return t.Name
	}
	return fmt.Sprint(oid)
}

// statement runs `statement ok [TAG]` or `statement error SQLSTATE[|SQLSTATE…] [at POSITION]`; after ---- there may stand
// regular expressions that the error's message has to match.
func (r *Run) statement(ctx context.Context, rec *record) string {
	return r.verdict(rec, r.run(ctx, rec, false))
}

// verdict compares an outcome with the words after `statement` or `copy`.
func (r *Run) verdict(rec *record, o outcome) string {
	if len(rec.args) == 0 {
		return "want `ok` or `error SQLSTATE`"
	}
	if rec.args[0] == "error" {
		return r.wantError(rec, o)
	}
	if o.err != nil {
		return "failed: " + describe(o.err)
	}
	if tag := strings.Join(rec.args[1:], " "); tag != "" && tag != o.tag {
		return fmt.Sprintf("tag %q, want %q", o.tag, tag)
	}
	return ""
}

// wantError checks the SQLSTATE, and position and message where the record gives them.
func (r *Run) wantError(rec *record, o outcome) string {
	if len(rec.args) < 2 {
		return "`error` needs a SQLSTATE"
	}
	want := strings.Split(rec.args[1], "|")
	if o.err == nil {
		return fmt.Sprintf("succeeded (%s), want error %s", o.tag, rec.args[1])
	}
	var pgErr *pgconn.PgError
	if !errors.As(o.err, &pgErr) {
		return fmt.Sprintf("broke (%v), want error %s", o.err, rec.args[1])
	}
	if !slices.Contains(want, pgErr.Code) {
		return fmt.Sprintf("%s, want error %s", describe(o.err), rec.args[1])
	}
	if len(rec.args) == 4 && rec.args[2] == "at" && fmt.Sprint(pgErr.Position) != rec.args[3] {
		return fmt.Sprintf("error at character %d, want %s", pgErr.Position, rec.args[3])
	}
	if rec.kind == "copy" {
		return "" // its ---- holds data
	}
	return matchAll(pgErr.Message, rec.want)
}

// describe is an error in one line, SQLSTATE first.
func describe(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err.Error()
	}
	s := fmt.Sprintf("%s: %s", pgErr.Code, pgErr.Message)
	if pgErr.Detail != "" {
		s += " (" + pgErr.Detail + ")"
	}
	return s
}

// query runs `query TYPES [rowsort] [match] [binary] [LABEL]`: one letter a column (* for any columns), then options.
func (r *Run) query(ctx context.Context, rec *record) string {
	if len(rec.args) == 0 {
		return "want `query TYPES`"
	}
	options := rec.args[1:]
	o := r.run(ctx, rec, slices.Contains(options, "binary"))
	if o.err != nil {
		return "failed: " + describe(o.err)
	}
	if problem := checkColumns(rec, o.fields); problem != "" {
		return problem
	}
	got := render(o, slices.Contains(options, "binary"))
	if slices.Contains(options, "rowsort") {
		slices.Sort(got)
	}
	if slices.Contains(options, "match") {
		return matchAll(strings.Join(got, "\n"), r.expandAll(rec.want))
	}
	r.actual[rec] = got
	if problem := r.label(options, got); problem != "" {
		return problem
	}
	if rec.want == nil {
		return ""
	}
	return diff(got, r.expandAll(rec.want))
}

// expandAll expands each line.
func (r *Run) expandAll(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = r.expand(line)
	}
	return out
}

// label compares with the rows that an earlier query of the same label gave.
func (r *Run) label(options, got []string) string {
	for _, word := range options {
		if slices.Contains([]string{"rowsort", "nosort", "binary", "match"}, word) {
			continue
		}
		rows := strings.Join(got, "\n")
		if first, seen := r.labels[word]; seen && first != rows {
			return fmt.Sprintf("differs from an earlier query labelled %q:\n%s\nearlier:\n%s", word, rows, first)
		}
		r.labels[word] = rows
	}
	return ""
}

// letters says which types a letter of `query` accepts; T takes any.
var letters = map[rune][]string{
	'I': {"int2", "int4", "int8", "oid"},
	'R': {"float4", "float8"},
	'N': {"numeric"},
	'B': {"bool"},
	'D': {"date", "time", "timetz", "timestamp", "timestamptz", "interval"},
}

// checkColumns compares RowDescription with the letters and with a `columns name type, …` line.
func checkColumns(rec *record, fields []pgconn.FieldDescription) string {
	letter := []rune(rec.args[0])
	if rec.args[0] == "*" {
		letter = []rune(strings.Repeat("T", len(fields)))
	}
	if len(letter) != len(fields) {
		return fmt.Sprintf("%d columns, want %d (%s)", len(fields), len(letter), rec.args[0])
	}
	described := make([]string, len(fields))
	for i, f := range fields {
		name := typeName(f.DataTypeOID)
		if allowed := letters[letter[i]]; letter[i] != 'T' && !slices.Contains(allowed, name) {
			return fmt.Sprintf("column %d (%s) is a %s, want one of %v (%c)", i+1, f.Name, name, allowed, letter[i])
		}
		described[i] = f.Name + " " + name
	}
	if got := strings.Join(described, ", "); rec.columns != "" && got != rec.columns {
		return fmt.Sprintf("columns %q, want %q", got, rec.columns)
	}
	return ""
}

// render writes rows as a file holds them: fields joined by tabs, NULL and (empty) by name, control characters escaped, binary
// values in hexadecimal.
func render(o outcome, binary bool) []string {
	lines := make([]string, len(o.rows))
	for i, row := range o.rows {
		fields := make([]string, len(row))
		for j, value := range row {
			fields[j] = renderField(value, binary)
		}
		lines[i] = strings.Join(fields, "\t")
	}
	return lines
}

// controls are the characters that would break a line of expected values.
var controls = strings.NewReplacer("\t", `\t`, "\n", `\n`, "\r", `\r`)

func renderField(value []byte, binary bool) string {
	switch {
	case value == nil:
		return "NULL"
	case len(value) == 0:
		return "(empty)"
	case binary:
		return hex.EncodeToString(value)
	}
	return controls.Replace(string(value))
}

// diff says how two lists of lines differ, "" when they do not.
func diff(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("%d rows, want %d; first difference in row %d:\n  got  %s\n  want %s", len(got), len(want), i+1, lineAt(got, i), lineAt(want, i))
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// matchAll holds text against regular expressions; one that begins with ! must not match.
func matchAll(text string, patterns []string) string {
	for _, p := range patterns {
		pattern, not := strings.CutPrefix(p, "!")
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err.Error()
		}
		if re.MatchString(text) == not {
			return fmt.Sprintf("does not satisfy %q:\n%s", p, text)
		}
	}
	return ""
}

// copy runs `copy ok [TAG]` and `copy error SQLSTATE`, which send the lines after ---- as CopyData, and `copy out`, which
// compares CopyData with them. `hex` as a last word: the lines are bytes in hexadecimal.
func (r *Run) copy(ctx context.Context, rec *record) string {
	isHex := len(rec.args) > 0 && rec.args[len(rec.args)-1] == "hex"
	if isHex {
		rec = &record{kind: rec.kind, args: rec.args[:len(rec.args)-1], sql: rec.sql, want: rec.want}
	}
	if len(rec.args) > 0 && rec.args[0] == "out" {
		return r.copyOut(ctx, rec, isHex)
	}
	data, err := copyData(rec.want, isHex)
	if err != nil {
		return err.Error()
	}
	conn, err := r.conn(ctx)
	if err != nil {
		return err.Error()
	}
	tag, err := conn.CopyFrom(ctx, strings.NewReader(data), r.expand(rec.sql))
	return r.verdict(rec, outcome{tag: tag.String(), err: err})
}

// copyData is what the client sends: the lines, each with its end, or the bytes they spell.
func copyData(lines []string, isHex bool) (string, error) {
	if isHex {
		data, err := hex.DecodeString(strings.Join(strings.Fields(strings.Join(lines, "")), ""))
		return string(data), err
	}
	if len(lines) == 0 {
		return "", nil
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func (r *Run) copyOut(ctx context.Context, rec *record, isHex bool) string {
	conn, err := r.conn(ctx)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	if _, err := conn.CopyTo(ctx, &out, r.expand(rec.sql)); err != nil {
		return "failed: " + describe(err)
	}
	if isHex {
		want, err := copyData(rec.want, true)
		if err != nil {
			return err.Error()
		}
		return diff([]string{hex.EncodeToString([]byte(out.String()))}, []string{hex.EncodeToString([]byte(want))})
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if out.Len() == 0 {
		got = []string{}
	}
	return diff(got, rec.want)
}

// let runs `let NAME`: the first field of the query's first row becomes ${NAME}.
func (r *Run) let(ctx context.Context, rec *record) string {
	o := r.run(ctx, rec, false)
	switch {
	case o.err != nil:
		return "failed: " + describe(o.err)
	case len(rec.args) != 1 || len(o.rows) == 0 || len(o.rows[0]) == 0:
		return "`let NAME` wants a query with a row"
	}
	r.vars[rec.args[0]] = string(o.rows[0][0])
	return ""
}

// connection switches to a named connection, `connection NAME [as USER]`, and opens it when it is new.
func (r *Run) connection(ctx context.Context, rec *record) string {
	if len(rec.args) != 1 && (len(rec.args) != 3 || rec.args[1] != "as") {
		return "want `connection NAME [as USER]`"
	}
	r.current = rec.args[0]
	if r.conns[r.current] != nil || len(rec.args) == 1 {
		return ""
	}
	if _, ok := r.Target.Users[rec.args[2]]; !ok {
		return fmt.Sprintf("user %q is not among %v", rec.args[2], slices.Sorted(maps.Keys(r.Target.Users)))
	}
	if _, err := r.open(ctx, r.current, rec.args[2]); err != nil {
		return "failed: " + describe(err)
	}
	return ""
}

// disconnect hangs up the current connection; the next record that needs it opens a fresh one.
func (r *Run) disconnect(ctx context.Context, _ *record) string {
	if conn := r.conns[r.current]; conn != nil {
		conn.Close(ctx)
		delete(r.conns, r.current)
	}
	return ""
}

// status checks ReadyForQuery's byte: `status I`, `status T` or `status E`.
func (r *Run) status(ctx context.Context, rec *record) string {
	conn, err := r.conn(ctx)
	if err != nil {
		return err.Error()
	}
	if got := string(conn.TxStatus()); len(rec.args) != 1 || got != rec.args[0] {
		return fmt.Sprintf("transaction status %s, want %v", got, rec.args)
	}
	return ""
}

// Rewrite writes the file again with the rows that the server gave. Records in loops, marked ones and ones whose expectation
// holds a variable keep what they have; the diff is for a person to judge.
func (r *Run) Rewrite() error {
	var out []string
	at := 0
	for _, rec := range r.Script.records {
		got, ok := r.actual[rec]
		if !ok || rec.want == nil || rec.fails != "" || strings.Contains(strings.Join(rec.want, "\n"), "${") {
			continue
		}
		out = append(out, r.Script.lines[at:rec.wantAt[0]]...)
		out = append(out, got...)
		at = rec.wantAt[1]
	}
	out = append(out, r.Script.lines[at:]...)
	return os.WriteFile(r.Script.Path, []byte(strings.Join(out, "\n")+"\n"), 0o644)
}
