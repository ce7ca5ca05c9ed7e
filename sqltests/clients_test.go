package sqltests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pgjdbcVersion is the driver that clients/pgjdbc runs with, fetched by Maven.
const pgjdbcVersion = "42.7.14"

// clientTimeout ends a client that hangs.
const clientTimeout = 5 * time.Minute

// stockClient finds a client's program. One that is not installed is the only thing that a test here skips for.
func stockClient(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// clientCommand prepares a client on the tests' server: libpq's environment says where that is.
func clientCommand(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	t.Cleanup(cancel)
	config := sqlTarget(t).Config
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "PGHOST="+config.Host, fmt.Sprint("PGPORT=", config.Port), "PGUSER="+config.User,
		"PGPASSWORD="+config.Password, "PGDATABASE="+config.Database, "PGTZ=UTC", "LC_ALL=C.UTF-8")
	return cmd
}

// TestClients_Psql types each clients/psql/*.sql into psql and compares the screen.
func TestClients_Psql(t *testing.T) {
	psql := stockClient(t, "psql")
	sessions, err := filepath.Glob("clients/psql/*.sql")
	if err != nil || len(sessions) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	for _, path := range sessions {
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		t.Run(name, func(t *testing.T) { psqlSession(t, psql, name) })
	}
}

func psqlSession(t *testing.T, psql, name string) {
	cmd := clientCommand(t, psql, "-X", "-A", "-f", name+".sql")
	cmd.Dir = filepath.Join("clients", "psql")
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	want := filepath.Join("clients", "psql", name+".out")
	if *rewriteFlag {
		if err := os.WriteFile(want, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expected, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if problem := diff(strings.Split(string(got), "\n"), strings.Split(string(expected), "\n")); problem != "" {
		t.Errorf("%s\nall of it:\n%s", problem, got)
	}
}

// TestClients_PsqlCancel presses Ctrl-C in psql, which then sends a CancelRequest. (A script of psql's own ends there, so
// whether the session goes on is for TestCancel_RunningStatement to see.)
func TestClients_PsqlCancel(t *testing.T) {
	endless := "select count(*) from generate_series(1, 10000000) a(i), generate_series(1, 10000000) b(i) where a.i * b.i = -1"
	cmd := clientCommand(t, stockClient(t, "psql"), "-X", "-v", "VERBOSITY=sqlstate", "-c", endless)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait() // 1, as after any error
	if got := out.String(); got != "Cancel request sent\nERROR:  57014\n" {
		t.Errorf("%q, want 57014", got)
	}
}

// TestClients_Pgjdbc runs clients/pgjdbc/Session.java, which checks its own results.
func TestClients_Pgjdbc(t *testing.T) {
	java := stockClient(t, "java")
	jar := pgjdbc(t)
	config := sqlTarget(t).Config
	url := fmt.Sprintf("jdbc:postgresql://%s:%d/%s", config.Host, config.Port, config.Database)
	source := filepath.Join("clients", "pgjdbc", "Session.java")
	cmd := clientCommand(t, java, "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", jar, source, url, config.User, config.Password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// pgjdbc is the driver's jar, fetched once and kept where Go keeps caches.
func pgjdbc(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "sluice-test", "java")
	jar := filepath.Join(dir, "postgresql-"+pgjdbcVersion+".jar")
	if _, err := os.Stat(jar); err == nil {
		return jar
	}
	cmd := exec.Command(stockClient(t, "mvn"), "-q", "-B", "dependency:copy", "-Dartifact=org.postgresql:postgresql:"+pgjdbcVersion, "-DoutputDirectory="+dir)
	cmd.Dir = t.TempDir() // away from any pom.xml
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mvn dependency:copy: %v\n%s", err, out)
	}
	return jar
}
