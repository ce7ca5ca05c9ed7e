package lakefstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/lakefs"
)

const (
	rowBytes   = 8120            // sizes around the bounds of layout v2, which mean nothing to other stores
	batchBytes = 516 * rowBytes  // what a writer sends at once
	pieceBytes = 1032 * rowBytes // what a reader asks for at once
)

// cases are the rules, each tried in a volume of its own.
var cases = []struct {
	name string
	run  func(t *testing.T, s lakefs.Store, volume string)
}{
	{"RoundTripRanges", roundTripRanges},
	{"ReadBeyondEnd", readBeyondEnd},
	{"AbandonedWrite", abandonedWrite},
	{"CancelledWrite", cancelledWrite},
	{"WriterEnds", writerEnds},
	{"Overwrite", overwrite},
	{"ListRemoveRename", listRemoveRename},
	{"RemovePrefixes", removePrefixes},
	{"ListingRanges", listingRanges},
	{"Glob", globs},
	{"ConsistentWhileWriting", consistentWhileWriting},
	{"ConcurrentWriters", concurrentWriters},
	{"ConcurrentPublish", concurrentPublish},
	{"ManyOpenWriters", manyOpenWriters},
	{"Names", names},
}

// Run tries a kind of store. open gives a store for each case; it may be the same one, if it was empty before Run.
func Run(t *testing.T, open func(t *testing.T) lakefs.Store) {
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t), fmt.Sprintf("case-%d", i)) })
	}
}

// Content is size bytes that are different for each seed and do not repeat.
func Content(seed uint64, size int) []byte {
	data := make([]byte, size)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	random := rand.NewChaCha8(key)
	_, _ = random.Read(data) // never fails
	return data
}

// Put writes a file whole.
func Put(tb testing.TB, s lakefs.Store, volume, path string, data []byte) *lakefs.File {
	tb.Helper()
	f, err := TryPut(tb.Context(), s, volume, path, data)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// TryPut is Put for a write that may fail.
func TryPut(ctx context.Context, s lakefs.Store, volume, path string, data []byte) (*lakefs.File, error) {
	w, err := s.Create(ctx, volume, path)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	for part := range slices.Chunk(data, 1<<20-1) {
		if err := w.Write(ctx, part); err != nil {
			return nil, err
		}
	}
	if w.Size() != int64(len(data)) {
		return nil, fmt.Errorf("the writer counts %d bytes instead of %d", w.Size(), len(data))
	}
	return w.Close(ctx)
}

// Get reads a file whole.
func Get(ctx context.Context, s lakefs.Store, volume, path string) ([]byte, error) {
	f, err := s.Open(ctx, volume, path)
	if err != nil {
		return nil, err
	}
	data := make([]byte, f.Size)
	return data, s.ReadAt(ctx, f, data, 0)
}

// WantFile fails the test unless the file is there with just these bytes.
func WantFile(tb testing.TB, s lakefs.Store, volume, path string, data []byte) {
	tb.Helper()
	got, err := Get(tb.Context(), s, volume, path)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		tb.Errorf("%s holds %d other bytes than the %d wanted", path, len(got), len(data))
	}
}

// WantNone fails the test if the file is there.
func WantNone(tb testing.TB, s lakefs.Store, volume, path string) {
	tb.Helper()
	if _, err := s.Open(tb.Context(), volume, path); !errors.Is(err, lakefs.ErrNotExist) {
		tb.Errorf("open %s: %v", path, err)
	}
	if found, err := s.Exists(tb.Context(), volume, path); err != nil || found {
		tb.Errorf("exists %s: %t %v", path, found, err)
	}
}

// WantList fails the test unless these are the paths with a prefix.
func WantList(tb testing.TB, s lakefs.Store, volume, prefix string, limit int, want ...string) {
	tb.Helper()
	got, err := s.List(tb.Context(), volume, prefix, limit)
	if err != nil || !slices.Equal(got, want) {
		tb.Errorf("list %q, limit %d: %q %v, not %q", prefix, limit, got, err, want)
	}
}

// wantIs fails the test unless err is or wraps target.
func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("%v, not %v", err, target)
	}
}

