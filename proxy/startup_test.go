package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// packet is a start-up packet: a length and a body.
func packet(version uint32, body string) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return append(binary.BigEndian.AppendUint32(p, version), body...)
}

// TestStart_Hostile sends what is no start-up packet: the server answers with an error or closes, and the
// next client is served.
func TestStart_Hostile(t *testing.T) {
	s := serve(t)
	const v30 = pgproto3.ProtocolVersion30
	for name, tc := range map[string]struct {
		send []byte
		want string
	}{
		"length -1":         {[]byte{0xff, 0xff, 0xff, 0xff}, "E(FATAL 08P01) end"},
		"length 3":          {[]byte{0, 0, 0, 3}, "E(FATAL 08P01) end"},
		"length 7":          {[]byte{0, 0, 0, 7, 0, 3, 0}, "E(FATAL 08P01) end"},
		"length 2 GiB":      {[]byte{0x7f, 0xff, 0xff, 0xff}, "E(FATAL 08P01) end"},
		"no terminator":     {packet(v30, "user"), "E(FATAL 08P01) end"},
		"no value":          {packet(v30, "user\x00"), "E(FATAL 08P01) end"},
		"no last NUL":       {packet(v30, "user\x00u\x00"), "E(FATAL 08P01) end"},
		"bytes after end":   {packet(v30, "user\x00u\x00\x00x"), "E(FATAL 08P01) end"},
		"empty":             {packet(v30, ""), "E(FATAL 08P01) end"},
		"no user":           {packet(v30, "\x00"), "E(FATAL 28000) end"},
		"empty user":        {packet(v30, "user\x00\x00\x00"), "E(FATAL 28000) end"},
		"version 2":         {packet(2<<16, "user\x00u\x00\x00"), "E(FATAL 0A000) end"},
		"version 4":         {packet(4<<16, "user\x00u\x00\x00"), "E(FATAL 0A000) end"},
		"HTTP":              {[]byte("GET / HTTP/1.1\r\n\r\n"), "E(FATAL 08P01) end"},
		"short cancel":      {packet(codeCancel, ""), "end"},
		"long cancel":       {packet(codeCancel, strings.Repeat("x", 400)), "end"},
		"options":           {packet(v30, "user\x00u\x00options\x00-z\x00\x00"), "E(FATAL 42601) end"},
		"replication":       {packet(v30, "user\x00u\x00replication\x00database\x00\x00"), "E(FATAL 0A000) end"},
		"unknown database":  {packet(v30, "user\x00u\x00database\x00x\x00\x00"), "R E(FATAL 3D000) end"},
		"database is user":  {packet(v30, "user\x00u\x00\x00"), "R E(FATAL 3D000) end"},
		"refused by engine": {packet(v30, "user\x00u\x00database\x00lake\x00TimeZone\x00Foo/Bar\x00\x00"), "R E(FATAL 22023) end"},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.conn.Write(tc.send)
			c.expect(0, tc.want)
		})
	}
	s.login(t)
}

// TestStart_Probes opens and closes connections as balancers do; a login from the same address works.
func TestStart_Probes(t *testing.T) {
	s := serve(t)
	for range 100 {
		s.dial(t).conn.Close()
	}
	s.login(t)
}

// TestStart_OneByteAtATime feeds the login in pieces of one byte.
func TestStart_OneByteAtATime(t *testing.T) {
	s := serve(t)
	c := s.dial(t)
	encoded, _ := start("user", "u", "database", "lake").Encode(nil)
	q, _ := query("rows 1").Encode(nil)
	for _, b := range append(encoded, q...) {
		c.conn.Write([]byte{b})
		time.Sleep(100 * time.Microsecond)
	}
	c.until('Z')
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
}

// TestStart_Encryption declines TLS and GSS encryption, once each, and goes on in the clear.
func TestStart_Encryption(t *testing.T) {
	s := serve(t)
	c := s.dial(t)
	answer := make([]byte, 1)
	for _, m := range []pgproto3.FrontendMessage{&pgproto3.GSSEncRequest{}, &pgproto3.SSLRequest{}} {
		c.send(m)
		if _, err := io.ReadFull(c.conn, answer); err != nil || answer[0] != 'N' {
			t.Fatalf("answer %q, %v", answer, err)
		}
	}
	c.send(start("user", "u", "database", "lake"))
	c.until('Z')

	c = s.dial(t)
	c.send(&pgproto3.SSLRequest{})
	io.ReadFull(c.conn, answer)
	c.send(&pgproto3.SSLRequest{})
	c.expect(0, "E(FATAL 0A000) end")
}

