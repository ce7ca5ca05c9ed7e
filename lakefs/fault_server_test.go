package lakefs_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/lakefs/embedded"
	"sluice/lakefs/embedded/embeddedtest"
)

// mortal is a server that tests end. What it has committed is on disk, as far as the operating system is concerned.
type mortal struct {
	fixture
	options embedded.Options
	server  *embedded.Server
}

// startMortal starts one until the test's end.
func startMortal(t *testing.T) *mortal {
	t.Helper()
	m := &mortal{options: embedded.Options{Dir: embeddedtest.Dir(t), Params: map[string]string{"fsync": "off", "shared_buffers": "128MB"}}}
	m.start(t)
	t.Cleanup(func() {
		if err := m.server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	m.dsn = m.server.DSN()
	m.admin = connect(t, m.dsn)
	return m
}

// start runs the server, for the first time or again.
func (m *mortal) start(t *testing.T) {
	t.Helper()
	server, err := embedded.Start(t.Context(), m.options)
	if err != nil {
		t.Fatal(err)
	}
	m.server = server
}

// awaitServer returns when the server takes connections again.
func (m *mortal) awaitServer(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(hangMax); ; time.Sleep(10 * time.Millisecond) {
		m.admin.Reset()
		err := m.admin.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return conn.Ping(t.Context()) })
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// postmaster is the number of the server's first process, from the lock beside its socket.
func (m *mortal) postmaster(tb testing.TB) int {
	lock := filepath.Join(m.admin.Config().ConnConfig.Host, ".s.PGSQL.5432.lock")
	text, err := os.ReadFile(lock)
	if err != nil {
		tb.Error(err)
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		tb.Error(err)
	}
	return pid
}

// deaths are ways for a server to end under a change.
var deaths = []struct {
	name     string
	do       func(*mortal, testing.TB, *link)
	restarts bool // the server comes back by itself
	lingers  bool // backends go on for a moment
}{
	{name: "Fast", do: func(m *mortal, tb testing.TB, _ *link) {
		if err := m.server.Stop(tb.Context()); err != nil {
			tb.Error(err)
		}
	}},
	{name: "Immediate", do: func(m *mortal, tb testing.TB, _ *link) { m.signal(tb, m.postmaster(tb), syscall.SIGQUIT) }},
	{name: "Killed", lingers: true, do: func(m *mortal, tb testing.TB, _ *link) { m.signal(tb, m.postmaster(tb), syscall.SIGKILL) }},
	{name: "BackendKilled", do: (*mortal).killBackend, restarts: true},
}

// killBackend kills a backend and waits until the postmaster has ended all the others for that.
func (m *mortal) killBackend(tb testing.TB, l *link) {
	witness, err := m.admin.Acquire(tb.Context())
	if err != nil {
		tb.Error(err)
		return
	}
	defer witness.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := syscall.Kill(int(l.pid), syscall.SIGKILL); err != nil {
		tb.Error(err)
	}
	for witness.Ping(tb.Context()) == nil {
		time.Sleep(time.Millisecond)
	}
}

// signal ends the postmaster and waits for it.
func (m *mortal) signal(tb testing.TB, pid int, signal syscall.Signal) {
	if err := syscall.Kill(pid, signal); err != nil {
		tb.Error(err)
		return
	}
	<-m.server.Done()
}

// TestFault_ServerEnds: PostgreSQL shuts down, crashes or is killed in the middle of a change. When it is back, after
// crash recovery or not, the change is undone or done, and what was acknowledged is there.
func TestFault_ServerEnds(t *testing.T) {
	m := startMortal(t)
	r := newRelay(t, m.dsn)
	overwrite := changes[0]
	places := map[string]bool{"LaterRows": true, "Committed": true}
	for _, d := range deaths {
		for _, s := range overwrite.steps {
			if s.fresh || !(places[s.name] || *long) || (d.name == "Killed" && !*long) {
				continue
			}
			t.Run(d.name+"/"+s.name, func(t *testing.T) {
				w := way{pid: true, do: func(_ *fixture, tb testing.TB) func(*link, message) {
					return func(l *link, _ message) { d.do(m, tb, l) }
				}}
				p := m.openThrough(t, r)
				defer m.empty(t)
				at := s.rule
				at.do = w.do(&m.fixture, t)
				r.clear()
				hit := r.add(at)
				err := runInterrupted(t, p, overwrite, w, hit)
				hit.acting.Wait()
				r.clear()
				r.heal()
				if !d.restarts {
					if err := m.server.Stop(t.Context()); err != nil {
						t.Log("as was to be expected: ", err)
					}
					m.start(t)
				}
				m.awaitServer(t)
				want := s.want(w, at.place)
				if want == retried || (d.lingers && want == undone) {
					want = either
				}
				m.settle(t, p, r, want, overwrite, err)
			})
		}
	}
}
