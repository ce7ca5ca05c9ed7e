package translate

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// typedLiterals writes the text of literals whose type is said and which DuckDB reads differently: bytea, and dates before
// Christ. A literal that only its place gives a type, such as one among VALUES, cannot be told from text and stays.
func typedLiterals(r *rewrite) {
	for i := range r.tokens {
		text, ok := r.stringValue(i)
		if !ok {
			continue
		}
		switch name := r.literalType(i); {
		case name == "bytea":
			if b, ok := byteaValue(text); ok {
				r.replace(i, i, blobLiteral(b))
			}
		case eraTypes[name] && strings.HasSuffix(strings.ToUpper(text), " BC"):
			r.replace(i, i, quoteString(text[:len(text)-2]+"(BC)"))
		}
	}
}

// eraTypes are the types whose text may end in BC.
var eraTypes = map[string]bool{"date": true, "timestamp": true, "timestamptz": true}

// stringValue is the text that a plain or an E” string stands for; false for any other token, and for an E” string with
// escapes other than of \ and ' themselves.
func (r *rewrite) stringValue(i int) (string, bool) {
	raw := r.raw(i)
	switch {
	case r.kind(i) == tokString && strings.HasPrefix(raw, "'"):
		return unquote(raw, '\''), true
	case r.kind(i) == tokPrefix && (raw[0] == 'e' || raw[0] == 'E'):
		text := unquote(raw[1:], '\'')
		plain := strings.NewReplacer(`\\`, `\`, `\'`, `'`)
		if strings.Contains(strings.NewReplacer(`\\`, "", `\'`, "").Replace(text), `\`) {
			return "", false
		}
		return plain.Replace(text), true
	}
	return "", false
}

// literalType is the type that is said of the literal at token i: by ::, by CAST(… AS) or by its name before it.
func (r *rewrite) literalType(i int) string {
	at := 0
	switch {
	case r.raw(i+1) == "::", r.word(i+1) == "as" && r.raw(i-1) == "(" && r.word(i-2) == "cast":
		at = i + 2
	default:
		return r.word(i - 1)
	}
	if r.word(at) == "pg_catalog" && r.raw(at+1) == "." {
		at += 2
	}
	return r.name(at)
}

// byteaValue reads bytea's text: \x and hexadecimal digits, or bytes with \\ and \nnn (manual, 8.4 "Binary Data Types").
func byteaValue(text string) ([]byte, bool) {
	if digits, ok := strings.CutPrefix(text, `\x`); ok {
		b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
		return b, err == nil
	}
	var b []byte
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case rest[0] != '\\':
			b = append(b, rest[0])
		case strings.HasPrefix(rest, `\\`):
			b = append(b, '\\')
			i++
		case len(rest) >= 4 && strings.Trim(rest[1:4], "01234567") == "" && rest[1] <= '3':
			b = append(b, (rest[1]-'0')<<6|(rest[2]-'0')<<3|rest[3]-'0')
			i += 3
		default:
			return nil, false
		}
	}
	return b, true
}

// blobLiteral writes bytes as DuckDB reads them in a cast to BLOB.
func blobLiteral(b []byte) string {
	var out strings.Builder
	out.WriteByte('\'')
	for _, c := range b {
		fmt.Fprintf(&out, `\x%02X`, c)
	}
	out.WriteByte('\'')
	return out.String()
}
