package lakefs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// super connects as the embedded server's superuser, who is found by its password file.
func (x *fixture) super(t *testing.T) *pgxpool.Pool {
	t.Helper()
	config := x.admin.Config().ConnConfig
	passwords := filepath.Join(filepath.Dir(config.Host), "pgpass")
	if _, err := os.Stat(passwords); err != nil {
		t.Skip("NOT TESTED: the superuser's password is not where it was expected: ", err)
	}
	return connect(t, fmt.Sprintf("host='%s' port=%d user=postgres dbname='%s' passfile='%s'", config.Host, config.Port, config.Database, passwords))
}

// mountSmall makes a file system of so many megabytes that belongs to somebody.
func mountSmall(t *testing.T, dir string, megabytes, uid, gid int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,uid=%d,gid=%d,mode=700", megabytes, uid, gid)); err != nil {
		t.Skip("NOT TESTED: may not mount a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// diskFull: the disk of the chunks has no room left in the middle of a file. What is there stays readable, and once
// there is room again, writing works.
func diskFull(t *testing.T, x *fixture) {
	super := x.super(t)
	host := x.admin.Config().ConnConfig.Host
	var owner unix.Stat_t
	if err := unix.Stat(filepath.Join(host, ".s.PGSQL.5432"), &owner); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(filepath.Dir(host), "small")
	mountSmall(t, disk, 24, int(owner.Uid), int(owner.Gid))
	p := x.open(t, lakefs.Config{MaxConns: faultConns})
	for path, data := range seeded {
		lakefstest.Put(t, p, "lake", path, data)
	}
	for _, sql := range []string{
		fmt.Sprintf(`CREATE TABLESPACE small LOCATION '%s'`, disk), `ALTER TABLE pgvfs.chunks SET TABLESPACE small`,
	} {
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		x.exec(t, `DROP SCHEMA pgvfs CASCADE`)
		if _, err := super.Exec(context.Background(), `DROP TABLESPACE small`); err != nil {
			t.Error(err)
		}
	}()
	for range 3 {
		_, err := lakefstest.TryPut(t.Context(), p, "lake", "old", lakefstest.Content(6, 8*batchBytes))
		if err == nil || !strings.Contains(err.Error(), "53100") {
			t.Errorf("%v", err)
		}
		x.wantClean(t, p)
		if is := x.volume(t); !is.same(seeded) {
			t.Errorf("changed: %v", is)
		}
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	x.goesOn(t, p, seeded)
}

// fileTooLarge is a full disk where none may be mounted: the COPY's backend may not make its file larger. PostgreSQL
// ignores SIGXFSZ, so its write fails.
func fileTooLarge(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.openThrough(t, r)
	filler := lakefstest.Content(7, 6*batchBytes)
	lakefstest.Put(t, p, "fill", "f", filler) // beyond the size of a WAL segment, which must still be writable
	r.clear()
	r.add(rule{on: query("COPY pgvfs.chunks"), do: func(l *link, _ message) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := limitFiles(int(l.pid), uint64(len(filler))+2<<20); err != nil {
			t.Error("limit the backend's files: ", err)
		}
	}})
	err := writing("old", largeFile)(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "could not extend") {
		t.Errorf("%v", err)
	}
	x.wantUndone(t, p, r)
	lakefstest.WantFile(t, x.open(t, lakefs.Config{}), "fill", "f", filler)
}

// limitFiles bounds how large a process may make a file. A process's limits are set by its own user, or by a root with more
// capabilities than one in a container has: so the thread that sets them becomes that user, and ends with it.
func limitFiles(pid int, bytesMax uint64) error {
	var owner unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &owner); err != nil {
		return err
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread()              // and never unlocks it,
		if unix.Gettid() == unix.Getpid() { // unless it has got the one thread that does not end
			result <- limitFiles(pid, bytesMax)
			runtime.UnlockOSThread()
			return
		}
		uid, gid := uintptr(owner.Uid), uintptr(owner.Gid)
		for _, call := range []struct{ number, id uintptr }{{unix.SYS_SETRESGID, gid}, {unix.SYS_SETRESUID, uid}} {
			if _, _, errno := unix.RawSyscall(call.number, call.id, call.id, call.id); errno != 0 {
				result <- errno
				return
			}
		}
		var limit unix.Rlimit
		err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit)
		if err == nil {
			limit.Cur = bytesMax
			err = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil)
		}
		result <- err
	}()
	return <-result
}

// spillFull: a writer that finds no room on the disk it spills to fails, and only it. The limit is this process's.
func spillFull(t *testing.T, x *fixture) {
	dir := t.TempDir()
	p := x.open(t, lakefs.Config{MaxConns: faultConns, SpillDir: dir})
	for path, data := range seeded {
		lakefstest.Put(t, p, "lake", path, data)
	}
	holder := begin(t, p, "holder")
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var unlimited unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	limited := unix.Rlimit{Cur: batchBytes + batchBytes/2, Max: unlimited.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	_, err := lakefstest.TryPut(t.Context(), p, "lake", "old", lakefstest.Content(6, 3*batchBytes))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "spill") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the spill directory: %v %v", left, err)
	}
	if _, err := holder.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Remove(t.Context(), "lake", "holder"); err != nil {
		t.Error(err)
	}
	x.wantClean(t, p)
	if is := x.volume(t); !is.same(seeded) {
		t.Errorf("changed: %v", is)
	}
	x.goesOn(t, p, seeded)
}
