package engine

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
	"sluice/lakefs"
)

// duckError is an error as DuckDB reports it. The instance runs with errors_as_json, which gives the parts apart.
type duckError struct {
	Kind     string // DuckDB's exception type, e.g. "Catalog"
	Subtype  string // e.g. "MISSING_ENTRY", or ""
	Entry    string // what kind of entry is missing, e.g. "Table", or ""
	Message  string
	Position int // byte offset into the SQL that DuckDB got, or -1
}

func (e *duckError) Error() string { return e.Kind + " Error: " + e.Message }

// jsonError is the form that errors_as_json gives an error.
type jsonError struct {
	Type     string `json:"exception_type"`
	Message  string `json:"exception_message"`
	Subtype  string `json:"error_subtype"`
	Entry    string `json:"type"`
	Position string `json:"position"`
}

// duckErrorOf reads the error of a failed result.
func duckErrorOf(res *mapping.Result) error { return parseDuckError(mapping.ResultError(res)) }

// parseDuckError reads an error's text: JSON, possibly behind words of its own, or "Kind Error: message" where DuckDB
// raised it outside of a statement. DuckLake wraps the errors of its own queries in words, JSON included; the parts
// of the innermost one are the ones that say what happened.
func parseDuckError(text string) *duckError {
	start := strings.Index(text, `{"exception_type"`)
	if start < 0 {
		return plainDuckError(text)
	}
	var j jsonError
	if err := json.NewDecoder(strings.NewReader(text[start:])).Decode(&j); err != nil {
		return plainDuckError(text)
	}
	e := &duckError{Kind: j.Type, Subtype: j.Subtype, Entry: j.Entry, Message: j.Message, Position: -1}
	if n, err := strconv.Atoi(j.Position); err == nil {
		e.Position = n
	}
	if inner := strings.Index(j.Message, `{"exception_type"`); inner >= 0 {
		in := parseDuckError(j.Message[inner:])
		e.Message = strings.TrimSpace(j.Message[:inner]) + " " + in.Message
		e.Position = -1
	}
	return e
}

// plainDuckError reads "Kind Error: message".
func plainDuckError(text string) *duckError {
	kind, message, ok := strings.Cut(text, " Error: ")
	if !ok || len(kind) > len("Extension Autoloading") {
		kind, message = "", text
	}
	return &duckError{Kind: kind, Message: message, Position: -1}
}

