package translate

// lockingClauses drops FOR UPDATE and its like: a transaction of the lake reads a snapshot, and two that change the same
// rows conflict at commit (manual, SELECT "The Locking Clause").
func lockingClauses(r *rewrite) {
	for i := range r.tokens {
		if r.word(i) != "for" {
			continue
		}
		last := 0
		for _, words := range [][]string{{"update"}, {"share"}, {"no", "key", "update"}, {"key", "share"}} {
			if r.words(i+1, words...) {
				last = i + len(words)
			}
		}
		if last == 0 || r.raw(last+1) == "(" {
			continue
		}
		if r.words(last+1, "of") {
			for last += 2; r.raw(last+1) == "," || r.raw(last+1) == "."; last += 2 {
			}
		}
		switch {
		case r.words(last+1, "nowait"):
			last++
		case r.words(last+1, "skip", "locked"):
			last += 2
		}
		r.drop(i, min(last, len(r.tokens)-1))
	}
}
