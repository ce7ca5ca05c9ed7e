package catalog

import (
	"embed"
	"encoding/csv"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	schema            = "sluice.pg"   // of pg_catalog's relations, of functions and types
	informationSchema = "sluice.info" // of information_schema's relations
)

// SearchPath is what a session's search path ends in.
const SearchPath = schema

//go:embed *.sql *.csv
var files embed.FS

// Options is what the catalogs tell.
type Options struct {
	Lake          string    // name of the lake in DuckDB, which is the database's name for clients
	ServerVersion string    // "15.0"
	Version       string    // what version() adds in brackets: "Sluice 1.0, DuckDB 1.5.5"
	Started       time.Time // pg_postmaster_start_time(); zero = now
}

// first are the files that others build on, in order. The rest are relations, in the order of their names.
var first = []string{"types.sql", "session.sql", "lake.sql", "pg_description.sql", "functions.sql", "pg_namespace.sql", "pg_attrdef.sql", "pg_attribute.sql", "pg_views.sql"}

// Script returns, in order, the statements that install the catalogs. The database sluice must be attached and empty,
// the lake must be attached. It takes about 0.2 s.
func Script(o Options) []string {
	script := []string{"CREATE SCHEMA " + schema, "CREATE SCHEMA " + informationSchema}
	script = append(script, tables()...)
	names := slices.Clone(first)
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	for _, e := range entries {
		if path.Ext(e.Name()) == ".sql" && !slices.Contains(first, e.Name()) {
			names = append(names, e.Name())
		}
	}
	fill := replacer(o)
	for _, name := range names {
		for _, sql := range statements(read(name)) {
			script = append(script, fill.Replace(sql))
		}
	}
	return append(script, empties(names)...)
}

// replacer fills in what the .sql files leave open.
func replacer(o Options) *strings.Replacer {
	if o.Started.IsZero() {
		o.Started = time.Now()
	}
	version := "PostgreSQL " + o.ServerVersion
	if o.Version != "" {
		version += " (" + o.Version + ")"
	}
	return strings.NewReplacer("{lake}", literal(o.Lake), "{version}", literal(version), "{server_version}", literal(o.ServerVersion),
		"{started}", literal(o.Started.UTC().Format("2006-01-02 15:04:05.999999+00")))
}

// Refresh returns the statements that tell the catalogs DuckLake's ids, to be run in one transaction on a connection
// that may read DuckLake's catalog: no client's. metadata is the schema of DuckLake's tables as DuckDB names it, quoted.
// The ids move only when the lake's schema version does.
func Refresh(metadata string) []string {
	return []string{
		"DELETE FROM " + schema + ".lake_object",
		"INSERT INTO " + schema + ".lake_object SELECT schema_name, '', schema_id FROM " + metadata + ".ducklake_schema WHERE end_snapshot IS NULL" +
			" UNION ALL SELECT s.schema_name, t.table_name, t.table_id FROM " + metadata + ".ducklake_table t JOIN " + metadata + ".ducklake_schema s USING (schema_id)" +
			" WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL" +
			" UNION ALL SELECT s.schema_name, v.view_name, v.view_id FROM " + metadata + ".ducklake_view v JOIN " + metadata + ".ducklake_schema s USING (schema_id)" +
			" WHERE v.end_snapshot IS NULL AND s.end_snapshot IS NULL",
	}
}

// Relation says in which schema of DuckDB a relation of pg_catalog or information_schema is; false if there is none.
func Relation(schemaName, name string) (string, bool) {
	return known()[[2]string{schemaName, name}], known()[[2]string{schemaName, name}] != ""
}

// known are the relations there are, by schema and name.
var known = sync.OnceValue(func() map[[2]string]string {
	m := map[[2]string]string{}
	for _, r := range rows("relations.csv") {
		m[[2]string{r[1], r[2]}] = home(r[1])
	}
	return m
})

// home is DuckDB's schema for one of PostgreSQL's.
func home(schemaName string) string {
	if schemaName == "information_schema" {
		return informationSchema
	}
	return schema
}

// empties makes a view without rows of each relation that has no file.
func empties(names []string) []string {
	columns := map[string][]string{}
	for _, c := range rows("columns.csv") {
		columns[c[0]] = append(columns[c[0]], "CAST(NULL AS "+duckType(c[12])+") AS "+quote(c[1]))
	}
	var script []string
	for _, r := range rows("relations.csv") {
		file := r[2] + ".sql"
		if r[1] == "information_schema" {
			file = r[1] + "." + file
		}
		if !slices.Contains(names, file) {
			script = append(script, fmt.Sprintf("CREATE VIEW %s.%s AS SELECT %s WHERE false", home(r[1]), quote(r[2]), strings.Join(columns[r[0]], ", ")))
		}
	}
	return script
}

