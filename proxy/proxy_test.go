package proxy

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"
)

// waitMax bounds what a test waits for; nothing here takes a tenth of it.
const waitMax = 10 * time.Second

// testServer is a server on a loopback port with a fake lake.
type testServer struct {
	*Server
	lake   *fakeLake
	addr   string
	served chan error
}

// serve starts a server; change may alter its configuration.
func serve(t testing.TB, change ...func(*Config)) *testServer {
	t.Helper()
	cfg := Config{
		Listen: []string{"127.0.0.1:0"}, Auth: AuthTrust, DrainTimeout: 300 * time.Millisecond,
		Logger: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel),
	}
	for _, c := range change {
		c(&cfg)
	}
	lake := &fakeLake{}
	server, err := listen(cfg, lake)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{Server: server, lake: lake, addr: server.Addrs()[0].String(), served: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { s.served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-s.served:
		case <-time.After(waitMax):
			t.Error("Serve did not return")
		}
		if n := lake.open(); n != 0 {
			t.Errorf("%d sessions were left open", n)
		}
	})
	return s
}

// client is a raw protocol client.
type client struct {
	*pgproto3.Frontend
	t    testing.TB
	conn net.Conn
	key  pgproto3.BackendKeyData
}

// dial connects without saying anything.
func (s *testServer) dial(t testing.TB) *client {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(waitMax))
	return &client{Frontend: pgproto3.NewFrontend(conn, conn), t: t, conn: conn}
}

// login connects and logs in.
func (s *testServer) login(t testing.TB) *client {
	t.Helper()
	c := s.dial(t)
	c.send(start("user", "u", "database", "lake"))
	if got := c.until('Z'); got != "R S(server_version=15.0) S(TimeZone=UTC) K Z(I)" {
		t.Fatalf("login answered %s", got)
	}
	return c
}

// start is a start-up message of protocol 3.0.
func start(params ...string) *pgproto3.StartupMessage {
	m := &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{}}
	for i := 0; i < len(params); i += 2 {
		m.Parameters[params[i]] = params[i+1]
	}
	return m
}

// send writes messages in one piece.
func (c *client) send(messages ...pgproto3.FrontendMessage) {
	c.t.Helper()
	for _, m := range messages {
		c.Send(m)
	}
	if err := c.Flush(); err != nil {
		c.t.Fatal(err)
	}
}

// until receives up to a message of the given type, or the end, and writes it all down in short.
func (c *client) until(kind byte) string {
	c.t.Helper()
	var got []string
	for {
		msg, err := c.Receive()
		if err != nil {
			return strings.Join(append(got, "end"), " ")
		}
		if k, ok := msg.(*pgproto3.BackendKeyData); ok {
			c.key = pgproto3.BackendKeyData{ProcessID: k.ProcessID, SecretKey: append([]byte(nil), k.SecretKey...)}
		}
		short := shorthand(msg)
		if _, row := msg.(*pgproto3.DataRow); !row || len(got) < 50 {
			got = append(got, short)
		}
		if short[0] == kind {
			return strings.Join(got, " ")
		}
	}
}

// expect checks what comes up to a message of the given type.
func (c *client) expect(kind byte, want string) {
	c.t.Helper()
	if got := c.until(kind); got != want {
		c.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// shorthand is a message's type letter and what tests look at.
func shorthand(msg pgproto3.BackendMessage) string {
	switch m := msg.(type) {
	case *pgproto3.ErrorResponse:
		return fmt.Sprintf("E(%s %s)", m.Severity, m.Code)
	case *pgproto3.NoticeResponse:
		return fmt.Sprintf("N(%s)", m.Message)
	case *pgproto3.CommandComplete:
		return fmt.Sprintf("C(%s)", m.CommandTag)
	case *pgproto3.ReadyForQuery:
		return fmt.Sprintf("Z(%c)", m.TxStatus)
	case *pgproto3.ParameterStatus:
		return fmt.Sprintf("S(%s=%s)", m.Name, m.Value)
	case *pgproto3.DataRow:
		return fmt.Sprintf("D(%s)", m.Values[0])
	case *pgproto3.RowDescription:
		return fmt.Sprintf("T(%d)", m.Fields[0].Format)
	case *pgproto3.CopyData:
		return fmt.Sprintf("d(%q)", m.Data)
	case *pgproto3.NegotiateProtocolVersion:
		return fmt.Sprintf("v(%x %v)", m.NewestMinorProtocol, m.UnrecognizedOptions)
	}
	encoded, _ := msg.Encode(nil)
	return string(encoded[:1])
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(waitMax); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

// query is a Query message.
func query(sql string) *pgproto3.Query { return &pgproto3.Query{String: sql} }

// pbe is Parse, Bind and Execute of an unnamed statement without arguments.
func pbe(sql string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{}}
}

// all joins messages and lists of them.
func all(parts ...any) []pgproto3.FrontendMessage {
	var out []pgproto3.FrontendMessage
	for _, p := range parts {
		switch p := p.(type) {
		case pgproto3.FrontendMessage:
			out = append(out, p)
		case []pgproto3.FrontendMessage:
			out = append(out, p...)
		}
	}
	return out
}
