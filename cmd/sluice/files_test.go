package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/lakefs/embedded"
	"sluice/lakefs/embedded/embeddedtest"
)

// mainVariable makes this test's program the command itself.
const mainVariable = "TEST_RUNS_SLUICE"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// console runs the command as a person would, with an environment and in a directory of its own.
type console struct {
	dir string
	env []string
}

// newConsole is one in an empty directory.
func newConsole(t *testing.T, env ...string) *console {
	return &console{t.TempDir(), env}
}

// command prepares `sluice files`.
func (c *console) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"files"}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{mainVariable + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "GOCOVERDIR=" + c.dir, "GORACE=atexit_sleep_ms=0"}, c.env...)
	return cmd
}

// answer is what a command said.
type answer struct {
	out, err string
	code     int
}

// run runs it with something on standard input.
func (c *console) run(t *testing.T, stdin string, args ...string) answer {
	t.Helper()
	cmd := c.command(t.Context(), args...)
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return answer{out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// want runs it and compares exit code, output, and, if it fails, a part of what it says why.
func (c *console) want(t *testing.T, code int, out, reason string, args ...string) {
	t.Helper()
	got := c.run(t, "", args...)
	if got.code != code || got.out != out || !strings.Contains(got.err, reason) || (code == 0 && got.err != "" && reason == "") {
		t.Errorf("%q: exit code %d, %q, %q; want %d, %q, %q", args, got.code, got.out, got.err, code, out, reason)
	}
}

// write makes a local file.
func (c *console) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantLocal compares a local file.
func (c *console) wantLocal(t *testing.T, name string, data []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s: %d bytes, not the %d wanted, %v", name, len(got), len(data), err)
	}
}

// wantNames compares what is in the directory.
func (c *console) wantNames(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("in the directory: %q, want %q", names, want)
	}
}

// noise is bytes that no one would make by mistake.
func noise(size int) []byte {
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size)}).Read(data)
	return data
}

// TestFiles: each command on the embedded PostgreSQL of a data directory, before there is one, while it runs, and when it
// has to be started.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := embeddedtest.Dir(t)
	c := newConsole(t, "SLUICE_DATA_DIR="+dir)
	filesNowhere(t, c, dir)
	server, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Params: map[string]string{"fsync": "off", "shared_buffers": "128MB"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(context.Background())
	filesByDSN(t, server.DSN())
	filesRunning(t, c, server)
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	filesAlone(t, c, dir)
}

// filesByDSN runs all cases that need a server that is there, each in a volume of its own.
func filesByDSN(t *testing.T, dsn string) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, c *console, admin *pgx.Conn)
	}{
		{"Empty", filesEmpty},
		{"RoundTrip", filesRoundTrip},
		{"List", filesList},
		{"Get", filesGet},
		{"GetDamaged", filesGetDamaged},
		{"Put", filesPut},
		{"Remove", filesRemove},
		{"Usage", filesUsage},
		{"Interrupted", filesInterrupted},
		{"CommandLine", filesCommandLine},
		{"Verify", filesVerify},
	} {
		t.Run(c.name, func(t *testing.T) {
			admin, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close(context.Background())
			c.run(t, newConsole(t, "SLUICE_DSN="+dsn), admin)
		})
	}
}

// filesEmpty: what only reads finds nothing in an empty database, and makes nothing.
func filesEmpty(t *testing.T, c *console, admin *pgx.Conn) {
	c.want(t, 0, "", "", "ls")
	c.want(t, 0, "", "", "ls", "pgvfs://lake/")
	c.want(t, 1, "", "no such file", "stat", "pgvfs://lake/f")
	c.want(t, 1, "", "no such file", "get", "pgvfs://lake/f")
	c.want(t, 0, "", "checked 0 files, 0 rows", "verify")
	if got := c.run(t, "", "du"); got.code != 0 || strings.Count(got.out, "\n") != 2 {
		t.Errorf("%+v", got)
	}
	wantValue(t, admin, nil, `SELECT to_regnamespace('pgvfs')::text`)
}

