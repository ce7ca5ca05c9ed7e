package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"sluice/engine/catalog"
)

// metadataSecret is the DuckDB secret with the backing database's password, so that it stands in no connection string
// that duckdb_databases() would show. Secrets are shown redacted.
const metadataSecret = "sluice_catalog"

// metadataPool bounds the connections that DuckLake's catalog keeps to the backing PostgreSQL. One transaction of a
// session holds one; more sessions at once than this connect for their transaction only.
const metadataPool = 64

// metadataDB is DuckDB's name of the lake's attached metadata database. It stays DuckLake's default, because DuckLake
// hides only that one from duckdb_databases() and what is built on it.
func metadataDB(lake string) string { return "__ducklake_metadata_" + lake }

// attachLake attaches the lake, read-only where the backing PostgreSQL is a standby.
func attachLake(ctx context.Context, c *duckConn, in *instance, e *Engine) error {
	var err error
	if in.readOnly, err = e.store.ReadOnly(ctx); err != nil {
		return fmt.Errorf("ask the backing PostgreSQL whether it is a standby: %w", err)
	}
	for _, sql := range attachSQL(e, in.readOnly) {
		if err := c.exec(ctx, sql); err != nil {
			return fmt.Errorf("attach the lake %q: %s", e.cfg.Lake, e.redact(err.Error()))
		}
	}
	return nil
}

// attachSQL is what it takes to attach: the pool's size, the secret, the lake.
func attachSQL(e *Engine, readOnly bool) []string {
	public := dsn{"application_name": "sluice"}
	for key, value := range e.dsn {
		if key != "password" {
			public[key] = value
		}
	}
	if !e.cfg.AllowPlaintext {
		public.verify()
	}
	attach := "ATTACH " + quoteLiteral("ducklake:postgres:"+public.String()) + " AS " + quoteIdent(e.cfg.Lake) +
		" (DATA_PATH " + quoteLiteral(e.cfg.DataPath) + ", METADATA_SCHEMA " + quoteLiteral(e.cfg.MetadataSchema)
	if e.dsn["password"] != "" {
		attach += ", META_SECRET " + quoteLiteral(metadataSecret)
	}
	if readOnly {
		attach += ", READ_ONLY"
	} else {
		attach += ", AUTOMATIC_MIGRATION true"
	}
	return []string{
		fmt.Sprintf("SET GLOBAL pg_pool_max_connections = %d", metadataPool),
		// DuckLake commits on top of the snapshot that its transaction began with, and waits before it tries again on the
		// newest one. Commits of this process queue, so only the queue makes the snapshot old, and waiting (100 ms unless
		// said otherwise) would only hold up the queue. Conflicts with other processes have the engine's own retries.
		"SET GLOBAL ducklake_retry_wait_ms = 1",
		// A thread's own cache would pin a connection to each of Go's threads.
		"SET GLOBAL pg_pool_enable_thread_local_cache = false",
		"CREATE OR REPLACE TEMPORARY SECRET " + metadataSecret + " (TYPE postgres, PASSWORD " + quoteLiteral(e.dsn["password"]) + ")",
		attach + ")",
	}
}

// catalogDB is the database in memory that holds pg_catalog and information_schema.
const catalogDB = "sluice"

// installCatalog makes pg_catalog and information_schema in a database of their own, in memory.
func installCatalog(ctx context.Context, c *duckConn, e *Engine) error {
	script := append([]string{"ATTACH ':memory:' AS " + catalogDB}, catalog.Script(catalog.Options{
		Lake: e.cfg.Lake, ServerVersion: serverVersion, Version: "Sluice, DuckDB " + mapping.LibraryVersion(), Started: e.started,
	})...)
	for _, sql := range script {
		if err := c.exec(ctx, sql); err != nil {
			return fmt.Errorf("install the catalogs: %w in %.120s", err, sql)
		}
	}
	return nil
}

// lakeIDs keeps the catalogs' copy of DuckLake's ids up to date. It has a connection of its own, because a client's may
// not read DuckLake's catalog.
type lakeIDs struct {
	mu      sync.Mutex
	conn    *duckConn
	version string // the lake's schema version that the copy is of
}

// refresh copies the ids again if the lake's schema has changed since, here or in another process. It costs a round
// trip, so it is done for statements that read the catalogs and no others.
func (ids *lakeIDs) refresh(ctx context.Context, cfg Config) error {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	metadata := quoteIdent(metadataDB(cfg.Lake)) + "." + quoteIdent(cfg.MetadataSchema)
	version, err := ids.conn.text(ctx, "SELECT max(schema_version)::VARCHAR FROM "+metadata+".ducklake_snapshot")
	if err != nil || version == ids.version {
		return wrap(err, "read the lake's schema version")
	}
	steps := append(append([]string{"BEGIN"}, catalog.Refresh(metadata)...), "COMMIT")
	for _, sql := range steps {
		if err := ids.conn.exec(ctx, sql); err != nil {
			_ = ids.conn.exec(context.WithoutCancel(ctx), "ROLLBACK") // the first error is the one to tell
			return fmt.Errorf("copy the lake's ids: %w", err)
		}
	}
	ids.version = version
	return nil
}
