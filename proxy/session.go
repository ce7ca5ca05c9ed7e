package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"sluice/engine/pgerr"
)

// lastWordsTime is how long a session that is being ended may take to tell its client.
const lastWordsTime = 2 * time.Second

// A state handles one client message and returns the next state; nil ends the session.
//
// An error from a state always means a broken connection. SQL errors are sent to the client and lead to
// drain, so they never appear here.
type state func(context.Context) (state, error)

// session is one client from accept to hang-up.
type session struct {
	// Set when the connection is accepted or logged in, and only read afterwards.
	server *Server
	conn   net.Conn // below TLS: for deadlines, which are the same there, and to hang up
	log    zerolog.Logger
	engine backend
	key    backendKey
	slot   bool // counted against the connection limit

	tls      *tls.Conn // what in and out use instead of conn; nil: not encrypted
	endPoint []byte    // of the certificate that the client has seen; nil: logins cannot be bound to it

	// Touched by the session's own goroutine only; in also by the watch while it is armed.
	in        *receiver
	out       *sender
	watch     watch
	unnamed   *prepared // the unnamed prepared statement; those with names are the engine's
	portals   map[string]*portal
	reported  map[string]string // settings as the client knows them
	work      *work             // the newest stretch of work; its cause explains an interruption
	block     bool              // the engine has an implicit block to end at Sync
	unsynced  bool              // an extended-protocol message awaits its Sync
	idleLimit idleLimit         // how long the client may take to its next message

	// Touched from other goroutines: cancel requests, the watch and the server's shutdown.
	mu       sync.Mutex
	idle     bool  // blocked in a read that shutdown may end at once
	limited  bool  // that read has a time limit of the client's own
	reading  bool  // blocked in a read on behalf of a running statement (COPY FROM STDIN)
	running  *work // what an interruption hits; nil between statements
	draining bool  // end as soon as idle
	ended    bool  // the grace period is over

	// Notices come from wherever the engine raises them and are sent in order with the answers.
	noticeMu sync.Mutex
	notices  []*pgerr.Error
}

// newSession wraps an accepted connection.
func newSession(server *Server, conn net.Conn) *session {
	return &session{
		server:   server,
		conn:     conn,
		log:      server.cfg.Logger.With().Stringer("remote", remote(conn)).Logger(),
		in:       newReceiver(conn),
		out:      newSender(conn),
		portals:  map[string]*portal{},
		reported: map[string]string{},
	}
}

// run serves the connection until it ends. An error is the connection's.
func (s *session) run(ctx context.Context) error {
	defer s.close()
	next, err := s.start(ctx)
	for next != nil && err == nil {
		next, err = next(ctx)
	}
	return err
}

// close gives back all that the session holds. Every way out of run comes here.
func (s *session) close() {
	if s.key.pid != 0 {
		s.server.keys.remove(s.key.pid)
	}
	s.hangUp()
	s.out.settle()
	if s.watch.timer != nil {
		s.disarm()
	}
	s.closeAllPortals()
	s.closeUnnamed()
	if s.engine != nil {
		s.engine.Close()
	}
}

// hangUp closes the connection. TLS says that this is the end, so that the client does not take it for an attack.
func (s *session) hangUp() {
	if s.tls != nil && s.out.queue == nil { // whoever still writes may hold the connection for as long as its client likes
		s.conn.SetWriteDeadline(time.Now().Add(lastWordsTime))
		_ = s.tls.CloseWrite() // fails if the client is gone
	}
	s.conn.Close()
}

// ready waits for a message and has it handled.
func (s *session) ready(ctx context.Context) (state, error) {
	msg, err := s.receive()
	if err != nil {
		return s.unreadable(ctx, err)
	}
	switch m := msg.(type) {
	case *pgproto3.Query:
		return s.query(ctx, m)
	case *pgproto3.Parse:
		return s.parse(ctx, m)
	case *pgproto3.Bind:
		return s.bind(ctx, m)
	case *pgproto3.Describe:
		return s.describe(ctx, m)
	case *pgproto3.Execute:
		return s.execute(ctx, m)
	case *pgproto3.Close:
		return s.closeObject(m)
	case *pgproto3.Flush:
		return s.ready, s.flush()
	case *pgproto3.Sync:
		return s.sync(ctx)
	case *pgproto3.FunctionCall:
		return s.functionCall(ctx)
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return s.ready, nil // the rest of a COPY that failed: the manual has it ignored
	}
	return nil, nil // Terminate
}

// drain skips messages until Sync, as the protocol has it after an error.
func (s *session) drain(ctx context.Context) (state, error) {
	msg, err := s.receive()
	var bad *badMessage
	if err != nil && !errors.As(err, &bad) {
		return s.unreadable(ctx, err)
	}
	switch msg.(type) {
	case *pgproto3.Sync:
		return s.sync(ctx)
	case *pgproto3.Terminate:
		return nil, nil
	}
	return s.drain, nil
}

// receive returns the next message. Between transactions' messages it is where shutdown ends the session.
// A pipeline's answers are sent when there are many, so that a pipeline without end needs no memory.
func (s *session) receive() (pgproto3.FrontendMessage, error) {
	if s.out.full() {
		s.out.release()
		if err := s.out.flush(); err != nil {
			return nil, err
		}
	}
	if !s.beginIdle() {
		return nil, errShutdown
	}
	msg, err := s.in.next()
	overslept := s.endIdle()
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return msg, err
	case overslept:
		return nil, s.idleLimit.err
	}
	return nil, errShutdown
}

