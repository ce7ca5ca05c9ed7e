package translate

// nullsOrder makes NULLs sort as if larger than every value, also downwards (manual, 7.5 "Sorting Rows"). DuckDB has them
// last either way; its own setting for it is no use, because it changes DuckLake's queries of its catalog as well, which
// then find no snapshot by time.
func nullsOrder(r *rewrite) {
	for i := range r.tokens {
		if i == 0 || r.word(i) != "desc" || r.raw(i-1) == "." || r.word(i-1) == "as" || r.word(i+1) == "nulls" {
			continue // DESCRIBE in short, a column's or an alias's name, or said already
		}
		r.after(i, " NULLS FIRST")
	}
}
