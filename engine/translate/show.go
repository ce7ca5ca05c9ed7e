package translate

import "strings"

// duckShows are what DuckDB's SHOW lists; no PostgreSQL setting has such a name.
var duckShows = wordSet("tables databases schemas variables")

// show reads SHOW. What PostgreSQL's grammar refuses (SHOW ALL TABLES, SHOW TABLES FROM x) is DuckDB's.
func show(r *rewrite, s *Stmt) {
	node, failure := parse(s, r.text)
	stmt := node.GetVariableShowStmt()
	if failure != nil || stmt == nil || duckShows[strings.ToLower(stmt.Name)] {
		s.Kind = KindQuery
		return
	}
	s.Show = &Show{Name: strings.ToLower(stmt.Name)}
	if s.Show.Name == "all" {
		s.Show = &Show{All: true}
	}
}