// unreadable answers what receive could not make a message of. Only Query and FunctionCall are not
// followed by a Sync.
func (s *session) unreadable(ctx context.Context, err error) (state, error) {
	var bad *badMessage
	var known *pgerr.Error
	switch {
	case errors.As(err, &bad) && (bad.kind == 'Q' || bad.kind == 'F'):
		return s.refuseQuery(ctx, err)
	case errors.As(err, &bad):
		s.unsynced = true
		return s.fail(err)
	case errors.As(err, &known):
		return s.fail(err)
	case errors.Is(err, io.EOF):
		return nil, nil // left without Terminate, as many clients do
	}
	return nil, err
}

// functionCall refuses the fast-path interface, which no client library of today uses.
func (s *session) functionCall(ctx context.Context) (state, error) {
	return s.refuseQuery(ctx, pgerr.New(pgerrcode.FeatureNotSupported, "function call messages are not supported").
		WithHint("Use a SELECT statement with parameters."))
}

// flush sends all there is, completions of an open implicit transaction included: the client asked.
func (s *session) flush() error {
	s.unsynced = true
	s.out.release()
	return s.out.flush()
}

// sync ends the implicit transaction, then says what became of it: on success the completions that were
// held back, on failure the error in their place.
func (s *session) sync(ctx context.Context) (state, error) {
	if err := s.endBlock(ctx); err != nil {
		s.out.revoke()
		if over, err := s.report(err); over {
			return nil, err
		}
	}
	s.out.release()
	s.block = false
	s.closeFinishedPortals()
	return s.readyForQuery()
}

// endBlock has the engine commit or roll back the implicit block, if there is one.
func (s *session) endBlock(ctx context.Context) error {
	if !s.block {
		return nil
	}
	if s.engine.TxStatus() == 'I' {
		s.closeAllPortals() // they die with their transaction, before it
	}
	w := s.begin(newWork(ctx))
	defer s.end(w, true)
	return s.engine.Sync(w.ctx)
}

// readyForQuery reports what changed and hands the turn to the client.
func (s *session) readyForQuery() (state, error) {
	s.sendNotices()
	s.reportParameters()
	s.out.send(&pgproto3.ReadyForQuery{TxStatus: s.engine.TxStatus()})
	s.unsynced = false
	s.idleLimit = limitIdle(s.engine)
	if err := s.out.flush(); err != nil {
		return nil, err
	}
	return s.ready, nil
}

// notice keeps a notice of the engine until answers are next sent. Safe from any goroutine.
func (s *session) notice(e *pgerr.Error) {
	s.noticeMu.Lock()
	defer s.noticeMu.Unlock()
	s.notices = append(s.notices, e)
}

// sendNotices sends the notices that came since the last time.
func (s *session) sendNotices() {
	s.noticeMu.Lock()
	notices := s.notices
	s.notices = nil
	s.noticeMu.Unlock()
	for _, e := range notices {
		s.out.send(noticeResponse(e))
	}
}

// work is a stretch of running in the engine that one cancel request can end: a statement of a Query
// message, a portal from its first Execute until it closes, a commit.
type work struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	since  time.Time // for the log
}

// newWork returns work that nothing interrupts yet.
func newWork(ctx context.Context) *work {
	ctx, cancel := context.WithCancelCause(ctx)
	return &work{ctx, cancel, time.Now()}
}

// begin makes w what an interruption hits, and has the client watched.
func (s *session) begin(w *work) *work {
	s.work = w
	s.mu.Lock()
	s.running = w
	if s.ended {
		w.cancel(errShutdown)
	}
	s.mu.Unlock()
	s.arm()
	return w
}

// end takes w out of reach. done says that w will not begin again, which a suspended portal's work does.
func (s *session) end(w *work, done bool) {
	s.disarm()
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	if done {
		w.cancel(nil)
	}
}

// interrupt ends the running statement, if there is one, for the given reason.
func (s *session) interrupt(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return
	}
	s.running.cancel(cause)
	if s.reading {
		s.conn.SetReadDeadline(past)
	}
}

// past is a deadline that ends a blocked read or write at once.
var past = time.Unix(1, 0)

// beginIdle marks a read that shutdown may end, or the client's own limit. It reports false when the session is to end
// instead. Inside a pipeline the read is only ended with the grace period.
func (s *session) beginIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = !s.unsynced
	if s.ended || s.draining && s.idle {
		return false
	}
	if s.limited = s.idle && s.idleLimit.after > 0; s.limited {
		s.conn.SetReadDeadline(time.Now().Add(s.idleLimit.after))
	}
	return true
}

// endIdle marks that a message came, or nothing in time. Shutdown may have set a deadline in the same moment; the message
// won. It reports whether the read had a limit and shutdown has nothing to do with its end.
func (s *session) endIdle() (overslept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	overslept = s.limited && !s.draining && !s.ended
	if (s.draining || s.limited) && !s.ended {
		s.conn.SetReadDeadline(time.Time{})
	}
	s.idle, s.limited = false, false
	return overslept
}

// breakRead ends a blocked read of the connection.
func (s *session) breakRead() {
	s.conn.SetReadDeadline(past)
}

// allowRead undoes breakRead, unless the session is being ended.
func (s *session) allowRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.conn.SetReadDeadline(time.Time{})
	}
}

// shutdown ends the session as soon as it has nothing to do: at once when it is idle, also inside a
// transaction.
func (s *session) shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	if s.idle {
		s.conn.SetReadDeadline(past)
	}
}

// stop ends the session whatever it does: the grace period is over.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining, s.ended = true, true
	if s.running != nil {
		s.running.cancel(errShutdown)
	}
	s.conn.SetReadDeadline(past)
	s.conn.SetWriteDeadline(time.Now().Add(lastWordsTime))
}
