package translate

// functionAliases names the column of a function in FROM: to PostgreSQL s is the value in FROM generate_series(1, 3) s,
// to DuckDB it is the row (manual, 7.2.1.4 "Table Functions").
func functionAliases(r *rewrite) {
	for i := range r.tokens {
		if !scalarFunctions[r.name(i)] || r.raw(i+1) != "(" {
			continue
		}
		before := i - 1
		if r.raw(before) == "." && r.name(before-1) == "pg_catalog" {
			before -= 2
		}
		if w := r.word(before); w != "from" && w != "join" && w != "lateral" {
			continue // after a comma it may as well be a column
		}
		alias := r.closing(i+1) + 1
		if alias == 0 {
			continue
		}
		if r.word(alias) == "as" {
			alias++
		}
		if r.name(alias) == "" || afterRelation[r.word(alias)] || beforeOperand[r.word(alias)] || r.raw(alias+1) == "(" {
			continue
		}
		r.after(alias, "("+r.raw(alias)+")")
	}
}

// scalarFunctions are those that return one column.
var scalarFunctions = wordSet("generate_series unnest generate_subscripts regexp_split_to_table string_to_table")

// afterRelation are words that may follow a relation in FROM and are no alias; beforeOperand has more.
var afterRelation = wordSet("natural tablesample fetch pivot unpivot at")
