package lakefstest

import (
	"errors"
	"fmt"
	"testing"

	"sluice/lakefs"
)

// empty: a volume that nothing has been written to is empty, not wrong.
func empty(t *testing.T, s lakefs.Store, volume string) {
	WantNone(t, s, volume, "f")
	WantList(t, s, volume, "", 0)
	WantList(t, s, volume, "f", 1)
	for _, pattern := range []string{"f", "*", "**", ""} {
		if paths, err := s.Glob(t.Context(), volume, pattern); err != nil || len(paths) != 0 {
			t.Errorf("glob %q: %q %v", pattern, paths, err)
		}
	}
	wantIs(t, s.Remove(t.Context(), volume, "f"), lakefs.ErrNotExist)
	wantIs(t, s.Rename(t.Context(), volume, "f", "g"), lakefs.ErrNotExist)
	wantIs(t, s.Rename(t.Context(), volume, "f", "f"), lakefs.ErrNotExist)
	if n, err := s.RemovePrefix(t.Context(), volume, ""); err != nil || n != 0 {
		t.Errorf("removed %d %v", n, err)
	}
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

// openFiles: a file that is open is read on, whatever has happened to its path.
func openFiles(t *testing.T, s lakefs.Store, volume string) {
	for i, change := range []func(path string) error{
		func(path string) error {
			_, err := TryPut(t.Context(), s, volume, path, []byte("overwritten"))
			return err
		},
		func(path string) error { return s.Remove(t.Context(), volume, path) },
		func(path string) error {
			n, err := s.RemovePrefix(t.Context(), volume, path)
			return errors.Join(err, none(n == 1))
		},
		func(path string) error { return s.Rename(t.Context(), volume, path, path+"-moved") },
		func(path string) error {
			if _, err := TryPut(t.Context(), s, volume, path+"-new", []byte("renamed")); err != nil {
				return err
			}
			return s.Rename(t.Context(), volume, path+"-new", path)
		},
	} {
		path, data := fmt.Sprint(i), Content(uint64(i), 2*rowBytes+1)
		Put(t, s, volume, path, data)
		f, err := s.Open(t.Context(), volume, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Errorf("change %d: %v", i, err)
		}
		wantRange(t, s, f, data, 0, len(data))
		wantRange(t, s, f, data, rowBytes-1, 2)
		if got, err := s.Open(t.Context(), volume, path); err == nil && got.ID == f.ID {
			t.Errorf("change %d: the path still has file %d", i, f.ID)
		}
	}
}

// identity: Open tells of a file what Close told; ID and time are another file's at the same path, and stay with the
// bytes when these move. DuckDB keeps bytes by ID, and Parquet footers by path and time in microseconds.
func identity(t *testing.T, s lakefs.Store, volume string) {
	times, ids := map[int64]bool{}, map[int64]bool{}
	const files = 20
	for i := range files {
		f := Put(t, s, volume, "f", Content(uint64(i), i%3))
		times[f.CreatedAt.UnixMicro()], ids[f.ID] = true, true
		wantSame(t, s, f)
	}
	if len(times) != files || len(ids) != files {
		t.Errorf("%d files at one path have %d times and %d IDs", files, len(times), len(ids))
	}
	f := Put(t, s, volume, "f", []byte("text"))
	if err := s.Rename(t.Context(), volume, "f", "g"); err != nil {
		t.Fatal(err)
	}
	f.Path = "g"
	wantSame(t, s, f)
}

// wantSame fails the test unless Open finds just this.
func wantSame(t *testing.T, s lakefs.Store, want *lakefs.File) {
	t.Helper()
	got, err := s.Open(t.Context(), want.Volume, want.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !got.CreatedAt.Equal(want.CreatedAt) {
		t.Errorf("%s was made at %s, not %s", got.URL(), got.CreatedAt, want.CreatedAt)
	}
	if got.ID != want.ID || got.Size != want.Size || got.Volume != want.Volume || got.Path != want.Path {
		t.Errorf("%+v, not %+v", got, want)
	}
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
}

// renames: chains, onto itself, onto what another file's path begins with, and what must not be.
func renames(t *testing.T, s lakefs.Store, volume string) {
	data := Content(1, 2*rowBytes+1)
	Put(t, s, volume, "a", data)
	for _, step := range [][2]string{{"a", "b"}, {"b", "b/c"}, {"b/c", "b"}, {"b", "é"}, {"é", "a*"}, {"a*", "a"}, {"a", "a"}} {
		if err := s.Rename(t.Context(), volume, step[0], step[1]); err != nil {
			t.Errorf("rename %q to %q: %v", step[0], step[1], err)
		}
		WantFile(t, s, volume, step[1], data)
		WantList(t, s, volume, "", 0, step[1])
	}
	Put(t, s, volume, "b", []byte("b"))
	for _, step := range [][2]string{{"a", "x"}, {"b", "a"}, {"x", "b"}} { // changes places
		if err := s.Rename(t.Context(), volume, step[0], step[1]); err != nil {
			t.Error(err)
		}
	}
	WantFile(t, s, volume, "a", []byte("b"))
	WantFile(t, s, volume, "b", data)
	for _, from := range []string{"none", "", "a/", "\xff", "a\x00"} {
		wantIs(t, s.Rename(t.Context(), volume, from, "b"), lakefs.ErrNotExist)
	}
	for _, to := range []string{"", "a/", "\xff", "a\x00"} {
		for _, from := range []string{"a", "none", to} {
			if err := s.Rename(t.Context(), volume, from, to); err == nil || errors.Is(err, lakefs.ErrNotExist) {
				t.Errorf("rename %q to %q: %v", from, to, err)
			}
		}
	}
	WantList(t, s, volume, "", 0, "a", "b")
	WantFile(t, s, volume, "b", data)
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
