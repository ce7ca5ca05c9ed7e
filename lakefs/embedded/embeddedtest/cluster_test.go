package embeddedtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"sluice/lakefs/embedded/embeddedtest"
)

// TestCluster_Standby: a standby shows what its primary has, goes on after a restart of either, and becomes a primary.
func TestCluster_Standby(t *testing.T) {
	const major = 18
	primary := embeddedtest.Cluster(t, embeddedtest.ClusterOptions{Major: major, TLS: true})
	if primary.Major() != major {
		t.Errorf("version %d", primary.Major())
	}
	primary.Super(t, `CREATE TABLE t AS SELECT 1 AS i`)
	standby := primary.Standby(t)
	for i, restart := range []func(testing.TB){primary.Restart, standby.Restart, nil} {
		primary.Super(t, `INSERT INTO t VALUES (1)`)
		standby.CatchUp(t)
		if n := standby.Value(t, `SELECT count(*) FROM t`); n != int64(i+2) {
			t.Errorf("%v rows", n)
		}
		if restart != nil {
			restart(t)
		}
	}
	standby.Promote(t)
	standby.Super(t, `INSERT INTO t VALUES (1)`)
}

// TestCluster_TLS: the service role's ways in.
func TestCluster_TLS(t *testing.T) {
	s := embeddedtest.Cluster(t, embeddedtest.ClusterOptions{TLS: true})
	for dsn, want := range map[string]bool{
		s.DSN():                               false,
		s.TLSDSN():                            true,
		s.TCP("localhost", "sslmode=disable"): false,
	} {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var got bool
		if err := conn.QueryRow(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`).Scan(&got); err != nil || got != want {
			t.Errorf("TLS %t %v", got, err)
		}
	}
}