// roundTripRanges: files whose sizes lie around the bounds of rows, batches and pieces, whole and in parts.
func roundTripRanges(t *testing.T, s lakefs.Store, volume string) {
	sizes := []int{0, 1, rowBytes - 1, rowBytes, rowBytes + 1, batchBytes - 1, batchBytes, batchBytes + 5, 2 * batchBytes, 3*pieceBytes + 17}
	for i, size := range sizes {
		path, data := fmt.Sprint("size/", size), Content(uint64(i), size)
		f := Put(t, s, volume, path, data)
		if f.Size != int64(size) || f.Volume != volume || f.Path != path {
			t.Errorf("published %+v for %d bytes at %s", f, size, path)
		}
		WantFile(t, s, volume, path, data)
		for _, r := range [][2]int{{0, 1}, {0, size}, {size / 2, 1}, {size / 3, size / 2}, {rowBytes - 1, 2}, {rowBytes, rowBytes}, {size - 1, 1}, {size, 0}} {
			wantRange(t, s, f, data, r[0], r[1])
		}
	}
}

// wantRange reads a part of a file, if it has such a part.
func wantRange(t *testing.T, s lakefs.Store, f *lakefs.File, data []byte, off, length int) {
	t.Helper()
	if off < 0 || off+length > len(data) {
		return
	}
	got := make([]byte, length)
	if err := s.ReadAt(t.Context(), f, got, int64(off)); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(got, data[off:off+length]) {
		t.Errorf("%s: other bytes at %d, length %d", f.Path, off, length)
	}
}

// readBeyondEnd: a range must lie within the file.
func readBeyondEnd(t *testing.T, s lakefs.Store, volume string) {
	f := Put(t, s, volume, "f", Content(1, 100))
	for _, r := range [][2]int64{{100, 1}, {99, 2}, {-1, 1}, {0, 101}, {1 << 40, 1}} {
		if err := s.ReadAt(t.Context(), f, make([]byte, r[1]), r[0]); err == nil {
			t.Errorf("%d bytes at %d of 100 could be read", r[1], r[0])
		}
	}
}

// abandonedWrite: an aborted file is never seen, and what was at its path stays.
func abandonedWrite(t *testing.T, s lakefs.Store, volume string) {
	old := Content(1, 1000)
	Put(t, s, volume, "old", old)
	for _, path := range []string{"old", "new"} {
		w, err := s.Create(t.Context(), volume, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), Content(2, 2*batchBytes+1)); err != nil {
			t.Error(err)
		}
		w.Abort()
		w.Abort()
		if err := w.Write(t.Context(), []byte{1}); err == nil {
			t.Error("an aborted writer can be written to")
		}
		if _, err := w.Close(t.Context()); err == nil {
			t.Error("an aborted writer can be closed")
		}
	}
	WantFile(t, s, volume, "old", old)
	WantNone(t, s, volume, "new")
}

// cancelledWrite: a context that ends takes the file with it, whether Create's or the call's.
func cancelledWrite(t *testing.T, s lakefs.Store, volume string) {
	for path, pick := range map[string]func(created, call context.Context) context.Context{
		"create's": func(created, _ context.Context) context.Context { return created },
		"call's":   func(_, call context.Context) context.Context { return call },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := s.Create(pick(ctx, t.Context()), volume, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), Content(3, 2*batchBytes)); err != nil {
			t.Error(err)
		}
		cancel()
		_, err = w.Close(pick(t.Context(), ctx))
		wantIs(t, err, context.Canceled)
		w.Abort()
		WantNone(t, s, volume, path)
	}
}

// writerEnds: a closed writer stays closed, and Abort after Close takes nothing back.
func writerEnds(t *testing.T, s lakefs.Store, volume string) {
	w, err := s.Create(t.Context(), volume, "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), []byte("text")); err != nil {
		t.Error(err)
	}
	WantNone(t, s, volume, "f")
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := w.Close(t.Context()); err == nil {
		t.Error("a writer can be closed twice")
	}
	WantFile(t, s, volume, "f", []byte("text"))
}

// overwrite: a new file has a new ID, and whoever has the old one open reads on.
func overwrite(t *testing.T, s lakefs.Store, volume string) {
	old, young := Content(1, 20_000), Content(2, 30_000)
	before := Put(t, s, volume, "f", old)
	WantFile(t, s, volume, "f", old)
	after := Put(t, s, volume, "f", young)
	if before.ID == after.ID {
		t.Error("the ID stayed")
	}
	WantFile(t, s, volume, "f", young)
	wantRange(t, s, before, old, 0, len(old))
}

