package catalog_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestPerf(t *testing.T) {
	if os.Getenv("PERF") == "" {
		t.Skip()
	}
	conn := open(t)
	run(t, conn, "BEGIN")
	for i := range 1000 {
		run(t, conn, fmt.Sprintf("CREATE TABLE t%d (a int, b varchar, c decimal(10,2), d timestamptz)", i))
	}
	run(t, conn, "COMMIT")
	for _, q := range []string{"select 1", "select count(*) from pg_class", "select count(*) from pg_attribute", "select * from pg_attribute where attrelid = 't5'::regclass", "select 't5'::regclass", "select count(*) from pg_class where pg_table_is_visible(oid)", "select count(*) from information_schema.columns", "select count(*) from information_schema.tables where table_name='t7'", "select count(*) from pg_description", "select typname from pg_type where oid=23", "select version()", "select c.oid::regclass from pg_class c", "select format_type(atttypid, atttypmod) from pg_attribute"} {
		start := time.Now()
		_, err := query(conn, q)
		t.Log(time.Since(start), q, err)
	}
}
