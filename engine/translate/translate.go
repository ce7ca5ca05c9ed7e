package translate

// rules are applied in this order to what reaches DuckDB. Where two want the same tokens, the first has them.
var rules = [...]func(*rewrite){
	literals,          // U&'…', B'…', X'…', N'…'
	typedLiterals,     // '\x01'::bytea, date '0044-03-15 BC'
	arrayLiterals,     // '{1,2}'::int[]
	timePrecision,     // timestamptz(3)
	regCasts,          // ::regclass and its like
	functionAliases,   // FROM generate_series(1, 3) s
	operators,         // OPERATOR(pg_catalog.~)
	collations,        // COLLATE pg_catalog.default
	catalogNames,      // pg_catalog.x, information_schema.x
	publicSchema,      // public.x
	atNames,           // a column or table called at
	regularExpression, // ~ and !~
	lockingClauses,    // FOR UPDATE
	nullsOrder,        // ORDER BY x DESC
}

// Parse splits a client's text into statements and translates each. Text without any has none. A quote or comment
// without an end fails the whole text, as in PostgreSQL: a *pgerr.Error with 42601 and the position.
func Parse(sql string, o Options) ([]Stmt, error) {
	tokens, err := lex(sql)
	if err != nil {
		return nil, err
	}
	var stmts []Stmt
	first := 0
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) && !(tokens[i].kind == tokPunct && sql[tokens[i].start] == ';') {
			continue
		}
		if s, ok := statement(sql, tokens[first:i], o); ok {
			stmts = append(stmts, s)
		}
		first = i + 1
	}
	return stmts, nil
}

// statement translates the one in tokens; false if there are only blanks and comments.
func statement(message string, tokens []token, o Options) (Stmt, bool) {
	for len(tokens) > 0 && tokens[0].kind == tokSpace {
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].kind == tokSpace {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return Stmt{}, false
	}
	start, end := tokens[0].start, tokens[len(tokens)-1].end
	s := Stmt{Text: message[start:end], Offset: start, message: message}
	r := newRewrite(s.Text, tokens, start, o)
	s.SQL = s.Text
	classify(r, &s)
	if s.Kind == KindQuery || s.Kind == KindDML || s.Kind == KindDDL {
		for _, rule := range rules {
			rule(r)
		}
		s.SQL, s.splices = r.sql()
	}
	if r.failure != nil && s.Kind != KindRefused {
		refuse(&s, r.failure.WithPosition(charPosition(message, start+r.failedAt)))
	}
	s.ParamAt, s.Params = params(s.SQL)
	if s.Kind == KindDML {
		s.Bytea = byteaLiterals(&s)
	}
	return s, true
}

// part translates the tokens from first to last alone, such as the query in COPY. Its splices count from its own
// beginning, which is offset bytes into the statement.
func (r *rewrite) part(first, last int) (sql string, splices []splice, offset int) {
	if last < first {
		return "", nil, 0
	}
	offset = r.tokens[first].start
	p := newRewrite(r.text[offset:r.tokens[last].end], r.tokens[first:last+1], offset, r.o)
	for _, rule := range rules {
		rule(p)
	}
	if p.failure != nil {
		r.failure, r.failedAt = p.failure, offset+p.failedAt
	}
	sql, splices = p.sql()
	return sql, splices, offset
}
