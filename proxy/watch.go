package proxy

import (
	"errors"
	"os"
	"sync"
	"time"
)

// watchDelay is how long a statement runs before the client is watched: nearly all statements end before
// and pay for a timer only, and a client that hangs up still stops its statement within a second.
const watchDelay = 200 * time.Millisecond

// watch notices a client that hangs up while its statement runs: the one place where a connection is read
// by somebody else than the session's goroutine, which lends it between arm and disarm.
type watch struct {
	timer *time.Timer
	mu    sync.Mutex
	lent  bool          // the session's goroutine does not read
	done  chan struct{} // closed when the watching goroutine has stopped reading; nil while there is none
}

// arm lends the connection's reading side to the watch.
func (s *session) arm() {
	w := &s.watch
	w.mu.Lock()
	w.lent = true
	w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(watchDelay, s.watchClient)
		return
	}
	w.timer.Reset(watchDelay)
}

// disarm takes the reading side back.
func (s *session) disarm() {
	w := &s.watch
	w.timer.Stop()
	w.mu.Lock()
	w.lent = false
	done := w.done
	w.done = nil
	w.mu.Unlock()
	if done == nil {
		return
	}
	s.breakRead()
	<-done
	s.allowRead()
}

// watchClient reads ahead until it is told to stop, there is no more room, or the client is gone, which
// interrupts the statement. The timer runs it in a goroutine of its own.
func (s *session) watchClient() {
	w := &s.watch
	w.mu.Lock()
	if !w.lent || w.done != nil {
		w.mu.Unlock()
		return
	}
	done := make(chan struct{})
	w.done = done
	w.mu.Unlock()
	defer close(done)

	for {
		err := s.in.readAhead()
		switch {
		case err == nil:
			continue
		case errors.Is(err, errReadAheadFull), errors.Is(err, os.ErrDeadlineExceeded):
			return
		}
		s.interrupt(errClientGone)
		return
	}
}
