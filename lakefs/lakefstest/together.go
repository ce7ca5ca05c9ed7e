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
	const open, parts, partBytes = 12, 3, batchBytes/2 + 1
	common := Content(1, parts*partBytes+open)
	content := func(i int) []byte { return common[i:][:parts*partBytes] }
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
			if err := w.Write(ctx, content(i)[part*partBytes:][:partBytes]); err != nil {
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
		WantFile(t, s, volume, fmt.Sprint(i), content(i))
	}
}

// concurrentReads: many readers of one file, each of its own range or of a part of one common buffer, while the file is
// replaced and removed under them.
func concurrentReads(t *testing.T, s lakefs.Store, volume string) {
	const readers, rounds, size = 16, 12, pieceBytes + 3*rowBytes + 7
	data := Content(1, size)
	f := Put(t, s, volume, "f", data)
	common := make([]byte, size)
	var wait sync.WaitGroup
	for i := range readers {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 0))
			for range rounds {
				off := random.IntN(size)
				wantRange(t, s, f, data, off, min(random.IntN(3*rowBytes), size-off))
			}
			first, last := size*i/readers, size*(i+1)/readers
			if err := s.ReadAt(t.Context(), f, common[first:last], int64(first)); err != nil {
				t.Error(err)
			}
		})
	}
	Put(t, s, volume, "f", []byte("replaced"))
	if err := s.Remove(t.Context(), volume, "f"); err != nil {
		t.Error(err)
	}
	wait.Wait()
	if !bytes.Equal(common, data) {
		t.Error("parts read side by side do not make the file")
	}
}

// concurrentChanges: whatever changes of the same few paths meet, each takes effect as a whole or is refused with a
// reason that callers know, nothing waits for ever, and what is left is whole.
func concurrentChanges(t *testing.T, s lakefs.Store, volume string) {
	const workers, rounds, size = 4, 25, rowBytes + 1
	paths := []string{"a", "a/1", "b", "c"}
	var wait sync.WaitGroup
	for i := range workers {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range rounds {
				err := changeAny(t.Context(), s, volume, paths, size, random)
				if err != nil && !errors.Is(err, lakefs.ErrConflict) && !errors.Is(err, lakefs.ErrNotExist) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if err := readAll(t.Context(), s, volume, size); err != nil {
		t.Error(err)
	}
}

// changeAny makes one change of any kind. Every file is one byte, repeated.
func changeAny(ctx context.Context, s lakefs.Store, volume string, paths []string, size int, random *rand.Rand) (err error) {
	path, other := paths[random.IntN(len(paths))], paths[random.IntN(len(paths))]
	switch random.IntN(6) {
	case 0:
		err = s.Remove(ctx, volume, path)
	case 1:
		_, err = s.RemovePrefix(ctx, volume, path)
	case 2, 3:
		err = s.Rename(ctx, volume, path, other)
	default:
		_, err = TryPut(ctx, s, volume, path, bytes.Repeat([]byte{byte(random.IntN(256))}, size))
	}
	return err
}

// crossingRenames: two files that are renamed to each other's path at the same time. One of them is left, at least.
func crossingRenames(t *testing.T, s lakefs.Store, volume string) {
	const rounds, size = 40, 10
	for range rounds {
		for i, path := range []string{"a", "b"} {
			Put(t, s, volume, path, bytes.Repeat([]byte{byte(i)}, size))
		}
		var wait sync.WaitGroup
		for _, step := range [][2]string{{"a", "b"}, {"b", "a"}} {
			wait.Go(func() {
				err := s.Rename(t.Context(), volume, step[0], step[1])
				if err != nil && !errors.Is(err, lakefs.ErrConflict) && !errors.Is(err, lakefs.ErrNotExist) {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if err := readAll(t.Context(), s, volume, size); err != nil {
			t.Error(err)
		}
		if paths, err := s.List(t.Context(), volume, "", 0); err != nil || len(paths) == 0 {
			t.Errorf("both are gone: %v", err)
		}
	}
}

// uniqueIDs: no two files have one ID, whatever their volumes, and however many are made at a time.
func uniqueIDs(t *testing.T, s lakefs.Store, volume string) {
	const workers, files = 6, 8
	var ids sync.Map
	var wait sync.WaitGroup
	for i := range workers {
		wait.Go(func() {
			for n := range files {
				in := fmt.Sprintf("%s-%d", volume, i%3)
				f, err := TryPut(t.Context(), s, in, fmt.Sprintf("%d/%d", i, n%2), []byte{byte(n)})
				if err != nil {
					t.Error(err)
					return
				}
				if other, known := ids.LoadOrStore(f.ID, f); known {
					t.Errorf("%s and %s have one ID", other.(*lakefs.File).URL(), f.URL())
				}
			}
		})
	}
	wait.Wait()
}