// listRemoveRename: the calls on names.
func listRemoveRename(t *testing.T, s lakefs.Store, volume string) {
	for _, path := range []string{"a/2", "a/1", "a_1", "b"} {
		Put(t, s, volume, path, []byte(path))
	}
	WantList(t, s, volume, "a/", 0, "a/1", "a/2")
	WantList(t, s, volume, "a_", 0, "a_1") // no wildcard
	WantList(t, s, volume, "", 2, "a/1", "a/2")
	if err := s.Remove(t.Context(), volume, "a/2"); err != nil {
		t.Error(err)
	}
	wantIs(t, s.Remove(t.Context(), volume, "a/2"), lakefs.ErrNotExist)
	wantIs(t, s.Remove(t.Context(), volume, ""), lakefs.ErrNotExist)
	WantFile(t, s, volume, "b", []byte("b"))
	if err := s.Rename(t.Context(), volume, "a/1", "b"); err != nil {
		t.Error(err)
	}
	WantFile(t, s, volume, "b", []byte("a/1"))
	WantNone(t, s, volume, "a/1")
	wantIs(t, s.Rename(t.Context(), volume, "a/1", "b"), lakefs.ErrNotExist)
	WantFile(t, s, volume, "b", []byte("a/1"))
	if err := s.Rename(t.Context(), volume, "b", "b"); err != nil {
		t.Error(err)
	}
	wantIs(t, s.Rename(t.Context(), volume, "none", "none"), lakefs.ErrNotExist)
	WantList(t, s, volume, "", 0, "a_1", "b")
}

// removePrefixes: a prefix is text, not a directory, and ends at the volume.
func removePrefixes(t *testing.T, s lakefs.Store, volume string) {
	other := volume + "-other"
	for _, path := range []string{"a/1", "a/2", "a/b/3", "ab", "b"} {
		Put(t, s, volume, path, nil)
		Put(t, s, other, path, nil)
	}
	for _, step := range []struct {
		prefix string
		count  int64
	}{{"a/", 3}, {"a/", 0}, {"", 2}, {"", 0}} {
		if n, err := s.RemovePrefix(t.Context(), volume, step.prefix); err != nil || n != step.count {
			t.Errorf("remove everything under %q: %d %v, not %d", step.prefix, n, err, step.count)
		}
	}
	WantList(t, s, volume, "", 0)
	WantList(t, s, other, "", 0, "a/1", "a/2", "a/b/3", "ab", "b")
}

// listingRanges: prefixes that end anywhere, also within what sorts oddly in most locales.
func listingRanges(t *testing.T, s lakefs.Store, volume string) {
	paths := []string{"Data", "da", "data", "data-1", "data/1", "data/2", "data0", "dau", "é", "é/1", "z\U0010FFFF", "z\U0010FFFF/1"}
	for _, path := range paths {
		Put(t, s, volume, path, nil)
	}
	slices.Sort(paths)
	for _, prefix := range []string{"", "data/", "data", "dat", "d", "é", "z\U0010FFFF", "z", "none"} {
		var want []string
		for _, path := range paths {
			if strings.HasPrefix(path, prefix) {
				want = append(want, path)
			}
		}
		WantList(t, s, volume, prefix, 0, want...)
		WantList(t, s, volume, prefix, 1, want[:min(1, len(want))]...)
	}
	if n, err := s.RemovePrefix(t.Context(), volume, "data"); err != nil || n != 5 {
		t.Errorf("removed %d %v", n, err)
	}
	WantList(t, s, volume, "da", 0, "da", "dau")
}

// globs: see TestMatchPath for the patterns themselves.
func globs(t *testing.T, s lakefs.Store, volume string) {
	for _, path := range []string{"a/x.parquet", "a/y.parquet", "a/b/z.parquet", "a/y.csv", "c"} {
		Put(t, s, volume, path, nil)
	}
	for pattern, want := range map[string][]string{
		"a/*.parquet":    {"a/x.parquet", "a/y.parquet"},
		"a/**/*.parquet": {"a/b/z.parquet", "a/x.parquet", "a/y.parquet"},
		"a/[xz].*":       {"a/x.parquet"},
		"c":              {"c"},
		"d":              nil,
		"d/*":            nil,
	} {
		if got, err := s.Glob(t.Context(), volume, pattern); err != nil || !slices.Equal(got, want) {
			t.Errorf("glob %s: %q %v, not %q", pattern, got, err, want)
		}
	}
}

