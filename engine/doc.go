// Package engine runs PostgreSQL statements in DuckDB.
//
// # Layers
//
// An [Engine] is one DuckDB instance with one DuckLake attached (engine.go, lake.go). The lake's catalog is a
// PostgreSQL database; its files are chunk rows of the same database, reached as pgvfs:// through package lakefs.
// A [Session] is one DuckDB connection of that instance (session.go). A [Query] is one statement of a client's text,
// translated by engine/translate; a [Statement] is a prepared one (statement.go); a [Result] hands out its rows as
// DuckDB's own column vectors (result.go), which engine/pgcodec encodes. Nothing is copied in between.
//
// # The life of a statement
//
// Session.Parse splits and translates. Session.Prepare binds in DuckDB and never runs anything: it answers parameter
// types and columns. Statement.Run executes. Text that DuckDB need not see (BEGIN, SET, SHOW, DISCARD, PREPARE) is
// answered here.
//
// # Transactions
//
// transaction.go is the only place that says BEGIN, COMMIT and ROLLBACK to DuckDB. A lone read runs in DuckDB's
// autocommit. A lone write is wrapped in a transaction of its own, so that its commit can queue: commits of one
// process collide on DuckLake's snapshot id (32 connections for 30 s: 43 commits failed after DuckLake's own ten tries),
// therefore one commits at a time, first come first served, and only conflicts with other processes are retried.
// The retry repeats the whole transaction and never happens once rows reached the client, inside a client's own
// transaction, or after a connection was lost while committing.
//
// A statement is bound in the transaction that it runs in: Prepare opens one, which the run takes over or Sync rolls back,
// and a statement that was bound in another is bound again (Statement.rebind). A plan over DuckLake holds on to the
// transaction that it was bound in and to schemas that live as long (lakefs.KeepSchemas).
//
// DuckDB has no failed-transaction state that lasts until ROLLBACK as PostgreSQL does; the engine keeps it, and rolls
// DuckDB back at once so that an idle client holds nothing.
//
// # What a client may reach
//
// After the attach, DuckDB's external access is switched off for good and only the lake's data path is allowed.
// What remains is checked on what DuckDB has bound, never on text: the statement's type (Statement.admit); the databases
// that it reads and modifies, whenever it is bound (lakefs.Client.AllowDatabases: the lake's metadata database is nobody's
// but an administrator's); and table functions that open connections of their own, which refuse to bind for a client's
// connection (lakefs.Bridge.GuardFunctions).
//
// # One connection, one stream
//
// DuckDB lets a connection have one streaming result. When a second statement starts while a portal has rows left, the
// rest of the first goes into a spool (spool.go): the newest chunks as they are, the others in temporary tables, which
// DuckDB's memory limit bounds and its temporary directory takes over.
//
// # Portals and cursors
//
// A [Portal] is a bound statement with a place in its rows (portal.go); DECLARE makes one by name, and FETCH and MOVE
// go over it (cursor.go). Portals end with their transaction, but for those WITH HOLD, whose rows are computed to their
// end at the commit (portals.go). Rows that may be read again, by a SCROLL cursor or by a second portal, are kept in
// the same spool (rows.go).
//
// # Debugging
//
// With --log-level debug every statement is one line with its duration; trace adds the SQL that DuckDB got.
package engine