// TestStart_EncryptionStuffed refuses plain text that came along with the request to encrypt.
func TestStart_EncryptionStuffed(t *testing.T) {
	s := serve(t)
	c := s.dial(t)
	c.send(&pgproto3.SSLRequest{}, start("user", "u", "database", "lake"))
	c.expect(0, "end")
}

// TestStart_Versions negotiates what we do not have.
func TestStart_Versions(t *testing.T) {
	s := serve(t)
	const rest = "R S(server_version=15.0) S(TimeZone=UTC) K Z(I)"
	for name, tc := range map[string]struct {
		version uint32
		options string
		want    string
		key     int
	}{
		"3.0":              {3 << 16, "", rest, 4},
		"3.2":              {3<<16 | 2, "", rest, 32},
		"3.9999":           {3<<16 | 9999, "", "v(30002 []) " + rest, 32},
		"unknown option":   {3 << 16, "_pq_.shiny\x00on\x00", "v(30000 [_pq_.shiny]) " + rest, 4},
		"option and newer": {3<<16 | 7, "_pq_.shiny\x00on\x00", "v(30002 [_pq_.shiny]) " + rest, 32},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.conn.Write(packet(tc.version, "user\x00u\x00database\x00lake\x00"+tc.options+"\x00"))
			c.expect('Z', tc.want)
			if len(c.key.SecretKey) != tc.key {
				t.Errorf("secret of %d bytes, want %d", len(c.key.SecretKey), tc.key)
			}
		})
	}
}

// TestStart_Options reads libpq's options as settings; those given by name win.
func TestStart_Options(t *testing.T) {
	p, err := decodeStart(packet(3<<16, "user\x00u\x00options\x00"+
		`-c a=1 --b-c=2\ 3  -cd=4 -c e=5`+"\x00e\x006\x00\x00")[4:])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "1", "b_c": "2 3", "d": "4", "e": "6"} {
		if p.params[name] != want {
			t.Errorf("%s = %q, want %q", name, p.params[name], want)
		}
	}
	if len(p.params) != 4 {
		t.Errorf("parameters %v", p.params)
	}
}

// TestStart_Limit refuses one session too many with 53300 and serves again when one has ended. A cancel
// request needs no session.
func TestStart_Limit(t *testing.T) {
	s := serve(t, func(c *Config) { c.MaxConnections = 2 })
	a, b := s.login(t), s.login(t)
	c := s.dial(t)
	c.send(start("user", "u", "database", "lake"))
	c.expect(0, "E(FATAL 53300) end")
	b.send(query("hang"))
	eventually(t, "the statement runs", func() bool { return strings.Contains(s.lake.notes(), "hang") })
	s.dial(t).send(&pgproto3.CancelRequest{ProcessID: b.key.ProcessID, SecretKey: b.key.SecretKey})
	b.expect('Z', "E(ERROR 57014) Z(I)")
	a.send(&pgproto3.Terminate{})
	eventually(t, "the session's end", func() bool { return s.lake.open() == 1 })
	s.login(t)
}

// TestListen_Socket listens in a directory, over the socket of a killed server too, and takes the port of
// the TCP listener for its name.
func TestListen_Socket(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		server, err := listen(Config{Listen: []string{dir, "127.0.0.1:0"}, Auth: AuthTrust}, &fakeLake{})
		if err != nil {
			t.Fatal(err)
		}
		path := server.Addrs()[1].String()
		if _, port, _ := net.SplitHostPort(server.Addrs()[0].String()); !strings.HasSuffix(path, "/.s.PGSQL."+port) {
			t.Errorf("socket %s for port %s", path, port)
		}
		server.listeners[1].(*net.UnixListener).SetUnlinkOnClose(false)
		server.closeListeners()
	}
}

// TestListen_TrustIsLocal refuses to trust the network.
func TestListen_TrustIsLocal(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"} {
		if _, err := listen(Config{Listen: []string{addr}, Auth: AuthTrust}, &fakeLake{}); err == nil {
			t.Errorf("trust on %s was accepted", addr)
		}
	}
}

// FuzzDecodeStart: no packet may panic, and none without a user is accepted.
func FuzzDecodeStart(f *testing.F) {
	for _, body := range []string{"", "user", "user\x00", "user\x00u\x00\x00", "\x00", "user\x00u\x00options\x00-c\x00\x00", "_pq_.x\x00y\x00\x00"} {
		f.Add(packet(3<<16, body)[4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 4 { // startup returns no less
			return
		}
		if p, err := decodeStart(body); err == nil && (p.user == "" || p.database == "") {
			t.Errorf("accepted %q", body)
		}
	})
}