// duckTypes are DuckDB's types for the columns of PostgreSQL's catalogs, by oid; what is missing is text.
var duckTypes = map[string]string{
	"16": "BOOLEAN", "17": "BLOB", "20": "BIGINT", "21": "SMALLINT", "23": "INTEGER", "26": "BIGINT", "28": "BIGINT", "700": "FLOAT", "701": "DOUBLE",
	"1114": "TIMESTAMP", "1184": "TIMESTAMPTZ", "1186": "INTERVAL", "1700": "DECIMAL(38,0)", "22": "SMALLINT[]", "30": "BIGINT[]",
	"1000": "BOOLEAN[]", "1002": "VARCHAR[]", "1003": "VARCHAR[]", "1005": "SMALLINT[]", "1007": "INTEGER[]", "1009": "VARCHAR[]", "1016": "BIGINT[]",
	"1021": "FLOAT[]", "1022": "DOUBLE[]", "1028": "BIGINT[]", "1034": "VARCHAR[]", "1185": "TIMESTAMPTZ[]", "2211": "VARCHAR[]",
}

func duckType(oid string) string {
	if t := duckTypes[oid]; t != "" {
		return t
	}
	return "VARCHAR"
}

// table is one that a .csv file fills: the file's columns in order, each with its type; "-" leaves one out.
type table struct {
	name, file, types string
}

var csvTables = []table{
	{"system_type", "pg_type.csv", "BIGINT VARCHAR BIGINT BIGINT SMALLINT BOOLEAN VARCHAR VARCHAR BOOLEAN BOOLEAN VARCHAR BIGINT VARCHAR BIGINT BIGINT" +
		" VARCHAR VARCHAR VARCHAR VARCHAR VARCHAR VARCHAR VARCHAR VARCHAR VARCHAR BOOLEAN BIGINT INTEGER INTEGER BIGINT VARCHAR"},
	{"system_relation", "relations.csv", "BIGINT VARCHAR VARCHAR BIGINT VARCHAR SMALLINT"},
	{"system_column", "columns.csv", "BIGINT VARCHAR BIGINT SMALLINT SMALLINT INTEGER INTEGER BOOLEAN BOOLEAN VARCHAR VARCHAR BIGINT -"},
	{"keyword", "keywords.csv", "VARCHAR VARCHAR VARCHAR BOOLEAN VARCHAR"},
}

// tables makes and fills the tables of the .csv files. The rows go in as one string each, which DuckDB's parser reads
// ten times as fast as VALUES.
func tables() []string {
	var script []string
	for _, t := range csvTables {
		r := csv.NewReader(strings.NewReader(read(t.file)))
		records, err := r.ReadAll()
		if err != nil {
			panic(fmt.Sprintf("%s: %v", t.file, err)) // embedded, and tested
		}
		var columns []string
		for i, typ := range strings.Fields(t.types) {
			if typ != "-" {
				columns = append(columns, fmt.Sprintf("CAST(f[%d] AS %s) AS %s", i+1, typ, quote(records[0][i])))
			}
		}
		lines := make([]string, len(records)-1)
		for i, record := range records[1:] {
			lines[i] = strings.Join(record, "\t")
		}
		script = append(script, fmt.Sprintf("CREATE TABLE %s.%s AS SELECT %s FROM (SELECT string_split(unnest(string_split(%s, chr(10))), chr(9)) AS f)",
			schema, t.name, strings.Join(columns, ", "), literal(strings.Join(lines, "\n"))))
	}
	return script
}

// rows reads a .csv file without its first line.
func rows(name string) [][]string {
	records, err := csv.NewReader(strings.NewReader(read(name))).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err)) // embedded, and tested
	}
	return records[1:]
}

// read returns an embedded file.
func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	return string(b)
}

// statements cuts a .sql file: a statement ends with a semicolon at the end of a line.
func statements(text string) []string {
	var out []string
	for _, s := range strings.SplitAfter(text, ";\n") {
		if s = strings.TrimSuffix(strings.TrimSpace(s), ";"); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// literal writes a string for DuckDB; quote an identifier.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
func quote(s string) string   { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
