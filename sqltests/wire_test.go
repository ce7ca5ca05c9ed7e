package sqltests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestWire runs every script below wire/ on a Sluice and on a PostgreSQL; with -addr on the server that it names.
func TestWire(t *testing.T) {
	if *addrFlag != "" {
		target := sqlTarget(t)
		t.Run(target.Kind, func(t *testing.T) { runWireScripts(t, target) })
		return
	}
	t.Run("postgres", func(t *testing.T) { runWireScripts(t, wirePostgres(t)) })
	t.Run("sluice", func(t *testing.T) { runWireScripts(t, sqlTarget(t)) })
}

// wirePostgres starts a PostgreSQL that asks for the same user's password as the Sluice of these tests.
func wirePostgres(t *testing.T) Target {
	t.Helper()
	c := startCluster(t)
	conn := connectAs(t, c.dsn("lake"))
	mustExec(t, conn, fmt.Sprintf("CREATE ROLE sluice LOGIN PASSWORD '%s'; GRANT CREATE ON DATABASE lake TO sluice", passwords["sluice"]))
	hba := "local all postgres trust\nlocal all all scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(c.data(), "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, "SELECT pg_reload_conf()")
	config, err := pgconn.ParseConfig(fmt.Sprintf("host=%s user=sluice password='%s' dbname=lake", c.dir, passwords["sluice"]))
	if err != nil {
		t.Fatal(err)
	}
	return Target{Config: config, Kind: "postgres"}
}

// wireScripts parses all files, in a fixed order.
func wireScripts(t *testing.T) []*WireScript {
	t.Helper()
	var scripts []*WireScript
	err := filepath.WalkDir("wire", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".txt") {
			return err
		}
		script, err := ParseWireFile(filepath.ToSlash(path))
		scripts = append(scripts, script)
		return err
	})
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no wire scripts: %v", err)
	}
	return scripts
}

// wireName is a script's path without what all paths share.
func wireName(s *WireScript) string {
	return strings.TrimSuffix(strings.TrimPrefix(s.Path, "wire/"), ".txt")
}

func runWireScripts(t *testing.T, target Target) {
	version := majorVersion(t, target.Config)
	for _, script := range wireScripts(t) {
		t.Run(wireName(script), func(t *testing.T) {
			switch {
			case script.Only != "" && script.Only != target.Kind:
				t.Skipf("only %s: %s", script.Only, script.OnlyWhy)
			case target.Kind == "postgres" && version < script.defaults.needs:
				t.Skipf("needs PostgreSQL %d", script.defaults.needs)
			}
			runWireScript(t, script, target, version)
		})
	}
}

// runWireScript is one script on one server. Only one at a time rewrites.
func runWireScript(t *testing.T, script *WireScript, target Target, version int) {
	if !*rewriteFlag {
		t.Parallel()
	}
	run := WireRun{
		Script: script, Target: target, Version: version, Rewrite: *rewriteFlag,
		Schema: "w_" + unnamed.ReplaceAllString(wireName(script), "_"),
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
	if *rewriteFlag {
		if err := script.Rewrite(run.actual); err != nil {
			t.Fatal(err)
		}
	}
}

// majorVersion asks a server which PostgreSQL it is, or says it is.
func majorVersion(t *testing.T, config *pgconn.Config) int {
	t.Helper()
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	number, err := strconv.Atoi(mustExec(t, conn, "SHOW server_version_num")[0])
	if err != nil {
		t.Fatal(err)
	}
	return number / 10000
}

// TestWire_Names: each script is called what its path says.
func TestWire_Names(t *testing.T) {
	for _, script := range wireScripts(t) {
		if script.Name != script.Path {
			t.Errorf("%s: `# name: %s`", script.Path, script.Name)
		}
	}
}

// The lines of README.md between which the list of differences stands.
const (
	differencesBegin = "<!-- differences: written by `go test ./sqltests -run TestWire_Differences -rewrite` -->"
	differencesEnd   = "<!-- end of differences -->"
)

// TestWire_Differences: README.md lists every answer that Sluice gives otherwise than PostgreSQL, with the reason.
func TestWire_Differences(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), differencesBegin+"\n")
	list, after, ended := strings.Cut(rest, differencesEnd)
	if !found || !ended {
		t.Fatalf("README.md lacks %s or %s", differencesBegin, differencesEnd)
	}
	want := strings.Join(differences(wireScripts(t)), "\n") + "\n"
	if *rewriteFlag {
		text := before + differencesBegin + "\n" + want + differencesEnd + after
		if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if problem := diff(strings.Split(list, "\n"), strings.Split(want, "\n")); problem != "" {
		t.Errorf("README.md's list of differences is not that of the scripts; -rewrite brings it up to date: %s", problem)
	}
}

// differences is one line a reason, with the scripts that give it.
func differences(scripts []*WireScript) []string {
	where := map[string][]string{}
	note := func(why string, s *WireScript) {
		if name := "`" + wireName(s) + "`"; !slices.Contains(where[why], name) {
			where[why] = append(where[why], name)
		}
	}
	for _, s := range scripts {
		if s.Only == "sluice" {
			note(s.OnlyWhy, s)
		}
		for _, block := range s.blocks {
			for _, want := range block.wants {
				if want.on == "sluice" {
					note(want.why, s)
				}
			}
		}
	}
	var lines []string
	for why, names := range where {
		lines = append(lines, fmt.Sprintf("- %s (%s)", why, strings.Join(names, ", ")))
	}
	slices.Sort(lines)
	return lines
}
