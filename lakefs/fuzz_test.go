package lakefs_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// fuzzFixture is a server for a fuzz target, which each process that fuzzes has its own of.
type fuzzFixture struct {
	fixture
	store *lakefs.PG
}

// fuzzServer starts a server and opens a store on it, until the target's end. The store has no log: nothing may be logged
// to a target while its function runs.
func fuzzServer(f *testing.F) *fuzzFixture {
	f.Helper()
	server := embeddedtest.Start(f)
	keepWorkersTidy(f)
	x := &fuzzFixture{fixture: fixture{dsn: server.DSN(), admin: connect(f, server.DSN())}}
	var err error
	if x.store, err = lakefs.OpenPG(f.Context(), lakefs.Config{DSN: x.dsn}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.store.Close() }) // always nil
	return x
}

// keepWorkersTidy has the processes that fuzz make their servers in a directory of this one's, which removes it: they
// are killed too soon after their last input to do so themselves.
func keepWorkersTidy(f *testing.F) {
	fuzzing, worker := flag.Lookup("test.fuzz"), flag.Lookup("test.fuzzworker")
	if fuzzing.Value.String() != "" && worker.Value.String() != "true" {
		f.Setenv("TMPDIR", embeddedtest.Dir(f))
	}
}

// tableRules are the constraint file_shape's rules for names, as schema.sql has them.
func tableRules(f *testing.F) (volume *regexp.Regexp) {
	f.Helper()
	sql, err := os.ReadFile("schema.sql")
	if err != nil {
		f.Fatal(err)
	}
	rule := regexp.MustCompile(`volume ~ '([^']*)'\s+AND octet_length\(path\) BETWEEN 1 AND 1024\s`).FindSubmatch(sql)
	if rule == nil {
		f.Fatal("schema.sql has other rules for names")
	}
	return regexp.MustCompile(string(rule[1]))
}

// FuzzNames: what may be a volume, a path and a URL is the same for the functions, the table and a store.
func FuzzNames(f *testing.F) {
	volumeRule := tableRules(f)
	for _, seed := range [][2]string{
		{"lake", "data/a.parquet"},
		{"", ""},
		{"a/b", "c"},
		{"l-1.x_y", "/../a%20b"},
		{"-a", "dir/"},
		{"a\n", "a\n"},
		{"é", "é"},
		{"A", "\xff"},
		{strings.Repeat("v", 63), strings.Repeat("p", 1024)},
		{strings.Repeat("v", 64), strings.Repeat("p", 1025)},
		{"a\x00", "a\x00"},
		{"pgvfs:", "/v/p"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, volume, path string) { checkNames(t, volumeRule, volume, path) })
}

// checkNames is FuzzNames for a pair of names.
func checkNames(t *testing.T, volumeRule *regexp.Regexp, volume, path string) {
	volumeOK := volumeRule.MatchString(volume)
	if err := lakefs.CheckVolume(volume); (err == nil) != volumeOK {
		t.Errorf("volume %q: %v", volume, err)
	}
	storable := utf8.ValidString(path) && !strings.Contains(path, "\x00") && len(path) >= 1 && len(path) <= 1024
	pathOK := storable && !strings.HasSuffix(path, "/") // the last is not the table's rule but DuckDB's
	if err := lakefs.CheckPath(path); (err == nil) != pathOK {
		t.Errorf("path %q: %v", path, err)
	}
	url := (&lakefs.File{Volume: volume, Path: path}).URL()
	gotVolume, gotPath, err := lakefs.SplitURL(url)
	if volumeOK && (err != nil || gotVolume != volume || gotPath != path) {
		t.Errorf("%q: %q %q %v", url, gotVolume, gotPath, err)
	}
	if err == nil && (!volumeRule.MatchString(gotVolume) || !strings.HasPrefix(url, lakefs.Scheme+gotVolume)) {
		t.Errorf("%q: %q", url, gotVolume)
	}
	m := lakefstest.NewMemory()
	if _, err := lakefstest.TryPut(t.Context(), m, volume, path, []byte(path)); (err == nil) != (volumeOK && pathOK) {
		t.Fatalf("put %q: %v", url, err)
	} else if err == nil {
		lakefstest.WantFile(t, m, volume, path, []byte(path))
		lakefstest.WantList(t, m, volume, path, 0, path)
	}
	if _, _, err := lakefs.SplitURL(path); err == nil && !strings.HasPrefix(path, lakefs.Scheme) {
		t.Errorf("%q passes for a URL", path)
	}
}

// rangeSizes are the larger files of FuzzRanges. Each is written once.
var rangeSizes = []int{batchBytes - 1, batchBytes, batchBytes + 1, 2*batchBytes + 1, 3*2*batchBytes + 17}

// FuzzRanges: any range of any file is what was written there, from a store in PostgreSQL as from one in memory.
func FuzzRanges(f *testing.F) {
	x := fuzzServer(f)
	stores := []lakefs.Store{lakefstest.NewMemory(), x.store}
	for _, seed := range []struct {
		size        uint16
		off, length int64
	}{
		{0, 0, 0},
		{1, 0, 1},
		{1, 1, 0},
		{1, 1, 1},
		{chunkBytes, chunkBytes - 1, 1},
		{chunkBytes + 1, chunkBytes, 1},
		{3 * chunkBytes, chunkBytes - 1, chunkBytes + 2},
		{100, -1, 1},
		{100, 1<<63 - 1, 100},
		{100, -1 << 63, 100},
		{100, 1 << 32, 1},
		{1<<16 - 1, 3 * batchBytes, 3*batchBytes + 17},
		{1<<16 - 1, chunkBytes - 1, 3*2*batchBytes - chunkBytes},
		{1<<16 - 3, batchBytes, 1},
	} {
		f.Add(seed.size, seed.off, seed.length)
	}
	known := map[int][]*lakefs.File{}
	f.Fuzz(func(t *testing.T, pick uint16, off, length int64) {
		size := int(pick) % (3*chunkBytes + 3)
		if rest := 1<<16 - 1 - int(pick); rest < len(rangeSizes) {
			size = rangeSizes[len(rangeSizes)-1-rest]
		}
		data := lakefstest.Content(uint64(size), size)
		if known[size] == nil {
			for _, s := range stores {
				known[size] = append(known[size], lakefstest.Put(t, s, "ranges", fmt.Sprint(size), data))
			}
		}
		n := int(uint64(length) % uint64(size+2)) // up to one byte too much
		for i, s := range stores {
			p := bytes.Repeat([]byte{0xee}, n)
			err := s.ReadAt(t.Context(), known[size][i], p, off)
			if off < 0 || off > int64(size-n) {
				if err == nil {
					t.Errorf("store %d: %d bytes at %d of %d were read", i, n, off, size)
				}
				continue
			}
			if err != nil || !bytes.Equal(p, data[off:][:n]) {
				t.Errorf("store %d: %d bytes at %d of %d: %v", i, n, off, size, err)
			}
		}
	})
}
