package lakefstest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"sluice/lakefs"
)

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

// oddPaths are paths that some order, some encoding or some pattern treats in its own way: capitals, accents, what only
// looks the same, the ends of UTF-8's lengths and of the surrogates, wildcards, SQL, shells and URLs.
var oddPaths = []string{
	"A", "Z", "_", "a", "a b", "a%20b", "a%", "a//b", "a/b", "a0", "ab", "b", "z",
	"ä", "á", "a\u0301", "é", "e\u0301", "É", "ß", "ss", "I", "i", "ı", "İ",
	"\u007f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufeffa", "\ufffd", "\uffff", "\U00010000", "\U0010ffff",
	"*", "**", "***", "?", "[", "]", "[]", "[a]", "[!a]", "[a-c]", "a[", "a*b", "a?b", "{a,b}", `\*`, "!",
	"it's", `"`, `\`, "$1", "--", ";", "~", ".", "..", "../y", "./a", "/x", "//", " ", "\t", "\n", "\r\n", "\x01",
	"\u200b", "\u202e", "中", "🦆",
}

// listingOrder: the order is that of bytes, and each path is what begins with it and what comes before.
func listingOrder(t *testing.T, s lakefs.Store, volume string) {
	paths := slices.DeleteFunc(slices.Clone(oddPaths), func(path string) bool { return strings.HasSuffix(path, "/") })
	for _, path := range paths {
		Put(t, s, volume, path, []byte(path))
	}
	slices.Sort(paths)
	WantList(t, s, volume, "", 0, paths...)
	for _, prefix := range oddPaths {
		var want []string
		for _, path := range paths {
			if strings.HasPrefix(path, prefix) {
				want = append(want, path)
			}
		}
		WantList(t, s, volume, prefix, 0, want...)
	}
	for _, path := range paths {
		WantFile(t, s, volume, path, []byte(path))
	}
}

// limits: at most so many, the first ones; 0 is all.
func limits(t *testing.T, s lakefs.Store, volume string) {
	paths := []string{"a", "b/1", "b/2", "b/3", "c"}
	for _, path := range paths {
		Put(t, s, volume, path, nil)
	}
	for limit := range len(paths) + 2 {
		wanted := min(limit, len(paths))
		if limit == 0 {
			wanted = len(paths)
		}
		WantList(t, s, volume, "", limit, paths[:wanted]...)
	}
	for _, limit := range []int{math.MaxInt32, math.MaxInt} {
		WantList(t, s, volume, "", limit, paths...)
		WantList(t, s, volume, "b/", limit, "b/1", "b/2", "b/3")
		WantList(t, s, volume, "none", limit)
	}
	WantList(t, s, volume, "b/", 2, "b/1", "b/2")
}

// brokenPrefixes: a prefix is text. One that is not, or that holds a NUL, begins no path, even if it is the first half of
// a character that one begins with: what asks so has cut a name apart, and had better not remove anything.
func brokenPrefixes(t *testing.T, s lakefs.Store, volume string) {
	for _, path := range []string{"é", "éa", "aé", "\ufffd", "a\ufffd", "a"} {
		Put(t, s, volume, path, nil)
	}
	for _, prefix := range []string{"\xc3", "a\xc3", "\xff", "a\xff", "\xc3\xa9\xc3", "\xed\xa0\x80", "\x00", "a\x00", "\xef\xbf"} {
		WantList(t, s, volume, prefix, 0)
		WantNone(t, s, volume, prefix)
		for _, pattern := range []string{prefix, prefix + "*", prefix + "?", "*" + prefix, "[" + prefix + "]", "**/" + prefix, "a[!" + prefix + "]"} {
			paths, err := s.Glob(t.Context(), volume, pattern)
			if err != nil || slices.ContainsFunc(paths, func(path string) bool { return !lakefs.MatchPath(pattern, path) }) {
				t.Errorf("glob %q: %q %v", pattern, paths, err)
			}
		}
		if paths, err := s.Glob(t.Context(), volume, prefix+"*"); err != nil || len(paths) != 0 {
			t.Errorf("glob %q: %q %v", prefix+"*", paths, err)
		}
		if n, err := s.RemovePrefix(t.Context(), volume, prefix); err != nil || n != 0 {
			t.Errorf("removed %d under %q: %v", n, prefix, err)
		}
	}
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
		"**":             {"a/b/z.parquet", "a/x.parquet", "a/y.csv", "a/y.parquet", "c"},
		"*":              {"c"},
		"c":              {"c"},
		"d":              nil,
		"d/*":            nil,
		"a":              nil,
		"a/":             nil,
		"":               nil,
		"/c":             nil,
	} {
		wantGlob(t, s, volume, pattern, want...)
	}
}

// wantGlob fails the test unless these are the paths that match a pattern.
func wantGlob(t *testing.T, s lakefs.Store, volume, pattern string, want ...string) {
	t.Helper()
	got, err := s.Glob(t.Context(), volume, pattern)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("glob %q: %q %v, not %q", pattern, got, err, want)
	}
}

// globOddNames: wildcards in names are characters like any other, and can be asked for in a set. Whatever the pattern,
// Glob is List without what does not match.
func globOddNames(t *testing.T, s lakefs.Store, volume string) {
	paths := slices.Clone(oddPaths)
	slices.Sort(paths)
	for _, path := range paths {
		if lakefs.CheckPath(path) == nil {
			Put(t, s, volume, path, nil)
		}
	}
	wantGlob(t, s, volume, "a[*]b", "a*b")
	wantGlob(t, s, volume, "a[?]b", "a?b")
	wantGlob(t, s, volume, "a[*?]b", "a*b", "a?b")
	wantGlob(t, s, volume, "[[]a]", "[a]")
	wantGlob(t, s, volume, "[[][]]", "[]")
	wantGlob(t, s, volume, "[*][*]", "**")
	wantGlob(t, s, volume, "[") // a set without end
	wantGlob(t, s, volume, "a[")
	wantGlob(t, s, volume, "]", "]")
	for _, pattern := range append(paths, "a*", "*b", "?", "??", "[!a]", "[é-\U0010ffff]", "*/*", "/*", "*/", "**/b", "a/**", `\**`, "a\u0301*") {
		var want []string
		for _, path := range paths {
			if lakefs.CheckPath(path) == nil && lakefs.MatchPath(pattern, path) {
				want = append(want, path)
			}
		}
		wantGlob(t, s, volume, pattern, want...)
	}
}

// names: what may be called how.
func names(t *testing.T, s lakefs.Store, volume string) {
	for _, good := range []string{"lake", "a", "0", "l-1.x_y", strings.Repeat("v", 63)} {
		Put(t, s, good, "f", []byte(good))
		WantFile(t, s, good, "f", []byte(good))
	}
	for _, bad := range []string{"", "Lake", "-a", ".a", "_a", "a/b", "é", "a\x00", "a\n", "a b", "\xff", strings.Repeat("v", 64)} {
		refusesVolume(t, s, bad)
	}
	for _, good := range []string{"a//b", "../y", "/x", " ", "a%20b", "it's", `"`, `\`, "é", strings.Repeat("p", 1024), strings.Repeat("é", 512)} {
		Put(t, s, volume, good, []byte(good))
		WantFile(t, s, volume, good, []byte(good))
		WantList(t, s, volume, good, 1, good)
	}
	for _, bad := range []string{"", "/", "dir/", "a\x00b", "\xff", "\xed\xa0\x80", strings.Repeat("p", 1025), strings.Repeat("é", 512) + "p"} {
		if _, err := s.Create(t.Context(), volume, bad); err == nil {
			t.Errorf("path %q is accepted", bad)
		}
		WantNone(t, s, volume, bad)
		wantIs(t, s.Remove(t.Context(), volume, bad), lakefs.ErrNotExist)
	}
}

// refusesVolume fails the test unless every call fails in a volume of this name, and not as if only the file was missing.
func refusesVolume(t *testing.T, s lakefs.Store, volume string) {
	t.Helper()
	ctx := t.Context()
	for call, err := range map[string]error{
		"create":        second(s.Create(ctx, volume, "f")),
		"open":          second(s.Open(ctx, volume, "f")),
		"exists":        second(s.Exists(ctx, volume, "f")),
		"remove":        s.Remove(ctx, volume, "f"),
		"remove prefix": second(s.RemovePrefix(ctx, volume, "")),
		"rename":        s.Rename(ctx, volume, "f", "g"),
		"rename itself": s.Rename(ctx, volume, "f", "f"),
		"list":          second(s.List(ctx, volume, "", 0)),
		"glob":          second(s.Glob(ctx, volume, "*")),
		"glob literal":  second(s.Glob(ctx, volume, "f")),
	} {
		if err == nil || errors.Is(err, lakefs.ErrNotExist) {
			t.Errorf("%s in volume %q: %v", call, volume, err)
		}
	}
}

// second is the error of a call whose answer does not matter.
func second(_ any, err error) error { return err }
