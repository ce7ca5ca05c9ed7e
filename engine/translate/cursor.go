package translate

import (
	"slices"

	"github.com/jackc/pgerrcode"
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"sluice/engine/pgerr"
)

// Options of DECLARE as PostgreSQL's tree has them (its parsenodes.h, CURSOR_OPT_).
const (
	cursorBinary      = 0x01
	cursorScroll      = 0x02
	cursorNoScroll    = 0x04
	cursorInsensitive = 0x08
	cursorAsensitive  = 0x10
	cursorHold        = 0x20
)

// cursorQueries are the words that a cursor's query begins with: PostgreSQL's, and those of DuckDB that read rows alike.
var cursorQueries = wordSet(`select values table with from pivot unpivot`)

// declare reads DECLARE. PostgreSQL's parser gets what stands before the query, with another query in its place, since
// the query may be DuckDB's own SQL.
func declare(r *rewrite, s *Stmt) {
	at := queryOfCursor(r)
	head := r.text
	if at > 0 {
		head = r.text[:r.tokens[at-1].end] + " SELECT"
	}
	node := parseOrRefuse(s, head)
	if node == nil {
		return
	}
	stmt := node.GetDeclareCursorStmt()
	first := at
	for r.raw(first) == "(" {
		first++
	}
	query, _ := statement(s.message, r.moved(at, s.Offset), r.o)
	if query.Kind == KindRefused {
		refuse(s, query.Err)
		return
	}
	if query.Kind != KindQuery || !cursorQueries[r.word(first)] || query.Tag != "SELECT" {
		refuse(s, syntaxErrorAt(r, s, verbOf(r, first)))
		return
	}
	if err := checkCursor(stmt.Options, r.text); err != nil {
		refuse(s, err)
		return
	}
	s.Cursor = &Cursor{
		Name: stmt.Portalname, Query: &query, NoScroll: stmt.Options&cursorNoScroll != 0,
		Binary: stmt.Options&cursorBinary != 0, Hold: stmt.Options&cursorHold != 0,
	}
	s.Notice = truncated(r.name(1), stmt.Portalname)
}

// queryOfCursor finds where the query of a DECLARE begins: after the first FOR that follows CURSOR. 0 if there is none.
func queryOfCursor(r *rewrite) int {
	cursor := false
	for i := 2; i < len(r.tokens)-1; i++ { // a name may be any word
		switch r.word(i) {
		case "cursor":
			cursor = true
		case "for":
			if cursor {
				return i + 1
			}
		}
	}
	return 0
}

// moved are the tokens from first on, counted in the message.
func (r *rewrite) moved(first, offset int) []token {
	tokens := make([]token, 0, len(r.tokens)-first)
	for _, t := range r.tokens[first:] {
		tokens = append(tokens, token{t.kind, t.start + offset, t.end + offset})
	}
	return tokens
}

// verbOf finds the word that makes a statement none for a cursor: what WITH leads to, else its first word.
func verbOf(r *rewrite, first int) int {
	depth := 0
	for i := first; i < len(r.tokens) && r.word(first) == "with"; i++ {
		switch r.raw(i) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 && forms[r.word(i)].writes {
			return i
		}
	}
	return first
}

// exclusions are options of a cursor that contradict each other.
var exclusions = []struct {
	both int32
	text string
}{
	{cursorScroll | cursorNoScroll, "cannot specify both SCROLL and NO SCROLL"},
	{cursorAsensitive | cursorInsensitive, "cannot specify both INSENSITIVE and ASENSITIVE"},
}

// locks are what FOR UPDATE and its like are called, by their strength.
var locks = map[pg_query.LockClauseStrength]string{
	pg_query.LockClauseStrength_LCS_FORUPDATE: "FOR UPDATE", pg_query.LockClauseStrength_LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE",
	pg_query.LockClauseStrength_LCS_FORSHARE: "FOR SHARE", pg_query.LockClauseStrength_LCS_FORKEYSHARE: "FOR KEY SHARE",
}

