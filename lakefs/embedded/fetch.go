package embedded

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// rootCache is root's cache of programs when its own is closed to PostgreSQL's user.
const rootCache = "/var/cache/sluice"

// fetchable are the versions that can be fetched, by major version.
var fetchable = map[int]embeddedpostgres.PostgresVersion{
	14: embeddedpostgres.V14,
	15: embeddedpostgres.V15,
	16: embeddedpostgres.V16,
	17: embeddedpostgres.V17,
	18: embeddedpostgres.V18,
}

// fetchNewest is the major version of a new cluster whose programs are fetched.
const fetchNewest = 18

// fetchPrograms downloads and unpacks PostgreSQL's programs into the cache, if they are not there already.
func fetchPrograms(ctx context.Context, major int, who *account, o Options) (programs, error) {
	if major == 0 {
		major = fetchNewest
	}
	version, ok := fetchable[major]
	if !ok {
		return programs{}, fmt.Errorf("there is no PostgreSQL %d to fetch", major)
	}
	cache, err := programCache(o.CacheDir, who)
	if err != nil {
		return programs{}, err
	}
	dir := filepath.Join(cache, "postgresql-"+string(version))
	if p, err := inspect(ctx, filepath.Join(dir, "bin"), who); err == nil {
		return p, nil
	}
	o.Logger.Info().Str("version", string(version)).Str("folder", dir).Msg("fetching postgresql")
	if err := unpack(ctx, cache, dir, version); err != nil {
		return programs{}, err
	}
	return inspect(ctx, filepath.Join(dir, "bin"), who)
}

// programCache makes the cache's folder, one that PostgreSQL's user can reach.
func programCache(dir string, who *account) (string, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "sluice")
	}
	if !who.canReach(dir) {
		dir = rootCache
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// unpack lets the module fetch into a folder of this process's own, then renames that into place: another process may
// be doing the same. The module has no call that only fetches: its Start does, and then runs initdb, which a locale that
// exists nowhere ends at once. Port 0 passes its check for a free port. It cannot be cancelled, so a start that is
// given up leaves it to end by itself.
func unpack(ctx context.Context, cache, dir string, version embeddedpostgres.PostgresVersion) error {
	work, err := os.MkdirTemp(cache, "unpack-")
	if err != nil {
		return err
	}
	programs := filepath.Join(work, "programs")
	config := embeddedpostgres.DefaultConfig().Version(version).Port(0).Logger(io.Discard).
		CachePath(work).RuntimePath(filepath.Join(work, "runtime")).DataPath(filepath.Join(work, "data")).
		BinariesPath(programs).Locale("none_such.fetch-only")
	fetched := make(chan error, 1)
	go func() {
		defer os.RemoveAll(work)
		fetched <- publish(embeddedpostgres.NewDatabase(config).Start(), programs, dir)
	}()
	select {
	case err := <-fetched:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// publish moves unpacked programs to their place. cause is why the module stopped: expected once they are complete.
func publish(cause error, programs, dir string) error {
	if _, err := os.Stat(filepath.Join(programs, "bin", "postgres")); err != nil {
		if cause == nil {
			cause = err
		}
		return fmt.Errorf("fetch PostgreSQL's programs: %w", cause)
	}
	if err := os.Chmod(programs, 0o755); err != nil {
		return err
	}
	err := os.Rename(programs, dir)
	if err == nil {
		return nil
	}
	if _, there := os.Stat(filepath.Join(dir, "bin", "postgres")); there == nil {
		return nil // another process was first
	}
	if err := os.RemoveAll(dir); err != nil { // not whole: somebody removed a part of it
		return err
	}
	return os.Rename(programs, dir)
}
