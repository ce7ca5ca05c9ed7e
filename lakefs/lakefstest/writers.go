package lakefstest

import (
	"context"
	"testing"

	"sluice/lakefs"
)

// abandonedWrite: an aborted file is never seen, and what was at its path stays.
func abandonedWrite(t *testing.T, s lakefs.Store, volume string) {
	old := Content(1, 1000)
	Put(t, s, volume, "old", old)
	for _, path := range []string{"old", "new"} {
		for _, size := range []int{0, 1, batchBytes, 2*batchBytes + 1} {
			w, err := s.Create(t.Context(), volume, path)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), Content(2, size)); err != nil {
				t.Error(err)
			}
			w.Abort()
			w.Abort()
			wantEnded(t, w)
		}
	}
	WantFile(t, s, volume, "old", old)
	WantNone(t, s, volume, "new")
}

// wantEnded fails the test unless a writer takes nothing any more.
func wantEnded(t *testing.T, w lakefs.Writer) {
	t.Helper()
	if err := w.Write(t.Context(), []byte{1}); err == nil {
		t.Error("a writer that has ended can be written to")
	}
	if f, err := w.Close(t.Context()); err == nil || f != nil {
		t.Errorf("a writer that has ended can be closed: %v", f)
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
	wantEnded(t, w)
	w.Abort()
	WantFile(t, s, volume, "f", []byte("text"))
	if err := s.Remove(t.Context(), volume, "f"); err != nil {
		t.Error(err)
	}
	w.Abort()
	WantNone(t, s, volume, "f")
}

// failedClose: after a Close that failed, the deferred Abort and everything else does no harm, and the path is free for
// the next try.
func failedClose(t *testing.T, s lakefs.Store, volume string) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, size := range []int{0, 1, 2*batchBytes + 1} {
		func() {
			w, err := s.Create(t.Context(), volume, "f")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abort()
			if err := w.Write(t.Context(), Content(1, size)); err != nil {
				t.Error(err)
			}
			f, err := w.Close(ended)
			wantIs(t, err, context.Canceled)
			if f != nil {
				t.Errorf("an unpublished file: %+v", f)
			}
			wantEnded(t, w)
		}()
		WantNone(t, s, volume, "f")
	}
	Put(t, s, volume, "f", []byte("again"))
	WantFile(t, s, volume, "f", []byte("again"))
}

// lateClose: a file counts from its Close on. What happens at its path before neither touches it nor is refused.
func lateClose(t *testing.T, s lakefs.Store, volume string) {
	const early, late, beside = "early", "late", "beside"
	var writers []lakefs.Writer
	for _, text := range []string{early, late} {
		w, err := s.Create(t.Context(), volume, "f")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		if err := w.Write(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	if n, err := s.RemovePrefix(t.Context(), volume, ""); err != nil || n != 0 {
		t.Errorf("removed %d files before any was there: %v", n, err)
	}
	wantIs(t, s.Remove(t.Context(), volume, "f"), lakefs.ErrNotExist)
	wantIs(t, s.Rename(t.Context(), volume, "f", "g"), lakefs.ErrNotExist)
	WantList(t, s, volume, "", 0)
	Put(t, s, volume, "g", []byte(beside))
	if err := s.Rename(t.Context(), volume, "g", "f"); err != nil {
		t.Error(err)
	}
	WantFile(t, s, volume, "f", []byte(beside))
	for i, text := range []string{early, late} {
		f, err := writers[i].Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		WantFile(t, s, volume, "f", []byte(text))
		wantRange(t, s, f, []byte(text), 0, len(text))
	}
	WantList(t, s, volume, "", 0, "f")
}
