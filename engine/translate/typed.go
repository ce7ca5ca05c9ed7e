package translate

import (
	"fmt"
	"regexp"
	"strings"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// typedLiterals writes the text of literals whose type is said and which DuckDB reads differently: bytea, and dates before
// Christ. A literal that only its place gives a type stays, because it cannot be told from text here: one compared with a
// column, or given to EXECUTE. There DuckDB reads \xDEAD as one byte and two letters, and a date without its era. What
// INSERT … VALUES gives to a column of bytea is the engine's; see bytea.go.
func typedLiterals(r *rewrite) {
	for i := range r.tokens {
		text, ok := r.stringValue(i)
		if !ok {
			continue
		}
		if write := typedTexts[r.literalType(i)]; write != nil {
			if literal := r.write(i, write, text); literal != r.raw(i) {
				r.replace(i, i, literal)
			}
		}
	}
}

// writeText makes DuckDB's literal of a value's text in PostgreSQL. The error is PostgreSQL's about the text.
type writeText func(text string) (literal string, err error)

// typedTexts are the types whose text DuckDB reads differently.
var typedTexts = map[string]writeText{"bytea": byteaText, "date": eraText, "timestamp": eraText, "timestamptz": eraText}

// write is write(text); an error refuses the statement for token i.
func (r *rewrite) write(i int, write writeText, text string) string {
	literal, err := write(text)
	if err != nil {
		r.fail(i, pgerr.From(err))
		return quoteString(text)
	}
	return literal
}

// stringValue is the text that a plain, a dollar-quoted or an E'…' string stands for; false for any other token, and for
// an E'…' string with escapes other than of \ and ' themselves.
func (r *rewrite) stringValue(i int) (string, bool) {
	raw := r.raw(i)
	switch {
	case r.kind(i) == tokString:
		return unquote(raw, '\''), true
	case r.kind(i) == tokDollar:
		tag := strings.IndexByte(raw[1:], '$') + 2
		return raw[tag : len(raw)-tag], true
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

// literalType is the type that is said of the literal at token i: by ::, by CAST(… AS) or by its name before it. An array
// has none here; see arrayLiterals.
func (r *rewrite) literalType(i int) string {
	cast := r.word(i - 2)
	if r.raw(i+1) != "::" && !(r.word(i+1) == "as" && r.raw(i-1) == "(" && (cast == "cast" || cast == "try_cast")) {
		at := i - 1
		if r.words(i-2, "time", "zone") {
			at = i - 4 // timestamp with time zone '…'
		}
		if r.raw(at) == ")" {
			at = r.opening(at) - 1 // timestamp(3) '…'
		}
		return r.word(at)
	}
	at := r.bareType(i + 2)
	if r.raw(r.typeEnd(at)) == "]" {
		return ""
	}
	return r.name(at)
}

// bareType is the token of the type's name at token i, behind pg_catalog and its point.
func (r *rewrite) bareType(i int) int {
	if r.name(i) == "pg_catalog" && r.raw(i+1) == "." {
		return i + 2
	}
	return i
}

// byteaText reads bytea's text as the codec does, and writes the bytes as DuckDB's cast to BLOB reads them.
func byteaText(text string) (string, error) {
	v, err := pgcodec.DecodeText(pgcodec.OIDBytea, []byte(text), nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range v.Bytes {
		fmt.Fprintf(&b, `\x%02X`, c)
	}
	b.WriteByte('\'')
	return b.String(), nil
}

// era is a date that says its era at the end, as PostgreSQL does, behind the time if there is one.
var era = regexp.MustCompile(`(?is)^\s*(\d+-\d+-\d+)(?:[t\s]\s*(\S.*?))?\s+(bc|ad)\s*$`)

// eraText moves the era to where DuckDB reads it, right behind the date.
func eraText(text string) (string, error) {
	m := era.FindStringSubmatch(text)
	if m == nil {
		return quoteString(text), nil
	}
	moved := m[1]
	if strings.EqualFold(m[3], "bc") {
		moved += " (BC)"
	}
	if m[2] != "" {
		moved += " " + m[2]
	}
	return quoteString(moved), nil
}
