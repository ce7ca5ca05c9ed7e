package sqltests

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestLogin_Refused: who may not come in is told why by SQLSTATE, and no more than that.
func TestLogin_Refused(t *testing.T) {
	s := shared(t)
	cases := []struct{ name, user, password, database, want string }{
		{"WrongPassword", "sluice", "guessed", "lake", "28P01"},
		{"EmptyPassword", "sluice", "", "lake", "28P01"},
		{"UnknownUser", "nobody", "guessed", "lake", "28P01"}, // the same as a wrong password: names are not given away
		{"UnknownDatabase", "sluice", passwords["sluice"], "nosuch", "3D000"},
		{"UnknownDatabase_WrongPassword", "sluice", "guessed", "nosuch", "28P01"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := url.URL{Scheme: "postgres", User: url.UserPassword(c.user, c.password), Host: s.addr, Path: "/" + c.database}
			conn, err := pgconn.Connect(t.Context(), u.String())
			if err == nil {
				conn.Close(t.Context())
				t.Fatal("let in")
			}
			if sqlstate(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	wantRow(t, s.connect(t), "select 1", "1")
}

// TestStartup_Garbage: whatever a port scanner, a browser or a broken driver says first, the server closes that connection and
// goes on serving the others.
func TestStartup_Garbage(t *testing.T) {
	s := shared(t)
	bystander := s.connect(t)
	cases := map[string]string{
		"HTTP":                "GET / HTTP/1.1\r\nHost: lake\r\n\r\n",
		"TLSHello":            "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + strings.Repeat("\x00", 160),
		"LengthNegative":      "\xff\xff\xff\xff\x00\x03\x00\x00",
		"LengthZero":          "\x00\x00\x00\x00",
		"LengthThree":         "\x00\x00\x00\x03",
		"LengthSeven":         "\x00\x00\x00\x07\x00\x03\x00",
		"LengthHuge":          "\x7f\xff\xff\xff\x00\x03\x00\x00user\x00",
		"KeyUnterminated":     "\x00\x00\x00\x0c\x00\x03\x00\x00user",
		"ValueMissing":        "\x00\x00\x00\x0d\x00\x03\x00\x00user\x00",
		"NoUser":              "\x00\x00\x00\x09\x00\x03\x00\x00\x00",
		"VersionTwo":          "\x00\x00\x00\x09\x00\x02\x00\x00\x00",
		"CancelShort":         "\x00\x00\x00\x08\x04\xd2\x16\x2e",
		"CancelUnknownKey":    "\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x01\x00\x00\x00\x02",
		"SSLRequestTwice":     "\x00\x00\x00\x08\x04\xd2\x16\x2f\x00\x00\x00\x08\x04\xd2\x16\x2f\x00\x00\x00\x08\x04\xd2\x16\x2f",
		"QueryBeforeStart-up": "Q\x00\x00\x00\x0dselect 1\x00",
		"Zeroes":              strings.Repeat("\x00", 4096),
		"Ones":                strings.Repeat("\xff", 4096),
		"Nothing":             "",
	}
	for name, packet := range cases {
		t.Run(name, func(t *testing.T) { sendGarbage(t, s.addr, packet) })
	}
	wantRow(t, bystander, "select 1", "1")
	wantRow(t, s.connect(t), "select 1", "1")
}

// sendGarbage sends a packet, says that nothing more comes, and waits until the server hangs up.
func sendGarbage(t *testing.T, addr, packet string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, packet); err != nil {
		return // hung up on already
	}
	conn.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		t.Errorf("still open after 30 s; it answered %q", answer)
	}
}

// TestStartup_Probes: load balancers open and close connections all day, which counts as no failed login.
func TestStartup_Probes(t *testing.T) {
	s := shared(t)
	var probes sync.WaitGroup
	for range 100 {
		probes.Go(func() {
			if conn, err := net.Dial("tcp", s.addr); err == nil {
				conn.Close()
			}
		})
	}
	probes.Wait()
	wantRow(t, s.connect(t), "select 1", "1")
}
