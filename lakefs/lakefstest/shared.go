package lakefstest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"sluice/lakefs"
)

// writersCrossRead: two stores write two paths at the same time, and each reads the other's.
func writersCrossRead(t *testing.T, s Shared, volume string) {
	stores := []lakefs.Store{s.Open(t), s.Open(t)}
	const size = batchBytes + 1
	var wait sync.WaitGroup
	for i, store := range stores {
		wait.Go(func() {
			if _, err := TryPut(t.Context(), store, volume, fmt.Sprint(i), Content(uint64(i), size)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, store := range stores {
		WantList(t, store, volume, "", 0, "0", "1")
		for i := range stores {
			WantFile(t, store, volume, fmt.Sprint(i), Content(uint64(i), size))
		}
	}
}

// publishRace: of two stores that write one path at least one wins, and every reader then sees one whole file.
func publishRace(t *testing.T, s Shared, volume string) {
	stores := []lakefs.Store{s.Open(t), s.Open(t)}
	reader := s.Open(t)
	for round := range 10 {
		errs := make([]error, len(stores))
		path := fmt.Sprint(round)
		var wait sync.WaitGroup
		for i, store := range stores {
			wait.Go(func() { _, errs[i] = TryPut(t.Context(), store, volume, path, Content(uint64(i), 3*rowBytes)) })
		}
		wait.Wait()
		for i, err := range errs {
			if err != nil && !errors.Is(err, lakefs.ErrConflict) {
				t.Errorf("store %d: %v", i, err)
			}
		}
		data, err := Get(t.Context(), reader, volume, path)
		if err != nil || (!bytes.Equal(data, Content(0, 3*rowBytes)) && !bytes.Equal(data, Content(1, 3*rowBytes))) {
			t.Errorf("%d bytes that are nobody's: %v", len(data), err)
		}
	}
}

// changesElsewhere: changes of files that a store has never looked at are seen at once, whoever made them.
func changesElsewhere(t *testing.T, s Shared, volume string) {
	a, b := s.Open(t), s.Open(t)
	for _, path := range []string{"put", "removed", "renamed", "under/1", "under/2"} {
		WantNone(t, b, volume, path)
		Put(t, a, volume, path, []byte(path))
	}
	WantFile(t, b, volume, "put", []byte("put"))
	if err := a.Remove(t.Context(), volume, "removed"); err != nil {
		t.Error(err)
	}
	if err := a.Rename(t.Context(), volume, "renamed", "new"); err != nil {
		t.Error(err)
	}
	if n, err := a.RemovePrefix(t.Context(), volume, "under/"); err != nil || n != 2 {
		t.Errorf("removed %d %v", n, err)
	}
	for _, path := range []string{"removed", "renamed", "under/1", "under/2"} {
		WantNone(t, b, volume, path)
		wantIs(t, b.Remove(t.Context(), volume, path), lakefs.ErrNotExist)
		wantIs(t, b.Rename(t.Context(), volume, path, "put"), lakefs.ErrNotExist)
	}
	WantFile(t, b, volume, "new", []byte("renamed"))
	WantList(t, b, volume, "", 0, "new", "put")
}

// openElsewhere: a file that one store has open is read on when another replaces or removes it. Looked up again, it is
// the old one, the new one or none, but never a mixture.
func openElsewhere(t *testing.T, s Shared, volume string) {
	a, b := s.Open(t), s.Open(t)
	old, young := Content(1, 3*rowBytes), Content(2, 5*rowBytes)
	f := Put(t, a, volume, "f", old)
	WantFile(t, b, volume, "f", old)
	Put(t, a, volume, "f", young)
	wantRange(t, b, f, old, 0, len(old))
	if data, err := Get(t.Context(), b, volume, "f"); err != nil || (!bytes.Equal(data, old) && !bytes.Equal(data, young)) {
		t.Errorf("%d bytes: %v", len(data), err)
	}
	if err := b.Remove(t.Context(), volume, "f"); err != nil {
		t.Errorf("a change does not trust what was remembered: %v", err)
	}
	WantNone(t, b, volume, "f")
	if data, err := Get(t.Context(), a, volume, "f"); !errors.Is(err, lakefs.ErrNotExist) && (err != nil || !bytes.Equal(data, young)) {
		t.Errorf("%d bytes: %v", len(data), err)
	}
	wantRange(t, b, f, old, rowBytes-1, 2)
}

// reap: the bytes of what was replaced, removed or renamed over go, and only they. Reading them is ErrReaped, never a
// mixture or zeros.
func reap(t *testing.T, s Shared, volume string) {
	store := s.Open(t)
	data := Content(1, 2*rowBytes+1)
	gone := map[string]*lakefs.File{}
	for _, path := range []string{"replaced", "removed", "under/1", "target"} {
		gone[path] = Put(t, store, volume, path, data)
	}
	none := Put(t, store, volume, "none", nil)
	moved := Put(t, store, volume, "moved", data)
	w, err := store.Create(t.Context(), volume, "writing")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.Write(t.Context(), Content(3, 2*batchBytes)); err != nil {
		t.Fatal(err)
	}
	Put(t, store, volume, "replaced", []byte("new"))
	_, err = store.RemovePrefix(t.Context(), volume, "under/")
	if err := errors.Join(err, store.Remove(t.Context(), volume, "removed"), store.Remove(t.Context(), volume, "none"),
		store.Rename(t.Context(), volume, "moved", "target")); err != nil {
		t.Fatal(err)
	}
	for path, f := range gone {
		wantRange(t, store, f, data, 0, len(data))
		wantLeft(t, store, f, path)
	}
	s.Reap(t)
	for path, f := range gone {
		wantReaped(t, store, f, path)
	}
	wantRange(t, store, none, nil, 0, 0)
	wantRange(t, store, moved, data, 0, len(data))
	WantFile(t, store, volume, "target", data)
	WantFile(t, store, volume, "replaced", []byte("new"))
	if _, err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	WantFile(t, store, volume, "writing", Content(3, 2*batchBytes))
}

// wantReaped fails the test unless no byte of a file can be read, and nothing at all still can.
func wantReaped(t *testing.T, s lakefs.Store, f *lakefs.File, path string) {
	t.Helper()
	for _, r := range [][2]int64{{0, f.Size}, {0, 1}, {f.Size - 1, 1}, {rowBytes, rowBytes}} {
		if err := s.ReadAt(t.Context(), f, make([]byte, r[1]), r[0]); !errors.Is(err, lakefs.ErrReaped) {
			t.Errorf("%s, %d bytes at %d: %v", path, r[1], r[0], err)
		}
	}
	if err := s.ReadAt(t.Context(), f, nil, 0); err != nil {
		t.Errorf("%s, nothing: %v", path, err)
	}
}

// wantLeft fails the test if a path still has this file.
func wantLeft(tb testing.TB, s lakefs.Store, f *lakefs.File, path string) {
	tb.Helper()
	if got, err := s.Open(tb.Context(), f.Volume, path); err == nil && got.ID == f.ID {
		tb.Errorf("%s still has file %d", path, f.ID)
	}
}

// reapedElsewhere: a store that remembers a file whose bytes another has had reaped is told when it reads them, and then
// looks again.
func reapedElsewhere(t *testing.T, s Shared, volume string) {
	a, b := s.Open(t), s.Open(t)
	Put(t, a, volume, "f", Content(1, 3*rowBytes))
	f, err := b.Open(t.Context(), volume, "f")
	if err != nil {
		t.Fatal(err)
	}
	Put(t, a, volume, "f", Content(2, 5*rowBytes))
	s.Reap(t)
	wantIs(t, b.ReadAt(t.Context(), f, make([]byte, f.Size), 0), lakefs.ErrReaped)
	WantFile(t, b, volume, "f", Content(2, 5*rowBytes))
}
