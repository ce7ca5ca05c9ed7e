package translate

// searchOperators are PostgreSQL's operators for regular expressions that DuckDB reads otherwise: its ~ matches the
// whole string. They become operators of package catalog, with the same place in the grammar's order of precedence.
// ~* and !~* are unknown to DuckDB and are macros of the catalog under their own names.
var searchOperators = map[string]string{"~": "@~", "!~": "!@~"}

// regularExpression rewrites ~ and !~, and in text that the lake keeps ~* and !~* too.
func regularExpression(r *rewrite) {
	for i := range r.tokens {
		if r.kind(i) != tokOp || !r.endsOperand(i-1) { // ~ before an operand inverts bits
			continue
		}
		if kept, ok := keptOperators[r.raw(i)]; ok && r.stored {
			if last := r.operandAfter(i + 1); last > i {
				r.replace(i, i, kept.op)
				r.before(i+1, "('"+kept.flags+".*(?:' || ")
				r.after(last, " || ').*')")
				continue
			}
		}
		if as, ok := searchOperators[r.raw(i)]; ok {
			r.replace(i, i, as)
		}
	}
}

// keptOperators says each as DuckDB's full match of a longer expression.
var keptOperators = map[string]struct{ op, flags string }{
	"~": {"~", "(?s)"}, "~*": {"~", "(?is)"}, "!~": {"!~", "(?s)"}, "!~*": {"!~", "(?is)"},
}

// operandAfter finds the last token of the operand that begins at token i, if it is a simple one: a literal, a column,
// a call or brackets, with casts; else -1.
func (r *rewrite) operandAfter(i int) int {
	last := i
	switch r.kind(i) {
	case tokString, tokPrefix, tokDollar, tokParam, tokNumber:
	case tokWord, tokQuoted:
		if beforeOperand[r.word(i)] {
			return -1
		}
		for r.raw(last+1) == "." && r.name(last+2) != "" {
			last += 2
		}
		if r.raw(last+1) == "(" {
			last = r.closing(last + 1)
		}
	case tokPunct:
		if r.raw(i) != "(" {
			return -1
		}
		last = r.closing(i)
	default:
		return -1
	}
	for last >= 0 {
		switch {
		case r.raw(last+1) == "::":
			end := r.typeEnd(last + 2)
			if end == 0 {
				return -1
			}
			last = end
		case r.raw(last+1) == "[":
			last = r.closing(last + 1)
		case r.kind(last+1) == tokOp && tighter[r.raw(last+1)]:
			return -1
		default:
			return last
		}
	}
	return -1
}

// tighter are the operators that bind more closely than ~ does.
var tighter = map[string]bool{"+": true, "-": true, "*": true, "/": true, "%": true, "^": true}
