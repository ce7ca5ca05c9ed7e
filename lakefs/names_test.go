package lakefs

import (
	"strings"
	"testing"
)

func TestSplitURL(t *testing.T) {
	for url, want := range map[string][2]string{
		"pgvfs://lake/data/a.parquet": {"lake", "data/a.parquet"},
		"pgvfs://lake/":               {"lake", ""},
		"pgvfs://lake":                {"lake", ""},
		"pgvfs://l-1.x_y//../a%20b":   {"l-1.x_y", "/../a%20b"},
	} {
		volume, path, err := SplitURL(url)
		if err != nil || volume != want[0] || path != want[1] {
			t.Errorf("%s: %q %q %v", url, volume, path, err)
		}
	}
	for _, url := range []string{"", "pgvfs:/lake/a", "s3://lake/a", "pgvfs:///a", "pgvfs://Lake/a", "PGVFS://lake/a"} {
		if _, _, err := SplitURL(url); err == nil {
			t.Errorf("%q is accepted", url)
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{
		"data/":        "data0",
		"a\U0010FFFF":  "b",
		"\uD7FF":       "\uE000",
		"é":            "ê",
		"":             "",
		"\U0010FFFF":   "",
		"a\x7f":        "a\u0080",
		"z\U0010FFFEx": "z\U0010FFFEy",
	} {
		end, bounded := prefixEnd(prefix)
		if end != want || bounded != (want != "") {
			t.Errorf("%q ends before %q %t, not %q", prefix, end, bounded, want)
		}
	}
}

func TestMatchPath(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{"*", "a|b.c|é", "a/b"},
		{"a/*.parquet", "a/x.parquet|a/.parquet", "a/b/x.parquet|a/x.csv|b/x.parquet"},
		{"a/**/x", "a/x|a/b/x|a/b/c/x", "a/xx|b/x|a/x/y"},
		{"**", "a|a/b/c", ""},
		{"**/x/**/y", "x/y|a/x/b/c/y|x/x/y/y", "y|x|y/x"},
		{"?", "a|é", "ab"},
		{"[a-c]x", "ax|cx", "dx|x"},
		{"[!a-c]x", "dx", "ax|x"},
		{"[]]", "]", "["},
		{"[a-]", "a|-", "b"},
		{"[a", "", "a|[a"},
		{"x[", "", "x|x["},
		{"**a", "a|ba|bca", "b/a"},
		{"a*b*c", "abc|axbxc|abcbc", "acb"},
		{strings.Repeat("a*", 30) + "b", "", strings.Repeat("a", 1000)},
		{strings.Repeat("**/", 30) + "b", "", strings.Repeat("a/", 300) + "a"},
	} {
		for _, set := range []struct {
			paths string
			want  bool
		}{{c.yes, true}, {c.no, false}} {
			for path := range strings.SplitSeq(set.paths, "|") {
				if set.paths != "" && MatchPath(c.pattern, path) != set.want {
					t.Errorf("%q on %q: %t", c.pattern, path, !set.want)
				}
			}
		}
	}
}

// FuzzMatchPath: no pattern crashes or hangs, and a text without wildcards matches itself.
func FuzzMatchPath(f *testing.F) {
	f.Add("a/**/[!a-z]*?", "a/b/Z1")
	f.Add("[", "[")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		MatchPath(pattern, path)
		if !strings.ContainsAny(path, wildcards) && !MatchPath(path, path) {
			t.Errorf("%q does not match itself", path)
		}
	})
}
