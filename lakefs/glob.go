package lakefs

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// wildcards are the characters that make a path a pattern.
const wildcards = "*?["

// globStore answers Glob for any store by listing what begins like the pattern.
func globStore(ctx context.Context, s Store, volume, pattern string) ([]string, error) {
	first := strings.IndexAny(pattern, wildcards)
	if first < 0 {
		found, err := s.Exists(ctx, volume, pattern)
		if err != nil || !found {
			return nil, err
		}
		return []string{pattern}, nil
	}
	paths, err := s.List(ctx, volume, pattern[:first], 0)
	if err != nil {
		return nil, err
	}
	match := compilePattern(pattern)
	return slices.DeleteFunc(paths, func(path string) bool { return !match(path) }), nil
}

// MatchPath reports whether a path matches a pattern: * is any text, ? any character and [a-z] one of a set ([!a-z]
// none of it), all within a segment between slashes; the segment ** is any number of segments, also none. What stands
// before the first of these is what the path must begin with: a/** are the files under a/, without a file a. A pattern
// that is not UTF-8 matches nothing.
func MatchPath(pattern, path string) bool { return compilePattern(pattern)(path) }

// compilePattern prepares a pattern for many paths.
func compilePattern(pattern string) func(path string) bool {
	if !utf8.ValidString(pattern) {
		return func(string) bool { return false } // []rune would make U+FFFD of it, which a path may hold
	}
	literal := pattern
	if first := strings.IndexAny(pattern, wildcards); first >= 0 {
		literal = pattern[:first]
	}
	var segments [][]rune
	for part := range strings.SplitSeq(pattern, "/") {
		segments = append(segments, []rune(part))
	}
	return func(path string) bool {
		return strings.HasPrefix(path, literal) && matchSegments(segments, strings.Split(path, "/"))
	}
}

// matchSegments matches segment by segment. As with * in a segment, only the last ** seen can still be worth growing.
func matchSegments(pattern [][]rune, path []string) bool {
	p, s, back, grown := 0, 0, -1, 0
	for s < len(path) {
		switch {
		case p < len(pattern) && string(pattern[p]) == "**":
			back, grown = p, s
			p++
		case p < len(pattern) && matchSegment(pattern[p], []rune(path[s])):
			p, s = p+1, s+1
		case back >= 0:
			grown++
			p, s = back+1, grown
		default:
			return false
		}
	}
	for p < len(pattern) && string(pattern[p]) == "**" {
		p++
	}
	return p == len(pattern)
}

// matchSegment matches one segment. When it goes wrong after a *, that * takes one character more and all behind it is
// tried again, which needs at most len(pattern) * len(text) steps.
func matchSegment(pattern, text []rune) bool {
	p, s, back, grown := 0, 0, -1, 0
	for s < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			back, grown = p, s
			p++
			continue
		}
		if width, ok := matchOne(pattern[p:], text[s]); ok {
			p, s = p+width, s+1
			continue
		}
		if back < 0 {
			return false
		}
		grown++
		p, s = back+1, grown
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one character and says how much of the pattern that took.
func matchOne(pattern []rune, c rune) (width int, ok bool) {
	switch {
	case len(pattern) == 0:
		return 0, false
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return matchSet(pattern, c)
	}
	return 1, pattern[0] == c
}

// matchSet matches a character with [abc], [a-z], [!a-z]. A ] that comes first belongs to the set; a set without end
// matches nothing.
func matchSet(pattern []rune, c rune) (width int, ok bool) {
	i := 1
	inverted := i < len(pattern) && pattern[i] == '!'
	if inverted {
		i++
	}
	found := false
	for first := i; i < len(pattern); i++ {
		if pattern[i] == ']' && i > first {
			return i + 1, found != inverted
		}
		low, high := pattern[i], pattern[i]
		if i+2 < len(pattern) && pattern[i+1] == '-' && pattern[i+2] != ']' {
			high = pattern[i+2]
			i += 2
		}
		found = found || (low <= c && c <= high)
	}
	return 0, false
}