// sqlstates says which SQLSTATE an error of DuckDB is. The first row whose kind matches and whose pattern, a regular
// expression, is found in the message wins. Every row carries a statement that raises it, run by TestSQLStates, so that a new DuckDB cannot move
// one unseen; rows whose error needs a fault from outside say which one instead, after "--".
var sqlstates = []struct{ kind, entry, pattern, code, raisedBy string }{
	{"Catalog", "", "Column with name .* already exists", pgerrcode.DuplicateColumn, `ALTER TABLE errors_t ADD COLUMN i int`},
	{"Catalog", "", "Schema with name .* already exists", pgerrcode.DuplicateSchema, `CREATE SCHEMA main`},
	{"Catalog", "", "already exists", pgerrcode.DuplicateTable, `CREATE TABLE errors_t(i int)`},
	{"Catalog", "", "because schema", pgerrcode.InvalidSchemaName, `INSERT INTO nosuch.t VALUES (1)`},
	{"Catalog", "Schema", "does not exist", pgerrcode.InvalidSchemaName, `DROP SCHEMA memory.nosuch`},
	{"Catalog", "Type", "does not exist", pgerrcode.UndefinedObject, `SELECT '1'::nosuch`},
	{"Catalog", "", "Function with name", pgerrcode.UndefinedFunction, `SELECT nosuch(1)`},
	{"Catalog", "", "unrecognized configuration parameter", pgerrcode.UndefinedObject, `SET nosuch = 1`},
	{"Catalog", "", "Existing object", pgerrcode.WrongObjectType, `DROP VIEW errors_t`},
	{"Catalog", "", "does not exist", pgerrcode.UndefinedTable, `SELECT * FROM nosuch`},

	{"Binder", "", "not found in DuckLakeCatalog", pgerrcode.InvalidSchemaName, `CREATE TABLE nosuch.t(i int)`},
	{"Binder", "", "No function matches", pgerrcode.UndefinedFunction, `SELECT sum('x'::date)`},
	{"Binder", "", "does not have a column", pgerrcode.UndefinedColumn, `SELECT errors_t.nosuch FROM errors_t`},
	{"Binder", "", "Referenced column", pgerrcode.UndefinedColumn, `SELECT nosuch FROM errors_t`},
	{"Binder", "", "Referenced update column", pgerrcode.UndefinedColumn, `UPDATE errors_t SET nosuch = 1`},
	{"Binder", "", "Referenced table", pgerrcode.UndefinedTable, `SELECT nosuch.i FROM errors_t`},
	{"Binder", "", "must appear in the GROUP BY", pgerrcode.GroupingError, `SELECT i, count(*) FROM errors_t`},
	{"Binder", "", "aggregate function calls cannot be nested", pgerrcode.GroupingError, `SELECT max(max(i)) FROM errors_t`},
	{"Binder", "", "Ambiguous reference to column", pgerrcode.AmbiguousColumn, `SELECT i FROM errors_t a, errors_t b`},
	{"Binder", "", "Ambiguous reference to table", pgerrcode.DuplicateAlias, `SELECT * FROM errors_t, errors_t`},
	{"Binder", "", "values were supplied", pgerrcode.SyntaxError, `INSERT INTO errors_t VALUES (1, 2)`},
	{"Binder", "", "Catalog .* does not exist", pgerrcode.FeatureNotSupported, `SELECT * FROM nosuch.nosuch.nosuch`},
	{"Binder", "", "cannot contain aggregates", pgerrcode.GroupingError, `SELECT 1 FROM errors_t WHERE sum(i) > 1`},
	{"Binder", "", "Subquery returns .* columns", pgerrcode.SyntaxError, `SELECT (SELECT 1, 2)`},
	{"Binder", "", "term out of range", pgerrcode.InvalidColumnReference, `SELECT i FROM errors_t ORDER BY 5`},
	{"Binder", "", "cannot be negative", pgerrcode.InvalidRowCountInLimitClause, `SELECT 1 LIMIT -1`},
	{"Binder", "", "Could not choose a best candidate", pgerrcode.UndefinedFunction, `SELECT i + 'x' FROM errors_t`},
	{"Binder", "", "not yet supported", pgerrcode.FeatureNotSupported, `-- INSERT … RETURNING into the lake`},
	{"Binder", "", "read-only", pgerrcode.ReadOnlySQLTransaction, `-- INSERT on a standby`},
	{"Binder", "", "", pgerrcode.DatatypeMismatch, `SELECT unnest(1)`},

	{"Parser", "", "", pgerrcode.SyntaxError, `SELCT 1`},
	{"Syntax", "", "", pgerrcode.SyntaxError, `SELECT 'a' LIKE 'b' ESCAPE 'cc'`},

	{"Conversion", "", `time field value out of range: "[^0-9]`, pgerrcode.InvalidDatetimeFormat, `SELECT time 'x'`},
	{"Conversion", "", "field value out of range", pgerrcode.DatetimeFieldOverflow, `SELECT date '2020-99-01'`},
	{"Conversion", "", "out of range", pgerrcode.NumericValueOutOfRange, `SELECT 99999999999::int`},
	{"Conversion", "", `convert string ['"][-+]?[0-9]+[.]?[0-9]*['"] to (U?INT|DECIMAL)`, pgerrcode.NumericValueOutOfRange, `SELECT '99999999999'::int`},
	{"Conversion", "", "cast value .* to DECIMAL", pgerrcode.NumericValueOutOfRange, `SELECT 12345::decimal(4,1)`},
	{"Conversion", "", "invalid timestamp", pgerrcode.InvalidDatetimeFormat, `SELECT timestamp 'x'`},
	{"Conversion", "", "invalid date", pgerrcode.InvalidDatetimeFormat, `SELECT date 'x'`},
	{"Conversion", "", "to INTERVAL", pgerrcode.InvalidDatetimeFormat, `SELECT interval 'x'`},
	{"Conversion", "", "Unimplemented type for cast", pgerrcode.CannotCoerce, `SELECT CAST([1] AS int)`},
	{"Conversion", "", "", pgerrcode.InvalidTextRepresentation, `SELECT 'x'::int`},

	{"Out of Range", "", "square root", pgerrcode.InvalidArgumentForPowerFunction, `SELECT sqrt(-1)`},
	{"Out of Range", "", "logarithm", pgerrcode.InvalidArgumentForLogarithm, `SELECT ln(-1)`},
	{"Out of Range", "", "maximum supported string size", pgerrcode.ProgramLimitExceeded, `SELECT repeat('x', 10000000000)`},
	{"Out of Range", "", "", pgerrcode.NumericValueOutOfRange, `SELECT 2147483647::int + 1::int`},
	{"Divide by Zero", "", "", pgerrcode.DivisionByZero, `-- raised by functions of extensions`},

	{"Constraint", "", "NOT NULL", pgerrcode.NotNullViolation, `INSERT INTO errors_nn VALUES (NULL)`},
	{"Constraint", "", "PRIMARY KEY", pgerrcode.UniqueViolation, `INSERT INTO errors_pk VALUES (1), (1)`},
	{"Constraint", "", "Duplicate key", pgerrcode.UniqueViolation, `INSERT INTO errors_pk VALUES (7)`},
	{"Constraint", "", "CHECK", pgerrcode.CheckViolation, `INSERT INTO errors_ck VALUES (-1)`},
	{"Constraint", "", "foreign key", pgerrcode.ForeignKeyViolation, `-- temporary tables alone can have foreign keys`},
	{"Constraint", "", "", pgerrcode.IntegrityConstraintViolation, `-- other constraints`},

	{"TransactionContext", "", "Conflict", pgerrcode.SerializationFailure, `-- two transactions altering one table`},
	{"TransactionContext", "", "conflict", pgerrcode.SerializationFailure, `-- two transactions altering one table`},
	{"TransactionContext", "", "retry count", pgerrcode.SerializationFailure, `-- many processes committing`},
	{"TransactionContext", "", "within a transaction", pgerrcode.ActiveSQLTransaction, `-- the engine answers BEGIN itself`},
	{"TransactionContext", "", "no transaction", pgerrcode.NoActiveSQLTransaction, `-- the engine answers COMMIT itself`},
	{"TransactionContext", "", "aborted", pgerrcode.InFailedSQLTransaction, `-- the engine answers 25P02 itself`},
	{"TransactionContext", "", "read-only", pgerrcode.ReadOnlySQLTransaction, `-- INSERT on a standby`},
	{"TransactionContext", "", "", pgerrcode.SerializationFailure, `-- what DuckLake could not commit`},

	{"Invalid Input", "", "division by zero", pgerrcode.DivisionByZero, `SELECT error('division by zero')`},
	{"Invalid Input", "", "read-only", pgerrcode.ReadOnlySQLTransaction, `-- INSERT on a standby`},
	{"Invalid Input", "", "More than one row returned", pgerrcode.CardinalityViolation, `SELECT (SELECT 1 UNION ALL SELECT 2)`},
	{"Invalid Input", "", "Values were not provided", pgerrcode.UndefinedParameter, `-- a simple query with $1`},
	{"Invalid Input", "", "Malformed JSON", pgerrcode.InvalidTextRepresentation, `SELECT json_extract('{', '$')`},
	{"Invalid Input", "", "Invalid UTF8", pgerrcode.CharacterNotInRepertoire, `SELECT chr(-1)`},
	{"Invalid Input", "", "", pgerrcode.InvalidParameterValue, `SELECT regexp_matches('a', '(')`},

	{"Not implemented", "", "", pgerrcode.FeatureNotSupported, `CREATE INDEX errors_i ON errors_t(i)`},
	{"Dependency", "", "", pgerrcode.DependentObjectsStillExist, `-- DROP of what something depends on`},
	{"Permission", "", "", pgerrcode.InsufficientPrivilege, `SELECT * FROM read_csv('/etc/hostname')`},
	{"Parameter Not Resolved", "", "", pgerrcode.IndeterminateDatatype, `-- the engine resolves parameters itself`},
	{"Parameter Not Allowed", "", "", pgerrcode.UndefinedParameter, `-- a parameter in DDL`},
	{"Out of Memory", "", "max_temp_directory_size", pgerrcode.DiskFull, `-- a full spill directory`},
	{"Out of Memory", "", "", pgerrcode.OutOfMemory, `-- a small memory limit`},
	{"INTERRUPT", "", "", pgerrcode.QueryCanceled, `-- a cancel request`},
	{"IO", "", "do not support negative intervals", pgerrcode.FeatureNotSupported, `-- a negative INTERVAL in a Parquet file`},
	{"IO", "", "No space left", pgerrcode.DiskFull, `-- a full disk`},
	{"IO", "", "published by another writer", pgerrcode.SerializationFailure, `-- two writers of one path`},
	{"IO", "", "", pgerrcode.IOError, `-- a fault of the chunk store`},
	{"Missing Extension", "", "", pgerrcode.FeatureNotSupported, `-- an extension that is not loaded`},
	{"Extension Autoloading", "", "", pgerrcode.FeatureNotSupported, `-- an extension that is not loaded`},
	{"INTERNAL", "", "", pgerrcode.InternalError, `-- a bug of DuckDB`},
}