// wantValue compares a query's one value.
func wantValue(t *testing.T, conn *pgx.Conn, want any, sql string) {
	t.Helper()
	var got any
	if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v %v, want %v", sql, got, err, want)
	}
}

// execute runs SQL.
func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// filesRoundTrip: whatever a file is called and however large it is, it comes back as it was, by each way.
func filesRoundTrip(t *testing.T, c *console, _ *pgx.Conn) {
	for i, f := range []struct {
		path string
		size int
	}{
		{"plain", 5},
		{"empty", 0},
		{"large", 20_000_000},
		{"larger", 20_000_001},
		{"a row", 8120},
		{"100%/é%20 b", 100},
		{"/leading", 9000},
		{"x/../y", 1},
		{"日本語/ファイル", 8121},
		{"star*and[", 2},
		{"line\nfeed", 3},
		{"--flag", 4},
	} {
		url, data := "pgvfs://trip/"+f.path, noise(f.size)
		if i%2 == 0 {
			c.write(t, "local", data)
			c.want(t, 0, "", "", "put", "local", url)
		} else if got := c.run(t, string(data), "put", "-", url); got != (answer{}) {
			t.Errorf("%q: %+v", f.path, got)
		}
		if i%3 == 0 {
			c.want(t, 0, string(data), "", "get", url, "-")
		} else {
			c.want(t, 0, "", "", "get", url)
			c.wantLocal(t, filepath.Base(f.path), data)
		}
		object := fileObject{}
		if got := c.run(t, "", "stat", "--json", url); got.code != 0 || json.Unmarshal([]byte(got.out), &object) != nil ||
			object.URL != url || object.Size != int64(f.size) || object.Rows != int64(f.size+8119)/8120 || object.ID == 0 || time.Since(object.CreatedAt) > time.Hour {
			t.Errorf("%q: %+v, %+v", f.path, got, object)
		}
	}
}

// filesList: volumes, files by prefix and by pattern, in each form.
func filesList(t *testing.T, c *console, _ *pgx.Conn) {
	for _, path := range []string{"a/1.txt", "a/2.txt", "a/b/3.txt", "ab", "tab\t"} {
		c.run(t, "hello", "put", "-", "pgvfs://list/"+path)
	}
	c.want(t, 0, "pgvfs://list/a/1.txt\npgvfs://list/a/2.txt\npgvfs://list/a/b/3.txt\npgvfs://list/ab\n", "", "ls", "pgvfs://list/a")
	c.want(t, 0, "pgvfs://list/a/1.txt\npgvfs://list/a/2.txt\n", "", "ls", "pgvfs://list/a/*")
	c.want(t, 0, "pgvfs://list/a/b/3.txt\n", "", "ls", "pgvfs://list/**/[3-9].txt")
	c.want(t, 0, `"pgvfs://list/tab\t"`+"\n", "", "ls", "pgvfs://list/t")
	c.want(t, 0, "", "", "ls", "pgvfs://list/none")
	c.want(t, 1, "", "no such file", "ls", "pgvfs://list/none*")
	if got := c.run(t, "", "ls"); got.code != 0 || !strings.Contains(got.out, "pgvfs://list/\n") {
		t.Errorf("%+v", got)
	}
	if got := c.run(t, "", "ls", "--json"); got.code != 0 || !strings.Contains(got.out, `{"url":"pgvfs://list/","files":5,"bytes":25,"rows":5}`) {
		t.Errorf("%+v", got)
	}
	if got := c.run(t, "", "ls", "-l"); got.code != 0 || !strings.Contains(got.out, " 25          5  pgvfs://list/\n") {
		t.Errorf("%+v", got)
	}
	if got := c.run(t, "", "ls", "-l", "pgvfs://list/ab"); got.code != 0 || !strings.HasPrefix(got.out, "              5  20") || !strings.HasSuffix(got.out, "  pgvfs://list/ab\n") {
		t.Errorf("%+v", got)
	}
	got := c.run(t, "", "stat", "pgvfs://list/a/?.txt", "pgvfs://list/ab")
	if got.code != 0 || strings.Count(got.out, "size     5 (5 B)\nrows     1\n") != 3 {
		t.Errorf("%+v", got)
	}
}

