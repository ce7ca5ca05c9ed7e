package lakefs

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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
		{"a/**", "a/b|a/b/c", "a|ab"},
		{"a*/**", "a|ab|a/b|ab/c/d", "b"},
		{"[!\xff]", "", "a|\ufffd"},
		{"\xff*", "", "\ufffd"},
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

// FuzzPrefix: what begins with a prefix is a range, from the prefix up to before its end.
func FuzzPrefix(f *testing.F) {
	for _, seed := range [][2]string{
		{"", "a"},
		{"data/", "data/1"},
		{"data/", "data0"},
		{"a\x7f", "a\u0080"},
		{"\u07ff", "\u0800"},
		{"\ud7ff", "\ue000"},
		{"a\U0010ffff", "a\U0010ffff\U0010ffff"},
		{"a\U0010ffff", "b"},
		{"\U0010ffff", "\U0010ffff"},
		{"\uffff", "\U00010000"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, prefix, text string) {
		if !utf8.ValidString(prefix) || !utf8.ValidString(text) {
			t.Skip()
		}
		for _, text := range []string{text, prefix + text, prefix} {
			end, bounded := prefixEnd(prefix)
			within := prefix <= text && (!bounded || text < end)
			if within != strings.HasPrefix(text, prefix) {
				t.Errorf("%q from %q up to %q: %t", text, prefix, end, within)
			}
			if bounded && !utf8.ValidString(end) {
				t.Errorf("%q ends at %q, which is no text", prefix, end)
			}
		}
	})
}

// FuzzGlob: matching agrees with the definition of patterns, written down plainly, and a store's Glob with both.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", "a"},
		{"a/**/[!a-z]*?", "a/b/Z1"},
		{"a/**", "a"},
		{"**/**/*", "a/b"},
		{"[]]", "]"},
		{"[]-a]", "^"},
		{"[!]", "!"},
		{"[a-]", "-"},
		{"[z-a]", "m"},
		{"[a", "[a"},
		{"[*]?", "*?"},
		{"***", "a"},
		{"\xc3*", "\ufffd"},
		{"[\ufffd]", "\ufffd"},
		{"[!a]/b", "//b"},
		{"*a*b*c", "aabbaabbc"},
		{"é?[\u0301-\U0010ffff]", "éx\ufffd"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if len(pattern)*len(path) > 1<<16 || CheckPath(path) != nil {
			t.Skip()
		}
		want := plainMatch(pattern, path)
		if MatchPath(pattern, path) != want {
			t.Errorf("%q on %q: %t", pattern, path, !want)
		}
		found, err := globStore(t.Context(), onePath(path), "v", pattern)
		if err != nil || slices.Contains(found, path) != want || len(found) > 1 {
			t.Errorf("glob %q in a store of %q: %q %v", pattern, path, found, err)
		}
	})
}

// onePath is a Store with one file, for Glob.
type onePath string

// The methods that Glob does without are not there: calling them is a panic.
func (onePath) Open(context.Context, string, string) (*File, error)         { panic("open") }
func (onePath) ReadAt(context.Context, *File, []byte, int64) error          { panic("read") }
func (onePath) Create(context.Context, string, string) (Writer, error)      { panic("create") }
func (onePath) Remove(context.Context, string, string) error                { panic("remove") }
func (onePath) RemovePrefix(context.Context, string, string) (int64, error) { panic("remove prefix") }
func (onePath) Rename(context.Context, string, string, string) error        { panic("rename") }
func (onePath) Glob(context.Context, string, string) ([]string, error)      { panic("glob") }
func (p onePath) Exists(_ context.Context, _, path string) (bool, error) {
	return path == string(p), nil
}

func (p onePath) List(_ context.Context, _, prefix string, _ int) ([]string, error) {
	if strings.HasPrefix(string(p), prefix) {
		return []string{string(p)}, nil
	}
	return nil, nil
}

// plainMatch is MatchPath as its comment has it, by recursion, remembering what it has tried.
func plainMatch(pattern, path string) bool {
	literal, _, _ := strings.Cut(strings.NewReplacer("?", "*", "[", "*").Replace(pattern), "*")
	if !utf8.ValidString(pattern) || !strings.HasPrefix(path, literal) {
		return false
	}
	return plainSegments(strings.Split(pattern, "/"), strings.Split(path, "/"), map[[2]int]bool{})
}

// plainSegments matches segments. no holds the pairs of rests that are known not to match.
func plainSegments(pattern, path []string, no map[[2]int]bool) bool {
	at := [2]int{len(pattern), len(path)}
	if no[at] {
		return false
	}
	matches := false
	switch {
	case len(pattern) == 0:
		matches = len(path) == 0
	case pattern[0] == "**":
		matches = plainSegments(pattern[1:], path, no) || (len(path) > 0 && plainSegments(pattern, path[1:], no))
	case len(path) > 0:
		matches = plainText(pattern[0], path[0], map[[2]int]bool{}) && plainSegments(pattern[1:], path[1:], no)
	}
	no[at] = !matches
	return matches
}

// plainText matches within a segment.
func plainText(pattern, text string, no map[[2]int]bool) bool {
	at := [2]int{len(pattern), len(text)}
	if no[at] {
		return false
	}
	_, first := utf8.DecodeRuneInString(text)
	matches := false
	switch {
	case pattern == "":
		matches = text == ""
	case pattern[0] == '*':
		matches = plainText(pattern[1:], text, no) || (text != "" && plainText(pattern, text[first:], no))
	case text == "":
	case pattern[0] == '?':
		matches = plainText(pattern[1:], text[first:], no)
	case pattern[0] == '[':
		rest, in := plainSet(pattern[1:], text[:first])
		matches = in && plainText(rest, text[first:], no)
	default:
		matches = pattern[0] == text[0] && plainText(pattern[1:], text[1:], no)
	}
	no[at] = !matches
	return matches
}

// setItem is one item of a set: a character, or two with a - between.
var setItem = regexp.MustCompile(`^(?s:(.)-([^\]])|(.))`)

// plainSet matches a character with a set whose [ has been read, and returns what comes behind the set. In UTF-8 the order
// of texts is that of characters.
func plainSet(pattern, c string) (rest string, in bool) {
	pattern, inverted := strings.CutPrefix(pattern, "!")
	for first := true; first || !strings.HasPrefix(pattern, "]"); first = false {
		item := setItem.FindStringSubmatch(pattern)
		if item == nil {
			return "", false // no end
		}
		in = in || c == item[3] || (item[1] != "" && item[1] <= c && c <= item[2])
		pattern = pattern[len(item[0]):]
	}
	return pattern[1:], in != inverted
}