// sqlstatePatterns are sqlstates' patterns, compiled.
var sqlstatePatterns = func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(sqlstates))
	for i, row := range sqlstates {
		out[i] = regexp.MustCompile(row.pattern)
	}
	return out
}()

// lostConnection is part of the message when the connection to the backing PostgreSQL broke. These are libpq's and
// pgx's own words, as both reach us in errors of DuckDB. libpq's are not translated: it runs without a locale here.
var lostConnection = []string{
	"server closed the connection unexpectedly", "connection to server", "Connection refused", "terminating connection",
	"no connection to the server", "Unable to connect to Postgres", "the database system is", "connection reset",
	"broken pipe", "SSL connection has been closed", "could not receive data", "could not send data",
	"failed to connect to", "connection already closed", "conn closed", "unexpected EOF",
}

// conflictTexts are parts of messages that say that the transaction met another one, here or in the backing PostgreSQL.
var conflictTexts = []string{
	"could not serialize access", "deadlock detected", "Failed to commit DuckLake transaction", "Transaction conflict",
	"exceeded the maximum retry count", "duplicate key value violates unique constraint",
}

// pgError turns any error of DuckDB, the store or a context into the one the client reads. position maps a byte
// offset in DuckDB's SQL to a character of the client's text; nil where there is none.
func (s *Session) pgError(ctx context.Context, err error, position func(int) int) *pgerr.Error {
	var known *pgerr.Error
	if errors.As(err, &known) {
		return known
	}
	var duck *duckError
	if errors.As(err, &duck) {
		return s.pgErrorOfDuck(ctx, duck, position)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return canceled(ctx)
	case errors.Is(err, lakefs.ErrReadOnly):
		return pgerr.New(pgerrcode.ReadOnlySQLTransaction, "cannot write on a read-only standby").WithCause(err)
	}
	return pgerr.New(pgerrcode.InternalError, err.Error()).WithCause(err)
}

