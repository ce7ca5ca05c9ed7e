package translate

import (
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// prepare reads PREPARE name [(types)] AS statement. It is read by its tokens, since the statement may be DuckDB's.
func prepare(r *rewrite, s *Stmt) {
	if r.words(1, "transaction") && r.kind(2) == tokString {
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, "prepared transactions are not supported"))
		return
	}
	p := &Prepared{Name: r.name(1)}
	at := 2
	if r.raw(at) == "(" {
		end := r.closing(at)
		if end < 0 {
			refuse(s, syntaxErrorAt(r, s, len(r.tokens)))
			return
		}
		for _, part := range r.list(at+1, end-1) {
			p.Types = append(p.Types, r.text[r.tokens[part[0]].start:r.tokens[part[1]].end])
		}
		at = end + 1
	}
	if p.Name == "" || r.word(at) != "as" || at+1 >= len(r.tokens) {
		refuse(s, syntaxErrorAt(r, s, at))
		return
	}
	body, _ := statement(s.message, r.moved(at+1, s.Offset), r.o)
	switch body.Kind {
	case KindRefused:
		refuse(s, body.Err)
		return
	case KindQuery, KindDML, KindDDL, KindNoop:
	default:
		refuse(s, syntaxErrorAt(r, s, at+1))
		return
	}
	p.Body, s.Prepared = &body, p
}

// execute reads EXECUTE name [(arguments)].
func execute(r *rewrite, s *Stmt) {
	p := &Prepared{Name: r.name(1)}
	if p.Name == "" {
		refuse(s, syntaxErrorAt(r, s, 1))
		return
	}
	if r.raw(2) == "(" {
		end := r.closing(2)
		if end != len(r.tokens)-1 {
			refuse(s, syntaxErrorAt(r, s, max(end, 2)+1))
			return
		}
		for _, part := range r.list(3, end-1) {
			sql, _, _ := r.part(part[0], part[1])
			p.Args = append(p.Args, sql)
		}
	} else if len(r.tokens) > 2 {
		refuse(s, syntaxErrorAt(r, s, 2))
		return
	}
	s.Prepared = p
}

// deallocate reads DEALLOCATE [PREPARE] name and ALL.
func deallocate(r *rewrite, s *Stmt) {
	at := 1
	if r.words(1, "prepare") && len(r.tokens) > 2 {
		at = 2
	}
	if r.name(at) == "" || len(r.tokens) > at+1 {
		refuse(s, syntaxErrorAt(r, s, at))
		return
	}
	s.Prepared = &Prepared{Name: r.name(at)}
	if r.words(at, "all") {
		s.Prepared, s.Tag = &Prepared{All: true}, "DEALLOCATE ALL"
	}
}

// discards are what DISCARD may name, each with PostgreSQL's word for it.
var discards = map[string]string{"all": "ALL", "plans": "PLANS", "sequences": "SEQUENCES", "temp": "TEMP", "temporary": "TEMP"}

// discard reads DISCARD.
func discard(r *rewrite, s *Stmt) {
	s.Discard = discards[r.word(1)]
	if s.Discard == "" || len(r.tokens) > 2 {
		refuse(s, syntaxErrorAt(r, s, 1))
		return
	}
	s.Tag = "DISCARD " + s.Discard
}

// list finds the parts between commas, each as its first and last token.
func (r *rewrite) list(first, last int) [][2]int {
	var parts [][2]int
	depth, start := 0, first
	for i := first; i <= last; i++ {
		switch r.raw(i) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case ",":
			if depth == 0 {
				if start < i {
					parts = append(parts, [2]int{start, i - 1})
				}
				start = i + 1
			}
		}
	}
	if start <= last {
		parts = append(parts, [2]int{start, last})
	}
	return parts
}

// syntaxErrorAt is PostgreSQL's error about token i.
func syntaxErrorAt(r *rewrite, s *Stmt, i int) *pgerr.Error {
	if i >= len(r.tokens) {
		return pgerr.New(pgerrcode.SyntaxError, "syntax error at end of input").WithPosition(charPosition(s.message, s.Offset+len(r.text)))
	}
	return pgerr.Newf(pgerrcode.SyntaxError, `syntax error at or near "%s"`, r.raw(i)).
		WithPosition(charPosition(s.message, s.Offset+r.tokens[i].start))
}
