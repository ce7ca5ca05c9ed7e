package translate

import (
	"slices"
	"strconv"
	"strings"

	"sluice/engine/pgerr"
)

// splice replaces text[start:end] of the client's statement. at is where its replacement begins in the SQL.
type splice struct {
	start, end int
	text       string
	at         int
}

// rewrite is a statement on its way to DuckDB: the tokens that mean something, and what is to be replaced.
type rewrite struct {
	text    string
	tokens  []token // without blank and comments
	o       Options
	stored  bool // the lake keeps this text (a view, a macro), so it must mean the same without Sluice
	splices []splice

	failure  *pgerr.Error // PostgreSQL's answer to a literal that it cannot read; the statement is refused
	failedAt int          // byte offset in text that failure is about
}

// newRewrite lexes nothing again: it takes the statement's share of the message's tokens, moved to its beginning.
func newRewrite(text string, tokens []token, offset int, o Options) *rewrite {
	r := &rewrite{text: text, tokens: make([]token, 0, len(tokens)), o: o}
	for _, t := range tokens {
		if t.kind != tokSpace {
			r.tokens = append(r.tokens, token{t.kind, t.start - offset, t.end - offset})
		}
	}
	return r
}

// kind is the kind of token i; tokSpace outside of the statement.
func (r *rewrite) kind(i int) tokenKind {
	if i < 0 || i >= len(r.tokens) {
		return tokSpace
	}
	return r.tokens[i].kind
}

// raw is the text of token i; "" outside of the statement.
func (r *rewrite) raw(i int) string {
	if i < 0 || i >= len(r.tokens) {
		return ""
	}
	return r.text[r.tokens[i].start:r.tokens[i].end]
}

// word is an unquoted token i in lower case, "" if it is anything else.
func (r *rewrite) word(i int) string {
	if r.kind(i) != tokWord {
		return ""
	}
	return strings.ToLower(r.raw(i))
}

// name is the identifier that token i stands for, folded and without quotes; "" if it is none.
func (r *rewrite) name(i int) string {
	switch r.kind(i) {
	case tokWord:
		return strings.ToLower(r.raw(i))
	case tokQuoted:
		return unquote(r.raw(i), '"')
	}
	return ""
}

// words reports whether the tokens from i on are these words.
func (r *rewrite) words(i int, words ...string) bool {
	for n, w := range words {
		if r.word(i+n) != w {
			return false
		}
	}
	return true
}

// replace puts text in the place of the tokens from first to last. A place that an earlier rule took stays its own.
func (r *rewrite) replace(first, last int, text string) {
	start, end := r.tokens[first].start, r.tokens[last].end
	for _, s := range r.splices {
		if s.start < end && start < s.end {
			return
		}
	}
	r.splices = append(r.splices, splice{start: start, end: end, text: text})
}

// fail refuses the statement for what token i says. The first failure is the one that PostgreSQL would report.
func (r *rewrite) fail(i int, err *pgerr.Error) {
	if r.failure == nil {
		r.failure, r.failedAt = err, r.tokens[i].start
	}
}

// drop takes the tokens from first to last out.
func (r *rewrite) drop(first, last int) { r.replace(first, last, "") }

// before and after put text beside token i.
func (r *rewrite) before(i int, text string) {
	at := r.tokens[i].start
	r.splices = append(r.splices, splice{start: at, end: at, text: text})
}

func (r *rewrite) after(i int, text string) {
	at := r.tokens[i].end
	r.splices = append(r.splices, splice{start: at, end: at, text: text})
}

