package translate

import (
	"math"

	"sluice/engine/pgerr"
)

// Kind says what the engine does with a statement.
type Kind uint8

const (
	KindQuery      Kind = iota // reaches DuckDB and may return rows: SELECT, FROM-first, EXPLAIN, DESCRIBE, … RETURNING, and what nobody knows
	KindDML                    // reaches DuckDB and returns a count
	KindDDL                    // reaches DuckDB and returns nothing
	KindTx                     // Stmt.Tx
	KindSet                    // Stmt.Set
	KindShow                   // Stmt.Show
	KindCopy                   // Stmt.Copy
	KindPrepare                // Stmt.Prepared with Name, Types and Body
	KindExecute                // Stmt.Prepared with Name and Args
	KindDeallocate             // Stmt.Prepared with Name, or All
	KindDiscard                // Stmt.Discard
	KindDeclare                // Stmt.Cursor with Name, Query and how the cursor may be used
	KindFetch                  // Stmt.Cursor with Name, Direction, Count and Move
	KindClose                  // Stmt.Cursor with Name, "" for ALL
	KindNoop                   // nothing runs; Stmt.Notice goes to the client, if there is one
	KindRefused                // nothing runs; Stmt.Err is the answer
)

// Options is what a translation depends on beside the text. It is comparable, so it can be part of a cache's key.
type Options struct {
	Lake  string // name of the lake in DuckDB, which is the database's name for clients
	Admin bool   // may use what reaches beyond the lake (ATTACH, COPY to files, PRAGMA, DuckDB's settings, …)
}

// Stmt is one statement of a client's text.
type Stmt struct {
	Text    string     // the client's words, without semicolon, and without what blank or comment surrounds them
	Offset  int        // byte offset of Text in the message
	SQL     string     // what DuckDB gets; Text itself where no rule applied
	Kind    Kind       // what to do with it
	Tag     string     // the command tag's fixed words: "SELECT", "INSERT 0", "CREATE TABLE"
	Writes  bool       // may change the lake
	Params  int        // highest n of all $n
	ParamAt []ParamRef // every $n in SQL, in order
	Bytea   *Bytea     // INSERT: literals that are bytea's hexadecimal form if their column is one; nil = none

	Tx       *Tx          // KindTx
	Set      *Set         // KindSet
	Show     *Show        // KindShow
	Copy     *Copy        // KindCopy
	Prepared *Prepared    // KindPrepare, KindExecute, KindDeallocate
	Cursor   *Cursor      // KindDeclare, KindFetch, KindClose
	Discard  string       // KindDiscard: "ALL", "PLANS", "SEQUENCES", "TEMP"
	Err      *pgerr.Error // KindRefused
	Notice   *pgerr.Error // KindNoop, or a warning beside any other kind; nil = none

	message string   // the whole text that Offset counts in
	shift   int      // where in Text begins what SQL came from: not 0 for COPY (query)
	splices []splice // how SQL came from it, in order of position
}

// ParamRef is one occurrence of $n in Stmt.SQL.
type ParamRef struct {
	N          int // from 1
	Start, End int // byte offsets in SQL
}

// Bytea holds the literals '\x…' that INSERT … VALUES has in columns whose type the text does not say.
type Bytea struct {
	Table    string   // DuckDB's SQL for the table
	Columns  []string // unquoted; nil = all
	Literals []ByteaLiteral
}

// ByteaLiteral is one of them.
type ByteaLiteral struct {
	Column     int // its place in each row, from 0
	Start, End int // byte offsets in Stmt.SQL
}

// TxOp is a transaction statement.
type TxOp uint8

const (
	TxBegin              TxOp = iota // BEGIN, START TRANSACTION
	TxCommit                         // COMMIT, END
	TxRollback                       // ROLLBACK, ABORT
	TxSavepoint                      // SAVEPOINT name
	TxRelease                        // RELEASE name
	TxRollbackTo                     // ROLLBACK TO name
	TxSetTransaction                 // SET TRANSACTION
	TxSetCharacteristics             // SET SESSION CHARACTERISTICS AS TRANSACTION
)

// Tx holds a transaction statement. Savepoints are refused today, so their Op only appears with KindRefused.
type Tx struct {
	Op            TxOp
	Name          string // of a savepoint
	Isolation     string // lower case, "" when not said
	ReadOnly      bool   // READ ONLY was said
	ReadWrite     bool   // READ WRITE was said
	Deferrable    bool   // DEFERRABLE was said
	NotDeferrable bool   // NOT DEFERRABLE was said
	Chain         bool   // AND CHAIN
}

// Set holds SET and RESET.
type Set struct {
	Name   string   // lower case; "" with All
	Values []string // as PostgreSQL would store them, without quotes; nil = TO DEFAULT or RESET
	Local  bool     // SET LOCAL
	All    bool     // RESET ALL
	Duck   bool     // one of DuckDB's own settings: Stmt.SQL goes to DuckDB
}

// Show holds SHOW of a PostgreSQL setting.
type Show struct {
	Name string // lower case; "" with All
	All  bool   // SHOW ALL
}

// Copy holds COPY. The file form is KindRefused for all but administrators, for whom it passes as KindDML.
type Copy struct {
	In      bool      // FROM STDIN
	Query   string    // COPY (query) TO: DuckDB's SQL; else Table
	Schema  string    // "" = search path; DuckLake's name (main, not public)
	Table   string    // unquoted
	Columns []string  // unquoted; nil = all
	Opts    []CopyOpt // in the client's order, old syntax included
	Where   string    // COPY FROM … WHERE: DuckDB's SQL
}

// CopyOpt is one option of COPY.
type CopyOpt struct {
	Name  string   // lower case: format, delimiter, null, header, quote, escape, force_quote, force_not_null, force_null, encoding, freeze, default
	Value string   // "" when a list, or when only named (header)
	List  []string // of force_quote and its like; ["*"] for *
}

// Prepared holds PREPARE, EXECUTE and DEALLOCATE.
type Prepared struct {
	Name  string
	Types []string // as the client wrote them: "int", "varchar(10)", "timestamp with time zone"
	Body  *Stmt    // PREPARE's statement, translated; its Offset counts in the same message
	Args  []string // EXECUTE's arguments: expressions in DuckDB's SQL
	All   bool     // DEALLOCATE ALL
}

// Direction is which way a FETCH counts its rows.
type Direction uint8

const (
	Forward  Direction = iota // NEXT and a count alone, too; negative counts go back
	Backward                  // PRIOR, too
	Absolute                  // FIRST and LAST, too; negative counts from the end
	Relative
)

// AllRows is the count of FETCH ALL and its like.
const AllRows = math.MaxInt64

// Cursor holds DECLARE, FETCH, MOVE and CLOSE.
type Cursor struct {
	Name      string
	Query     *Stmt // DECLARE's, translated; its Offset counts in the same message
	NoScroll  bool
	Binary    bool
	Hold      bool
	Direction Direction
	Count     int64
	Move      bool
}

// Position turns a byte offset in SQL into the position that PostgreSQL reports: characters of the client's whole
// text, from 1. An offset inside a rewritten part gives that part's beginning.
func (s *Stmt) Position(offset int) int {
	return charPosition(s.message, s.Offset+s.shift+originOf(s.splices, offset))
}
