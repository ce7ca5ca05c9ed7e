// Command gen exports the rows of PostgreSQL's catalogs that never change, as .csv files beside the .sql files of
// package catalog. Run it against a PostgreSQL of the version that Sluice follows, in a database without objects:
//
//	go run ./engine/catalog/gen -dsn "host=/tmp user=postgres dbname=template1" -dir engine/catalog
package main

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// system are the schemas whose relations are exported.
const system = `('pg_catalog', 'information_schema')`

// exports says which query fills which file. Every value is text; the empty string stands for NULL.
var exports = map[string]string{
	// Base types, their arrays, pseudo types and ranges, without the row types of relations.
	"pg_type.csv": `SELECT t.oid, t.typname, t.typnamespace, t.typowner, t.typlen, t.typbyval, t.typtype, t.typcategory, t.typispreferred, t.typisdefined,
		t.typdelim, t.typrelid, t.typsubscript, t.typelem, t.typarray, t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout,
		t.typanalyze, t.typalign, t.typstorage, t.typnotnull, t.typbasetype, t.typtypmod, t.typndims, t.typcollation,
		pg_catalog.format_type(t.oid, NULL) AS formatted
		FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
		WHERE t.typtype <> 'c' AND coalesce(e.typtype, 'b') <> 'c' AND t.typnamespace = 'pg_catalog'::regnamespace ORDER BY t.oid`,
	"relations.csv": `SELECT c.oid, n.nspname, relname, relnamespace, relkind, relnatts FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE nspname IN ` + system + ` AND relkind IN ('r', 'v') ORDER BY c.oid`,
	"columns.csv": `SELECT attrelid, attname, atttypid, attlen, attnum, atttypmod, attndims, attnotnull, attbyval, attalign, attstorage, attcollation,
		CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE atttypid END AS basetype
		FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_type t ON t.oid = atttypid
		WHERE nspname IN ` + system + ` AND relkind IN ('r', 'v') AND attnum > 0 ORDER BY attrelid, attnum`,
	"keywords.csv": `SELECT word, catcode, catdesc, barelabel, baredesc FROM pg_get_keywords() ORDER BY 1`,
}

func main() {
	dsn := flag.String("dsn", "", "PostgreSQL to read")
	dir := flag.String("dir", ".", "where the files go")
	flag.Parse()
	if err := run(context.Background(), *dsn, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes every file.
func run(ctx context.Context, dsn, dir string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for name, query := range exports {
		if err := export(ctx, conn, filepath.Join(dir, name), query); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// export writes the query's rows under a line with their names.
func export(ctx context.Context, conn *pgx.Conn, path, query string) error {
	rows, err := conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	defer rows.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	var line []string
	for _, field := range rows.FieldDescriptions() {
		line = append(line, field.Name)
	}
	if err := w.Write(line); err != nil {
		return err
	}
	for rows.Next() {
		for i, v := range rows.RawValues() {
			line[i] = string(v)
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return rows.Err()
}