// filesGet: where a file goes, and what it must not replace.
func filesGet(t *testing.T, c *console, _ *pgx.Conn) {
	for _, path := range []string{"a/1", "a/2", "b/1", ".."} {
		if got := c.run(t, path, "put", "-", "pgvfs://get/"+path); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	c.want(t, 0, "", "", "get", "pgvfs://get/a/1")
	c.want(t, 1, "", `"1" exists; --force replaces it`, "get", "pgvfs://get/b/1")
	c.wantLocal(t, "1", []byte("a/1"))
	c.want(t, 1, "", `"1" exists`, "get", "pgvfs://get/a/*") // and so 2 is not there either
	c.want(t, 0, "", "", "get", "--force", "pgvfs://get/b/1")
	c.wantLocal(t, "1", []byte("b/1"))
	c.want(t, 0, "", "", "get", "-f", "pgvfs://get/a/*")
	c.want(t, 0, "", "", "get", "pgvfs://get/a/2", "named")
	c.want(t, 1, "", `"named" exists`, "get", "pgvfs://get/a/2", "named")
	c.want(t, 1, "", "is no directory", "get", "pgvfs://get/a/1", "pgvfs://get/a/2", "target")
	c.want(t, 1, "", "is no directory", "get", "pgvfs://get/a/1", "target/")
	c.want(t, 1, "", "would both be", "get", "-f", "pgvfs://get/*/1")
	c.want(t, 1, "", "needs a local name", "get", "pgvfs://get/..")
	c.want(t, 1, "", "no such file", "get", "pgvfs://get/a/1", "pgvfs://get/none", "-")
	c.want(t, 0, "a/1a/2", "", "get", "pgvfs://get/a/*", "-")
	c.wantNames(t, "1", "2", "named")
	if err := os.Mkdir(filepath.Join(c.dir, "target"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.want(t, 0, "", "", "get", "pgvfs://get/a/1", "pgvfs://get/a/2", "target")
	c.wantLocal(t, "target/1", []byte("a/1"))
	c.wantLocal(t, "target/2", []byte("a/2"))
	c.run(t, "", "put", "-", "pgvfs://get/target")
	c.want(t, 1, "", `"target" is a directory`, "get", "-f", "pgvfs://get/target")
	c.wantNames(t, "1", "2", "named", "target")
}

// filesGetDamaged: a file that is not all there leaves nothing, and no success.
func filesGetDamaged(t *testing.T, c *console, admin *pgx.Conn) {
	data := noise(20_000_000)
	if got := c.run(t, string(data), "put", "-", "pgvfs://damaged/f"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	execute(t, admin, `DELETE FROM pgvfs.chunks WHERE no = 2400 AND file_id = (SELECT file_id FROM pgvfs.files WHERE volume = 'damaged')`)
	c.want(t, 1, "", "missing", "get", "pgvfs://damaged/f")
	c.wantNames(t)
	if got := c.run(t, "", "get", "pgvfs://damaged/f", "-"); got.code != 1 || !strings.HasPrefix(string(data), got.out) {
		t.Errorf("exit code %d, %d bytes", got.code, len(got.out))
	}
	c.want(t, 0, "removed 1 file\n", "", "rm", "pgvfs://damaged/f")
}

// filesPut: what a file is called then, and what is no file.
func filesPut(t *testing.T, c *console, _ *pgx.Conn) {
	c.write(t, "1", []byte("one"))
	c.write(t, "2", []byte("two"))
	c.want(t, 0, "", "", "put", "1", "pgvfs://put")
	c.want(t, 0, "", "", "put", "1", "2", "pgvfs://put/folder/")
	c.want(t, 0, "", "", "put", "2", "pgvfs://put/1")
	c.want(t, 0, "two", "", "get", "pgvfs://put/1", "-")
	c.want(t, 1, "", "no such file or directory", "put", "1", "none", "pgvfs://put/mixed/")
	c.want(t, 1, "", "is a directory", "put", ".", "pgvfs://put/f")
	c.want(t, 0, "pgvfs://put/1\npgvfs://put/folder/1\npgvfs://put/folder/2\npgvfs://put/mixed/1\n", "", "ls", "pgvfs://put")
	for _, args := range [][]string{
		{"1", "2", "pgvfs://put/f"},
		{"-", "pgvfs://put/"},
		{"1", "./1", "pgvfs://put/"},
		{"pgvfs://put/f"},
		{"1"},
		{"1", "pgvfs://Put/f"},
		{"1", "pgvfs://put/" + strings.Repeat("x", 1025)},
		{"1", "pgvfs://put/\xff"},
	} {
		c.want(t, 2, "", "sluice: ", append([]string{"put"}, args...)...)
	}
}

// filesRemove: files, patterns, folders and prefixes; a volume only when it is meant.
func filesRemove(t *testing.T, c *console, _ *pgx.Conn) {
	for _, path := range []string{"a/1", "a/2", "a/b/1", "a/b/2", "ab", "c*", "cd", "d"} {
		c.run(t, path, "put", "-", "pgvfs://rm/"+path)
	}
	c.want(t, 0, "removed 1 file\n", "", "rm", "pgvfs://rm/d")
	c.want(t, 1, "removed 0 files\n", "no such file", "rm", "pgvfs://rm/d")
	c.want(t, 0, "removed 1 file\n", "", "rm", "pgvfs://rm/c*") // the one that is called so
	c.want(t, 0, "removed 1 file\n", "", "rm", "pgvfs://rm/c*")
	c.want(t, 1, "removed 2 files\n", "no such file", "rm", "pgvfs://rm/none", "pgvfs://rm/a/?")
	c.want(t, 2, "", "--recursive", "rm", "pgvfs://rm/a/")
	c.want(t, 0, "removed 2 files\n", "", "rm", "-r", "pgvfs://rm/a")
	c.want(t, 0, "removed 0 files\n", "", "rm", "-r", "pgvfs://rm/a")
	c.want(t, 0, "removed 1 file\n", "", "rm", "--prefix", "pgvfs://rm/a")
	c.run(t, "", "put", "-", "pgvfs://rm/last")
	for _, how := range [][]string{{}, {"-r"}, {"--prefix"}, {"--whole-volume"}} {
		c.want(t, 2, "", "whole-volume", append([]string{"rm", "pgvfs://rm/"}, how...)...)
	}
	c.want(t, 2, "", "sluice: ", "rm", "-r", "pgvfs://rm/last", "pgvfs://rm")
	c.want(t, 0, "removed 1 file\n", "", "rm", "-r", "--whole-volume", "pgvfs://rm")
	c.want(t, 0, "", "", "ls", "pgvfs://rm")
}

// filesUsage: sums, and what reaping takes off them.
func filesUsage(t *testing.T, c *console, admin *pgx.Conn) {
	execute(t, admin, `SELECT pgvfs.reap('0')`)
	c.run(t, "hello", "put", "-", "pgvfs://du/a/1")
	c.run(t, string(noise(3*8120)), "put", "-", "pgvfs://du/a/2")
	c.run(t, string(noise(3*8120)), "put", "-", "pgvfs://du/b")
	c.want(t, 0, `{"url":"pgvfs://du/a/","files":2,"bytes":24365,"rows":4}`+"\n", "", "du", "--json", "pgvfs://du/a/")
	c.want(t, 0, `{"url":"pgvfs://du/none","files":0,"bytes":0,"rows":0}`+"\n", "", "du", "--json", "pgvfs://du/none")
	c.want(t, 0, "     files           bytes         rows  of\n         3           48725            7  pgvfs://du/\n", "", "du", "pgvfs://du")
	c.want(t, 0, "removed 1 file\n", "", "rm", "pgvfs://du/b")
	c.want(t, 0, "deleted 0 rows\n", "", "reap")
	removed := func() (object removedObject) {
		got := c.run(t, "", "du", "--json")
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); got.code != 0 || err != nil {
			t.Errorf("%+v %v", got, err)
		}
		return object
	}
	if o := removed(); !o.Removed || o.Files == 0 || o.Rows < 3 || o.DueRows != 0 || o.Since == nil {
		t.Errorf("%+v", o)
	}
	if got := c.run(t, "", "reap", "--reap-grace", "0s"); got.code != 0 || got.out == "deleted 0 rows\n" {
		t.Errorf("%+v", got)
	}
	if o := removed(); !o.Removed || o.Files != 0 || o.Rows != 0 || o.Since != nil {
		t.Errorf("%+v", o)
	}
}

// filesInterrupted: a signal ends what copies, and leaves nothing on either side.
func filesInterrupted(t *testing.T, c *console, admin *pgx.Conn) {
	if got := c.run(t, string(noise(10_000_000)), "put", "-", "pgvfs://int/old"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	stdin, feed := io.Pipe()
	put := c.command(t.Context(), "put", "-", "pgvfs://int/new")
	put.Stdin = stdin
	interrupt(t, put, func() {
		if _, err := feed.Write(noise(12_000_000)); err != nil {
			t.Error(err)
		}
		await(t, admin, 1, `SELECT count(*) FROM pg_stat_progress_copy`)
	}, func() { feed.Close() })
	await(t, admin, 0, `SELECT count(*) FROM pg_stat_progress_copy`)
	c.want(t, 0, "pgvfs://int/old\n", "", "ls", "pgvfs://int")

	locker, err := pgx.ConnectConfig(t.Context(), admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(context.Background())
	execute(t, locker, `BEGIN; LOCK TABLE pgvfs.chunks IN ACCESS EXCLUSIVE MODE`)
	interrupt(t, c.command(t.Context(), "get", "pgvfs://int/old"), func() {
		await(t, admin, true, `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`)
	}, func() {})
	c.wantNames(t)
	execute(t, locker, `ROLLBACK`)
	c.want(t, 0, "", "checked", "verify")
}

// interrupt starts a command, waits until it is in the middle of things, signals it, and wants it to fail.
func interrupt(t *testing.T, cmd *exec.Cmd, middle, after func()) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	middle()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	// Wait waits for the copy of standard input too, which ends with it.
	state, err := cmd.Process.Wait()
	after()
	_ = cmd.Wait()
	if err != nil || state.ExitCode() != exitFailure {
		t.Errorf("%v %v: %s", state, err, out.String())
	}
}

// await is wantValue for what takes a moment.
func await(t *testing.T, conn *pgx.Conn, want any, sql string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var got any
		if err := conn.QueryRow(t.Context(), sql).Scan(&got); err == nil && fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	wantValue(t, conn, want, sql)
}

// filesCommandLine: a command line that cannot be meant does nothing, and has its own exit code.
func filesCommandLine(t *testing.T, c *console, _ *pgx.Conn) {
	for _, args := range [][]string{
		{},
		{"nope"},
		{"ls", "lake"},
		{"ls", "s3://lake/"},
		{"stat"},
		{"stat", "pgvfs://"},
		{"get"},
		{"get", "file"},
		{"get", "pgvfs://A/b"},
		{"rm"},
		{"rm", "x"},
		{"rm", "-r", "--prefix", "pgvfs://a/b"},
		{"du", "/"},
		{"verify", "pgvfs://lake/"},
		{"reap", "--reap-grace", "soon"},
	} {
		c.want(t, exitUsage, "", "sluice: ", args...)
	}
	c.want(t, exitFailure, "", "sluice: ", "ls", "--dsn", "host=/nowhere")
	c.want(t, exitFailure, "", "would not be encrypted", "ls", "--dsn", "host=192.0.2.1 sslmode=disable")
}

// filesVerify: a line a fault, and an exit code for sound, unsound and unknown.
func filesVerify(t *testing.T, c *console, admin *pgx.Conn) {
	c.run(t, string(noise(3*8120)), "put", "-", "pgvfs://verify/a b")
	c.want(t, 0, "", "checked", "verify")
	execute(t, admin, `DELETE FROM pgvfs.chunks WHERE no = 1 AND file_id = (SELECT file_id FROM pgvfs.files WHERE volume = 'verify');
		INSERT INTO pgvfs.chunks VALUES (1000000, 0, 'x'); UPDATE pgvfs.layout SET version = 2; COMMENT ON FUNCTION pgvfs.reap IS NULL`)
	got := c.run(t, "", "verify")
	if got.code != exitFaults || !strings.HasSuffix(got.err, "sluice: 3 faults found\n") {
		t.Errorf("%+v", got)
	}
	faults := map[string]faultObject{}
	for line := range strings.Lines(got.out) {
		var f faultObject
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&f); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		faults[string(f.Kind)] = f
	}
	layout, missing, orphan := faults["layout"], faults["row-missing"], faults["orphan-rows"]
	if len(faults) != 3 || layout.FileID != 0 || layout.Row != nil || layout.URL != "" ||
		missing.URL != "pgvfs://verify/a b" || missing.FileID == 0 || missing.Row == nil || *missing.Row != 1 || missing.Detail != "row 1" ||
		orphan.FileID != 1000000 || orphan.URL != "" || orphan.Row != nil {
		t.Errorf("%s", got.out)
	}
	execute(t, admin, `UPDATE pgvfs.layout SET version = 3`)
	c.want(t, exitFailure, "", "layout version", "verify")
	c.want(t, exitFailure, "", "layout version", "ls")
	execute(t, admin, `DROP SCHEMA pgvfs CASCADE`)
}

// filesNowhere: where there is no cluster, none is made.
func filesNowhere(t *testing.T, c *console, dir string) {
	for _, args := range [][]string{{"ls"}, {"put", "-", "pgvfs://lake/f"}, {"verify"}} {
		c.want(t, exitFailure, "", "`sluice serve` makes it", args...)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("made %v %v", left, err)
	}
}

// filesRunning: a server that runs in another process is used, and goes on.
func filesRunning(t *testing.T, c *console, server *embedded.Server) {
	if got := c.run(t, "one", "put", "-", "pgvfs://lake/f"); got != (answer{}) {
		t.Errorf("%+v", got)
	}
	select {
	case <-server.Done():
		t.Error("a command has stopped the server of another process")
	default:
	}
}

// filesAlone: a server that does not run is started for as long as commands need it: several at once share one.
func filesAlone(t *testing.T, c *console, dir string) {
	c.want(t, exitFailure, "", `no database "other"`, "ls", "--lake", "other")
	answers := make(chan answer)
	for i := range 5 {
		go func() { answers <- c.run(t, string(noise(100_000*(5-i))), "put", "-", fmt.Sprint("pgvfs://lake/", i)) }()
	}
	for range 5 {
		if got := <-answers; got.code != 0 {
			t.Errorf("%+v", got)
		}
	}
	c.want(t, 0, "", "checked 6 files", "verify")
	if pid, err := os.ReadFile(filepath.Join(dir, "postgres", "cluster", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a server still runs: %s %v", pid, err)
	}
}
