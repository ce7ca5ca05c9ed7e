package sqltests

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// sessionsMax is how many clients the issue wants to see at once.
const sessionsMax = 50

// TestSessions_Parallel50 runs fifty psql side by side, each with a table of its own: no error, no lost row, and no connection
// left behind. Without a commit queue about one in ten of these commits failed.
func TestSessions_Parallel50(t *testing.T) {
	s := shared(t)
	psql := stockClient(t, "psql")
	before := established(t, s.addr)
	var sessions sync.WaitGroup
	for i := range sessionsMax {
		sessions.Go(func() {
			script := fmt.Sprintf("create table p50_%[1]d(i int); insert into p50_%[1]d select i from range(%[2]d) r(i);", i, 100+i)
			script += fmt.Sprintf("select count(*) from p50_%[1]d; drop table p50_%[1]d", i)
			if got, err := runPsql(psql, s, script); err != nil || got != strconv.Itoa(100+i) {
				t.Errorf("session %d: %q, %v; want %d", i, got, err, 100+i)
			}
		})
	}
	sessions.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for established(t, s.addr) > before {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are still open, %d were before", established(t, s.addr), before)
		}
		time.Sleep(50 * time.Millisecond)
	}
	wantRow(t, s.connect(t), "select count(*) from information_schema.tables where table_name like 'p50!_%' escape '!'", "0")
}

// runPsql runs statements one by one, the first failure ends it, and gives the rows alone.
func runPsql(psql string, s *server, script string) (string, error) {
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", s.dsn("sluice")}
	for statement := range strings.SplitSeq(script, ";") {
		args = append(args, "-c", statement)
	}
	out, err := exec.Command(psql, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// established counts the server's side of open client connections, from Linux's table of sockets.
func established(t *testing.T, addr string) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip("needs Linux's /proc/net/tcp")
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	local, count := fmt.Sprintf(":%04X", n), 0
	for line := range strings.SplitSeq(string(table), "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[1], local) && fields[3] == "01" {
			count++
		}
	}
	return count
}

// TestSessions_OneTable: commits to one table from many sessions queue instead of colliding, so each is there in the end.
func TestSessions_OneTable(t *testing.T) {
	s := shared(t)
	owner := s.connect(t)
	mustExec(t, owner, "create table one_table(session int, n int)")
	defer run(owner, "drop table one_table")
	var sessions sync.WaitGroup
	for i := range 8 {
		conn := s.connect(t)
		sessions.Go(func() {
			for n := range 10 {
				if err := run(conn, fmt.Sprintf("insert into one_table values (%d, %d)", i, n)); err != nil {
					t.Errorf("session %d, row %d: %v", i, n, err)
				}
			}
		})
	}
	sessions.Wait()
	wantRow(t, owner, "select count(*), count(distinct session * 100 + n) from one_table", "80\t80")
}

// endless is a statement that nobody waits for.
const endless = "select count(*) from range(10000000) a(i), range(10000000) b(i) where a.i * b.i = -1"

// TestCancel_RunningStatement: a CancelRequest ends the statement with 57014 and nothing else: not the session, not another one.
func TestCancel_RunningStatement(t *testing.T) {
	s := shared(t)
	conn, other := s.connect(t), s.connect(t)
	if conn.PID() == other.PID() {
		t.Fatalf("two sessions share the backend key's process id %d", conn.PID())
	}
	for _, protocol := range []string{"simple", "extended"} {
		t.Run(protocol, func(t *testing.T) {
			ended, otherEnded := make(chan error, 1), make(chan error, 1)
			go func() {
				if protocol == "simple" {
					ended <- run(conn, endless)
					return
				}
				ended <- conn.ExecParams(context.Background(), endless, nil, nil, nil, nil).Read().Err
			}()
			go func() { otherEnded <- run(other, "select sum(sin(i)) from range(20000000) r(i)") }()
			time.Sleep(300 * time.Millisecond)
			if err := conn.CancelRequest(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-ended; sqlstate(err) != "57014" {
				t.Errorf("%v, want 57014", err)
			}
			if err := <-otherEnded; err != nil {
				t.Errorf("the other session: %v", err)
			}
			wantRow(t, conn, "select 42", "42")
		})
	}
}

// TestCancel_InTransaction: a cancelled statement fails its transaction, as any error does, and rollback frees it.
func TestCancel_InTransaction(t *testing.T) {
	conn := shared(t).connect(t)
	mustExec(t, conn, "begin")
	ended := make(chan error, 1)
	go func() { ended <- run(conn, endless) }()
	time.Sleep(300 * time.Millisecond)
	if err := conn.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; sqlstate(err) != "57014" {
		t.Errorf("%v, want 57014", err)
	}
	if err := run(conn, "select 1"); sqlstate(err) != "25P02" {
		t.Errorf("after the cancelled statement: %v, want 25P02", err)
	}
	mustExec(t, conn, "rollback")
	wantRow(t, conn, "select 42", "42")
}

// TestCancel_Idle: a CancelRequest that comes too late does not hit the next statement.
func TestCancel_Idle(t *testing.T) {
	conn := shared(t).connect(t)
	for range 20 {
		if err := conn.CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		wantRow(t, conn, "select 42", "42")
	}
}

// TestCancel_ClientGone: a client that hangs up mid-statement, without a CancelRequest, does not leave the statement running.
func TestCancel_ClientGone(t *testing.T) {
	s := startServer(t)
	raw, err := s.connect(t).Hijack() // pgconn itself would send a CancelRequest
	if err != nil {
		t.Fatal(err)
	}
	raw.Frontend.SendQuery(&pgproto3.Query{String: endless})
	if err := raw.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	raw.Conn.Close()
	deadline := time.Now().Add(30 * time.Second)
	for busy := cpuTicks(t, s); ; {
		time.Sleep(time.Second)
		now := cpuTicks(t, s)
		if now-busy < 50 { // half of one core's second: no query runs any more
			break
		}
		if busy = now; time.Now().After(deadline) {
			t.Fatal("the statement still runs")
		}
	}
	wantRow(t, s.connect(t), "select 42", "42")
}

// cpuTicks is the processor time that the server has used, in Linux's hundredths of a second.
func cpuTicks(t *testing.T, s *server) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		t.Skip("needs Linux's /proc")
	}
	// The second field is the program's name in parentheses and may hold spaces; utime and stime are the 12th and 13th after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		t.Fatal(err)
	}
	return user + system
}
