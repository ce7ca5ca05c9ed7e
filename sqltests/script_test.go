package sqltests

import (
	"strings"
	"testing"
)

// TestParse_Refuses: a file that would silently test nothing, or less than it seems to, does not parse.
func TestParse_Refuses(t *testing.T) {
	cases := map[string]string{
		"no about":               "statement ok\nSELECT 1\n",
		"unknown directive":      "# about: x\nstatment ok\nSELECT 1\n",
		"statement without SQL":  "# about: x\nstatement ok\n\nSELECT 1\n",
		"loop without end":       "# about: x\nrepeat 2\n\nstatement ok\nSELECT 1\n",
		"end without loop":       "# about: x\nend\n",
		"repeat without a count": "# about: x\nrepeat often\nend\n",
		"only without why":       "# about: x\nonly sluice\n",
		"mark without an issue":  "# about: x\nexpect fail\nstatement ok\nSELECT 1\n",
	}
	for name, text := range cases {
		if _, err := Parse("test", text); err == nil {
			t.Errorf("%s: parsed", name)
		}
	}
}

// TestParse_Records: what stands before a record belongs to it alone, and data keeps its tabs and marked blank lines.
func TestParse_Records(t *testing.T) {
	script, err := Parse("test", `# name: n
# about: a
only sluice: why not
bind int4 1
expect fail: issue 7
columns a int4
query I rowsort
SELECT $1
  AS a
----
1	x
(blank)
2

foreach v a b
loop i 0 2
statement ok
SELECT '${v}${i}'

end
end

statement ok
SELECT 2
`)
	if err != nil {
		t.Fatal(err)
	}
	if script.Name != "n" || script.About != "a" || script.Only != "sluice" || script.OnlyWhy != "why not" || len(script.records) != 3 {
		t.Fatalf("%+v", script)
	}
	query, loop, last := script.records[0], script.records[1], script.records[2]
	if query.line != 7 || query.sql != "SELECT $1\n  AS a" || strings.Join(query.want, "|") != "1\tx||2" || query.fails != "issue 7" || query.columns != "a int4" || len(query.binds) != 1 {
		t.Errorf("%+v", query)
	}
	if len(loop.values) != 2 || len(loop.body) != 1 || len(loop.body[0].values) != 2 {
		t.Errorf("%+v", loop)
	}
	if last.fails != "" || last.binds != nil || last.columns != "" {
		t.Errorf("%+v", last)
	}
}
