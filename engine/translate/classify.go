package translate

import "strings"

// form says what a statement is that begins with a certain word.
type form struct {
	kind   Kind
	tag    string
	writes bool
	read   func(*rewrite, *Stmt) // looks closer; nil where the word says it all
}

// forms by first word. A statement that is not here goes to DuckDB, whose error is the answer if it does not know it.
var forms map[string]form

func init() { // the functions in it reach back to it
	forms = map[string]form{
		"select":    {kind: KindQuery, tag: "SELECT", read: maintenance},
		"values":    {kind: KindQuery, tag: "SELECT"},
		"table":     {kind: KindQuery, tag: "SELECT"},
		"from":      {kind: KindQuery, tag: "SELECT", read: maintenance},
		"pivot":     {kind: KindQuery, tag: "SELECT"},
		"unpivot":   {kind: KindQuery, tag: "SELECT"},
		"with":      {read: with},
		"explain":   {kind: KindQuery, tag: "EXPLAIN", read: explain},
		"describe":  {kind: KindQuery, tag: "SHOW"},
		"desc":      {kind: KindQuery, tag: "SHOW"},
		"summarize": {kind: KindQuery, tag: "SHOW"},
		"call":      {kind: KindQuery, tag: "CALL", read: call},
		"pragma":    {kind: KindQuery, tag: "PRAGMA", read: pragma},
		"insert":    {kind: KindDML, tag: "INSERT 0", writes: true, read: returning},
		"update":    {kind: KindDML, tag: "UPDATE", writes: true, read: update},
		"delete":    {kind: KindDML, tag: "DELETE", writes: true, read: returning},
		"merge":     {kind: KindDML, tag: "MERGE", writes: true, read: returning},
		"truncate":  {kind: KindDDL, tag: "TRUNCATE TABLE", writes: true},
		"create":    {kind: KindDDL, writes: true, read: create},
		"drop":      {kind: KindDDL, writes: true, read: ddl},
		"alter":     {kind: KindDDL, writes: true, read: ddl},
		"comment":   {kind: KindDDL, tag: "COMMENT", writes: true},

		"begin": {kind: KindTx, read: transaction}, "start": {kind: KindTx, read: transaction},
		"commit": {kind: KindTx, read: transaction}, "end": {kind: KindTx, read: transaction},
		"rollback": {kind: KindTx, read: transaction}, "abort": {kind: KindTx, read: transaction},
		"savepoint": {kind: KindTx, read: transaction}, "release": {kind: KindTx, read: transaction},
		"set": {kind: KindSet, tag: "SET", read: set}, "reset": {kind: KindSet, tag: "RESET", read: set},
		"show": {kind: KindShow, tag: "SHOW", read: show}, "use": {kind: KindSet, tag: "SET", read: use},
		"copy":    {kind: KindCopy, tag: "COPY", read: readCopy},
		"prepare": {kind: KindPrepare, tag: "PREPARE", read: prepare}, "execute": {kind: KindExecute, tag: "EXECUTE", read: execute},
		"deallocate": {kind: KindDeallocate, tag: "DEALLOCATE", read: deallocate},
		"discard":    {kind: KindDiscard, tag: "DISCARD", read: discard},
		"vacuum":     {kind: KindNoop, tag: "VACUUM"},  // DuckDB: "only implemented for DuckDB tables"; DuckLake keeps its own statistics
		"analyze":    {kind: KindNoop, tag: "ANALYZE"}, // as VACUUM
		"analyse":    {kind: KindNoop, tag: "ANALYZE"},
		"unlisten":   {kind: KindNoop, tag: "UNLISTEN"}, // nothing can have been listened to
		"declare":    {kind: KindDeclare, tag: "DECLARE CURSOR", read: declare},
		"fetch":      {kind: KindFetch, tag: "FETCH", read: fetch}, "move": {kind: KindFetch, tag: "MOVE", read: fetch},
		"close": {kind: KindClose, tag: "CLOSE CURSOR", read: closeCursor},
	}
}

// classify fills kind, tag and what the kind carries.
func classify(r *rewrite, s *Stmt) {
	first := 0
	for r.raw(first) == "(" {
		first++
	}
	r.stored = r.words(0, "create")
	if refused(r, s) {
		return
	}
	f, known := forms[r.word(first)]
	if !known || first > 0 && f.kind != KindQuery && r.word(first) != "with" {
		f = form{kind: KindQuery, tag: strings.ToUpper(r.word(first))}
	}
	s.Kind, s.Tag, s.Writes = f.kind, f.tag, f.writes
	if f.read != nil {
		f.read(r, s)
	}
}

