package translate

import (
	"encoding/hex"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// byteaLiterals finds the literals of INSERT … VALUES that bytea's text form would read as bytes. Whether their columns are
// bytea only the engine can tell; DuckDB's own cast reads \xDEAD as the byte DE and the text AD.
func byteaLiterals(s *Stmt) *Bytea {
	if !strings.Contains(s.Text, `'\x`) {
		return nil
	}
	tree, err := pg_query.Parse(s.Text)
	if err != nil || len(tree.Stmts) != 1 {
		return nil
	}
	insert := tree.Stmts[0].Stmt.GetInsertStmt()
	if insert == nil {
		return nil
	}
	b := &Bytea{Table: tableSQL(insert.Relation)}
	for _, c := range insert.Cols {
		b.Columns = append(b.Columns, c.GetResTarget().GetName())
	}
	for _, row := range insert.GetSelectStmt().GetSelectStmt().GetValuesLists() {
		for i, item := range row.GetList().GetItems() {
			c := item.GetAConst()
			if c == nil || c.GetSval() == nil || !isByteaHex(c.GetSval().Sval) {
				continue
			}
			if l, ok := s.literalAt(int(c.Location)); ok {
				b.Literals = append(b.Literals, ByteaLiteral{i, l[0], l[1]})
			}
		}
	}
	if len(b.Literals) == 0 {
		return nil
	}
	slices.SortFunc(b.Literals, func(a, b ByteaLiteral) int { return a.Start - b.Start })
	return b
}

// isByteaHex reports whether text is bytea's hexadecimal form.
func isByteaHex(text string) bool {
	digits, ok := strings.CutPrefix(text, `\x`)
	if !ok {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// literalAt finds in SQL the plain literal at an offset of Text; false where a rule has rewritten it.
func (s *Stmt) literalAt(offset int) ([2]int, bool) {
	shift := 0
	for _, sp := range s.splices {
		if sp.start <= offset && offset < sp.end {
			return [2]int{}, false
		}
		if sp.end <= offset {
			shift = sp.at + len(sp.text) - sp.end
		}
	}
	start := offset + shift
	if start >= len(s.SQL) || s.SQL[start] != '\'' {
		return [2]int{}, false
	}
	length := strings.IndexByte(s.SQL[start+1:], '\'') // no quote can be in it
	return [2]int{start, start + 1 + length + 1}, length >= 0
}

// tableSQL quotes a table's name for DuckDB.
func tableSQL(t *pg_query.RangeVar) string {
	if t.Schemaname == "" {
		return quoteIdent(t.Relname)
	}
	return quoteIdent(lakeSchema(t.Schemaname)) + "." + quoteIdent(t.Relname)
}