// consistentWhileWriting: whatever opens is whole, while files come, go and are replaced.
func consistentWhileWriting(t *testing.T, s lakefs.Store, volume string) {
	const size, files, writes = 3*rowBytes + 1, 4, 40
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for !done.Load() {
				if err := readAll(t.Context(), s, volume, size); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range writes {
		path := fmt.Sprint(i % files)
		Put(t, s, volume, path, bytes.Repeat([]byte{byte(i + 1)}, size))
		if i%7 == 0 {
			if err := s.Remove(t.Context(), volume, path); err != nil {
				t.Error(err)
			}
		}
	}
	done.Store(true)
	readers.Wait()
}

// readAll reads each file of a volume once; each must be one byte, repeated. A file may go after it was listed.
func readAll(ctx context.Context, s lakefs.Store, volume string, size int) error {
	paths, err := s.List(ctx, volume, "", 0)
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, err := Get(ctx, s, volume, path)
		if errors.Is(err, lakefs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if len(data) != size || bytes.Count(data, data[:1]) != size {
			return fmt.Errorf("%s is not one whole file", path)
		}
	}
	return nil
}

// concurrentWriters: writers of different paths do not notice each other.
func concurrentWriters(t *testing.T, s lakefs.Store, volume string) {
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			if _, err := TryPut(t.Context(), s, volume, fmt.Sprint(i), Content(uint64(i), batchBytes+i)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	for i := range 8 {
		WantFile(t, s, volume, fmt.Sprint(i), Content(uint64(i), batchBytes+i))
	}
}

// concurrentPublish: of several writers of one path at least one wins, the others are told, the file is one of theirs.
func concurrentPublish(t *testing.T, s lakefs.Store, volume string) {
	const writers, rounds = 4, 5
	for range rounds {
		var won atomic.Int32
		var wait sync.WaitGroup
		for i := range writers {
			wait.Go(func() {
				_, err := TryPut(t.Context(), s, volume, "f", Content(uint64(i), 50_000))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, lakefs.ErrConflict) || !strings.Contains(err.Error(), "published by another writer"):
					t.Error(err)
				}
			})
		}
		wait.Wait()
		data, err := Get(t.Context(), s, volume, "f")
		if err != nil || won.Load() == 0 {
			t.Fatalf("%d writers won; %v", won.Load(), err)
		}
		if !slices.ContainsFunc([]uint64{0, 1, 2, 3}, func(seed uint64) bool { return bytes.Equal(data, Content(seed, 50_000)) }) {
			t.Error("the file is nobody's")
		}
	}
}

// manyOpenWriters: one caller holds many files open and writes to them in turn, as DuckDB does for partitions. No
// store may make it wait for what only itself can end.
func manyOpenWriters(t *testing.T, s lakefs.Store, volume string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const open, parts, partBytes = 24, 3, batchBytes/2 + 1
	writers := make([]lakefs.Writer, open)
	for i := range writers {
		w, err := s.Create(ctx, volume, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		writers[i] = w
	}
	for part := range parts {
		for i, w := range writers {
			if err := w.Write(ctx, Content(uint64(i), parts*partBytes)[part*partBytes:][:partBytes]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range writers { // the last first: those that came too late for a connection
		if _, err := writers[open-1-i].Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range writers {
		WantFile(t, s, volume, fmt.Sprint(i), Content(uint64(i), parts*partBytes))
	}
}

// names: what may be called how.
func names(t *testing.T, s lakefs.Store, volume string) {
	for _, good := range []string{"lake", "a", "l-1.x_y", strings.Repeat("v", 63)} {
		Put(t, s, good, "f", []byte(good))
		WantFile(t, s, good, "f", []byte(good))
	}
	for _, bad := range []string{"", "Lake", "-a", ".a", "a/b", "é", strings.Repeat("v", 64)} {
		if _, err := s.Create(t.Context(), bad, "f"); err == nil {
			t.Errorf("volume %q is accepted", bad)
		}
		if _, err := s.Open(t.Context(), bad, "f"); err == nil || errors.Is(err, lakefs.ErrNotExist) {
			t.Errorf("open in volume %q: %v", bad, err)
		}
	}
	for _, good := range []string{"a//b", "../y", "/x", " ", "a%20b", "it's", `"`, `\`, "é", strings.Repeat("p", 1024)} {
		Put(t, s, volume, good, []byte(good))
		WantFile(t, s, volume, good, []byte(good))
		WantList(t, s, volume, good, 1, good)
	}
	for _, bad := range []string{"", "dir/", "a\x00b", "\xff", strings.Repeat("p", 1025)} {
		if _, err := s.Create(t.Context(), volume, bad); err == nil {
			t.Errorf("path %q is accepted", bad)
		}
		WantNone(t, s, volume, bad)
	}
}
