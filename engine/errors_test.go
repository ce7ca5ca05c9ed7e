package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// openDuck opens a DuckDB with the settings that the engine's instances have, without a lake.
func openDuck(t *testing.T) *duckConn {
	t.Helper()
	in := &instance{}
	config, err := in.config(Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer mapping.DestroyConfig(&config)
	var message string
	if mapping.OpenExt("", &in.db, config, &message) == mapping.StateError {
		t.Fatal(message)
	}
	t.Cleanup(func() { mapping.Close(&in.db) })
	c, err := connect(in.db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestSQLStates raises every row of the table by its statement. What only a lake or a fault can raise says so.
func TestSQLStates(t *testing.T) {
	c, ctx := openDuck(t), context.Background()
	for _, sql := range []string{
		`CREATE TABLE errors_t(i int)`, `CREATE TABLE errors_nn(i int NOT NULL)`,
		`CREATE TABLE errors_pk(i int PRIMARY KEY)`, `INSERT INTO errors_pk VALUES (7)`,
		`CREATE TABLE errors_ck(i int CHECK (i > 0))`, `SET GLOBAL enable_external_access = false`,
	} {
		if err := c.exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	lakeOnly := map[string]bool{`CREATE TABLE nosuch.t(i int)`: true, `CREATE INDEX errors_i ON errors_t(i)`: true, `INSERT INTO nosuch.t VALUES (1)`: true}
	for _, row := range sqlstates {
		if strings.HasPrefix(row.raisedBy, "--") || lakeOnly[row.raisedBy] {
			continue
		}
		err := c.exec(ctx, row.raisedBy)
		e, ok := err.(*duckError) //nolint:errorlint // exec wraps nothing
		if !ok {
			t.Errorf("%s: got %v, want an error", row.raisedBy, err)
			continue
		}
		if got := sqlstateOf(e); got != row.code {
			t.Errorf("%s: got %s, want %s (%s: %s)", row.raisedBy, got, row.code, e.Kind, e.Message)
		}
	}
}

// TestParseDuckError_Nested finds the innermost error where DuckLake has wrapped one of its own queries'.
func TestParseDuckError_Nested(t *testing.T) {
	e := parseDuckError(`{"exception_type":"TransactionContext","exception_message":"Failed to commit: {\"exception_type\":\"IO\",\"exception_message\":\"disk\",\"position\":\"3\"}"}`)
	if e.Kind != "TransactionContext" || e.Message != "Failed to commit: disk" || e.Position != -1 {
		t.Errorf("got %+v", e)
	}
	if e := parseDuckError("INTERRUPT Error: Interrupted!"); e.Kind != "INTERRUPT" {
		t.Errorf("got %+v", e)
	}
}
