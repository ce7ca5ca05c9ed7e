// Package embeddedtest gives a test an embedded PostgreSQL of its own, and DuckDB's extensions.
package embeddedtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/lakefs/embedded"
)

const (
	startMax = time.Minute // on a busy machine, programs to fetch included
	stopMax  = 20 * time.Second
)

// Start runs a server with an empty database `lake` until the test's end. Its data would not survive a power cut, which
// no test causes: that is what makes it start in a second.
func Start(tb testing.TB) *embedded.Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Options{
		Dir:    Dir(tb),
		Params: map[string]string{"fsync": "off", "synchronous_commit": "off", "shared_buffers": "128MB"},
		Logger: zerolog.New(zerolog.NewTestWriter(tb)).Level(zerolog.WarnLevel),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopMax)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Dir is an empty directory that every user may pass through. A server of root's runs as somebody else, whom
// testing.TB's TempDir locks out.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sluice-test-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Extensions is a data directory whose extensions folder holds DuckDB's extensions. They are fetched once, by the command
// that does it for everybody, into the user's cache folder, where all tests find them.
func Extensions(tb testing.TB) string {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(cache, "sluice-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	fetched, err := filepath.Glob(filepath.Join(dir, "extensions", "*", "*", "ducklake.duckdb_extension"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(fetched) > 0 {
		return dir
	}
	cmd := exec.CommandContext(tb.Context(), "go", "run", "sluice/cmd/sluice", "extensions", "--data-dir", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Skipf("NOT TESTED: DuckDB's extensions could not be fetched: %v\n%s", err, out)
	}
	return dir
}
