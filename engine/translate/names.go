package translate

import (
	"encoding/json"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// publicSchema writes DuckLake's main for the schema that clients know as public. The word may as well be a table's
// alias or a column: then PostgreSQL's tree tells which is which, and where there is none, what stands before it.
func publicSchema(r *rewrite) {
	var columns map[int]bool // offsets where public.x is a column of the alias public
	parsed, alias := false, false
	for i := range r.tokens {
		if r.name(i) == "public" && r.raw(i+1) != "." && r.raw(i-1) != "." && r.word(i-1) != "schema" {
			alias = true
		}
	}
	for i := range r.tokens {
		if r.name(i) != "public" {
			continue
		}
		if r.raw(i+1) != "." {
			if r.word(i-1) == "schema" || r.words(0, "show", "tables", "from") && i == len(r.tokens)-1 {
				r.replace(i, i, "main")
			}
			continue
		}
		if r.raw(i-1) == "." {
			if r.name(i-2) == r.o.Lake && r.raw(i-3) != "." {
				r.replace(i, i, "main")
			}
			continue
		}
		if alias && r.raw(i+3) != "." {
			if !parsed {
				columns, parsed = columnsOf(r.text, "public"), true
			}
			if columns[r.tokens[i].start] || columns == nil && !beforeRelation[r.word(i-1)] {
				continue
			}
		}
		r.replace(i, i, "main")
	}
}

// lakeSchema is DuckLake's name of a schema: its main is what clients know as public.
func lakeSchema(name string) string {
	if name == "public" {
		return "main"
	}
	return name
}

// beforeRelation are the words that a relation's name follows.
var beforeRelation = wordSet(`from join into update table view exists only on references using sequence index truncate describe summarize`)

// columnsOf finds where the text speaks of columns of a table or alias of this name; nil if PostgreSQL cannot read it.
func columnsOf(text, table string) map[int]bool {
	tree, err := pg_query.ParseToJSON(text)
	if err != nil {
		return nil
	}
	var root any
	if json.Unmarshal([]byte(tree), &root) != nil {
		return nil
	}
	found := map[int]bool{}
	walk(root, func(kind string, node map[string]any) {
		fields, _ := node["fields"].([]any)
		if kind != "ColumnRef" || len(fields) != 2 {
			return
		}
		first, _ := fields[0].(map[string]any)
		name, _ := first["String"].(map[string]any)
		if name["sval"] == table {
			at, _ := node["location"].(float64) // left out where it is 0
			found[int(at)] = true
		}
	})
	return found
}

// walk visits every node of a tree.
func walk(v any, visit func(kind string, node map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case map[string]any:
		for kind, item := range v {
			if node, ok := item.(map[string]any); ok {
				visit(kind, node)
			}
			walk(item, visit)
		}
	}
}
