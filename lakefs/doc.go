// Package lakefs stores immutable files as chunk rows in PostgreSQL, and lets DuckDB read and write them as
// pgvfs://<volume>/<path>.
//
// # The format
//
// Layout version 2, schema pgvfs (schema.sql). Other programs read and write the same tables at the same time.
//
//	layout.version      the number 2; programs of another version refuse the database
//	file_ids            sequence of file IDs, for all volumes; an ID is used once, whether its file is published or not
//	files.volume        1 to 63 of a-z 0-9 . _ -, beginning with a letter or digit
//	files.path          1 to 1024 bytes of UTF-8, taken as they are; byte order is listing order
//	files.file_id       which chunks the file's bytes are
//	files.size          bytes; the sum of the chunks
//	files.created_at    when the transaction that wrote it began
//	chunks.file_id
//	chunks.no           row number from 0 without gaps: byte k is in row k / 8120
//	chunks.data         8120 bytes, in a file's last row 1 to 8120; neither compressed nor moved to TOAST, so that a
//	                    full row is one page of 8 KB
//	garbage.file_id     a file that no row of files names any more, whose chunks wait to be deleted
//	garbage.queued_at   since when
//
// A file of size 0 has no chunks. There are no directories: a path with a slash is a path.
//
// # Writing
//
// Rows, and the files row that makes them a file, are committed by one transaction (writer.go): the ID from the
// sequence, COPY of the chunks, the old file of that path out of files and into garbage, the new one into files. Whoever
// finds the path taken in the last step has met another writer and rolls back ([ErrConflict]). Small files are sent
// when they are closed; larger ones stream on a connection of their own while they are written, or wait on disk if all
// connections are taken.
//
// # Reading
//
// A file is looked up once, then its rows are fetched by number, in pieces of 8.4 MB that run side by side (reader.go).
// Nothing locks a file that is being read. Its rows outlive it by the reap grace, 10 minutes if nothing else is said;
// a read that takes longer after a removal fails with [ErrReaped]. What is found is remembered for 10 seconds
// (cache.go), so another program's replacement may be seen that much later. Before the schema is made, and on a
// standby, reading works; reading needs no more than SELECT. A standby that cancels a read to get on with its recovery is
// asked again for about two seconds (retry.go), then the read fails with [ErrRecovery].
//
// A small read is to cost little more than a round trip: its query is planned once a connection, goes by pgconn, starts
// no goroutine (interrupt.go) and allocates the same for every size. Bytes are copied once, from the connection's buffer to
// where the reader wants them.
//
// # Deleting
//
// Removing a file is a row moved from files to garbage. Function pgvfs.reap (functions.sql) deletes the chunks of what
// has been there longer than the grace. Each writing process calls it, once a minute at most (reap.go); a lock in the
// function lets one call work at a time. The smallest grace among a database's writers is the one that counts, so it is
// to be longer than the open cache lasts and the longest query takes, everywhere.
//
// # What a crash leaves behind
//
// Nothing. Sluice killed, or the connection cut: the transaction rolls back, and the rows it had written are dead rows
// that vacuum recycles. PostgreSQL crashed: the same. A gap in the IDs is all that can be seen. A connection lost
// during COMMIT leaves the writer in doubt, not the database: the file is there whole or not at all. [PG.Verify] checks
// all that must hold, in one snapshot (verify.go).
//
// # Connections
//
// Each to another machine is encrypted and the server's name verified (dial.go). The pool keeps two connections away
// from writers, and of the writers' share a third for those that close, so readers always get on and every writer that
// closes eventually does too (writer.go, slots). After a restart of PostgreSQL, reads and the first statement of a
// change are tried once more on a new connection; nothing else is repeated.
//
// # DuckDB
//
// [Register] makes the store a file system of a DuckDB instance (bridge.go, bridge.cpp). DuckDB's C API has no file
// systems, so bridge.cpp subclasses DuckDB's own C++ class, from the declarations in duckdb.hpp; they hold for one version of
// DuckDB, which Register checks, and .ci/abi compares them with that version's headers (abi/). DuckDB's threads call
// into Go and wait there. An error becomes DuckDB's IO error with the cause in its text, or an interrupt if the
// statement's context has ended; a panic becomes an error too. Bytes go straight into and out of DuckDB's buffers.
//
// A connection that [Bridge.BindClient] marks is a client's: what the store does for it ends with its statement, and
// the functions given to [Bridge.GuardFunctions] refuse to bind for it, and [Client.AllowDatabases] refuses statements that
// DuckDB binds to other databases. [KeepSchemas] makes DuckLake's build of this DuckDB safe in transactions.
//
// [RegisterLake] decides by who asks. The lake's volume is in the lake's own database for everybody, and the files under
// its data path are all that a client, or a connection of DuckDB's own, reaches. An administrator's other volumes are
// found by the first of: the secret pgvfs_<volume>, the secret that the setting pgvfs_secret names, PGVFS_URL, the unnamed
// postgres secret (stores.go, secret.go). Each database has one store, numbered in this process; "<number>:<file ID>" is
// DuckDB's version tag, so that its caches of ranges and footers, which all sessions share, never serve other bytes. Since
// DuckDB's caches do not see a handle that is still open on the file before, versions of a path that are open at the same
// time are not cached together, and a statement finds one version of a path however often DuckDB opens it (readings.go).
// pgvfs_stats() and pgvfs_drop_volume(v) are functions of the instance, the latter for administrators.
//
// # Debugging
//
//	SELECT * FROM pgvfs.files                                   what is there
//	SELECT pgvfs.reap('0')                                      delete now what is not needed by anyone reading
//	SELECT * FROM pg_stat_progress_copy                         files being written
//	SELECT pgvfs_stats()                                        in Sluice: what this process has opened and read
//	sluice files verify                                         what is not as it must be, a line each
package lakefs
