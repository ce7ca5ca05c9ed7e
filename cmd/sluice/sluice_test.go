package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/auth"
)

// clearEnvironment takes away what would change the defaults.
func clearEnvironment(t *testing.T) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SLUICE_") || name == "XDG_DATA_HOME" {
			t.Setenv(name, "") // so that it is restored
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", "/home/somebody")
}

func parseServe(t *testing.T, args ...string) *serveCommand {
	t.Helper()
	command, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	serve, ok := command.(*serveCommand)
	if !ok {
		t.Fatalf("%v runs %T", args, command)
	}
	return serve
}

// TestConfig_Defaults: no argument at all is serve with the defaults that are the contract.
func TestConfig_Defaults(t *testing.T) {
	clearEnvironment(t)
	got := parseServe(t)
	want := &serveCommand{
		dataDirFlag:    dataDirFlag{DataDir: "/home/somebody/.local/share/sluice"},
		logFlags:       logFlags{LogLevel: "info"},
		Listen:         []string{"127.0.0.1:5433"},
		lakeFlag:       lakeFlag{Lake: "lake"},
		MetadataSchema: "public",
		Auth:           "scram-sha-256",
		ChannelBinding: true,
		DrainTimeout:   30 * time.Second,
		reapGraceFlag:  reapGraceFlag{ReapGrace: 600 * time.Second},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if path := got.path(got.dataDirFlag); path != "/home/somebody/.local/share/sluice/users.txt" {
		t.Errorf("user file %q", path)
	}
	if path := got.engineConfig("", got.logger()).DataPath; path != "pgvfs://lake/data/" {
		t.Errorf("data path %q", path)
	}
}

// TestConfig_Order: each setting has an environment variable, which goes before the default, and a flag, which goes
// before both.
func TestConfig_Order(t *testing.T) {
	clearEnvironment(t)
	settings := []struct{ flag, env, fromEnv, fromFlag string }{
		{"listen", "SLUICE_LISTEN", "[h:1 /tmp]", "[h:2]"},
		{"dsn", "SLUICE_DSN", "host=a", "postgres://b/c"},
		{"data-dir", "SLUICE_DATA_DIR", "/a", "/b"},
		{"lake", "SLUICE_LAKE", "a", "b"},
		{"data-path", "SLUICE_DATA_PATH", "s3://a/", "s3://b/"},
		{"metadata-schema", "SLUICE_METADATA_SCHEMA", "a", "b"},
		{"auth", "SLUICE_AUTH", "trust", "scram-sha-256"},
		{"users", "SLUICE_USERS", "/a.txt", "/b.txt"},
		{"memory-limit", "SLUICE_MEMORY_LIMIT", "1GB", "2GB"},
		{"threads", "SLUICE_THREADS", "1", "2"},
		{"log-level", "SLUICE_LOG_LEVEL", "debug", "trace"},
		{"log-format", "SLUICE_LOG_FORMAT", "json", "console"},
		{"drain-timeout", "SLUICE_DRAIN_TIMEOUT", "1m0s", "2m0s"},
		{"reap-grace", "SLUICE_REAP_GRACE", "1h0m0s", "2h0m0s"},
	}
	var flags []string
	list := strings.NewReplacer("[", "", "]", "", " ", ",")
	for _, s := range settings {
		t.Setenv(s.env, list.Replace(s.fromEnv))
		flags = append(flags, "--"+s.flag, list.Replace(s.fromFlag))
	}
	fromEnv, fromFlags := shown(parseServe(t)), shown(parseServe(t, flags...))
	for _, s := range settings {
		if fromEnv[s.flag] != s.fromEnv {
			t.Errorf("%s: %q, want %q", s.env, fromEnv[s.flag], s.fromEnv)
		}
		if fromFlags[s.flag] != s.fromFlag {
			t.Errorf("--%s: %q, want %q", s.flag, fromFlags[s.flag], s.fromFlag)
		}
	}
	if len(fromEnv) != len(settings) {
		t.Errorf("%d settings, %d of them tested", len(fromEnv), len(settings))
	}
}

// shown is every setting by its flag's name, as text.
func shown(c *serveCommand) map[string]string {
	text := func(v any) string { return fmt.Sprint(v) }
	return map[string]string{
		"listen": text(c.Listen), "dsn": c.DSN, "data-dir": c.DataDir, "lake": c.Lake, "data-path": c.DataPath,
		"metadata-schema": c.MetadataSchema, "auth": c.Auth, "users": c.Users, "memory-limit": c.MemoryLimit, "threads": text(c.Threads),
		"log-level": c.LogLevel, "log-format": c.LogFormat, "drain-timeout": text(c.DrainTimeout), "reap-grace": text(c.ReapGrace),
	}
}

// TestConfig_Refused: what is no setting, or no value of one, is the command line's fault.
func TestConfig_Refused(t *testing.T) {
	clearEnvironment(t)
	for _, args := range [][]string{{"--nope"}, {"nope"}, {"--auth", "md5"}, {"--log-level", "loud"}, {"--threads", "x"}, {"user", "add"}, {"user"}} {
		if _, err := parse(args); !errors.As(err, new(usageError)) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestTrust_Addresses: trust is for loopback addresses and Unix sockets.
func TestTrust_Addresses(t *testing.T) {
	for addr, allowed := range map[string]bool{
		"127.0.0.1:5433": true, "127.1.2.3:1": true, "[::1]:5433": true, "localhost:5433": true, "/tmp": true, "./here": true,
		"0.0.0.0:5433": false, "[::]:5433": false, ":5433": false, "192.0.2.1:5433": false, "5433": false,
	} {
		c := &serveCommand{Listen: []string{"127.0.0.1:1", addr}, Auth: "trust"}
		if err := c.checkTrust(t.Context()); (err == nil) != allowed {
			t.Errorf("trust on %q: %v", addr, err)
		}
		c.Auth = "scram-sha-256"
		if err := c.checkTrust(t.Context()); err != nil {
			t.Errorf("scram on %q: %v", addr, err)
		}
	}
}

// TestReady_URL: the line to paste leads to the server, whatever it listens on.
func TestReady_URL(t *testing.T) {
	tcp := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	unix := &net.UnixAddr{Net: "unix", Name: "/run/sluice/.s.PGSQL.5433"}
	for _, c := range []struct {
		addr           net.Addr
		name, password string
		want           string
	}{
		{tcp("127.0.0.1:5433"), "sluice", "p/w", "postgres://sluice:p%2Fw@127.0.0.1:5433/lake"},
		{tcp("[::]:5433"), "sluice", "", "postgres://sluice@127.0.0.1:5433/lake"},
		{tcp("[::1]:5433"), "", "", "postgres://[::1]:5433/lake"},
		{unix, "sluice", "pw", "postgres://sluice:pw@/lake?host=%2Frun%2Fsluice&port=5433"},
	} {
		if got := clientURL(c.addr, c.name, c.password, "lake"); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestFirstLogin_Life: a first start makes a password, later ones know it until somebody deletes or changes it.
func TestFirstLogin_Life(t *testing.T) {
	clearEnvironment(t)
	dir := t.TempDir()
	users := filepath.Join(dir, "users.txt")
	name, first, err := firstLogin(users)
	if err != nil || name != firstUser || len(first) < 24 {
		t.Fatalf("%q %q %v", name, first, err)
	}
	for _, path := range []string{users, firstPasswordPath(users)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	if name, again, err := firstLogin(users); err != nil || name != firstUser || again != first {
		t.Errorf("again: %q %q %v", name, again, err)
	}
	if err := run(t.Context(), []string{"user", "add", firstUser, "--password", "new", "--users", users}); err != nil {
		t.Fatal(err)
	}
	if name, password, err := firstLogin(users); err != nil || name != firstUser || password != "" {
		t.Errorf("after a new password: %q %q %v", name, password, err)
	}
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	if err := auth.AddUser(users, "somebody", "x", false); err != nil {
		t.Fatal(err)
	}
	if name, password, err := firstLogin(users); err != nil || name != "" || password != "" {
		t.Errorf("without the first user: %q %q %v", name, password, err)
	}
}
