package translate

// A cast to regclass and its like is two things in PostgreSQL: a name becomes an object id, and an id is shown as a
// name. DuckDB has numbers and text, so the cast becomes a call of one of two macros of package catalog: x_in gives the
// id, x_out the name. Which one is told by what is cast and by what stands around it.

// regTypes are the types with macros for both ways.
var regTypes = wordSet(`regclass regtype regnamespace regrole regproc`)

// textTypes are types of this family that are shown and compared as text.
var textTypes = map[string]string{
	"regprocedure": "regproc", "regoper": "varchar", "regoperator": "varchar", "regconfig": "varchar",
	"regdictionary": "varchar", "regcollation": "varchar",
}

// regCasts rewrites x::regclass, CAST(x AS regclass) and regclass 'x'.
func regCasts(r *rewrite) {
	for i := range r.tokens {
		first, name := i, r.name(i)
		if !regTypes[name] && textTypes[name] == "" {
			continue
		}
		if r.raw(i-1) == "." && r.name(i-2) == "pg_catalog" {
			first = i - 2
		}
		if as := textTypes[name]; as == "varchar" {
			r.replace(first, i, as)
			continue
		} else if as != "" {
			name = as
		}
		switch {
		case r.raw(i+1) == "[": // an array of them
			r.replace(first, i, "varchar")
		case r.raw(first-1) == "::" && first > 1:
			r.regCast(name, r.operandBefore(first-2), first-2, first-1, i)
		case r.word(first-1) == "as" && r.raw(i+1) == ")":
			r.regCastCall(name, first, i)
		case (r.kind(i+1) == tokString) && r.raw(first-1) != ".":
			r.replace(first, i, name+"_in")
			r.before(i+1, "(")
			r.after(i+1, ")")
		}
	}
}

// regCast rewrites the cast whose operand is the tokens from to last; cast is the token of ::, end the type's last.
func (r *rewrite) regCast(name string, from, last, cast, end int) {
	call := r.direction(name, from, last, end)
	r.before(from, call)
	r.replace(cast, end, closers(call))
}

// regCastCall rewrites CAST(… AS type), of which the tokens from first to last are the type.
func (r *rewrite) regCastCall(name string, first, last int) {
	open := r.opening(last + 1)
	if open < 1 || r.word(open-1) != "cast" || first-1 <= open+1 {
		return
	}
	call := r.direction(name, open+1, first-2, last+1)
	r.replace(open-1, open, call)
	r.replace(first-1, last+1, closers(call))
}

// direction is the beginning of the call. Literals and parameters are names to look up; what is compared or goes on to
// a number is an id; what else is shown.
func (r *rewrite) direction(name string, from, last, end int) string {
	in, out := name+"_in(", name+"_out("
	next := r.name(end + 2)
	if r.name(end+2) == "pg_catalog" && r.raw(end+3) == "." {
		next = r.name(end + 4)
	}
	cast := r.raw(end+1) == "::"
	literal := from == last && (r.kind(from) == tokString || r.kind(from) == tokParam || r.kind(from) == tokDollar)
	switch {
	case cast && textNames[next] && literal:
		return out + in
	case cast && textNames[next]:
		return out
	case cast && name == "regproc":
		return "regproc_oid("
	case literal, cast, comparison[r.raw(from-1)], comparison[r.raw(end+1)]:
		return in
	}
	return out
}

// closers ends what direction began.
func closers(call string) string {
	n := 0
	for _, c := range call {
		if c == '(' {
			n++
		}
	}
	return "))"[:n]
}

var (
	textNames  = wordSet("text varchar name character char bpchar")
	comparison = map[string]bool{"=": true, "<>": true, "!=": true, "<": true, ">": true, "<=": true, ">=": true}
)
