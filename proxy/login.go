package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"sluice/auth"
	"sluice/engine"
	"sluice/engine/pgerr"
)

// The ways to let a client in.
const (
	AuthSCRAM = "scram-sha-256" // with a password from the user file
	AuthTrust = "trust"         // whoever can connect; loopback and Unix sockets only
)

// login decides whether the client is who it says, then opens its session and tells it all that a client
// wants to know first. The database is checked last, as in PostgreSQL: who is not let in learns nothing.
func (s *session) login(ctx context.Context, p *startPacket) error {
	user := auth.User{Name: p.user}
	if s.server.cfg.Auth != AuthTrust {
		var err error
		if user, err = s.authenticate(p.user); err != nil {
			return err
		}
	}
	s.log = s.log.With().Str("user", p.user).Logger()
	s.out.send(&pgproto3.AuthenticationOk{})
	if p.database != s.server.lake.Lake() {
		return pgerr.Fatal(pgerrcode.InvalidCatalogName, fmt.Sprintf("database %q does not exist", p.database))
	}
	if err := s.open(ctx, user, p); err != nil {
		return err
	}
	s.reportParameters()
	s.out.send(&pgproto3.BackendKeyData{ProcessID: s.key.pid, SecretKey: s.key.secret})
	return nil
}

// open issues the backend key and opens the engine's session.
func (s *session) open(ctx context.Context, user auth.User, p *startPacket) error {
	secret := secretBytes
	if p.version >= protocol32 {
		secret = secretBytes32
	}
	s.key = s.server.keys.add(secret, func() { s.interrupt(errCanceled) })
	s.log = s.log.With().Uint32("pid", s.key.pid).Logger()
	ctx, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	opened, err := s.server.lake.NewSession(ctx, engine.SessionConfig{
		User:   user.Name,
		Admin:  user.Admin,
		Params: p.params,
		Notice: s.notice,
		PID:    s.key.pid,
	})
	if err != nil {
		return clientError(err)
	}
	s.engine = opened
	return nil
}

// authenticate carries auth's SCRAM exchange over the wire. A wrong password and an unknown user look the
// same from outside and cost the same.
func (s *session) authenticate(name string) (auth.User, error) {
	users := s.server.users.current()
	exchange := users.NewExchange(name)
	if !s.server.cfg.NoBinding {
		exchange.OfferBinding(s.endPoint)
	}
	s.out.send(&pgproto3.AuthenticationSASL{AuthMechanisms: exchange.Mechanisms()})
	var first pgproto3.SASLInitialResponse
	if err := s.receiveSASL(&first); err != nil {
		return auth.User{}, err
	}
	if err := exchange.Select(first.AuthMechanism); err != nil {
		return auth.User{}, s.denied(name, err)
	}
	reply, err := exchange.First(first.Data)
	if err != nil {
		return auth.User{}, s.denied(name, err)
	}
	s.out.send(&pgproto3.AuthenticationSASLContinue{Data: reply})
	var final pgproto3.SASLResponse
	if err := s.receiveSASL(&final); err != nil {
		return auth.User{}, err
	}
	reply, err = exchange.Final(final.Data)
	if err != nil {
		return auth.User{}, s.denied(name, err)
	}
	user, ok := users.Lookup(name)
	if !ok {
		return auth.User{}, s.denied(name, auth.ErrAuth)
	}
	s.out.send(&pgproto3.AuthenticationSASLFinal{Data: reply})
	return user, nil
}

// receiveSASL sends what is pending and reads the client's next step.
func (s *session) receiveSASL(msg pgproto3.FrontendMessage) error {
	if err := s.out.flush(); err != nil {
		return err
	}
	_, body, err := s.in.frame(saslBytes)
	if err != nil {
		return err
	}
	if msg.Decode(body) != nil {
		return pgerr.Fatal(pgerrcode.ProtocolViolation, "malformed SASL message")
	}
	return nil
}

// denied is what the client hears when the exchange fails; the log hears the same and from where.
func (s *session) denied(name string, cause error) error {
	if !errors.Is(cause, auth.ErrAuth) {
		return pgerr.Fatal(pgerrcode.ProtocolViolation, "malformed SCRAM message").WithCause(cause)
	}
	s.log.Info().Str("user", name).Msg("password authentication failed")
	return pgerr.Fatal(pgerrcode.InvalidPassword, fmt.Sprintf("password authentication failed for user %q", name))
}

// userList is the user file as last read, read again when it changes so that a new user needs no restart.
type userList struct {
	path string
	log  zerolog.Logger

	mu       sync.Mutex
	users    *auth.Users
	modified time.Time
	size     int64
}

// loadUsers reads the user file.
func loadUsers(path string, log zerolog.Logger) (*userList, error) {
	l := &userList{path: path, log: log}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read user file: %w", err)
	}
	return l, l.load(info)
}

// load reads the file that info describes.
func (l *userList) load(info os.FileInfo) error {
	l.modified, l.size = info.ModTime(), info.Size()
	users, err := auth.LoadUsers(l.path)
	if err != nil {
		return fmt.Errorf("read user file: %w", err)
	}
	l.users = users
	return nil
}

// current returns the users of now. A file that cannot be read leaves those of before.
func (l *userList) current() *auth.Users {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Stat(l.path)
	if err == nil && (!info.ModTime().Equal(l.modified) || info.Size() != l.size) {
		err = l.load(info)
	}
	if err != nil {
		l.log.Warn().Err(err).Msg("user file not readable, keeping the users of before")
	}
	return l.users
}