// unlockable are the options of a cursor whose query locks no rows, with what PostgreSQL says otherwise.
var unlockable = []struct {
	option             int32
	code, text, detail string
}{
	{cursorHold, pgerrcode.FeatureNotSupported, "DECLARE CURSOR WITH HOLD ... %s is not supported", "Holdable cursors must be READ ONLY."},
	{cursorScroll, pgerrcode.FeatureNotSupported, "DECLARE SCROLL CURSOR ... %s is not supported", "Scrollable cursors must be READ ONLY."},
	{cursorInsensitive, pgerrcode.InvalidCursorDefinition, "DECLARE INSENSITIVE CURSOR ... %s is not valid", "Insensitive cursors must be READ ONLY."},
}

// checkCursor refuses what PostgreSQL refuses of a DECLARE that its grammar takes. A query that is DuckDB's own SQL has
// nothing of it.
func checkCursor(options int32, text string) *pgerr.Error {
	for _, x := range exclusions {
		if options&x.both == x.both {
			return pgerr.New(pgerrcode.InvalidCursorDefinition, x.text)
		}
	}
	tree, err := pg_query.Parse(text)
	if err != nil || len(tree.Stmts) != 1 {
		return nil
	}
	query := tree.Stmts[0].Stmt.GetDeclareCursorStmt().GetQuery().GetSelectStmt()
	if slices.ContainsFunc(query.GetWithClause().GetCtes(), modifies) {
		return pgerr.New(pgerrcode.FeatureNotSupported, "DECLARE CURSOR must not contain data-modifying statements in WITH")
	}
	for _, lock := range query.GetLockingClause() {
		for _, u := range unlockable {
			if options&u.option != 0 {
				return pgerr.Newf(u.code, u.text, locks[lock.GetLockingClause().GetStrength()]).WithDetail(u.detail)
			}
		}
	}
	return nil
}

// modifies reports whether a query of a WITH is none that only reads.
func modifies(cte *pg_query.Node) bool {
	query := cte.GetCommonTableExpr().GetCtequery()
	return query != nil && query.GetSelectStmt() == nil
}

// directions of FETCH in PostgreSQL's tree.
var directions = map[pg_query.FetchDirection]Direction{
	pg_query.FetchDirection_FETCH_FORWARD: Forward, pg_query.FetchDirection_FETCH_BACKWARD: Backward,
	pg_query.FetchDirection_FETCH_ABSOLUTE: Absolute, pg_query.FetchDirection_FETCH_RELATIVE: Relative,
}

// fetch reads FETCH and MOVE.
func fetch(r *rewrite, s *Stmt) {
	node := parseOrRefuse(s, r.text)
	if node == nil {
		return
	}
	stmt := node.GetFetchStmt()
	s.Cursor = &Cursor{Name: stmt.Portalname, Direction: directions[stmt.Direction], Count: stmt.HowMany, Move: stmt.Ismove}
	s.Notice = truncated(r.name(len(r.tokens)-1), stmt.Portalname)
}

// closeCursor reads CLOSE.
func closeCursor(r *rewrite, s *Stmt) {
	node := parseOrRefuse(s, r.text)
	if node == nil {
		return
	}
	s.Cursor = &Cursor{Name: node.GetClosePortalStmt().GetPortalname()}
	if s.Cursor.Name == "" {
		s.Tag = "CLOSE CURSOR ALL"
	}
	s.Notice = truncated(r.name(1), s.Cursor.Name)
}

// truncated is PostgreSQL's notice about a name longer than the 63 bytes that its parser keeps.
func truncated(written, kept string) *pgerr.Error {
	if len(written) <= 63 {
		return nil
	}
	return pgerr.Notice(pgerr.SeverityNotice, pgerrcode.NameTooLong, `identifier "`+written+`" will be truncated to "`+kept+`"`)
}
