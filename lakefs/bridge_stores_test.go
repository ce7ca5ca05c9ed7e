package lakefs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	duckdb "github.com/duckdb/duckdb-go-bindings"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// lakeDuck is a locked DuckDB with a lake's stores. The lake's files are in pgvfs://lake/data/.
type lakeDuck struct {
	*duck
	own *lakefs.PG
}

// openLakeDuck opens one until the test's end. url is PGVFS_URL.
func openLakeDuck(t *testing.T, server *embeddedtest.ClusterServer, url string) *lakeDuck {
	t.Helper()
	x := &fixture{dsn: server.DSN(), admin: connect(t, server.DSN())}
	d := &lakeDuck{duck: &duck{}, own: x.open(t, lakefs.Config{})}
	stores, err := lakefs.NewStores(lakefs.StoresConfig{
		Own: d.own, DataPath: "pgvfs://lake/data", URL: url, Other: lakefs.Config{Logger: zerolog.Nop()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stores.Close)
	if duckdb.Open("", &d.db) != duckdb.StateSuccess {
		t.Fatal("DuckDB did not open")
	}
	t.Cleanup(func() { duckdb.Close(&d.db) })
	if d.bridge, err = lakefs.RegisterLake(d.db.Ptr, stores); err != nil {
		t.Fatal(err)
	}
	d.admin = d.connect(t)
	d.admin.must(t, "LOAD '"+extensions(t)[0]+"'", "SET GLOBAL allow_persistent_secrets = false")
	if err := d.bridge.GuardFunctions("duckdb_secrets", "which_secret"); err != nil {
		t.Fatal(err)
	}
	d.admin.must(t, "SET GLOBAL allowed_directories = ['pgvfs://']", "SET GLOBAL enable_external_access = false")
	return d
}

// administrator opens a connection that is an administrator's.
func (d *duck) administrator(t *testing.T) duckConn {
	t.Helper()
	c, client := d.client(t)
	client.AllowGuarded()
	return c
}

// ordinary opens a connection of a client that may use the lake and no more.
func (d *duck) ordinary(t *testing.T) duckConn {
	t.Helper()
	c, client := d.client(t)
	if err := client.AllowDatabases([]string{"memory", "system", "temp"}, []string{"memory", "temp"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// inDatabase is the way to another database of a server.
func inDatabase(server *embeddedtest.ClusterServer, name string) string {
	return server.DSN() + " dbname=" + name
}

// signposts are databases of a server, each with the files v/where.csv and w/where.csv that hold its name. All of the
// files have the same IDs, as those of two databases may.
func signposts(t *testing.T, server *embeddedtest.ClusterServer, names ...string) {
	t.Helper()
	for _, name := range names {
		server.Super(t, "CREATE DATABASE "+name+" OWNER sluice")
		p, err := lakefs.OpenPG(t.Context(), lakefs.Config{DSN: inDatabase(server, name)})
		if err != nil {
			t.Fatal(err)
		}
		for _, volume := range []string{"v", "w"} {
			put(t, p, volume, "where.csv", []byte(name))
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// put publishes a file.
func put(t *testing.T, store lakefs.Store, volume, path string, data []byte) {
	t.Helper()
	w, err := store.Create(t.Context(), volume, path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.Write(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// secretSQL creates a secret out of a DSN; no name makes the unnamed one.
func secretSQL(t *testing.T, name, dsn string) string {
	t.Helper()
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("CREATE OR REPLACE SECRET %s (TYPE postgres, HOST '%s', PORT %d, USER '%s', PASSWORD '%s', DATABASE '%s')",
		name, c.Host, c.Port, c.User, c.Password, c.Database)
}

// where reads a signpost.
func where(volume string) string {
	return "SELECT content FROM read_text('pgvfs://" + volume + "/where.csv')"
}

// TestBridge_Stores runs all on one server.
func TestBridge_Stores(t *testing.T) {
	server := embeddedtest.Cluster(t, embeddedtest.ClusterOptions{})
	signposts(t, server, "by_volume", "by_setting", "by_url", "by_default")
	d := openLakeDuck(t, server, "")
	for _, c := range []struct {
		name string
		run  func(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer)
	}{
		{"Order", credentialOrder},
		{"Refused", refusedSecrets},
		{"Own", ownVolume},
		{"Clients", clientPaths},
		{"Secrets", clientSecrets},
		{"Drop", dropVolumes},
		{"Parallel", parallelRoutes},
		{"SharedCaches", sharedCaches},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, d, server) })
	}
}

// credentialOrder: of four ways to name a volume's database the first that is there is taken, anew for each statement.
func credentialOrder(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer) {
	c := d.administrator(t)
	for _, name := range []string{"pgvfs_v", "pgvfs_secret", "PGVFS_URL", "unnamed postgres secret"} {
		c.wantError(t, where("v"), duckdb.ErrorTypeInvalidInput, name)
	}
	c.must(t, secretSQL(t, "", inDatabase(server, "by_default")))
	c.want(t, where("v"), "by_default")
	c.must(t, secretSQL(t, "mine", inDatabase(server, "by_setting")), "SET pgvfs_secret = 'mine'")
	c.want(t, where("v"), "by_setting")
	d.administrator(t).want(t, where("v"), "by_default") // the setting is the session's
	c.must(t, secretSQL(t, "pgvfs_v", inDatabase(server, "by_volume")))
	c.want(t, where("v"), "by_volume")
	c.want(t, where("w"), "by_setting")
	c.must(t, "SET pgvfs_secret = 'nobody'")
	c.want(t, where("v"), "by_volume")
	c.wantError(t, where("w"), duckdb.ErrorTypeInvalidInput, `"nobody"`)
	c.must(t, "SET GLOBAL pgvfs_secret = 'mine'", "RESET pgvfs_secret", "DROP SECRET pgvfs_v")
	d.administrator(t).want(t, where("v"), "by_setting")
	c.must(t, "SET GLOBAL pgvfs_secret = ''")

	withURL := openLakeDuck(t, server, inDatabase(server, "by_url"))
	u := withURL.administrator(t)
	u.must(t, secretSQL(t, "", inDatabase(server, "by_default")))
	u.want(t, where("v"), "by_url")
	u.must(t, secretSQL(t, "mine", inDatabase(server, "by_setting")), "SET pgvfs_secret = 'mine'")
	u.want(t, where("v"), "by_setting")

	// A secret is seen by the transaction that creates it, and by others once it has committed.
	c.must(t, "BEGIN", secretSQL(t, "pgvfs_v", inDatabase(server, "by_volume")))
	c.want(t, where("v"), "by_volume")
	d.administrator(t).want(t, where("v"), "by_default")
	c.must(t, "ROLLBACK")
	c.want(t, where("v"), "by_default")
	c.must(t, "DROP SECRET __default_postgres", "DROP SECRET mine")
}

// refusedSecrets: a secret that cannot be used as it says is an error, which does not tell what is secret.
func refusedSecrets(t *testing.T, d *lakeDuck, _ *embeddedtest.ClusterServer) {
	const password = "do-not-tell"
	c := d.administrator(t)
	for _, r := range []struct {
		options, text string
		kind          duckdb.ErrorType
	}{
		{"TYPE http, BEARER_TOKEN '" + password + "'", "of type http, not postgres", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, PASSWORD '" + password + "', AWS_RDS_SECRET 'x'", "aws_rds_secret", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, PASSWORD '" + password + "', PASSFILE '/etc/passwd'", "passfile", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, PASSWORD '" + password + "', SSLROOTCERT '/etc/passwd'", "sslrootcert", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, PASSWORD '" + password + "', SERVICE 'x'", "service", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, URI 'postgres://me:" + password + "@localhost/x?sslkey=/etc/passwd'", "an option", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, URI 'postgres://me:" + password + "@localhost:port/x'", "malformed", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, URI 'me " + password + "'", "malformed", duckdb.ErrorTypeInvalidInput},
		{"TYPE postgres, HOST '192.0.2.1', SSLMODE 'disable', PASSWORD '" + password + "'", "would not be encrypted", duckdb.ErrorTypeErrorIO},
		{"TYPE postgres, HOST 'localhost', PORT '1', USER 'me', PASSWORD '" + password + "'", "failed to connect", duckdb.ErrorTypeErrorIO},
		{"TYPE postgres, HOST 'localhost', PORT 'x''y\\z', PASSWORD '" + password + "'", "parse the DSN", duckdb.ErrorTypeErrorIO},
	} {
		c.must(t, "CREATE OR REPLACE SECRET pgvfs_v ("+r.options+")")
		for _, sql := range []string{
			where("v"), "COPY (SELECT 1) TO 'pgvfs://v/x.csv'", "SELECT pgvfs_drop_volume('v')", "FROM glob('pgvfs://v/*')",
		} {
			c.wantError(t, sql, r.kind, r.text)
			if err := c.exec(sql); err == nil || strings.Contains(err.Error(), password) {
				t.Errorf("%s: %s: %v", r.options, sql, err)
			}
		}
	}
	c.must(t, "DROP SECRET pgvfs_v")
}

// ownVolume: no secret leads the lake's volume elsewhere, for nobody.
func ownVolume(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer) {
	c := d.administrator(t)
	c.must(t, secretSQL(t, "pgvfs_lake", inDatabase(server, "by_volume")), secretSQL(t, "", inDatabase(server, "by_default")),
		secretSQL(t, "mine", inDatabase(server, "by_setting")), "SET GLOBAL pgvfs_secret = 'mine'",
		"COPY (SELECT 1 AS i) TO 'pgvfs://lake/data/inside.csv'", "COPY (SELECT 2 AS i) TO 'pgvfs://lake/beside.csv'")
	paths, err := d.own.List(t.Context(), "lake", "", 0)
	if want := []string{"beside.csv", "data/inside.csv"}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("the lake's own store has %q (%v), not %q", paths, err, want)
	}
	const inside = "SELECT i::VARCHAR FROM read_csv('pgvfs://lake/data/inside.csv')"
	for _, who := range []duckConn{c, d.ordinary(t), d.admin} {
		who.want(t, inside, "1")
	}
	c.want(t, "SELECT i::VARCHAR FROM read_csv('pgvfs://lake/beside.csv')", "2")
	c.must(t, "SET GLOBAL pgvfs_secret = ''", "DROP SECRET pgvfs_lake", "DROP SECRET __default_postgres", "DROP SECRET mine")
}

// clientPaths: who is no administrator reaches the lake's files and nothing else, whatever stands round the path.
func clientPaths(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer) {
	admin := d.administrator(t)
	admin.must(t, secretSQL(t, "pgvfs_v", inDatabase(server, "by_volume")))
	admin.want(t, where("v"), "by_volume")
	admin.must(t,
		"CREATE VIEW memory.main.by_admin AS "+where("v"),
		"CREATE MACRO memory.main.any_file(p) AS TABLE SELECT content FROM read_text(p)",
		"CREATE MACRO memory.main.drop_it() AS pgvfs_drop_volume('v')",
		"CREATE TABLE memory.main.paths AS SELECT 'pgvfs://v/where.csv' AS p",
	)
	admin.want(t, "FROM memory.main.by_admin", "by_volume")
	c := d.ordinary(t)
	for _, path := range []string{
		"pgvfs://v/where.csv", "pgvfs://lake/beside.csv", "pgvfs://lake/data.csv", "pgvfs://lake/dat*/*", "pgvfs://lake/**",
		"pgvfs://lake/data", "pgvfs://lake", "pgvfs://other/*",
	} {
		for _, sql := range []string{
			"FROM read_text('%s')", "FROM read_blob('%s')", "FROM read_csv('%s')", "FROM read_json('%s')", "FROM read_parquet('%s')",
			"FROM parquet_metadata('%s')", "FROM parquet_schema(['%s'])", "FROM glob('%s')", "FROM sniff_csv('%s')",
			"FROM read_duckdb('%s', table_name => 't')", "SELECT * FROM memory.main.any_file('%s')",
			"FROM query('FROM read_text(''%s'')')", "EXPLAIN FROM read_text('%s')", "DESCRIBE FROM read_csv('%s')",
			"PREPARE p AS FROM read_text('%s')", "WITH x AS MATERIALIZED (FROM read_text('%s')) SELECT 1 FROM x",
			"SELECT (SELECT content FROM read_text('%s'))", "CREATE TABLE memory.main.stolen AS FROM read_text('%s')",
			"COPY (SELECT 1) TO '%s'", "COPY (SELECT 1 AS i, 2 AS j) TO '%s' (FORMAT parquet, PARTITION_BY i)",
			"COPY memory.main.paths FROM '%s'", "ATTACH '%s' AS attached (READ_ONLY)",
		} {
			c.wantError(t, fmt.Sprintf(sql, path), duckdb.ErrorTypePermission, "permission denied for pgvfs://")
		}
	}
	for _, sql := range []string{
		"FROM 'pgvfs://v/where.csv'", `FROM "pgvfs://v/where.csv"`, "FROM read_csv(['pgvfs://lake/data/inside.csv', 'pgvfs://v/where.csv'])",
		"FROM memory.main.by_admin", "EXPORT DATABASE memory TO 'pgvfs://v/all'", "EXPORT DATABASE memory TO 'pgvfs://lake'",
		"SET VARIABLE p = 'pgvfs://v/where.csv'; FROM read_text(getvariable('p'))",
		"COPY (FROM read_text('pgvfs://lake/data/inside.csv')) TO 'pgvfs://v/copied.csv'",
	} {
		c.wantError(t, sql, duckdb.ErrorTypePermission, "permission denied for pgvfs://")
	}
	c.must(t, "PREPARE by_value AS FROM query($1)")
	c.wantError(t, "EXECUTE by_value('"+strings.ReplaceAll(where("v"), "'", "''")+"')", duckdb.ErrorTypePermission, "permission denied for pgvfs://")

	// What was theirs stays theirs, and what is nobody's connection has no more.
	c.want(t, "SELECT file FROM glob('pgvfs://lake/data/**')", "pgvfs://lake/data/inside.csv")
	c.must(t, "COPY (SELECT 1 AS i) TO 'pgvfs://lake/data/theirs.csv'")
	c.want(t, "SELECT i::VARCHAR FROM read_csv('pgvfs://lake/data/th*.csv')", "1")
	d.admin.wantError(t, where("v"), duckdb.ErrorTypePermission, "permission denied for pgvfs://v/where.csv")
	d.admin.wantError(t, "FROM read_text('pgvfs://lake/beside.csv')", duckdb.ErrorTypePermission, "permission denied")
	admin.wantError(t, "FROM read_text('/etc/hostname')", duckdb.ErrorTypePermission, "disabled")
	admin.must(t, "DROP SECRET pgvfs_v")
}

// clientSecrets: secrets are administrators', to make, to drop and to look at.
func clientSecrets(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer) {
	admin, c := d.administrator(t), d.ordinary(t)
	admin.must(t, secretSQL(t, "pgvfs_v", inDatabase(server, "by_volume")))
	for _, sql := range []string{
		"CREATE SECRET stray (TYPE postgres)", "CREATE OR REPLACE TEMPORARY SECRET pgvfs_v (TYPE postgres)",
		"CREATE\u00a0SECRET stray (TYPE postgres)", "CREATE SECRET IF NOT EXISTS pgvfs_v (TYPE http)",
		"DROP SECRET pgvfs_v", "DROP SECRET IF EXISTS nobodys", "DROP TEMPORARY SECRET pgvfs_v",
		"FROM duckdb_secrets()", "FROM which_secret('pgvfs://v/', 'postgres')", "FROM query('FROM duckdb_secrets()')",
	} {
		c.wantError(t, sql, duckdb.ErrorTypePermission, "permission denied for ")
	}
	admin.want(t, "SELECT name FROM duckdb_secrets()", "pgvfs_v")
	admin.want(t, "SELECT (contains(secret_string, 'password=redacted') AND NOT contains(secret_string, '"+server.Password()+"'))::VARCHAR FROM duckdb_secrets()", "true")
	admin.must(t, "DROP SECRET pgvfs_v")
	c.must(t, "CREATE TEMP TABLE x (i INT)", "CREATE TEMP VIEW y AS SELECT 1", "CREATE TABLE IF NOT EXISTS memory.main.z AS SELECT 1",
		"DROP TABLE x", "DROP VIEW y", "DROP TABLE IF EXISTS nothing", "CREATE MACRO memory.main.m(a) AS a", "DROP TABLE memory.main.z")
}

// dropVolumes: exactly a volume, once for each row, and only for administrators.
func dropVolumes(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer) {
	admin := d.administrator(t)
	admin.must(t, secretSQL(t, "", inDatabase(server, "by_default")),
		"COPY (SELECT 1 AS i) TO 'pgvfs://gone/a.csv'", "COPY (SELECT 1 AS i) TO 'pgvfs://gone/b/c.csv'",
		"COPY (SELECT 1 AS i) TO 'pgvfs://gone-not/a.csv'", "COPY (SELECT 1 AS i) TO 'pgvfs://one/a.csv'",
		"COPY (SELECT 1 AS i) TO 'pgvfs://two/a.csv'", "COPY (SELECT 1 AS i) TO 'pgvfs://two/b.csv'")
	admin.want(t, "SELECT i::VARCHAR FROM read_csv('pgvfs://gone/a.csv')", "1")
	admin.must(t, "PREPARE drop_it AS SELECT pgvfs_drop_volume($1)::VARCHAR")
	admin.must(t, "EXPLAIN SELECT pgvfs_drop_volume('gone')")
	admin.want(t, "EXECUTE drop_it('gone')", "2")
	admin.want(t, "EXECUTE drop_it('gone')", "0")
	admin.wantError(t, "FROM read_csv('pgvfs://gone/a.csv')", duckdb.ErrorTypeErrorIO, "gone/a.csv") // also not from a cache
	admin.want(t, "SELECT file FROM glob('pgvfs://gone-not/*')", "pgvfs://gone-not/a.csv")
	admin.want(t, "SELECT coalesce(pgvfs_drop_volume(NULL)::VARCHAR, 'NULL')", "NULL")
	admin.want(t, "SELECT coalesce(pgvfs_drop_volume(v)::VARCHAR, 'NULL') FROM (VALUES ('two'), (NULL), ('one'), ('two')) t(v)", "2", "NULL", "1", "0")
	admin.must(t, "COPY (SELECT 1 AS i) TO 'pgvfs://one/a.csv'")
	admin.want(t, "SELECT pgvfs_drop_volume('one')::VARCHAR FROM range(3)", "1", "0", "0") // not folded into one
	for _, volume := range []string{"'UPPER'", "''", "'a/b'", "'*'", "'a' || chr(0)", "'" + strings.Repeat("a", 64) + "'"} {
		admin.wantError(t, "SELECT pgvfs_drop_volume("+volume+")", duckdb.ErrorTypeInvalidInput, "volume")
	}
	admin.wantError(t, "SELECT pgvfs_drop_volume()", duckdb.ErrorTypeBinder, "pgvfs_drop_volume")

	// The lake's own volume is in the lake's own database, also when it is dropped.
	admin.must(t, secretSQL(t, "pgvfs_lake", inDatabase(server, "by_volume")))
	paths, err := d.own.List(t.Context(), "lake", "", 0)
	if err != nil || len(paths) == 0 {
		t.Fatalf("the lake has the files %q: %v", paths, err)
	}
	for _, c := range []duckConn{d.ordinary(t), d.admin} { // a client, and nobody's connection
		for _, sql := range []string{
			"SELECT pgvfs_drop_volume('lake')", "SELECT pgvfs_drop_volume(NULL)", "PREPARE p AS SELECT pgvfs_drop_volume($1)",
			"SELECT memory.main.drop_it()", "EXPLAIN SELECT pgvfs_drop_volume('lake')",
			"FROM query('SELECT pgvfs_drop_volume(''lake'')')", "SELECT 1 WHERE pgvfs_drop_volume('lake') > 0",
		} {
			c.wantError(t, sql, duckdb.ErrorTypePermission, "permission denied for function pgvfs_drop_volume")
		}
	}
	admin.want(t, "SELECT pgvfs_drop_volume('lake')::VARCHAR", fmt.Sprint(len(paths)))
	admin.must(t, "DROP SECRET pgvfs_lake", "DROP SECRET __default_postgres")
}

// parallelRoutes: threads of several statements find their stores while secrets come and go.
func parallelRoutes(t *testing.T, d *lakeDuck, server *embeddedtest.ClusterServer) {
	const readers, rounds, parts = 4, 10, 8
	secret := secretSQL(t, "pgvfs_many", inDatabase(server, "by_volume"))
	d.administrator(t).must(t, "SET GLOBAL threads = 8", secret,
		fmt.Sprintf("COPY (SELECT range AS i, range %% %d AS p FROM range(4000)) TO 'pgvfs://many/all' (FORMAT parquet, PARTITION_BY p)", parts))
	var wg sync.WaitGroup
	for range readers {
		c, changer := d.administrator(t), d.administrator(t)
		wg.Go(func() {
			for range rounds {
				rows, err := c.query("SELECT sum(i)::VARCHAR FROM 'pgvfs://many/all/*/*.parquet'")
				if err != nil || len(rows) != 1 || rows[0] != "7998000" {
					t.Errorf("%q, %v", rows, err)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				if err := changer.exec(strings.Replace(secret, "pgvfs_many", "pgvfs_else", 1)); err != nil && !strings.Contains(err.Error(), "onflict") {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// stuck is a store that never finishes removing.
type stuck struct {
	*lakefstest.Memory
	begun chan struct{}
}

func (s *stuck) RemovePrefix(ctx context.Context, _, _ string) (int64, error) {
	close(s.begun)
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

// TestBridge_DropCancelled: dropping a volume ends with its statement.
func TestBridge_DropCancelled(t *testing.T) {
	store := &stuck{lakefstest.NewMemory(), make(chan struct{})}
	d := openDuck(t, store)
	c, client := d.client(t)
	client.AllowGuarded()
	ctx, cancel := context.WithCancel(t.Context())
	client.SetContext(ctx)
	go func() {
		<-store.begun
		cancel()
	}()
	c.wantError(t, "SELECT pgvfs_drop_volume('v')", duckdb.ErrorTypeInterrupt, "")
}
