package translate

import "sluice/engine/catalog"

// operators writes OPERATOR(pg_catalog.~) as ~, and leaves what ~ means to the rule for regular expressions.
func operators(r *rewrite) {
	for i := range r.tokens {
		if r.word(i) != "operator" || r.raw(i+1) != "(" {
			continue
		}
		op := i + 2
		if r.name(op) != "" && r.raw(op+1) == "." {
			op += 2
		}
		if r.kind(op) != tokOp || r.raw(op+1) != ")" {
			continue
		}
		text := r.raw(op)
		if as, ok := searchOperators[text]; ok {
			text = as
		}
		r.replace(i, op+1, text)
	}
}

// collations drops the database's default collation, which DuckDB has no name for, and the schema of any other.
func collations(r *rewrite) {
	for i := range r.tokens {
		if r.word(i) != "collate" {
			continue
		}
		name := i + 1
		if r.name(name) == "pg_catalog" && r.raw(name+1) == "." {
			name += 2
		}
		switch {
		case r.name(name) == "default":
			r.drop(i, name)
		case name > i+1:
			r.drop(i+1, name-1)
		}
	}
}

// catalogNames finds what a client says of pg_catalog and information_schema. Relations that package catalog has are
// named where they are; functions, types and columns lose the schema and are found by the search path; the rest is
// DuckDB's own.
func catalogNames(r *rewrite) {
	for i := range r.tokens {
		schema := r.name(i)
		if schema != "pg_catalog" && schema != "information_schema" || r.raw(i+1) != "." {
			continue
		}
		first := i
		if r.raw(i-1) == "." {
			if r.name(i-2) != r.o.Lake || r.raw(i-3) == "." {
				continue
			}
			first = i - 2
		}
		relation := r.raw(i+3) != "(" && r.raw(i+3) != "." && r.raw(first-1) != "::"
		if at, ok := catalog.Relation(schema, r.name(i+2)); ok && relation {
			r.replace(first, i+1, at+".")
			continue
		}
		if schema == "information_schema" && relation && first == i {
			continue // DuckDB has one of its own
		}
		r.drop(first, i+1)
	}
}
