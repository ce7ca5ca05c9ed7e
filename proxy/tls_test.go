package proxy

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// newKey makes a key to sign certificates with.
func newKey(t testing.TB, kind string) (key crypto.Signer) {
	t.Helper()
	var err error
	switch kind {
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// writeCertificate makes a self-signed certificate for this machine and returns its files.
func writeCertificate(t testing.TB, dir, kind string) (cert, key string) {
	t.Helper()
	signer := newKey(t, kind)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serial.String()}, IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// serveTLS starts a server with a certificate, and ann if users is her file.
func serveTLS(t testing.TB, users, kind string, change ...func(*Config)) (s *testServer, cert string) {
	t.Helper()
	cert, key := writeCertificate(t, t.TempDir(), kind)
	change = append(change, func(c *Config) {
		c.TLSCert, c.TLSKey = cert, key
		if users != "" {
			c.Auth, c.UsersPath = AuthSCRAM, users
		}
	})
	return serve(t, change...), cert
}

// connectTLS logs ann in with a stock client and some options of libpq.
func connectTLS(t testing.TB, addr, cert, options string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	conn, err := pgconn.Connect(ctx, "postgres://ann:secret@"+addr+"/lake?sslmode=verify-full&sslrootcert="+cert+options)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, ok := conn.Conn().(*tls.Conn); !ok {
		t.Error("the connection is not encrypted")
	}
	_, err = conn.Exec(ctx, "rows 3").ReadAll()
	return err
}

// TestTLS_StockClient: TLS that was asked for and TLS from the first byte, with the login bound to the certificate where
// that is possible, and certificates of all kinds.
func TestTLS_StockClient(t *testing.T) {
	_, users := serveSCRAM(t)
	for kind, bindable := range map[string]bool{"rsa": true, "ecdsa": true, "ed25519": false} {
		s, cert := serveTLS(t, users, kind)
		for _, negotiation := range []string{"postgres", "direct"} {
			for binding, works := range map[string]bool{"disable": true, "prefer": true, "require": bindable} {
				err := connectTLS(t, s.addr, cert, "&sslnegotiation="+negotiation+"&channel_binding="+binding)
				if (err == nil) != works {
					t.Errorf("%s, %s, channel binding %s: %v", kind, negotiation, binding, err)
				}
			}
		}
	}
	s, cert := serveTLS(t, users, "ecdsa", func(c *Config) { c.NoBinding = true })
	for binding, works := range map[string]bool{"prefer": true, "require": false} {
		if err := connectTLS(t, s.addr, cert, "&channel_binding="+binding); (err == nil) != works {
			t.Errorf("not offered, channel binding %s: %v", binding, err)
		}
	}
}

// TestTLS_Between: somebody in between with a certificate of his own, whom the client trusts, is noticed by the login, and a
// proxy that is meant to be there works once binding is not offered.
func TestTLS_Between(t *testing.T) {
	_, users := serveSCRAM(t)
	for _, offered := range []bool{true, false} {
		s, _ := serveTLS(t, users, "ecdsa", func(c *Config) { c.NoBinding = !offered })
		addr, cert := terminate(t, s.addr)
		err := connectTLS(t, addr, cert, "&sslnegotiation=direct&channel_binding=prefer")
		var refused *pgconn.PgError
		if offered && (!errors.As(err, &refused) || refused.Code != "08P01") || !offered && err != nil {
			t.Errorf("binding offered %t: %v", offered, err)
		}
	}
}

// terminate is a proxy that ends TLS and begins another to the server.
func terminate(t *testing.T, server string) (addr, cert string) {
	cert, key := writeCertificate(t, t.TempDir(), "ecdsa")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{alpnProtocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				up, err := tls.Dial("tcp", server, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpnProtocol}})
				if err != nil {
					return
				}
				defer up.Close()
				go func() { _, _ = io.Copy(up, client) }()
				_, _ = io.Copy(client, up)
			}()
		}
	}()
	return l.Addr().String(), cert
}

