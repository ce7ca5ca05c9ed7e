package lakefs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// duck is a DuckDB instance with pgvfs://, and an administrator's connection to it.
type duck struct {
	db     duckdb.Database
	bridge *lakefs.Bridge
	admin  duckConn
}

// duckConn is a connection to a DuckDB instance.
type duckConn struct{ duckdb.Connection }

// openDuck opens an instance until the test's end.
func openDuck(t *testing.T, store lakefs.Store) *duck {
	t.Helper()
	d := &duck{}
	if duckdb.Open("", &d.db) != duckdb.StateSuccess {
		t.Fatal("DuckDB did not open")
	}
	t.Cleanup(func() { duckdb.Close(&d.db) })
	var err error
	if d.bridge, err = lakefs.Register(d.db.Ptr, store); err != nil {
		t.Fatal(err)
	}
	d.admin = d.connect(t)
	return d
}

// connect opens a connection until the test's end.
func (d *duck) connect(t *testing.T) duckConn {
	t.Helper()
	var c duckConn
	if duckdb.Connect(d.db, &c.Connection) != duckdb.StateSuccess {
		t.Fatal("no connection to DuckDB")
	}
	t.Cleanup(func() { duckdb.Disconnect(&c.Connection) })
	return c
}

// client opens a connection that is a client's, with the context of its statements.
func (d *duck) client(t *testing.T) (duckConn, *lakefs.Client) {
	t.Helper()
	c := d.connect(t)
	client := d.bridge.BindClient(c.Ptr)
	t.Cleanup(client.Release)
	return c, client
}

// duckError is a failed statement.
type duckError struct {
	kind duckdb.ErrorType
	text string
}

func (e *duckError) Error() string { return e.text }

// query runs a statement and returns the first column of its rows, which must be text.
func (c duckConn) query(sql string) ([]string, error) {
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.Query(c.Connection, sql, &result) != duckdb.StateSuccess {
		return nil, &duckError{duckdb.ResultErrorType(&result), duckdb.ResultError(&result)}
	}
	var out []string
	for {
		chunk := duckdb.FetchChunk(result)
		if chunk.Ptr == nil {
			return out, nil
		}
		data := duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0))
		n := int(duckdb.DataChunkGetSize(chunk))
		for i := range unsafe.Slice((*duckdb.StringT)(data), n) {
			out = append(out, duckdb.StringTData(&unsafe.Slice((*duckdb.StringT)(data), n)[i]))
		}
		duckdb.DestroyDataChunk(&chunk)
	}
}

// exec runs a statement whose rows do not matter.
func (c duckConn) exec(sql string) error {
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.Query(c.Connection, sql, &result) != duckdb.StateSuccess {
		return &duckError{duckdb.ResultErrorType(&result), duckdb.ResultError(&result)}
	}
	return nil
}

