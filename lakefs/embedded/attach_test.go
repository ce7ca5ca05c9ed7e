package embedded_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"sluice/lakefs/embedded"
	"sluice/lakefs/embedded/embeddedtest"
)

// attach attaches until the test's end.
func attach(t *testing.T, o embedded.Options) *embedded.Attached {
	t.Helper()
	a, err := embedded.Attach(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// detach closes.
func detach(t *testing.T, a *embedded.Attached) {
	t.Helper()
	if err := a.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestAttach_Nothing: where there is no cluster none is made, nor a database in one.
func TestAttach_Nothing(t *testing.T) {
	o := options(t, embeddedtest.Dir(t))
	if _, err := embedded.Attach(t.Context(), o); !errors.Is(err, embedded.ErrNoCluster) {
		t.Error(err)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// TestAttach_Life: a running server is used and left alone. One that is started for the purpose is shared with whoever
// comes meanwhile, and stopped when the last has gone.
func TestAttach_Life(t *testing.T) {
	o := options(t, embeddedtest.Dir(t))
	s := start(t, o)
	want(t, s.DSN(), "CREATE TABLE t AS SELECT 7 AS a; SELECT a FROM t", "7")
	a := attach(t, o)
	want(t, a.DSN(), "SELECT a FROM t", "7")
	detach(t, a)
	want(t, s.DSN(), "SELECT a FROM t", "7")
	stop(t, s)

	host, guest := attach(t, o), attach(t, o)
	ended := make(chan error, 1)
	go func() { ended <- host.Close(context.Background()) }()
	late := attach(t, o)
	want(t, guest.DSN(), "SELECT a FROM t", "7")
	detach(t, guest)
	want(t, late.DSN(), "SELECT a FROM t", "7")
	select {
	case err := <-ended:
		t.Errorf("stopped under a guest: %v", err)
	default:
	}
	detach(t, late)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	other := o
	other.Database = "other"
	if _, err := embedded.Attach(t.Context(), other); err == nil {
		t.Error("a database was made")
	}

	host, guest = attach(t, o), attach(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := host.Close(ctx); err != nil { // which does not wait
		t.Error(err)
	}
	if _, err := query(t, guest.DSN(), "SELECT 1"); err == nil {
		t.Error("the server still runs")
	}
	detach(t, guest)
	attachMeanwhile(t, o)
}

// attachMeanwhile: a server that another process is just starting is waited for.
func attachMeanwhile(t *testing.T, o embedded.Options) {
	begun, ended := make(chan struct{}), make(chan *embedded.Server, 1)
	go func() {
		close(begun)
		s, err := embedded.Start(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		ended <- s
	}()
	<-begun
	detach(t, attach(t, o)) // to that server or, if this was faster, to one of its own
	if s := <-ended; s != nil {
		stop(t, s)
	}
}
