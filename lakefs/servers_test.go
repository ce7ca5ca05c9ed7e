package lakefs_test

import (
	"fmt"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// versions of PostgreSQL that the store is tried on: the one that Debian has, and the newest, which is the embedded one.
// With -long it is every version that the store supports.
func versions() []int {
	if *long {
		return []int{14, 15, 16, 17, 18}
	}
	return []int{15, 18}
}

// route is how a store gets to its server.
type route struct {
	name string
	tls  bool
}

var (
	bySocket = route{name: "Socket"}
	byTLS    = route{name: "TLS", tls: true}
)

// routes are the ways to a version's server that all of pgCases take. The usual run takes each way once.
func routes(major int) []route {
	switch {
	case *long:
		return []route{bySocket, byTLS}
	case major < 18:
		return []route{byTLS}
	}
	return []route{bySocket}
}

// TestPG: everything that holds for a store on a primary.
func TestPG(t *testing.T) {
	for _, major := range versions() {
		for _, r := range routes(major) {
			t.Run(fmt.Sprint(major, r.name), func(t *testing.T) {
				t.Parallel()
				runCases(t, newFixture(t, embeddedtest.Cluster(t, embeddedtest.ClusterOptions{Major: major, TLS: r.tls}), r))
			})
		}
	}
}

// newFixture is a server's database, to be reached in one way by the store and by the test.
func newFixture(t *testing.T, server *embeddedtest.ClusterServer, r route) *fixture {
	t.Helper()
	x := &fixture{dsn: server.DSN(), server: server, tls: r.tls}
	if r.tls {
		x.dsn = server.TLSDSN()
	}
	x.admin = connect(t, x.dsn)
	return x
}

// runCases runs pgCases, each on an empty database.
func runCases(t *testing.T, x *fixture) {
	for _, c := range pgCases {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, x)
			x.wantSound(t)
			x.wantTLS(t)
		})
		x.exec(t, "DROP SCHEMA IF EXISTS pgvfs CASCADE; DROP SCHEMA IF EXISTS s3p CASCADE")
	}
}

// wantTLS checks that every session of a store is encrypted, or none, as its way in says.
func (x *fixture) wantTLS(t *testing.T) {
	t.Helper()
	x.want(t, 0, `SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
		WHERE application_name = 'sluice pgvfs' AND ssl <> $1`, x.tls)
}

// suite: every rule for stores, on the fewest connections there can be.
func suite(t *testing.T, x *fixture) {
	open := func(t *testing.T) lakefs.Store { return x.open(t, lakefs.Config{MaxConns: 4}) }
	lakefstest.Run(t, open)
	lakefstest.RunShared(t, lakefstest.Shared{Open: open, Reap: x.reapAll})
	lakefstest.RunFaults(t, open)
}

// reapAll deletes all rows that no file needs, whoever may be reading them. A store's own reap may be at work meanwhile.
func (x *fixture) reapAll(t *testing.T) {
	t.Helper()
	x.await(t, 0, `SELECT pgvfs.reap('0') + (SELECT count(*) FROM pgvfs.garbage)`)
}