// closing finds the bracket that closes the one at open; -1 if there is none.
func (r *rewrite) closing(open int) int {
	depth := 0
	for i := open; i < len(r.tokens); i++ {
		if r.kind(i) != tokPunct {
			continue
		}
		switch r.raw(i) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// opening finds the bracket that the one at end closes; -1 if there is none.
func (r *rewrite) opening(end int) int {
	depth := 0
	for i := end; i >= 0; i-- {
		if r.kind(i) != tokPunct {
			continue
		}
		switch r.raw(i) {
		case ")", "]", "}":
			depth++
		case "(", "[", "{":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// operandBefore finds where the operand of a cast begins that ends with token last: a literal, a column, a call, a
// bracket, with subscripts and earlier casts.
func (r *rewrite) operandBefore(last int) int {
	first := last
	if raw := r.raw(last); r.kind(last) == tokPunct && (raw == ")" || raw == "]") {
		if first = r.opening(last); first < 0 {
			return last
		}
		if r.endsOperand(first - 1) { // a call or a subscript: what is called belongs to it
			return r.operandBefore(first - 1)
		}
		if r.word(first-1) == "array" || r.word(first-1) == "row" {
			first--
		}
	}
	switch r.raw(first - 1) {
	case ".", "::":
		if first > 1 {
			return r.operandBefore(first - 2)
		}
	}
	return first
}

// endsOperand reports whether an expression may end with token i, so that an operator after it has two sides.
func (r *rewrite) endsOperand(i int) bool {
	switch r.kind(i) {
	case tokSpace, tokOp:
		return false
	case tokPunct:
		raw := r.raw(i)
		return raw == ")" || raw == "]" || raw == "}"
	case tokWord:
		return !beforeOperand[r.word(i)]
	}
	return true
}

// beforeOperand are the reserved words after which an expression begins, and none can have ended.
var beforeOperand = wordSet(`all analyse and any array as asc between both by case cast check collate column cross
	default desc distinct do else except exists extract filter for foreign from full glob group having ilike in inner
	intersect into is isnull join lateral leading left like limit not notnull offset on only or order outer over
	overlaps partition positional primary qualify references returning right row select semi set similar some symmetric
	table then to trailing union unique using values when where window with anti asof`)

// wordSet makes a set of the words in s.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// sql applies the splices and says where each begins. Without any it is the client's text itself.
func (r *rewrite) sql() (string, []splice) {
	if len(r.splices) == 0 {
		return r.text, nil
	}
	slices.SortStableFunc(r.splices, func(a, b splice) int { return a.start - b.start })
	var b strings.Builder
	last := 0
	for i := range r.splices {
		s := &r.splices[i]
		b.WriteString(r.text[last:s.start])
		s.at = b.Len()
		b.WriteString(s.text)
		last = s.end
	}
	b.WriteString(r.text[last:])
	return b.String(), r.splices
}

// originOf maps an offset in the SQL to one in the client's statement.
func originOf(splices []splice, offset int) int {
	shift := 0
	for _, s := range splices {
		if offset < s.at {
			break
		}
		if offset < s.at+len(s.text) {
			return s.start
		}
		shift = s.end - (s.at + len(s.text))
	}
	return offset + shift
}

// params finds every $n in sql. Rules neither add nor remove any.
func params(sql string) (refs []ParamRef, highest int) {
	if !strings.Contains(sql, "$") {
		return nil, 0
	}
	tokens, err := lex(sql)
	if err != nil {
		return nil, 0 // the message was lexed before; not reached
	}
	for _, t := range tokens {
		if t.kind != tokParam {
			continue
		}
		n, err := strconv.Atoi(sql[t.start+1 : t.end])
		if err != nil {
			continue // beyond any number of parameters: DuckDB refuses it
		}
		refs = append(refs, ParamRef{n, t.start, t.end})
		highest = max(highest, n)
	}
	return refs, highest
}

// unquote takes the quotes off and halves the doubled ones.
func unquote(s string, quote byte) string {
	if len(s) < 2 {
		return s
	}
	return strings.ReplaceAll(s[1:len(s)-1], string([]byte{quote, quote}), string(quote))
}

// quoteString writes s as a string literal.
func quoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// quoteIdent writes s as a quoted identifier.
func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
