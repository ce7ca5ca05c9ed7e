package translate

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/jackc/pgerrcode"
	"sluice/engine/pgerr"
)

// readCopy reads COPY. A query in it need not be PostgreSQL's: the grammar is shown another in its place.
func readCopy(r *rewrite, s *Stmt) {
	text, last := r.text, -1
	if r.raw(1) == "(" {
		if last = r.closing(1); last < 0 {
			refuse(s, pgerr.New(pgerrcode.SyntaxError, "syntax error at end of input"))
			return
		}
		open, end := r.tokens[1].end, r.tokens[last].start
		text = text[:open] + "select" + strings.Repeat(" ", max(end-open-6, 0)) + text[end:]
	}
	node, failure := parse(s, text)
	stmt := node.GetCopyStmt()
	file := stmt != nil && (stmt.Filename != "" || stmt.IsProgram)
	switch {
	case (file || stmt == nil) && r.o.Admin:
		s.Kind, s.Writes = KindDML, true
	case file, stmt == nil && duckCopy(r):
		deny(s, "COPY to or from a file")
		s.Err.Hint = "Use COPY … TO STDOUT or COPY … FROM STDIN; psql's \\copy does so for a file of the client."
	case stmt == nil:
		refuse(s, failure)
	default:
		s.Copy = &Copy{In: stmt.IsFrom}
		s.Writes = stmt.IsFrom
		s.Copy.from(r, s, stmt, last)
	}
}

// duckCopy reports whether COPY names a file, where PostgreSQL's grammar does not read it: the word after TO or FROM.
func duckCopy(r *rewrite) bool {
	for i := range r.tokens {
		if w := r.word(i); (w == "to" || w == "from") && (r.kind(i+1) == tokString || r.kind(i+1) == tokPrefix || r.kind(i+1) == tokDollar) {
			return true
		}
	}
	return false
}

// from takes the tree apart. last is the bracket that closes the query, if it is COPY (query).
func (c *Copy) from(r *rewrite, s *Stmt, stmt *pg_query.CopyStmt, last int) {
	if rel := stmt.Relation; rel != nil {
		c.Schema, c.Table = lakeSchema(rel.Schemaname), rel.Relname
		for _, col := range stmt.Attlist {
			c.Columns = append(c.Columns, col.GetString_().GetSval())
		}
	} else {
		c.Query, s.splices, s.shift = r.part(2, last-1)
		s.SQL = c.Query // so that positions count in the query
	}
	for _, o := range stmt.Options {
		c.Opts = append(c.Opts, copyOption(o.GetDefElem()))
	}
	if stmt.WhereClause != nil {
		for i := last + 1; i < len(r.tokens); i++ {
			if r.word(i) == "where" {
				c.Where, _, _ = r.part(i+1, len(r.tokens)-1)
				break
			}
		}
	}
}

// copyOption is one option with its value or its list.
func copyOption(e *pg_query.DefElem) CopyOpt {
	o := CopyOpt{Name: strings.ToLower(e.Defname)}
	switch arg := e.Arg; {
	case arg.GetAStar() != nil:
		o.List = []string{"*"}
	case arg.GetList() != nil:
		for _, item := range arg.GetList().Items {
			o.List = append(o.List, constant(item))
		}
	case arg != nil:
		o.Value = constant(arg)
	}
	return o
}
