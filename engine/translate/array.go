package translate

import "strings"

// arrayLiterals writes PostgreSQL's array text as a list where the statement says that it is an array: before a cast to
// one, and in ANY or ALL. DuckDB's cast reads lists as [1, 2] only.
func arrayLiterals(r *rewrite) {
	for i := range r.tokens {
		if r.kind(i) != tokString || !strings.HasPrefix(r.raw(i), "'{") || !r.castToArray(i+1) && !r.quantified(i) {
			continue
		}
		write := quoteString
		if typed := typedTexts[r.name(r.bareType(i+2))]; typed != nil && r.raw(i+1) == "::" {
			write = func(text string) string { return r.write(i, typed, text) }
		}
		if list, ok := listOf(unquote(r.raw(i), '\''), write); ok {
			r.replace(i, i, list)
		}
	}
}

// castToArray reports whether :: and a type that ends in [] begin at token i.
func (r *rewrite) castToArray(i int) bool {
	if r.raw(i) != "::" {
		return false
	}
	end := r.typeEnd(i + 1)
	return end > 0 && r.raw(end) == "]"
}

// typeEnd finds the last token of the type name that begins at token i; 0 if there is none.
func (r *rewrite) typeEnd(i int) int {
	if r.name(i) == "" {
		return 0
	}
	for r.raw(i+1) == "." && r.name(i+2) != "" {
		i += 2
	}
	for typeWords[r.word(i)+" "+r.word(i+1)] {
		i++
	}
	if r.raw(i+1) == "(" {
		if end := r.closing(i + 1); end > 0 {
			i = end
		}
	}
	for _, zone := range []string{"with", "without"} {
		if r.words(i+1, zone, "time", "zone") {
			i += 3
		}
	}
	for r.raw(i+1) == "[" {
		end := r.closing(i + 1)
		if end < 0 {
			break
		}
		i = end
	}
	return i
}

// typeWords are type names of two words.
var typeWords = map[string]bool{"double precision": true, "character varying": true, "char varying": true, "bit varying": true, "national character": true}

// quantified reports whether token i is all that ANY, ALL or SOME is about.
func (r *rewrite) quantified(i int) bool {
	q := r.word(i - 2)
	return (q == "any" || q == "all" || q == "some") && r.raw(i-1) == "(" && r.raw(i+1) == ")"
}

// listOf writes array text as DuckDB's list of what write makes of each element (manual, 8.15.6 "Array Input and Output
// Syntax").
func listOf(text string, write func(string) string) (string, bool) {
	list, rest, ok := readList(strings.TrimSpace(text), write)
	return list, ok && strings.TrimSpace(rest) == ""
}

// readList reads from an opening brace to its end.
func readList(text string, write func(string) string) (list, rest string, ok bool) {
	if text == "" || text[0] != '{' {
		return "", "", false
	}
	rest = strings.TrimSpace(text[1:])
	var items []string
	for first := true; ; first = false {
		if rest != "" && rest[0] == '}' && (first || len(items) == 0) {
			return "[" + strings.Join(items, ", ") + "]", rest[1:], true
		}
		var item string
		if item, rest, ok = readItem(rest, write); !ok {
			return "", "", false
		}
		items = append(items, item)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return "", "", false
		}
		end := rest[0] == '}'
		if !end && rest[0] != ',' {
			return "", "", false
		}
		rest = strings.TrimSpace(rest[1:])
		if end {
			return "[" + strings.Join(items, ", ") + "]", rest, true
		}
	}
}

// readItem reads one element: a list, a quoted or a bare one.
func readItem(text string, write func(string) string) (item, rest string, ok bool) {
	if text == "" {
		return "", "", false
	}
	switch text[0] {
	case '{':
		return readList(text, write)
	case '"':
		var b strings.Builder
		for i := 1; i < len(text); i++ {
			switch {
			case text[i] == '"':
				return write(b.String()), text[i+1:], true
			case text[i] == '\\' && i+1 < len(text):
				i++
			}
			b.WriteByte(text[i])
		}
		return "", "", false
	}
	end := strings.IndexAny(text, ",}")
	if end <= 0 || strings.ContainsAny(text[:end], "\\\"{") {
		return "", "", false
	}
	bare := strings.TrimSpace(text[:end])
	if strings.EqualFold(bare, "null") {
		return "NULL", text[end:], true
	}
	return write(bare), text[end:], bare != ""
}