// pgErrorOfDuck maps an error of DuckDB by what it is: interrupted, a lost backend, a conflict, else the table's row.
func (s *Session) pgErrorOfDuck(ctx context.Context, e *duckError, position func(int) int) *pgerr.Error {
	if e.Kind == "INTERRUPT" || ctx.Err() != nil {
		return canceled(ctx)
	}
	message := s.engine.redact(e.Message)
	if isInvalidated(e) {
		return pgerr.Fatal(pgerrcode.CrashShutdown, "terminating connection because the database engine has failed").
			WithHint("Connect again: it has been replaced.").WithCause(e)
	}
	if isRecovery(e) {
		return pgerr.New(pgerrcode.SerializationFailure, "canceling statement due to conflict with recovery").
			WithDetail(message).
			WithHint("Try again, or set hot_standby_feedback = on at the standby, so that the primary keeps the rows that it reads.").
			WithCause(e)
	}
	if containsAny(e.Message, lostConnection) {
		return pgerr.New(pgerrcode.ConnectionFailure, "lost the connection to the backing PostgreSQL").
			WithDetail(message).WithHint("The statement was not retried. Try it again.").WithCause(e)
	}
	if strings.Contains(e.Message, "cannot execute") && strings.Contains(e.Message, "in a read-only transaction") {
		return pgerr.New(pgerrcode.ReadOnlySQLTransaction, firstLine(message)).WithCause(e)
	}
	if isConflict(e) {
		return pgerr.New(pgerrcode.SerializationFailure, "could not serialize access due to concurrent update").
			WithDetail(message).WithHint("The transaction might succeed if retried.").WithCause(e)
	}
	out := pgerr.New(sqlstateOf(e), firstLine(message)).WithCause(e)
	if rest := restLines(message); rest != "" {
		out = out.WithDetail(rest)
	}
	if e.Position >= 0 && position != nil {
		out = out.WithPosition(position(e.Position))
	}
	return out
}

