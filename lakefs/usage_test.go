package lakefs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// usage: what is published, by volume and by prefix, and what waits to be reaped.
func usage(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	wantUsage := func(volume, prefix string, want ...lakefs.Usage) {
		t.Helper()
		if got, err := p.Usage(t.Context(), volume, prefix); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q %q: %+v %v, want %+v", volume, prefix, got, err, want)
		}
	}
	wantVolumes := func(want ...string) {
		t.Helper()
		if got, err := p.Volumes(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	wantGarbage := func(want lakefs.Garbage) {
		t.Helper()
		got, err := p.Garbage(t.Context())
		if err != nil || got.Since.IsZero() != (want.Files == 0) {
			t.Errorf("since %s %v", got.Since, err)
		}
		got.Since = want.Since
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	wantUsage("", "")
	wantVolumes()
	wantGarbage(lakefs.Garbage{})

	lakefstest.Put(t, p, "b", "x/1", lakefstest.Content(1, 2*chunkBytes+1))
	lakefstest.Put(t, p, "b", "x/2", lakefstest.Content(2, chunkBytes))
	lakefstest.Put(t, p, "b", "xy", nil)
	lakefstest.Put(t, p, "a", "x/1", lakefstest.Content(3, 5))
	lakefstest.Put(t, p, "a-b", "gone", lakefstest.Content(4, 3*chunkBytes))
	wantVolumes("a", "a-b", "b")
	if err := p.Remove(t.Context(), "a-b", "gone"); err != nil {
		t.Fatal(err)
	}
	wantVolumes("a", "b")
	wantUsage("", "", lakefs.Usage{Volume: "a", Files: 1, Bytes: 5, Rows: 1}, lakefs.Usage{Volume: "b", Files: 3, Bytes: 3*chunkBytes + 1, Rows: 4})
	wantUsage("b", "x/", lakefs.Usage{Volume: "b", Files: 2, Bytes: 3*chunkBytes + 1, Rows: 4})
	wantUsage("b", "xy", lakefs.Usage{Volume: "b", Files: 1})
	wantUsage("b", "z")
	wantUsage("b", "\x00")
	wantUsage("none", "")
	wantGarbage(lakefs.Garbage{Files: 1, Rows: 3})
	x.exec(t, `DELETE FROM pgvfs.chunks WHERE no = 0 AND file_id = (SELECT file_id FROM pgvfs.garbage)`)
	x.exec(t, `UPDATE pgvfs.garbage SET queued_at = now() - interval '11 minutes'`)
	x.exec(t, `INSERT INTO pgvfs.garbage VALUES (nextval('pgvfs.file_ids'))`)
	wantGarbage(lakefs.Garbage{Files: 2, Rows: 2, DueFiles: 1, DueRows: 2})
	if _, err := p.Usage(t.Context(), "A", ""); err == nil || !strings.Contains(err.Error(), `volume "A"`) {
		t.Error(err)
	}
}

// listFiles: page after page, each file once and in order, also while files come and go.
func listFiles(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	for f, err := range p.ListFiles(t.Context(), "lake", "") {
		t.Error(f, err)
	}
	last := lakefstest.Put(t, p, "lake", "z", lakefstest.Content(1, chunkBytes+1))
	x.exec(t, `INSERT INTO pgvfs.files SELECT 'lake', 'f/' || lpad(i::text, 5, '0') , nextval('pgvfs.file_ids'), 0 FROM generate_series(1, 2500) AS i`)
	x.exec(t, `INSERT INTO pgvfs.files SELECT 'other', 'f/' || i, nextval('pgvfs.file_ids'), 0 FROM generate_series(1, 10) AS i`)
	count := func(prefix string) (paths []string) {
		t.Helper()
		for f, err := range p.ListFiles(t.Context(), "lake", prefix) {
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, f.Path)
		}
		if !slices.IsSorted(paths) || len(slices.Compact(paths)) != len(paths) {
			t.Errorf("%q: not in order, or twice", prefix)
		}
		return paths
	}
	for prefix, want := range map[string]int{"": 2501, "f/": 2500, "f/00": 999, "f/01": 1000, "z": 1, "zz": 0, "f/01000": 1, "\xff": 0} {
		if got := count(prefix); len(got) != want {
			t.Errorf("%q: %d files, want %d", prefix, len(got), want)
		}
	}
	for f, err := range p.ListFiles(t.Context(), "lake", "z") {
		if err != nil || f.ID != last.ID || f.Size != last.Size || !f.CreatedAt.Equal(last.CreatedAt) || f.Rows() != 2 || f.URL() != "pgvfs://lake/z" {
			t.Errorf("%+v %v, want %+v", f, err, last)
		}
	}
	seen := 0
	for f, err := range p.ListFiles(t.Context(), "lake", "f/") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			x.exec(t, `DELETE FROM pgvfs.files WHERE path = 'f/02000'; INSERT INTO pgvfs.files VALUES ('lake', 'f/02000x', nextval('pgvfs.file_ids'), 0)`)
		}
		if f.Path == "f/02000" {
			t.Error("a removed file is listed on a later page")
		}
	}
	if seen != 2500 {
		t.Errorf("%d files", seen)
	}
	for f, err := range p.ListFiles(t.Context(), "Lake", "") {
		if err == nil || f != nil {
			t.Errorf("%v %v", f, err)
		}
	}
	for range p.ListFiles(t.Context(), "lake", "") {
		break // early, and the pool has its connection again
	}
	if seen := fmt.Sprint(len(count("f/02"))); seen != "501" {
		t.Errorf("%s files", seen)
	}
}
