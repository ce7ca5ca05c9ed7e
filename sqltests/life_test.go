package sqltests

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// bigRows is enough for DuckLake to write a Parquet file instead of keeping the rows in its catalog.
const bigRows = 20_000

// TestRestart_RowsAreThere is a newcomer's first hour: start with nothing, paste the printed line, create, stop, start again;
// and then the same after a crash.
func TestRestart_RowsAreThere(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	first, err := url.Parse(s.ready)
	if err != nil {
		t.Fatal(err)
	}
	if password, _ := first.User.Password(); password == "" {
		t.Errorf("the first ready line has no password: %s", s.ready)
	}
	dsn := func() string { first.Host = s.addr; return first.String() }
	conn := connectAs(t, dsn())
	mustExec(t, conn, "create table t(a int, b text); insert into t values (1,'x'); select * from t")
	mustExec(t, conn, "create table big as select i from range("+strconv.Itoa(bigRows)+") r(i)")

	s.restart(t)
	conn = connectAs(t, dsn())
	wantRow(t, conn, "select a, b from t", "1\tx")
	wantRow(t, conn, "select count(*), sum(i) from big", "20000\t199990000")
	mustExec(t, conn, "insert into t values (2, 'y')")

	s.kill9()
	s.start(t)
	conn = connectAs(t, dsn())
	wantRow(t, conn, "select count(*), max(b) from t", "2\ty")
	wantRow(t, conn, "select count(*), sum(i) from big", "20000\t199990000")
}

// TestBackend_GoneMidQuery stops the backing PostgreSQL under a client: in a transaction, between statements and in the middle of
// a result. Each is told 08006, nothing is cut off in silence, and the same session works once PostgreSQL is back.
func TestBackend_GoneMidQuery(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := startServer(t, "--dsn", c.dsn("lake"))
	conn, streaming := s.connect(t), s.connect(t)
	mustExec(t, conn, "create table t as select i, repeat('x', 100) as pad from range(2000000) r(i)")
	mustExec(t, conn, "begin; select count(*) from t")
	rows := &pausedWriter{started: make(chan struct{}), gone: make(chan struct{})}
	streamed := make(chan error, 1)
	go func() {
		_, err := streaming.CopyTo(context.Background(), rows, "copy (select * from t) to stdout")
		streamed <- err
	}()
	<-rows.started
	c.stop()
	close(rows.gone)

	if err := run(conn, "select count(*) from t"); sqlstate(err) != "08006" {
		t.Errorf("in a transaction: %v, want 08006", err)
	}
	if status := conn.TxStatus(); status != 'E' {
		t.Errorf("transaction status %c, want E", status)
	}
	if err := run(conn, "rollback"); err != nil {
		t.Errorf("rollback: %v", err)
	}
	if err := run(conn, "insert into t values (-1, '')"); sqlstate(err) != "08006" {
		t.Errorf("alone: %v, want 08006", err)
	}
	if err := <-streamed; err != nil && sqlstate(err) != "08006" {
		t.Errorf("in the middle of a result: %v, want 08006", err)
	} else if err == nil && rows.lines != 2_000_000 {
		t.Errorf("in the middle of a result: success after %d rows of 2000000", rows.lines)
	}

	c.start(t)
	wantRow(t, conn, "select count(*), sum(i) from t", "2000000\t1999999000000")
	mustExec(t, conn, "insert into t values (-1, '')")
	wantRow(t, streaming, "select count(*) from t", "2000001")
}

// pausedWriter counts lines, and after its first bytes waits until the backing PostgreSQL is gone.
type pausedWriter struct {
	started, gone chan struct{}
	lines         int
}

func (w *pausedWriter) Write(p []byte) (int, error) {
	if w.lines == 0 {
		close(w.started)
		<-w.gone
	}
	w.lines += strings.Count(string(p), "\n")
	return len(p), nil
}

// TestDrain_SIGTERM: a running statement may finish, then each session is told 57P01, and the process exits with 0.
func TestDrain_SIGTERM(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	idle, busy := s.connect(t), s.connect(t)
	mustExec(t, idle, "select 1")
	result := busy.Exec(t.Context(), "select sum(sin(i) * cos(i)) < 0 or true as done from range(40000000) r(i)")
	time.Sleep(200 * time.Millisecond) // so that it runs when the signal comes
	process := s.cmd.Process
	process.Signal(syscall.SIGTERM)

	rows, err := result.ReadAll()
	if err != nil || len(rows) != 1 || len(rows[0].Rows) != 1 {
		t.Errorf("the running statement was not let finish: %v", err)
	}
	for name, conn := range map[string]*pgconn.PgConn{"idle": idle, "busy": busy} {
		if code := farewell(t, conn); code != "57P01" {
			t.Errorf("%s session: %s, want 57P01", name, code)
		}
	}
	if err := s.stopped(); err != nil {
		t.Error(err)
	}
}

// farewell reads what the server says, unasked, before it closes a session.
func farewell(t *testing.T, conn *pgconn.PgConn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stopTimeout)
	defer cancel()
	for {
		_, err := conn.ReceiveMessage(ctx)
		var pgErr *pgconn.PgError
		switch {
		case errors.As(err, &pgErr):
			return pgErr.Code
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return "closed without a word"
		case err != nil:
			return err.Error()
		}
	}
}

// run is one statement whose error is the test's matter.
func run(conn *pgconn.PgConn, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	_, err := conn.Exec(ctx, sql).ReadAll()
	return err
}
