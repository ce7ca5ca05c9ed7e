package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestFetch_NothingInstalled: on a machine without PostgreSQL its programs are fetched, and they work.
func TestFetch_NothingInstalled(t *testing.T) {
	defer func(saved []string) { folders = saved }(folders)
	folders = nil
	t.Setenv("PATH", "/nowhere")
	dir, err := os.MkdirTemp("", "sluice-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, passMode); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(dir, "data"), CacheDir: filepath.Join(dir, "cache"), Logger: zerolog.New(zerolog.NewTestWriter(t))}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	who, err := unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetchPrograms(ctx, 0, who, o); err != nil {
		t.Skipf("PostgreSQL's programs cannot be fetched here: %v", err)
	}
	s, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if major, err := s.home.major(); err != nil || major != fetchNewest {
		t.Errorf("cluster of version %d, %v, want %d", major, err, fetchNewest)
	}
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// TestChoose_Versions: the newest for a new cluster, its own for an existing one, of equals the first.
func TestChoose_Versions(t *testing.T) {
	found := []programs{{"path", 16}, {"a", 15}, {"b", 16}, {"c", 14}}
	for major, want := range map[int]string{0: "path", 14: "c", 15: "a", 16: "path", 17: ""} {
		if p, _ := choose(found, major); p.dir != want {
			t.Errorf("version %d: %q, want %q", major, p.dir, want)
		}
	}
}
