package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
)

const (
	// connectionsDefault applies when the configuration names no limit. An idle session costs some 50 KB here
	// and a DuckDB connection.
	connectionsDefault = 500
	// drainDefault is the grace period for running statements when the configuration names none.
	drainDefault = 30 * time.Second
	// stopTime is how long interrupted sessions may take to end before their connections are closed.
	stopTime = 5 * time.Second
	// portDefault names the Unix socket when there is no TCP listener to take the port from.
	portDefault = 5433
	// acceptPause is the wait after a failed accept, for want of file descriptors as a rule.
	acceptPause = 50 * time.Millisecond
)

// keepAlive finds clients whose machine is gone: two minutes after the last sign of life.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 10 * time.Second, Count: 6}

// Config says where to listen and what for.
type Config struct {
	Listen         []string       // host:port, or a directory for a Unix socket (anything with a slash)
	Auth           string         // AuthSCRAM or AuthTrust
	UsersPath      string         // the user file; not read with AuthTrust
	TLSCert        string         // certificate chain, a PEM file that is read again when it changes; empty: no TLS
	TLSKey         string         // its private key, likewise
	NoBinding      bool           // does not offer to bind logins to the TLS certificate: something in front has another one
	Engine         *engine.Engine // outlives the server
	Logger         zerolog.Logger
	DrainTimeout   time.Duration // what Shutdown gives running statements; 0: 30 s
	MaxConnections int           // sessions at a time; 0: 500
}

// Server accepts connections and runs a session on each.
type Server struct {
	cfg       Config
	lake      lake
	users     *userList    // nil with AuthTrust
	cert      *certificate // nil without TLS
	keys      *registry
	listeners []net.Listener
	closing   chan struct{} // closed when Shutdown begins
	sessions  sync.WaitGroup

	mu    sync.Mutex
	open  map[*session]struct{} // every connection, also those that are not logged in
	slots int                   // sessions past their start-up packet
	ended bool                  // Shutdown began
}

// Listen opens all listeners. Nothing is accepted before Serve.
func Listen(cfg Config) (*Server, error) {
	return listen(cfg, engineLake{cfg.Engine})
}

// listen is Listen for any lake.
func listen(cfg Config, lake lake) (*Server, error) {
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = drainDefault
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = connectionsDefault
	}
	s := &Server{
		cfg:     cfg,
		lake:    lake,
		keys:    newRegistry(),
		closing: make(chan struct{}),
		open:    map[*session]struct{}{},
	}
	if err := s.configureAuth(); err != nil {
		return nil, err
	}
	if err := s.configureTLS(); err != nil {
		return nil, err
	}
	if err := s.listenAll(); err != nil {
		s.closeListeners()
		return nil, err
	}
	return s, nil
}

// configureAuth reads the user file, or makes sure that trust stays on this machine.
func (s *Server) configureAuth() (err error) {
	switch s.cfg.Auth {
	case AuthSCRAM:
		s.users, err = loadUsers(s.cfg.UsersPath, s.cfg.Logger)
		return err
	case AuthTrust:
		for _, addr := range s.cfg.Listen {
			if !isSocketDir(addr) && !isLoopback(addr) {
				return fmt.Errorf("auth %q is for loopback addresses and Unix sockets, not for %q", AuthTrust, addr)
			}
		}
		return nil
	}
	return fmt.Errorf("unknown auth %q: want %q or %q", s.cfg.Auth, AuthSCRAM, AuthTrust)
}

// configureTLS reads the certificate, if there is to be one.
func (s *Server) configureTLS() (err error) {
	if (s.cfg.TLSCert == "") != (s.cfg.TLSKey == "") {
		return errors.New("TLS needs both a certificate and its key")
	}
	if s.cfg.TLSCert != "" {
		s.cert, err = loadCertificate(s.cfg.TLSCert, s.cfg.TLSKey, s.cfg.Logger)
	}
	return err
}

// isSocketDir tells a Unix socket directory from host:port.
func isSocketDir(addr string) bool { return strings.ContainsRune(addr, '/') }

