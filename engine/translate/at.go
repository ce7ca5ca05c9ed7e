package translate

import "strings"

// atNames quotes at where it is a name. PostgreSQL's grammar takes it for one anywhere but in AT TIME ZONE; DuckDB
// reserves it for that and for AT (VERSION => n).
func atNames(r *rewrite) {
	for i := range r.tokens {
		if r.kind(i) == tokWord && strings.EqualFold(r.raw(i), "at") && !r.atZone(i) && !r.atSnapshot(i) {
			r.replace(i, i, `"at"`)
		}
	}
}

// atZone reports whether token i begins AT TIME ZONE, which has an operand before it.
func (r *rewrite) atZone(i int) bool { return r.words(i+1, "time", "zone") && r.endsOperand(i-1) }

// atSnapshot reports whether token i begins DuckDB's AT (VERSION => n) or AT (TIMESTAMP => t).
func (r *rewrite) atSnapshot(i int) bool { return r.raw(i+1) == "(" && r.raw(i+3) == "=>" }