// sqlstateOf looks an error up in sqlstates; what stands in no row is ours to classify, hence XX000.
func sqlstateOf(e *duckError) string {
	for i, row := range sqlstates {
		if row.kind == e.Kind && (row.entry == "" || row.entry == e.Entry) && sqlstatePatterns[i].MatchString(e.Message) {
			return row.code
		}
	}
	return pgerrcode.InternalError
}

// isConflict reports whether repeating the whole transaction may succeed.
func isConflict(err error) bool {
	var e *duckError
	if !errors.As(err, &e) {
		return false
	}
	return containsAny(e.Message, conflictTexts) || sqlstateOf(e) == pgerrcode.SerializationFailure
}

// recoveryTexts are parts of messages that say that a standby cancelled a query to get on with its recovery: the
// server's own, as the catalog's connection passes it on, and the chunk store's.
var recoveryTexts = []string{"conflict with recovery", "hot_standby_feedback"}

// isRecovery reports whether a standby cancelled a query to get on with its recovery.
func isRecovery(err error) bool {
	var e *duckError
	return errors.As(err, &e) && containsAny(e.Message, recoveryTexts)
}

// isLost reports whether the connection to the backing PostgreSQL broke.
func isLost(err error) bool {
	var e *duckError
	return errors.As(err, &e) && containsAny(e.Message, lostConnection)
}

// isCut reports whether a connection to the backing PostgreSQL broke that had been made: the server is there, or was
// a moment ago.
func isCut(err error) bool {
	var e *duckError
	return errors.As(err, &e) && containsAny(e.Message, []string{"server closed the connection unexpectedly", "terminating connection"})
}

// isInvalidated reports whether DuckDB will run nothing more in the instance.
func isInvalidated(err error) bool {
	var e *duckError
	return errors.As(err, &e) && (e.Kind == "FATAL" || strings.Contains(e.Message, "database has been invalidated"))
}

// canceled says why a context ended: statement_timeout and the client's cancel have different words in PostgreSQL.
func canceled(ctx context.Context) *pgerr.Error {
	var cause *pgerr.Error
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return pgerr.New(pgerrcode.QueryCanceled, "canceling statement due to user request")
}

// containsAny reports whether one of parts is in text.
func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// firstLine is the message proper; DuckDB's further lines are advice.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimRight(line, "!.")
}

// restLines is what follows the first line, as PostgreSQL's detail.
func restLines(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(rest)
}
