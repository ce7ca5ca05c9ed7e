package auth

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// prepare brings a password into the form that client and server both hash: SASLprep (RFC 4013). A password that it
// does not allow is used as it is, as PostgreSQL does. ASCII comes out unchanged.
//
// RFC 4013 also refuses what Unicode 3.2 had not assigned; that is not checked. It makes a difference for newer
// characters with a compatibility form only.
func prepare(password string) string {
	if !utf8.ValidString(password) || isASCII(password) {
		return password
	}
	mapped := norm.NFKC.String(strings.Map(mapRune, password))
	if mapped == "" || strings.ContainsFunc(mapped, prohibited) || !sameDirection(mapped) {
		return password
	}
	return mapped
}

// isASCII says whether there is nothing to prepare.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ranges makes a table of pairs of first and last.
func ranges(pairs ...rune) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for i := 0; i < len(pairs); i += 2 {
		t.R32 = append(t.R32, unicode.Range32{Lo: uint32(pairs[i]), Hi: uint32(pairs[i+1]), Stride: 1})
	}
	return t
}

// Tables of RFC 3454.
var (
	// B.1: commonly mapped to nothing.
	toNothing = ranges(0xAD, 0xAD, 0x34F, 0x34F, 0x1806, 0x1806, 0x180B, 0x180D, 0x200B, 0x200D, 0x2060, 0x2060, 0xFE00, 0xFE0F, 0xFEFF, 0xFEFF)
	// C.1.2: spaces other than the ASCII one.
	toSpace = ranges(0xA0, 0xA0, 0x1680, 0x1680, 0x2000, 0x200A, 0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000)
	// C.2.1, C.2.2, C.3 to C.9: control characters, private use, not characters, tags.
	forbidden = ranges(0x0, 0x1F, 0x7F, 0x9F, 0x340, 0x341, 0x6DD, 0x6DD, 0x70F, 0x70F, 0x180E, 0x180E, 0x200C, 0x200F, 0x2028, 0x202E,
		0x2060, 0x2063, 0x206A, 0x206F, 0x2FF0, 0x2FFB, 0xD800, 0xF8FF, 0xFDD0, 0xFDEF, 0xFEFF, 0xFEFF, 0xFFF9, 0xFFFF, 0x1D173, 0x1D17A,
		0xE0001, 0xE0001, 0xE0020, 0xE007F, 0xF0000, 0x10FFFF)
)

// mapRune is the first step: spaces to the ASCII one, what shows nothing to nothing.
func mapRune(r rune) rune {
	switch {
	case unicode.Is(toSpace, r):
		return ' '
	case unicode.Is(toNothing, r):
		return -1
	}
	return r
}

// prohibited says whether the character may not be in a password.
func prohibited(r rune) bool {
	return unicode.Is(forbidden, r) || r&0xFFFE == 0xFFFE
}

// sameDirection checks RFC 3454, section 6: text with a character that is written from right to left begins and ends with
// such, and has none that is written from left to right.
func sameDirection(s string) bool {
	rightToLeft := func(r rune) bool {
		p, _ := bidi.LookupString(string(r))
		return p.Class() == bidi.R || p.Class() == bidi.AL
	}
	if !strings.ContainsFunc(s, rightToLeft) {
		return true
	}
	leftToRight := func(r rune) bool {
		p, _ := bidi.LookupString(string(r))
		return p.Class() == bidi.L
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return rightToLeft(first) && rightToLeft(last) && !strings.ContainsFunc(s, leftToRight)
}