// dialTLS is a raw client on TLS from the first byte.
func (s *testServer) dialTLS(t *testing.T, protocols ...string) *client {
	t.Helper()
	c := s.dial(t)
	conn := tls.Client(c.conn, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	return &client{Frontend: pgproto3.NewFrontend(conn, conn), t: t, conn: conn}
}

// TestTLS_Direct: TLS from the first byte needs our protocol's name, and TLS is not offered twice.
func TestTLS_Direct(t *testing.T) {
	s, _ := serveTLS(t, "", "ecdsa")
	s.dialTLS(t).expect(0, "E(FATAL 08P01) end")

	c := s.dialTLS(t, alpnProtocol)
	answer := make([]byte, 1)
	for _, m := range []pgproto3.FrontendMessage{&pgproto3.SSLRequest{}, &pgproto3.GSSEncRequest{}} {
		c.send(m)
		if _, err := io.ReadFull(c.conn, answer); err != nil || answer[0] != 'N' {
			t.Fatalf("answer %q, %v", answer, err)
		}
	}
	c.send(start("user", "u", "database", "lake"))
	c.until('Z')
	c.send(query("rows 1"))
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
	c.send(&pgproto3.Terminate{})
	c.expect(0, "end")

	plain := serve(t)
	d := plain.dial(t)
	if err := tls.Client(d.conn, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("TLS without a certificate")
	}
	conn := s.dial(t).conn
	err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}).Handshake()
	if err == nil || !strings.Contains(err.Error(), "no application protocol") {
		t.Errorf("another protocol: %v", err)
	}
}

// TestTLS_Stuffed: what came in the clear behind the request to encrypt is not taken for something encrypted.
func TestTLS_Stuffed(t *testing.T) {
	s, _ := serveTLS(t, "", "ecdsa")
	c := s.dial(t)
	c.send(&pgproto3.SSLRequest{}, start("user", "u", "database", "lake"))
	c.expect(0, "end")
}

// TestTLS_Watch: cancel requests come over TLS, and what is read ahead of a running statement is kept there too.
func TestTLS_Watch(t *testing.T) {
	s, _ := serveTLS(t, "", "ecdsa")
	c := s.dialTLS(t, alpnProtocol)
	c.send(start("user", "u", "database", "lake"))
	c.until('Z')
	c.send(query("hang"))
	time.Sleep(2 * watchDelay)
	c.send(query("rows 2"), query("rows 1 "+strings.Repeat("x", 5*readBytes)))
	time.Sleep(50 * time.Millisecond)
	s.dialTLS(t, alpnProtocol).send(&pgproto3.CancelRequest{ProcessID: c.key.ProcessID, SecretKey: c.key.SecretKey})
	c.expect('Z', "E(ERROR 57014) Z(I)")
	c.expect('Z', "T(0) D(0) D(1) C(SELECT 2) Z(I)")
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
	c.send(query("hang"))
	eventually(t, "the statement runs", func() bool { return strings.Count(s.lake.notes(), "hang") == 2 })
	c.conn.Close()
	eventually(t, "the session's end", func() bool { return s.lake.open() == 0 })
}

// TestTLS_Reload: a renewed certificate is used by the next connection; one that is broken leaves the old one in use.
func TestTLS_Reload(t *testing.T) {
	s, cert := serveTLS(t, "", "ecdsa")
	subject := func() string {
		c := s.dialTLS(t, alpnProtocol)
		defer c.conn.Close()
		return c.conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	before := subject()
	writeCertificate(t, filepath.Dir(cert), "rsa")
	renewed := subject()
	if renewed == before {
		t.Error("the renewed certificate is not used")
	}
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if subject() != renewed {
		t.Error("a broken file replaced the certificate")
	}
	for _, c := range []Config{{TLSCert: cert}, {TLSCert: cert, TLSKey: cert}, {TLSCert: "/none", TLSKey: "/none"}} {
		c.Auth = AuthTrust
		if _, err := listen(c, &fakeLake{}); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
