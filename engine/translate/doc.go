// Package translate turns a client's PostgreSQL into the SQL that DuckDB gets.
//
// DuckDB's grammar descends from PostgreSQL's, so most statements need nothing and pass byte for byte. What PostgreSQL's
// grammar would refuse is DuckDB's own SQL (FROM-first, EXCLUDE, lists, AT (VERSION => n)) and passes as well: no rule
// requires that a text parse.
//
// # Layers
//
// lexer.go cuts the message into PostgreSQL's tokens; [Parse] splits at semicolons. classify.go names the statement by
// its leading words, one table; statements that DuckDB has no part in (transactions, SET, SHOW, COPY, PREPARE, DISCARD)
// are read in transaction.go, set.go, show.go, copy.go and prepare.go, through pg_query where their structure matters;
// refuse.go says what only an administrator may do. What is left goes through the rules that translate.go lists in
// order, one file each. A rule replaces tokens (rewrite.go) and never formats a statement anew, so that a position in
// DuckDB's error leads back into the client's text ([Stmt.Position]).
//
// # What the rules lean on
//
// The session's search path ends in package catalog's schema. Its macros answer for functions that DuckDB lacks or
// answers differently, and for the operators that the rules write: @~ and !@~ are PostgreSQL's ~ and !~, which DuckDB
// reads as a full match. Text that the lake keeps (CREATE VIEW) gets DuckDB's own operators instead, so that a view
// means the same to a DuckDB without Sluice.
//
// # What is not this package's
//
// Refusals here are courtesy: they answer with PostgreSQL's words before DuckDB is asked. The gate itself is the engine,
// which looks at what DuckDB has bound.
package translate
