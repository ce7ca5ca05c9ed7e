package proxy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/auth"
)

// serveSCRAM starts a server with one user, ann, and returns her file's path too.
func serveSCRAM(t *testing.T) (*testServer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.txt")
	if err := auth.AddUser(path, "ann", "secret", false); err != nil {
		t.Fatal(err)
	}
	return serve(t, func(c *Config) { c.Auth, c.UsersPath = AuthSCRAM, path }), path
}

// connect logs in with a stock client and returns the SQLSTATE it was refused with.
func (s *testServer) connect(t *testing.T, user, password, database string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	conn, err := pgconn.Connect(ctx, "postgres://"+user+":"+password+"@"+s.addr+"/"+database+"?sslmode=prefer")
	if err == nil {
		conn.Close(ctx)
		return ""
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		t.Fatalf("not an answer of the server: %v", err)
	}
	return refused.Code
}

// TestLogin_SCRAM is a stock client's login: right, wrong, unknown, and the wrong database, which only
// shows to whom knows a password.
func TestLogin_SCRAM(t *testing.T) {
	s, _ := serveSCRAM(t)
	for _, tc := range []struct{ user, password, database, code string }{
		{"ann", "secret", "lake", ""},
		{"ann", "wrong", "lake", "28P01"},
		{"bob", "secret", "lake", "28P01"},
		{"bob", "secret", "nosuch", "28P01"},
		{"ann", "secret", "nosuch", "3D000"},
	} {
		if code := s.connect(t, tc.user, tc.password, tc.database); code != tc.code {
			t.Errorf("%s with %s to %s: %q, want %q", tc.user, tc.password, tc.database, code, tc.code)
		}
	}
}

// TestLogin_NewUser is let in without a restart; a file that became unreadable keeps the users of before.
func TestLogin_NewUser(t *testing.T) {
	s, path := serveSCRAM(t)
	if err := auth.AddUser(path, "bob", "other", false); err != nil {
		t.Fatal(err)
	}
	if code := s.connect(t, "bob", "other", "lake"); code != "" {
		t.Errorf("refused with %s", code)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if code := s.connect(t, "bob", "other", "lake"); code != "" {
		t.Errorf("refused with %s once the file was gone", code)
	}
}

// mechanism is what is offered without TLS.
const mechanism = "SCRAM-SHA-256"

// TestLogin_Hostile breaks the exchange at each step.
func TestLogin_Hostile(t *testing.T) {
	s, _ := serveSCRAM(t)
	first := &pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte("n,,n=,r=abcdefghijklmnop")}
	for name, tc := range map[string]struct {
		send []pgproto3.FrontendMessage
		want string
	}{
		"query instead":    {all(query("rows 1")), "E(FATAL 08P01) end"},
		"other mechanism":  {all(&pgproto3.SASLInitialResponse{AuthMechanism: "PLAIN", Data: []byte("x")}), "E(FATAL 08P01) end"},
		"garbage":          {all(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte("garbage")}), "E(FATAL 08P01) end"},
		"too long":         {all(&pgproto3.SASLResponse{Data: make([]byte, 2000)}), "E(FATAL 08P01) end"},
		"garbage at last":  {all(first, &pgproto3.SASLResponse{Data: []byte("garbage")}), "R E(FATAL 08P01) end"},
		"nothing but NULs": {all(&pgproto3.SASLResponse{Data: make([]byte, 3)}), "E(FATAL 08P01) end"},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(start("user", "ann", "database", "lake"))
			c.expect('R', "R")
			c.send(tc.send...)
			c.expect(0, tc.want)
		})
	}
	c := s.dial(t)
	c.send(start("user", "ann", "database", "lake"))
	c.expect('R', "R")
	c.conn.Close()
	time.Sleep(10 * time.Millisecond)
	if code := s.connect(t, "ann", "secret", "lake"); code != "" {
		t.Errorf("refused with %s", code)
	}
}
