package translate

import (
	"slices"
	"strings"
	"testing"
)

// The names are what PostgreSQL 15 gave for these queries.
func TestStmt_NameColumns(t *testing.T) {
	for _, c := range []struct {
		sql        string
		duck, want string
	}{
		{`select count(*), 1 + 1, a, t.b, x as y, 'z'`, "a b c d e f", "count ?column? a b y ?column?"},
		{`select 1::int, 'x'::text, a::int, sum(b)::numeric, cast(null as varchar(3)), timestamp '2020-01-01'`, "a b c d e f", "int4 text a sum varchar timestamp"},
		{`select case when a then b else c end, case when a then 1 end, coalesce(a, 1), nullif(a, b), greatest(1, 2)`, "a b c d e", "c case coalesce nullif greatest"},
		{
			`select current_date, current_user, (select max(x) from t), exists (select 1), array[1], array(select 1), row(1, 2), (a).f, (current_schemas(true))[1]`,
			"a b c d e f g h i", "current_date current_user max exists array array row f current_schemas",
		},
		{`select extract(year from a), substring(a from 1 for 2), trim(a), a at time zone 'UTC', not a, -a`, "a b c d e f", "extract substring btrim timezone ?column? ?column?"},
		{`values (1, 2), (3, 4)`, "col0 col1", "column1 column2"},
		{`select 1 union select 2 as b`, "x", "?column?"},
		{`with a as (select 1) select count(*) from a`, "count_star()", "count"},
		{`select count(*), *, sum(a)`, "n a b c s", "count a b c sum"},
		{`select *, t.*, 1 from t`, "a b a b x", "a b a b ?column?"},
		{`insert into t values (1) returning a, a + 1`, "a (a+1)", "a ?column?"},
		{`from t select count(*)`, "count_star()", "count_star()"},
		{`select * from t`, "a b", "a b"},
	} {
		s := one(t, c.sql, lake)
		names := strings.Fields(c.duck)
		s.NameColumns(names)
		if !slices.Equal(names, strings.Fields(c.want)) {
			t.Errorf("%s\n got %q\nwant %q", c.sql, names, c.want)
		}
	}
}
