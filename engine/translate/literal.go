package translate

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// literals writes PostgreSQL's prefixed strings in a form that DuckDB has. It reads B'1' as the text b1, does not know
// U&” at all, and takes E” as it is.
func literals(r *rewrite) {
	for i := range r.tokens {
		raw := r.raw(i)
		switch {
		case r.kind(i) == tokUQuoted:
			r.unicode(i, raw[2:], '"')
		case r.kind(i) != tokPrefix:
		case raw[0] == 'u' || raw[0] == 'U':
			r.unicode(i, raw[2:], '\'')
		case raw[0] == 'n' || raw[0] == 'N':
			r.replace(i, i, raw[1:])
		case raw[0] == 'b' || raw[0] == 'B':
			r.replace(i, i, raw[1:]+"::BIT")
		case raw[0] == 'x' || raw[0] == 'X':
			if bits, ok := hexBits(unquote(raw[1:], '\'')); ok {
				r.replace(i, i, quoteString(bits)+"::BIT")
			}
		}
	}
}

// hexBits spells hexadecimal digits as bits.
func hexBits(hex string) (string, bool) {
	var b strings.Builder
	for _, c := range hex {
		n, err := strconv.ParseUint(string(c), 16, 4)
		if err != nil {
			return "", false
		}
		digits := strconv.FormatUint(n, 2)
		b.WriteString(strings.Repeat("0", 4-len(digits)) + digits)
	}
	return b.String(), true
}

// unicode writes U&'…' and U&"…" with the characters themselves (manual, 4.1.2.3). A wrong escape is left as it is.
func (r *rewrite) unicode(i int, quoted string, quote byte) {
	escape, last := byte('\\'), i
	if r.word(i+1) == "uescape" && r.kind(i+2) == tokString {
		if c := unquote(r.raw(i+2), '\''); len(c) == 1 {
			escape, last = c[0], i+2
		}
	}
	text, ok := unescape(unquote(quoted, quote), escape)
	switch {
	case !ok:
	case quote == '"':
		r.replace(i, last, quoteIdent(text))
	default:
		r.replace(i, last, quoteString(text))
	}
}

// unescape replaces \XXXX, \+XXXXXX and the doubled escape.
func unescape(s string, escape byte) (string, bool) {
	var b strings.Builder
	var high rune // a surrogate that waits for its other half
	for at := 0; at < len(s); {
		if s[at] != escape {
			b.WriteByte(s[at])
			at++
			continue
		}
		at++
		if at < len(s) && s[at] == escape {
			b.WriteByte(escape)
			at++
			continue
		}
		digits := 4
		if at < len(s) && s[at] == '+' {
			at, digits = at+1, 6
		}
		if at+digits > len(s) {
			return "", false
		}
		n, err := strconv.ParseUint(s[at:at+digits], 16, 32)
		if err != nil {
			return "", false
		}
		at += digits
		c := rune(n)
		switch {
		case high != 0:
			if c = utf16.DecodeRune(high, c); c == utf8.RuneError {
				return "", false
			}
			high = 0
			b.WriteRune(c)
		case utf16.IsSurrogate(c):
			high = c
		case c == 0 || !utf8.ValidRune(c):
			return "", false
		default:
			b.WriteRune(c)
		}
	}
	return b.String(), high == 0
}
