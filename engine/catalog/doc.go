// Package catalog holds Sluice's pg_catalog and information_schema: SQL that is installed once into the in-memory
// database sluice of a DuckDB instance.
//
// DuckDB lets nobody create a schema called pg_catalog, so the relations live in sluice.pg and sluice.info, and package
// translate writes pg_catalog.pg_class as sluice.pg.pg_class. Unqualified names are found because the session's search
// path is the lake's schemas followed by [SearchPath]; macros there win over DuckDB's functions of the same name, and
// answer for keywords such as current_user too.
//
// # Files
//
// One .sql file a relation; lake.sql is what they share, session.sql and functions.sql the macros, types.sql the types. {lake} and its
// like are filled in by [Script]. Rows that never change are .csv files that gen exports from a real PostgreSQL 15. Every
// relation of PostgreSQL without a file of its own is there too, empty, with PostgreSQL's columns (pg_proc, pg_index,
// pg_constraint, pg_trigger, …): the lake has no such objects. Two differ: the server's functions are not listed in pg_proc,
// nor the macros of the lake; and pg_stat_ views say nothing.
//
// # What differs from PostgreSQL
//
// An oid is int8, a name is text. The user of the session owns everything, under the id 10. DuckLake's schema main is
// public (2200). Ids of the lake's objects are DuckLake's plus 16384 where [Refresh] has told them; for the rest they are
// made of the names, so that they are the same in every session, process and replica until a rename. has_…_privilege is
// always true. set_config, a change, is an error: macros only compute.
//
// # Session values
//
// The engine sets variables of the connection: sluice_user, sluice_pid, sluice_read_only, sluice_settings
// (MAP(VARCHAR, VARCHAR), keys in lower case) and sluice_search_path (VARCHAR[]). DuckDB reads a variable when it binds, so
// a prepared statement keeps what it saw then.
package catalog