// with classifies WITH by the statement that its queries belong to: the first such word outside of brackets.
func with(r *rewrite, s *Stmt) {
	s.Kind, s.Tag = KindQuery, "SELECT"
	depth := 0
	for i := range r.tokens {
		switch r.raw(i) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth != 0 || !verbs[r.word(i)] || r.word(i-1) == "as" {
			continue
		}
		f := forms[r.word(i)]
		s.Kind, s.Tag, s.Writes = f.kind, f.tag, f.writes
		if f.read != nil {
			f.read(r, s)
		}
		break
	}
	for i := range r.tokens { // a query of PostgreSQL's WITH may write, whatever the statement does
		if raw := r.raw(i - 1); raw == "(" && (r.word(i) == "insert" || r.word(i) == "update" || r.word(i) == "delete" || r.word(i) == "merge") && r.kind(i+1) != tokPunct {
			s.Writes = true
		}
	}
}

// verbs are what WITH may lead to.
var verbs = wordSet(`select values from pivot unpivot insert update delete merge`)

// explain writes where ANALYZE runs a statement that writes.
func explain(r *rewrite, s *Stmt) {
	analyze := false
	for i := range r.tokens {
		switch w := r.word(i); {
		case w == "analyze" || w == "analyse":
			analyze = true
		case forms[w].kind == KindDML && forms[w].writes || w == "create":
			s.Writes = s.Writes || analyze
		}
	}
}

// returning makes a query of a statement that returns the rows it changed.
func returning(r *rewrite, s *Stmt) {
	depth := 0
	for i := range r.tokens {
		switch r.raw(i) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 && r.word(i) == "returning" {
			s.Kind = KindQuery
		}
	}
}

// update is UPDATE of a table.
func update(r *rewrite, s *Stmt) { returning(r, s) }

// lakeReaders are DuckLake's functions that change nothing; every other ducklake_ function is taken to write.
var lakeReaders = wordSet(`ducklake_snapshots ducklake_table_info ducklake_list_files ducklake_options ducklake_settings
	ducklake_current_snapshot ducklake_last_committed_snapshot ducklake_table_changes ducklake_table_insertions
	ducklake_table_deletions ducklake_scan`)

// lakeWriters are the names that DuckLake gives its writing functions inside of the lake: CALL lake.set_option(…).
var lakeWriters = wordSet(`merge_adjacent_files set_option set_commit_message`)

// maintenance finds DuckLake's functions that write in a query that otherwise only reads.
func maintenance(r *rewrite, s *Stmt) {
	for i := range r.tokens {
		name := r.name(i)
		if r.raw(i+1) != "(" {
			continue
		}
		if strings.HasPrefix(name, "ducklake_") && !lakeReaders[name] || lakeWriters[name] && r.raw(i-1) == "." {
			s.Writes = true
		}
	}
}

// call is CALL of a table function.
func call(r *rewrite, s *Stmt) { maintenance(r, s) }

// modifiers stand between CREATE, DROP or ALTER and the object's kind.
var modifiers = wordSet(`or replace temp temporary local global unlogged recursive persistent unique concurrently if not exists trusted default`)

// objects whose kind takes more than one word in a command tag.
var objects = map[string][]string{
	"materialized": {"view"}, "foreign": {"table", "data"}, "event": {"trigger"}, "access": {"method"}, "text": {"search"}, "user": {"mapping"},
}

// ddl makes the command tag of CREATE, DROP and ALTER.
func ddl(r *rewrite, s *Stmt) {
	i := objectAt(r)
	s.Tag = strings.ToUpper(r.word(0) + " " + r.word(i))
	for _, second := range objects[r.word(i)] {
		if r.word(i+1) == second {
			s.Tag += " " + strings.ToUpper(second)
		}
	}
	if r.word(i) == "schema" {
		schema(r, s, i+1)
	}
}

// objectAt finds the word that says what kind of object a CREATE, DROP or ALTER is about.
func objectAt(r *rewrite) int {
	i := 1
	for modifiers[r.word(i)] {
		i++
	}
	return i
}

// create is CREATE; with a query it counts rows and answers as SELECT does (manual, "CREATE TABLE AS").
func create(r *rewrite, s *Stmt) {
	ddl(r, s)
	if r.word(objectAt(r)) != "table" {
		return
	}
	depth := 0
	for i := range r.tokens {
		switch r.raw(i) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 && r.word(i) == "as" {
			s.Kind, s.Tag, r.stored = KindDML, "SELECT", false
			return
		}
	}
}
