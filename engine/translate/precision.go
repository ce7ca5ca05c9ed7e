package translate

// timePrecision drops the number in timestamptz(3), which DuckDB refuses: its values have microseconds in any case.
// timestamp(3) without time zone is a type of DuckDB's own and stays.
func timePrecision(r *rewrite) {
	for i := range r.tokens {
		if r.raw(i+1) != "(" || r.kind(i+2) != tokNumber || r.raw(i+3) != ")" {
			continue
		}
		zone := r.words(i+4, "with", "time", "zone") || r.words(i+4, "without", "time", "zone")
		switch r.word(i) {
		case "timestamptz", "timetz":
		case "timestamp", "time":
			if !zone {
				continue
			}
		default:
			continue
		}
		r.drop(i+1, i+3)
	}
}
