// The C side of bridge.go: what Go calls in bridge.cpp, and the structures that both sides share.
#ifndef SLUICE_BRIDGE_H
#define SLUICE_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The DuckDB whose declarations duckdb.hpp repeats. Registering with any other is refused.
#define SLUICE_DUCKDB_VERSION "v1.5.5"

// What kind of error a call ended with; the numbers are DuckDB's ExceptionType.
enum { SLUICE_OK = 0, SLUICE_NOT_IMPLEMENTED = 11, SLUICE_IO = 28, SLUICE_INTERRUPT = 29, SLUICE_INVALID_INPUT = 32, SLUICE_PERMISSION = 34 };

// An error: its kind and a text made by malloc, which the receiver frees.
typedef struct {
	int kind;
	char *text;
} sluice_error;

// An open file. handle is Go's; 0 where DuckDB asked for nothing rather than an error.
typedef struct {
	uintptr_t handle;
	int64_t size;       // bytes; of a file being written, those written so far
	int64_t created_at; // microseconds since 1970
	int64_t file_id;    // 0 for a file being written
	int64_t store;      // number of the store that the id is of
	int uncached;       // DuckDB must keep nothing of what it reads
} sluice_file;

// Registers pgvfs://, its functions and its setting in the database, calling Go back with bridge. Returns an error text by
// malloc, or NULL.
char *sluice_register(void *duckdb_database, uintptr_t bridge);

// Finds a secret of DuckDB's by name, as the client sees it: its type, then its keys and values, each with a NUL at the
// end; by malloc, with its length. NULL without an error if there is none. Only for a client that waits for this call.
char *sluice_secret(uintptr_t client, const char *name, size_t *length, sluice_error *error);

// Returns what a setting is for the client, by malloc; NULL if it is not set. Only for a client that waits for this call.
char *sluice_setting(uintptr_t client, const char *name);

// Returns the ClientContext of a connection: a key that files carry and the guard asks for.
uintptr_t sluice_client_key(void *duckdb_connection);

// Says whether guarded functions refuse to bind for the client with this key. Off before its connection closes.
void sluice_client_guard(uintptr_t client, int on);

// Makes table functions of the system catalog refuse to bind for guarded clients. names are separated by '\n'.
// Returns an error text by malloc, or NULL.
char *sluice_guard_functions(void *duckdb_database, const char *names);

// Lists the databases that a prepared statement reads and modifies: "R" or "W", the name, a NUL; by malloc, with its
// length. A text beginning with "E" is an error.
char *sluice_statement_databases(void *duckdb_prepared_statement, size_t *length);

// Refuses every statement of the connection that DuckDB binds to other databases than these: "R" or "W", the name, a
// '\n', for each that may be read or modified. Returns an error text by malloc, or NULL.
char *sluice_client_databases(void *duckdb_connection, const char *databases);

// Keeps the schemas that DuckLake pins for the connection's queries until its next transaction begins. To be called
// once the connection has read the lake. Returns an error text by malloc, or NULL.
char *sluice_keep_schemas(void *duckdb_connection);

#ifdef __cplusplus
}
#endif

#endif