// isLoopback tells whether only this machine can reach a TCP address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// listenAll opens TCP listeners first: the first one's port names the Unix sockets.
func (s *Server) listenAll() error {
	port := portDefault
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	for _, addr := range s.cfg.Listen {
		if isSocketDir(addr) {
			continue
		}
		l, err := lc.Listen(context.Background(), "tcp", addr)
		if err != nil {
			return fmt.Errorf("listen on %q: %w", addr, err)
		}
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && len(s.listeners) == 0 {
			port = tcp.Port
		}
		s.listeners = append(s.listeners, l)
	}
	for _, addr := range s.cfg.Listen {
		if !isSocketDir(addr) {
			continue
		}
		l, err := s.listenUnix(filepath.Join(addr, ".s.PGSQL."+strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("listen in %q: %w", addr, err)
		}
		s.listeners = append(s.listeners, l)
	}
	return nil
}

// listenUnix listens on a socket path, in place of one that a killed server left behind. With trust the
// socket is for this user alone; otherwise the password decides, as with PostgreSQL's default mode.
func (s *Server) listenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, errors.New("another server answers there")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0o777)
	if s.cfg.Auth == AuthTrust {
		mode = 0o700
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Addrs are the addresses listened on, TCP first.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.Addr()
	}
	return addrs
}

// Serve accepts connections until ctx ends, which shuts down as Shutdown does, or Shutdown is called. It
// returns when the last session has ended; the error says that a session did not.
func (s *Server) Serve(ctx context.Context) error {
	base := context.WithoutCancel(ctx) // sessions end in Shutdown's order, not all at once
	var accepting sync.WaitGroup
	for _, l := range s.listeners {
		accepting.Go(func() { s.accept(base, l) })
	}
	var err error
	select {
	case <-ctx.Done():
		err = s.Shutdown(base)
	case <-s.closing:
	}
	accepting.Wait()
	if err == nil {
		s.sessions.Wait()
	}
	return err
}

// accept takes connections of one listener until it is closed.
func (s *Server) accept(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			s.serve(ctx, conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			s.cfg.Logger.Warn().Err(err).Msg("accept failed")
			time.Sleep(acceptPause)
		}
	}
}

// serve runs a session on a new connection, unless far too many are open already: those not logged in
// count here, so that unfinished logins have a bound of their own, as PostgreSQL's postmaster has.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	session := newSession(s, conn)
	s.mu.Lock()
	if s.ended || len(s.open) >= 2*s.cfg.MaxConnections+10 {
		s.mu.Unlock()
		conn.Close()
		return
	}
	s.open[session] = struct{}{}
	s.sessions.Add(1)
	s.mu.Unlock()
	go s.runSession(ctx, session)
}

// runSession runs a session to its end. A panic is a bug that costs one client its session.
func (s *Server) runSession(ctx context.Context, session *session) {
	defer s.sessions.Done()
	defer s.forget(session)
	defer func() {
		if p := recover(); p != nil {
			session.log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("session panicked")
		}
	}()
	session.log.Debug().Msg("connection opened")
	err := session.run(ctx)
	session.log.Debug().AnErr("reason", err).Msg("connection closed")
}

// forget takes an ended session off the books.
func (s *Server) forget(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, session)
	if session.slot {
		s.slots--
	}
}

// takeSlot counts one more session, or reports false at the limit.
func (s *Server) takeSlot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots >= s.cfg.MaxConnections {
		return false
	}
	s.slots++
	return true
}

// Shutdown stops accepting and ends the sessions: idle ones at once, running statements when they are
// done or the grace period (or ctx) is over, whichever comes first; then they are interrupted. Clients are
// told 57P01. It returns when all have ended; the error counts those that had to be cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.beginShutdown() {
		s.sessions.Wait()
		return nil
	}
	s.closeListeners()
	done := make(chan struct{})
	go func() {
		s.sessions.Wait()
		close(done)
	}()
	grace := time.NewTimer(s.cfg.DrainTimeout)
	defer grace.Stop()
	select {
	case <-done:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	s.each((*session).stop)
	select {
	case <-done:
		return nil
	case <-time.After(stopTime):
	}
	left := s.each(func(session *session) { session.conn.Close() })
	return fmt.Errorf("%d sessions did not end in time", left)
}

// beginShutdown marks the server as ending and tells the sessions. It reports false the second time.
func (s *Server) beginShutdown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.ended = true
	close(s.closing)
	for session := range s.open {
		session.shutdown()
	}
	return true
}

// each calls do for every open connection and counts them.
func (s *Server) each(do func(*session)) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.open {
		do(session)
	}
	return len(s.open)
}

// closeListeners stops accepting; Unix sockets vanish with it.
func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		l.Close()
	}
}
