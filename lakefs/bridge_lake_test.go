package lakefs_test

import (
	"fmt"
	"sync"
	"testing"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
)

// openLake is a DuckDB with a lake whose catalog and files are in a PostgreSQL of the test's own.
func openLake(t *testing.T) *duck {
	t.Helper()
	files := extensions(t)
	server := embeddedtest.Start(t)
	x := &fixture{dsn: server.DSN(), admin: connect(t, server.DSN())}
	d := openDuck(t, x.open(t, lakefs.Config{}))
	d.attachLake(t, x.dsn, files)
	return d
}

// TestClient_AllowDatabases refuses what is bound to another database, also where a parameter's value names it.
func TestClient_AllowDatabases(t *testing.T) {
	d := openLake(t)
	d.admin.must(t, "CREATE TABLE lake.t AS SELECT 1 AS i", "CREATE VIEW lake.peek AS SELECT * FROM "+metadata+".public.ducklake_snapshot")
	c, client := d.client(t)
	if err := client.AllowDatabases([]string{"lake", "temp", "system"}, []string{"lake", "temp"}); err != nil {
		t.Fatal(err)
	}
	const snapshots = metadata + ".public.ducklake_snapshot"
	c.must(t, "PREPARE by_value AS SELECT * FROM query($1)", "EXECUTE by_value('SELECT 1')", "PREPARE by_name AS SELECT * FROM query_table($1)")
	c.want(t, "SELECT i::VARCHAR FROM lake.t", "1")
	c.must(t, "INSERT INTO lake.t VALUES (2)", "CREATE TEMP TABLE x AS SELECT 1 AS i", "DROP TABLE temp.x")
	for _, sql := range []string{
		"SELECT * FROM " + snapshots, "SELECT * FROM lake.peek", "SELECT (SELECT max(snapshot_id) FROM " + snapshots + ")",
		"EXECUTE by_value('SELECT * FROM " + snapshots + "')", "EXECUTE by_name('" + snapshots + "')",
		"INSERT INTO lake.t SELECT count(*) FROM query('FROM " + snapshots + "')", "DELETE FROM " + snapshots, "DROP TABLE " + snapshots,
		"CREATE TABLE memory.main.shared(i int)", "EXPLAIN SELECT * FROM " + snapshots,
	} {
		c.wantError(t, sql, duckdb.ErrorTypePermission, "permission denied for database")
	}
	d.admin.want(t, "SELECT count(*)::VARCHAR FROM lake.t", "2")
}

// TestKeepSchemas has many transactions change tables' definitions at once, which crashes DuckLake d8a1881e without it.
func TestKeepSchemas(t *testing.T) {
	const sessions, rounds = 24, 3
	d := openLake(t)
	d.admin.must(t, "SET GLOBAL ducklake_retry_wait_ms = 1")
	var commits sync.Mutex
	var wg sync.WaitGroup
	for n := range sessions {
		c, _ := d.client(t)
		c.must(t, "SELECT * FROM duckdb_schemas() WHERE database_name = 'lake'")
		if err := lakefs.KeepSchemas(c.Ptr); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range rounds {
				for _, sql := range []string{
					fmt.Sprintf("CREATE TABLE lake.k%d(i int)", n), fmt.Sprintf("INSERT INTO lake.k%d VALUES (1)", n), fmt.Sprintf("DROP TABLE lake.k%d", n),
				} {
					if err := transaction(c, sql, &commits); err != nil {
						t.Errorf("%s: %v", sql, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// transaction runs a statement as a transaction of its own that commits alone.
func transaction(c duckConn, sql string, commits *sync.Mutex) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	if err := c.exec(sql); err != nil {
		return err
	}
	commits.Lock()
	defer commits.Unlock()
	return c.exec("COMMIT")
}
