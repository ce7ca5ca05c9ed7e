package translate

import (
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// tokenKind is the class of a token. Blank and comments are tokens too, so that no byte of a text is lost.
type tokenKind uint8

const (
	tokSpace   tokenKind = iota // blank and comments
	tokWord                     // an unquoted identifier or keyword
	tokQuoted                   // "x"
	tokUQuoted                  // U&"x"
	tokString                   // 'x'
	tokPrefix                   // E'x', B'x', X'x', N'x', U&'x'
	tokDollar                   // $tag$x$tag$
	tokNumber                   // 1, 1.5e3, 0x1f, 1_000
	tokParam                    // $1
	tokOp                       // a run of operator characters
	tokPunct                    // ( ) [ ] { } , ; . : :: := and what belongs to nothing else
)

// token is a piece of text[start:end].
type token struct {
	kind       tokenKind
	start, end int
}

// opChars are the characters of operators (manual, 4.1.3 "Operators").
const opChars = "+-*/<>=~!@#%^&|`?"

// lex cuts text into tokens that cover it without a gap. Only a quote or comment without an end is an error; its
// position counts in text.
func lex(text string) ([]token, error) {
	tokens := make([]token, 0, len(text)/4+4)
	for at := 0; at < len(text); {
		kind, end := next(text, at)
		if end < 0 {
			return nil, unterminated(text, at, kind)
		}
		tokens = append(tokens, token{kind, at, end})
		at = end
	}
	return tokens, nil
}

// next finds the token that begins at text[at]; a negative end says that the token has none.
func next(text string, at int) (tokenKind, int) {
	c, rest := text[at], text[at:]
	switch {
	case isSpace(c):
		return tokSpace, at + prefixLen(rest, isSpace)
	case strings.HasPrefix(rest, "--"):
		return tokSpace, at + prefixLen(rest, func(c byte) bool { return c != '\n' && c != '\r' })
	case strings.HasPrefix(rest, "/*"):
		return tokSpace, commentEnd(text, at)
	case c == '\'':
		return tokString, quoteEnd(text, at+1, '\'', false)
	case c == '"':
		return tokQuoted, quoteEnd(text, at+1, '"', false)
	case c == '$':
		return dollar(text, at)
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return tokNumber, numberEnd(text, at)
	case isWordStart(c):
		return word(text, at)
	case strings.IndexByte(opChars, c) >= 0:
		return tokOp, operatorEnd(text, at)
	case strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, ".."):
		return tokPunct, at + 2
	}
	_, size := utf8.DecodeRuneInString(rest)
	return tokPunct, at + size
}

// word is an identifier, or a string whose prefix looks like one.
func word(text string, at int) (tokenKind, int) {
	rest := text[at:]
	if len(rest) > 1 && rest[1] == '\'' {
		switch rest[0] {
		case 'e', 'E':
			return tokPrefix, quoteEnd(text, at+2, '\'', true)
		case 'b', 'B', 'x', 'X', 'n', 'N':
			return tokPrefix, quoteEnd(text, at+2, '\'', false)
		}
	}
	if len(rest) > 2 && (rest[0] == 'u' || rest[0] == 'U') && rest[1] == '&' {
		switch rest[2] {
		case '\'':
			return tokPrefix, quoteEnd(text, at+3, '\'', false)
		case '"':
			return tokUQuoted, quoteEnd(text, at+3, '"', false)
		}
	}
	return tokWord, at + prefixLen(rest, isWordPart)
}

// dollar is a parameter, a dollar-quoted string, or DuckDB's named parameter, which is left to DuckDB.
func dollar(text string, at int) (tokenKind, int) {
	rest := text[at+1:]
	if n := prefixLen(rest, isDigit); n > 0 {
		return tokParam, at + 1 + n
	}
	tag := 0
	if rest != "" && isWordStart(rest[0]) {
		tag = prefixLen(rest, func(c byte) bool { return c != '$' && isWordPart(c) })
	}
	if tag >= len(rest) || rest[tag] != '$' {
		return tokPunct, at + 1
	}
	mark := text[at : at+tag+2]
	end := strings.Index(text[at+len(mark):], mark)
	if end < 0 {
		return tokDollar, -1
	}
	return tokDollar, at + end + 2*len(mark)
}

// quoteEnd finds the end of a quoted token whose content begins at at.
func quoteEnd(text string, at int, quote byte, backslash bool) int {
	for at < len(text) {
		switch {
		case backslash && text[at] == '\\':
			at += 2
		case text[at] != quote:
			at++
		case at+1 < len(text) && text[at+1] == quote:
			at += 2
		default:
			return at + 1
		}
	}
	return -1
}

// commentEnd finds the end of a comment, in which others may be nested.
func commentEnd(text string, at int) int {
	for depth := 0; at+1 < len(text); {
		switch text[at : at+2] {
		case "/*":
			depth++
			at += 2
		case "*/":
			depth--
			at += 2
			if depth == 0 {
				return at
			}
		default:
			at++
		}
	}
	return -1
}

// numberEnd takes digits, their letters (0x1f, 1_000) and a decimal point, and the sign of an exponent.
func numberEnd(text string, at int) int {
	start := at
	for at < len(text) {
		c := text[at]
		exponent := at > start && (text[at-1] == 'e' || text[at-1] == 'E') && !hasHexPrefix(text[start:at])
		switch {
		case isDigit(c), isWordStart(c) && c < utf8.RuneSelf:
		case c == '.' && !strings.HasPrefix(text[at:], "..") && !strings.Contains(text[start:at], "."):
		case (c == '+' || c == '-') && exponent && at+1 < len(text) && isDigit(text[at+1]):
		default:
			return at
		}
		at++
	}
	return at
}

func hasHexPrefix(s string) bool { return len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') }

// operatorEnd takes operator characters up to a comment. An operator ends in + or - only if it has one of ~!@#%^&|`?.
func operatorEnd(text string, at int) int {
	end := at + prefixLen(text[at:], func(c byte) bool { return strings.IndexByte(opChars, c) >= 0 })
	for _, comment := range []string{"--", "/*"} {
		if i := strings.Index(text[at:end], comment); i > 0 {
			end = at + i
		}
	}
	if !strings.ContainsAny(text[at:end], "~!@#%^&|`?") {
		for end > at+1 && (text[end-1] == '+' || text[end-1] == '-') {
			end--
		}
	}
	return end
}

func prefixLen(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) && ok(s[n]) {
		n++
	}
	return n
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isWordStart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}
func isWordPart(c byte) bool { return isWordStart(c) || isDigit(c) || c == '$' }

// unterminated is PostgreSQL's error for a token without an end.
func unterminated(text string, at int, kind tokenKind) error {
	what := map[tokenKind]string{
		tokSpace: "/* comment", tokQuoted: "quoted identifier", tokUQuoted: "quoted identifier",
		tokDollar: "dollar-quoted string", tokString: "quoted string", tokPrefix: "quoted string",
	}[kind]
	near := strings.ToValidUTF8(text[at:], "\uFFFD")
	return pgerr.Newf(pgerrcode.SyntaxError, `unterminated %s at or near "%s"`, what, near).
		WithPosition(charPosition(text, at))
}

// charPosition turns a byte offset into characters counted from 1.
func charPosition(text string, offset int) int {
	return utf8.RuneCountInString(text[:min(max(offset, 0), len(text))]) + 1
}
