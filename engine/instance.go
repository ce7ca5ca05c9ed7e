package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"sluice/lakefs"
)

// instance is one DuckDB in this process. There is one at a time, until DuckDB invalidates it.
type instance struct {
	db       mapping.Database
	stores   *lakefs.Stores
	bridge   *lakefs.Bridge
	readOnly bool // attached to a standby
	unpinned bool // DuckLake's build needs lakefs.KeepSchemas
	ids      lakeIDs
	lost     atomic.Bool // DuckDB invalidated it: no statement will run in it again

	mu       sync.Mutex // guards what follows
	sessions int        // sessions that use it
	retired  bool       // close when the last session has gone
}

// settings are DuckDB's, given when the instance opens. What PostgreSQL's users would find silently different is set
// as PostgreSQL has it: / of two integers is an integer.
var settings = map[string]string{
	"autoinstall_known_extensions":           "false",
	"autoload_known_extensions":              "false",
	"allow_community_extensions":             "false",
	"integer_division":                       "true",
	"errors_as_json":                         "true",
	"scalar_subquery_error_on_multiple_rows": "true",
	"preserve_insertion_order":               "true",
}

// extensions are loaded in this order: the catalog's client before the catalog.
var extensions = []string{"postgres_scanner", "ducklake"}

// guarded are table functions that change the instance for everybody. Beside lakefs.InternalFunctions, a client's session
// cannot bind any of them unless it is an administrator's.
var guarded = []string{
	"enable_logging", "disable_logging", "truncate_duckdb_logs", "enable_profiling", "disable_profiling",
	"checkpoint", "force_checkpoint", "enable_peg_parser", "disable_peg_parser",
}

// openInstance opens DuckDB, makes pgvfs:// known, attaches the lake, installs the catalogs and locks the door.
func openInstance(ctx context.Context, e *Engine) (*instance, error) {
	in := &instance{}
	var err error
	if in.stores, err = lakefs.NewStores(lakefs.StoresConfig{
		Own: e.store, DataPath: e.cfg.DataPath, URL: e.cfg.PgvfsURL, Other: e.cfg.storeConfig(),
	}); err != nil {
		return nil, err
	}
	config, err := in.config(e.cfg)
	if err != nil {
		return nil, err
	}
	defer mapping.DestroyConfig(&config)
	var message string
	if mapping.OpenExt("", &in.db, config, &message) == mapping.StateError {
		return nil, fmt.Errorf("open DuckDB: %s", message)
	}
	if err := in.prepare(ctx, e); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// config builds DuckDB's configuration. The caller destroys it.
func (in *instance) config(cfg Config) (mapping.Config, error) {
	all := map[string]string{
		"temp_directory": spillDir(cfg), "memory_limit": cfg.MemoryLimit, "max_temp_directory_size": cfg.SpillLimit,
		// Secrets that outlive a process are files, which a locked instance cannot read or write. Those of whoever runs
		// Sluice, in the home directory, are not the lake's: attaching would take one for the backing database's.
		"secret_directory": filepath.Join(cfg.DataDir, "secrets"),
	}
	if cfg.Threads > 0 {
		all["threads"] = strconv.Itoa(cfg.Threads)
	}
	for name, value := range settings {
		all[name] = value
	}
	var config mapping.Config
	if mapping.CreateConfig(&config) == mapping.StateError {
		return config, errors.New("make DuckDB's configuration")
	}
	for name, value := range all {
		if value != "" && mapping.SetConfig(config, name, value) == mapping.StateError {
			mapping.DestroyConfig(&config)
			return config, fmt.Errorf("DuckDB does not take %s = %q", name, value)
		}
	}
	return config, nil
}

// prepare does on one connection what every session will rely on, in the only order that works: files before the
// lake, the lake before the guard (the extensions' functions must exist), all of it before external access ends.
func (in *instance) prepare(ctx context.Context, e *Engine) error {
	c, err := connect(in.db)
	if err != nil {
		return err
	}
	defer c.close()
	// A setting of the parquet extension, known once DuckDB is open. Files of a lake never change under a path, so a
	// footer needs to be read once.
	if err := c.exec(ctx, "SET GLOBAL parquet_metadata_cache = true"); err != nil {
		return fmt.Errorf("keep Parquet footers: %w", err)
	}
	for _, name := range extensions {
		if err := c.exec(ctx, "LOAD "+quoteLiteral(extensionPath(e.cfg.DataDir, name))); err != nil {
			return fmt.Errorf("load DuckDB's extension %s: %w", name, err)
		}
	}
	build, err := c.text(ctx, "SELECT extension_version FROM duckdb_extensions() WHERE extension_name = 'ducklake'")
	if err != nil {
		return fmt.Errorf("read DuckLake's version: %w", err)
	}
	in.unpinned = build == lakefs.DuckLakeUnpinned
	if in.bridge, err = lakefs.RegisterLake(in.db.Ptr, in.stores); err != nil {
		return fmt.Errorf("make pgvfs:// known to DuckDB: %w", err)
	}
	if err := attachLake(ctx, c, in, e); err != nil {
		return err
	}
	if err := in.bridge.GuardFunctions(append(guarded, lakefs.InternalFunctions...)...); err != nil {
		return fmt.Errorf("guard DuckDB's functions: %w", err)
	}
	if err := installCatalog(ctx, c, e); err != nil {
		return err
	}
	if in.ids.conn, err = connect(in.db); err != nil {
		return err
	}
	return lockDown(ctx, c, e.cfg)
}

// lockDown leaves DuckDB nothing of the host but the lake's data path (decision 4), and pgvfs, where the bridge says who
// may reach what. It cannot be undone.
func lockDown(ctx context.Context, c *duckConn, cfg Config) error {
	err := c.exec(ctx, "SET GLOBAL allowed_directories = ["+quoteLiteral(cfg.DataPath)+", "+quoteLiteral(lakefs.Scheme)+"]")
	if err == nil {
		err = c.exec(ctx, "SET GLOBAL enable_external_access = false")
	}
	return wrap(err, "end DuckDB's external access")
}

// acquire counts a session in.
func (in *instance) acquire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sessions++
}

// release counts a session out; the last one of a retired instance closes it.
func (in *instance) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sessions--
	if in.retired && in.sessions == 0 {
		in.close()
	}
}

// retire closes the instance as soon as no session uses it.
func (in *instance) retire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.retired = true
	if in.sessions == 0 {
		in.close()
	}
}

// close ends DuckDB, and then the stores whose files it may have had open.
func (in *instance) close() {
	if in.ids.conn != nil {
		in.ids.conn.close()
	}
	mapping.Close(&in.db)
	in.stores.Close()
}
