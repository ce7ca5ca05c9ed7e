package sqltests

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The flags of `go test ./sqltests`; README.md shows them in use.
var (
	addrFlag    = flag.String("addr", "", "run the files on the server of this `DSN` instead of on a Sluice of their own")
	kindFlag    = flag.String("kind", "", "what -addr is, sluice or postgres (default: asked by version())")
	rewriteFlag = flag.Bool("rewrite", false, "write the rows that the server gives into the files")
	longFlag    = flag.Bool("long", false, "run the long tests too")
	serverFlag  = flag.String("server", "", "use this sluice `binary` instead of building one")
	logFlag     = flag.Bool("serverlog", false, "print the servers' logs")
)

// TestMain starts nothing by itself: a server comes up when the first test asks for one, and goes down here, where its exit
// code and its log are part of the result.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: the shared server:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// TestSQL runs every file below sql/, by the simple and by the extended protocol, each in a schema of its own.
func TestSQL(t *testing.T) {
	target := sqlTarget(t)
	for _, path := range testFiles(t) {
		script, err := ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "sql/"), ".test"), func(t *testing.T) {
			if script.Only != "" && script.Only != target.Kind {
				t.Skipf("only %s: %s", script.Only, script.OnlyWhy)
			}
			for _, mode := range []string{"simple", "extended"} {
				if script.Mode == "" || script.Mode == mode {
					t.Run(mode, func(t *testing.T) { runScript(t, script, target, mode) })
				}
			}
		})
	}
}

// testFiles finds the files, in a fixed order.
func testFiles(t *testing.T) []string {
	var paths []string
	err := filepath.WalkDir("sql", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".test") {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("no .test files: %v", err)
	}
	return paths
}

// unnamed is what may not stand in a schema's name.
var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// runScript is one pass over one file. Only one pass at a time rewrites.
func runScript(t *testing.T, script *Script, target Target, mode string) {
	if !*rewriteFlag {
		t.Parallel()
	}
	name := unnamed.ReplaceAllString(strings.TrimSuffix(strings.TrimPrefix(script.Path, "sql/"), ".test"), "_")
	run := Run{
		Script: script, Target: target, Mode: mode, Schema: "t_" + name + "_" + mode,
		Report: func(line int, format string, args ...any) {
			t.Errorf("%s:%d: %s", script.Path, line, fmt.Sprintf(format, args...))
		},
		Log: func(line int, format string, args ...any) {
			t.Logf("%s:%d: %s", script.Path, line, fmt.Sprintf(format, args...))
		},
	}
	if err := run.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if *rewriteFlag && (mode == "simple" || script.Mode != "") {
		if err := run.Rewrite(); err != nil {
			t.Fatal(err)
		}
	}
}

// sqlTarget is the server that the files run on: that of -addr, else the shared Sluice.
func sqlTarget(t *testing.T) Target {
	if *addrFlag == "" {
		s := shared(t)
		return Target{Config: s.config(t), Kind: "sluice", Users: passwords}
	}
	config, err := pgconn.ParseConfig(*addrFlag)
	if err != nil {
		t.Fatal(err)
	}
	kind := *kindFlag
	if kind == "" {
		kind = askKind(t, config)
	}
	return Target{Config: config, Kind: kind, Users: map[string]string{config.User: config.Password}}
}

// askKind tells a Sluice from a PostgreSQL by its version().
func askKind(t *testing.T, config *pgconn.Config) string {
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	results, err := conn.Exec(t.Context(), "SELECT version()").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(string(results[0].Rows[0][0])), "sluice") {
		return "sluice"
	}
	return "postgres"
}