// must runs statements.
func (c duckConn) must(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if err := c.exec(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// want compares the rows of a query.
func (c duckConn) want(t *testing.T, sql string, rows ...string) {
	t.Helper()
	got, err := c.query(sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if !slices.Equal(got, rows) {
		t.Errorf("%s: %q instead of %q", sql, got, rows)
	}
}

// wantError runs a statement that must fail so.
func (c duckConn) wantError(t *testing.T, sql string, kind duckdb.ErrorType, text string) {
	t.Helper()
	err := c.exec(sql)
	var failed *duckError
	if !errors.As(err, &failed) {
		t.Errorf("%s: no error", sql)
		return
	}
	if failed.kind != kind || !strings.Contains(failed.text, text) {
		t.Errorf("%s: error of kind %d: %s; not of %d with %q", sql, failed.kind, failed.text, kind, text)
	}
}

// extensions are the files of DuckDB's extensions that a lake needs, in the order in which they are loaded.
func extensions(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(embeddedtest.Extensions(t), "extensions", duckdb.LibraryVersion(), runtime.GOOS+"_"+runtime.GOARCH)
	var files []string
	for _, name := range []string{"postgres_scanner", "ducklake"} {
		file := filepath.Join(dir, name+".duckdb_extension")
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// attachLake loads the extensions and attaches a lake whose catalog and files are in one database.
func (d *duck) attachLake(t *testing.T, dsn string, files []string) {
	t.Helper()
	for _, file := range files {
		d.admin.must(t, "LOAD '"+file+"'")
	}
	d.admin.must(t,
		"SET GLOBAL parquet_metadata_cache = true",
		"ATTACH 'ducklake:postgres:"+strings.ReplaceAll(dsn, "'", "''")+"' AS lake (DATA_PATH 'pgvfs://lake/data/', DATA_INLINING_ROW_LIMIT 0)",
	)
}

// TestBridge_Lake: a lake's whole life happens over the bridge, on a locked instance, for a client.
func TestBridge_Lake(t *testing.T) {
	files := extensions(t)
	server := embeddedtest.Start(t)
	x := &fixture{dsn: server.DSN(), admin: connect(t, server.DSN())}
	d := openDuck(t, x.open(t, lakefs.Config{}))
	d.attachLake(t, x.dsn, files)
	if err := d.bridge.GuardFunctions(lakefs.InternalFunctions...); err != nil {
		t.Fatal(err)
	}
	d.admin.must(t, "SET GLOBAL allowed_directories = ['pgvfs://lake/data/']", "SET GLOBAL enable_external_access = false")

	c, client := d.client(t)
	for _, sql := range []string{ // contexts that end with their statement do not harm the transaction
		"BEGIN", "CREATE TABLE lake.s (a INT)", "INSERT INTO lake.s VALUES (1)", "INSERT INTO lake.s SELECT a + 1 FROM lake.s",
		"DELETE FROM lake.s WHERE a = 1", "COMMIT", "DROP TABLE lake.s",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		client.SetContext(ctx)
		if sql == "DROP TABLE lake.s" {
			c.want(t, "SELECT a::VARCHAR FROM lake.s", "2")
		}
		c.must(t, sql)
		cancel()
	}
	client.SetContext(t.Context())
	c.must(t,
		"CREATE TABLE lake.t (a INT, b VARCHAR)",
		"INSERT INTO lake.t SELECT range, 'row ' || range FROM range(100000)",
		"INSERT INTO lake.t SELECT range, 'row ' || range FROM range(100000, 200000)",
	)
	x.want(t, 2, "SELECT count(*) FROM pgvfs.files WHERE volume = 'lake' AND path LIKE 'data/main/t/%.parquet'")
	c.want(t, "SELECT format('{} {} {}', count(*), sum(a), max(b)) FROM lake.t", "200000 19999900000 row 99999")
	c.must(t, "DELETE FROM lake.t WHERE a % 10 = 3", "UPDATE lake.t SET b = 'changed' WHERE a = 5")
	c.want(t, "SELECT format('{} {}', count(*), count(*) FILTER (b = 'changed')) FROM lake.t", "180000 1")
	c.must(t,
		"BEGIN", "INSERT INTO lake.t VALUES (-1, 'rolled back')", "ROLLBACK",
		"CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
		"CALL lake.merge_adjacent_files()",
		"CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 HOUR)",
		"CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
		"CALL ducklake_delete_orphaned_files('lake', older_than => now() + INTERVAL 1 HOUR)",
	)
	c.want(t, "SELECT format('{} {}', count(*), min(a)) FROM lake.t", "180000 0")
	x.want(t, 1, "SELECT count(*) FROM pgvfs.files") // all rows merged, all else cleaned up
	x.want(t, true, "SELECT count(*) > 2 FROM pgvfs.garbage")
	x.want(t, 0, "SELECT count(*) FROM pgvfs.files f WHERE f.size <> (SELECT coalesce(sum(octet_length(data)), 0) FROM pgvfs.chunks c WHERE c.file_id = f.file_id)")
	x.wantSound(t)
	c.wantError(t, "SELECT * FROM read_parquet('pgvfs://other/x.parquet')", duckdb.ErrorTypePermission, "disabled")
	c.wantError(t, "COPY (SELECT 1) TO 'pgvfs://lake/x.parquet'", duckdb.ErrorTypePermission, "disabled")

	t.Run("Guard", func(t *testing.T) { guard(t, d, c) })
	t.Run("Databases", func(t *testing.T) { statementDatabases(t, d) })
}

// metadata is the lake's catalog as DuckDB names it.
const metadata = "__ducklake_metadata_lake"

// guard: whatever stands round a call of a guarded function, a client cannot bind it; everybody else can.
func guard(t *testing.T, d *duck, c duckConn) {
	const call = "postgres_query('" + metadata + "', 'SELECT version()')"
	setUp := []string{
		"CREATE VIEW lake.hole AS SELECT * FROM " + call,
		"CREATE MACRO memory.main.hole_macro() AS TABLE SELECT * FROM " + call,
		"CREATE VIEW memory.main.hole AS SELECT * FROM " + call,
	}
	d.admin.must(t, setUp...)
	quoted := strings.ReplaceAll(call, "'", "''")
	for _, sql := range append(setUp,
		"SELECT * FROM "+call,
		"FROM "+strings.ToUpper("postgres_query")+"('"+metadata+"', 'SELECT 1')",
		`FROM "system"."main"."postgres_query"('`+metadata+"', 'SELECT 1')",
		"CALL "+call,
		"SELECT (SELECT version FROM "+call+")",
		"WITH x AS MATERIALIZED (SELECT * FROM "+call+") SELECT 1 FROM x",
		"SELECT * FROM range(3) r, LATERAL (SELECT * FROM "+call+")",
		"EXPLAIN SELECT * FROM "+call,
		"DESCRIBE SELECT * FROM "+call,
		"SUMMARIZE SELECT * FROM "+call,
		"PREPARE p AS SELECT * FROM "+call,
		"SELECT * FROM query('SELECT * FROM "+quoted+"')",
		"SELECT * FROM lake.hole",
		"SELECT * FROM memory.main.hole",
		"SELECT * FROM query_table('memory.main.hole')",
		"SELECT * FROM memory.main.hole_macro()",
		"CREATE TABLE lake.stolen AS SELECT * FROM "+call,
		"COPY (SELECT * FROM "+call+") TO 'pgvfs://lake/data/stolen.parquet'",
		"CALL postgres_execute('"+metadata+"', 'DROP SCHEMA pgvfs CASCADE')",
		"SELECT * FROM postgres_scan('host=x', 'public', 'ducklake_table')",
		"CALL postgres_attach('host=x')",
		"SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM "+quoted+"'))",
		"PRAGMA json_execute_serialized_sql('"+strings.ReplaceAll(serialized(t, d, "SELECT * FROM "+call), "'", "''")+"')",
	) {
		c.wantError(t, sql, duckdb.ErrorTypePermission, "permission denied for function ")
	}
	d.admin.must(t, "SELECT * FROM "+call, "SELECT * FROM memory.main.hole_macro()")

	admin, client := d.client(t)
	client.AllowGuarded()
	admin.must(t, "SELECT * FROM "+call)
	c.must(t, "SELECT count(*) FROM lake.t", "SELECT * FROM query('SELECT 42')")

	// Repeating the guard changes nothing, and a name that cannot be guarded is told.
	if err := d.bridge.GuardFunctions("postgres_query"); err != nil {
		t.Error(err)
	}
	c.wantError(t, "SELECT * FROM "+call, duckdb.ErrorTypePermission, "permission denied for function postgres_query")
	for _, name := range []string{"no_such_function", "upper"} {
		if err := d.bridge.GuardFunctions(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("guard %s: %v", name, err)
		}
	}
	// A function that binds by replacing itself is guarded as well.
	if err := d.bridge.GuardFunctions("duckdb_logs"); err != nil {
		t.Error(err)
	}
	c.wantError(t, "SELECT * FROM duckdb_logs(denormalized_table => true)", duckdb.ErrorTypePermission, "permission denied")
	d.admin.must(t, "SELECT * FROM duckdb_logs(denormalized_table => true)")
}

// serialized is a statement as json_serialize_sql writes it.
func serialized(t *testing.T, d *duck, sql string) string {
	t.Helper()
	rows, err := d.admin.query("SELECT json_serialize_sql('" + strings.ReplaceAll(sql, "'", "''") + "')::VARCHAR")
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]
}

// statementDatabases: every database that a statement touches is named, whatever hides the name.
func statementDatabases(t *testing.T, d *duck) {
	d.admin.must(t,
		"CREATE VIEW memory.main.indirect AS SELECT * FROM "+metadata+".public.ducklake_table",
		"CREATE MACRO memory.main.indirect_macro() AS TABLE SELECT * FROM "+metadata+".public.ducklake_table",
		"CREATE TABLE memory.main.local (i INT)",
	)
	for _, c := range []struct {
		sql           string
		reads, writes []string
	}{
		{"SELECT 1", nil, nil},
		{"SELECT * FROM lake.t", []string{"lake"}, nil},
		{"SELECT * FROM " + metadata + ".public.ducklake_table", []string{metadata}, nil},
		{"SELECT * FROM memory.main.indirect", []string{metadata}, nil},
		{"SELECT * FROM memory.main.indirect_macro()", []string{metadata}, nil},
		{"SELECT * FROM query('FROM " + metadata + ".public.ducklake_table')", []string{metadata}, nil},
		{"SELECT * FROM query_table('" + metadata + ".public.ducklake_table')", []string{metadata}, nil},
		{"SELECT (SELECT count(*) FROM memory.main.indirect), * FROM lake.t", []string{metadata, "lake"}, nil},
		{"INSERT INTO lake.t SELECT i, '' FROM memory.main.local", []string{"memory"}, []string{"lake"}},
		{"DELETE FROM " + metadata + ".public.ducklake_table", []string{metadata}, []string{metadata}},
		{"CREATE TABLE lake.u (a INT)", nil, []string{"lake"}},
		{"DROP TABLE " + metadata + ".public.ducklake_table", nil, []string{metadata}},
	} {
		reads, writes, err := databases(t, d, c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		for _, name := range c.reads {
			if !slices.Contains(reads, name) {
				t.Errorf("%s: reads %q, not %q", c.sql, reads, c.reads)
			}
		}
		if !slices.Equal(writes, c.writes) {
			t.Errorf("%s: writes %q, not %q", c.sql, writes, c.writes)
		}
	}
	if _, _, err := databases(t, d, "SELECT no_such_column"); err == nil {
		t.Error("a statement that could not be prepared has databases")
	}
}

// databases prepares a statement and asks for its databases.
func databases(t *testing.T, d *duck, sql string) (reads, writes []string, err error) {
	t.Helper()
	var prepared duckdb.PreparedStatement
	duckdb.Prepare(d.admin.Connection, sql, &prepared)
	defer duckdb.DestroyPrepare(&prepared)
	reads, writes, err = lakefs.StatementDatabases(prepared.Ptr)
	slices.Sort(reads)
	slices.Sort(writes)
	return reads, writes, err
}

// TestBridge_Files: what DuckDB does with files besides a lake.
func TestBridge_Files(t *testing.T) {
	d := openDuck(t, lakefstest.NewMemory())
	c := d.admin
	c.must(t,
		"COPY (SELECT range AS i, range % 3 AS part FROM range(1000)) TO 'pgvfs://v/a/one.parquet'",
		"COPY (SELECT 1) TO 'pgvfs://v/a/one.csv'",
		"COPY (SELECT 1) TO 'pgvfs://v/a/one.csv.gz'",
		"COPY (SELECT 1 AS x) TO 'pgvfs://v/a-b/one.csv'",
		"COPY (SELECT range AS i, range % 3 AS part FROM range(1000)) TO 'pgvfs://v/parts' (FORMAT parquet, PARTITION_BY part)",
		"COPY (SELECT range AS i, 7 AS part FROM range(10)) TO 'pgvfs://v/parts' (FORMAT parquet, PARTITION_BY part, OVERWRITE_OR_IGNORE)",
	)
	c.want(t, "SELECT count(*)::VARCHAR FROM 'pgvfs://v/a/one.parquet'", "1000")
	c.want(t, "SELECT sum(i)::VARCHAR FROM read_parquet('pgvfs://v/parts/**/*.parquet', hive_partitioning => true) WHERE part < 3", "499500")
	c.want(t, "SELECT file FROM glob('pgvfs://v/a*/*.csv') ORDER BY ALL", "pgvfs://v/a-b/one.csv", "pgvfs://v/a/one.csv")
	c.want(t, "SELECT x::VARCHAR FROM read_csv('pgvfs://v/a-b/one.csv')", "1")
	c.want(t, "SELECT content FROM read_text('pgvfs://v/a-b/one.csv')", "x\n1\n")
	c.want(t, "SELECT format('{} {}', size, last_modified > now()::TIMESTAMP - INTERVAL 1 DAY) FROM read_blob('pgvfs://v/a-b/one.csv')", "4 true")
	c.must(t, "COPY (SELECT 2 AS x) TO 'pgvfs://v/a-b/one.csv'")
	c.want(t, "SELECT x::VARCHAR FROM read_csv('pgvfs://v/a-b/one.csv')", "2")

	c.must(t, "COPY (SELECT range AS i, 8 AS part FROM range(10)) TO 'pgvfs://v/parts' (FORMAT parquet, PARTITION_BY part, OVERWRITE)")
	c.want(t, "SELECT DISTINCT part::VARCHAR FROM read_parquet('pgvfs://v/parts/**/*.parquet', hive_partitioning => true)", "8")

	c.wantError(t, "SELECT * FROM 'pgvfs://v/none.parquet'", duckdb.ErrorTypeErrorIO, "pgvfs://v/none.parquet")
	c.wantError(t, "COPY (SELECT 1) TO 'pgvfs://UPPER/x.csv'", duckdb.ErrorTypeErrorIO, "volume")
	c.wantError(t, "COPY (SELECT error('stop') FROM range(10)) TO 'pgvfs://v/never.csv'", duckdb.ErrorTypeInvalidInput, "stop")
	c.want(t, "SELECT file FROM glob('pgvfs://v/never*')")
	if err := c.exec("ATTACH 'pgvfs://v/x.db' AS x"); err == nil {
		t.Error("a DuckDB database was made on pgvfs, which cannot hold one that changes")
	}
}

// faulty is a store whose reads and writes a test decides about.
type faulty struct {
	*lakefstest.Memory
	reads  atomic.Int64
	onRead func(ctx context.Context) error
	onMake func(ctx context.Context) error
}

func (f *faulty) ReadAt(ctx context.Context, file *lakefs.File, p []byte, off int64) error {
	f.reads.Add(1)
	if f.onRead != nil {
		if err := f.onRead(ctx); err != nil {
			return err
		}
	}
	return f.Memory.ReadAt(ctx, file, p, off)
}

func (f *faulty) Create(ctx context.Context, volume, path string) (lakefs.Writer, error) {
	if f.onMake != nil {
		if err := f.onMake(ctx); err != nil {
			return nil, err
		}
	}
	return f.Memory.Create(ctx, volume, path)
}

// TestBridge_Errors: causes reach the client, whatever they are, and the instance lives on.
func TestBridge_Errors(t *testing.T) {
	store := &faulty{Memory: lakefstest.NewMemory()}
	d := openDuck(t, store)
	d.admin.must(t, "COPY (SELECT 1 AS x) TO 'pgvfs://v/x.csv'", "SET enable_external_file_cache = false")
	const read = "SELECT * FROM read_csv('pgvfs://v/x.csv')"

	store.onRead = func(context.Context) error { return errors.New("the disk is on fire") }
	d.admin.wantError(t, read, duckdb.ErrorTypeErrorIO, "the disk is on fire")
	store.onRead = func(context.Context) error { panic("a bug") }
	d.admin.wantError(t, read, duckdb.ErrorTypeErrorIO, "a bug")
	store.onMake = func(context.Context) error { return lakefs.ErrReadOnly }
	d.admin.wantError(t, "COPY (SELECT 1) TO 'pgvfs://v/y.csv'", duckdb.ErrorTypeErrorIO, "standby")
	store.onRead, store.onMake = nil, nil
	d.admin.want(t, "SELECT x::VARCHAR FROM read_csv('pgvfs://v/x.csv')", "1")

	// With pgvfs:// known already, a second registration is an error, not a crash.
	if _, err := lakefs.Register(d.db.Ptr, store); err == nil {
		t.Error("pgvfs:// was registered twice")
	}
}

// TestBridge_Cancel: the end of a client's statement ends what the store does for it, and nothing else.
func TestBridge_Cancel(t *testing.T) {
	store := &faulty{Memory: lakefstest.NewMemory()}
	d := openDuck(t, store)
	d.admin.must(t, "COPY (SELECT 1 AS x) TO 'pgvfs://v/x.csv'", "SET GLOBAL enable_external_file_cache = false")
	begun := make(chan struct{}, 8)
	block := func(ctx context.Context) error {
		begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	store.onRead, store.onMake = block, block

	c, client := d.client(t)
	for _, sql := range []string{"SELECT * FROM read_csv('pgvfs://v/x.csv')", "COPY (SELECT 1) TO 'pgvfs://v/y.csv'"} {
		ctx, cancel := context.WithCancel(t.Context())
		client.SetContext(ctx)
		time.AfterFunc(0, func() { <-begun; cancel() })
		start := time.Now()
		c.wantError(t, sql, duckdb.ErrorTypeInterrupt, "")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: ended after %v", sql, took)
		}
	}
	store.onRead, store.onMake = nil, nil
	client.SetContext(t.Context())
	c.want(t, "SELECT x::VARCHAR FROM read_csv('pgvfs://v/x.csv')", "1")
}

// TestBridge_Cache: DuckDB asks the store once for bytes that cannot have changed, and anew when a path has another file.
func TestBridge_Cache(t *testing.T) {
	store := &faulty{Memory: lakefstest.NewMemory()}
	d := openDuck(t, store)
	d.admin.must(t, "COPY (SELECT range AS i FROM range(100000)) TO 'pgvfs://v/x.parquet'")
	const read = "SELECT sum(i)::VARCHAR FROM 'pgvfs://v/x.parquet'"
	d.admin.want(t, read, "4999950000")
	cold := store.reads.Swap(0)
	d.admin.want(t, read, "4999950000")
	if warm := store.reads.Load(); cold == 0 || warm != 0 {
		t.Errorf("%d reads cold, %d reads warm", cold, warm)
	}
	d.admin.must(t, "COPY (SELECT 1 AS i) TO 'pgvfs://v/x.parquet'")
	d.admin.want(t, read, "1")
}

// TestBridge_Parallel: many clients at once, opening, reading, writing and leaving.
func TestBridge_Parallel(t *testing.T) {
	d := openDuck(t, lakefstest.NewMemory())
	done := make(chan error)
	const clients = 8
	for i := range clients {
		c, client := d.client(t)
		go func() {
			done <- func() error {
				for n := range 20 {
					ctx, cancel := context.WithCancel(context.Background())
					client.SetContext(ctx)
					url := fmt.Sprintf("pgvfs://v/%d/%d.parquet", i, n)
					err := c.exec("COPY (SELECT range AS i FROM range(5000)) TO '" + url + "'")
					if err == nil {
						err = c.exec("SELECT sum(i) FROM '" + url + "'")
					}
					cancel()
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	d.admin.want(t, "SELECT count(*)::VARCHAR FROM glob('pgvfs://v/**')", "160")
}
