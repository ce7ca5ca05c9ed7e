package engine

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// TestExtensions_Fetched: from nothing to files that DuckDB loads with its signature check, by several at once, and
// then again without fetching anything.
func TestExtensions_Fetched(t *testing.T) {
	dir := t.TempDir()
	log := zerolog.New(zerolog.NewTestWriter(t))
	var group sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		group.Go(func() { errs[i] = FetchExtensions(t.Context(), dir, log) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	err := withDuckDB("", func(c *duckConn) error {
		for _, name := range fetched {
			if err := c.exec(t.Context(), "LOAD "+quoteLiteral(extensionPath(dir, name))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	defer func(saved []way) { ways = saved }(ways)
	ways = nil
	if err := FetchExtensions(t.Context(), dir, log); err != nil {
		t.Errorf("when all are there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(extensionPath(dir, "")), "fetch-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestExtensions_NoWay: one error says what was tried, why each failed, and where the files belong.
func TestExtensions_NoWay(t *testing.T) {
	defer func(saved []way) { ways = saved }(ways)
	fail := func(text string) func(context.Context, string, []string) error {
		return func(context.Context, string, []string) error { return errors.New(text) }
	}
	ways = []way{{"first", fail("no route")}, {"second", fail("no pip")}, {"third", func(context.Context, string, []string) error { return nil }}}
	dir := t.TempDir()
	err := FetchExtensions(t.Context(), dir, zerolog.Nop())
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"first: no route", "second: no pip", "third: it brought no file for", "sluice extensions", dir} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in: %v", part, err)
		}
	}
}

// TestExtensions_NotWhole: a file that was cut short, or is for another DuckDB, counts as missing.
func TestExtensions_NotWhole(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(extensionPath(dir, "")), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", strings.Repeat("x", 100), strings.Repeat("x", 10_000)} {
		if err := os.WriteFile(extensionPath(dir, "ducklake"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(missingExtensions(dir), "ducklake") {
			t.Errorf("%d bytes of nothing are taken for an extension", len(content))
		}
	}
}

// TestUnzip_Escape: an archive whose member wants to be elsewhere is unpacked in the folder given.
func TestUnzip_Escape(t *testing.T) {
	dir := t.TempDir()
	wheel, inner := filepath.Join(dir, "bad.whl"), filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(wheel)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	member, err := w.Create("../../ducklake" + extensionSuffix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := member.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), f.Close(), unzipExtension(wheel, inner)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(inner, "ducklake"+extensionSuffix)); err != nil {
		t.Error(err)
	}
}
