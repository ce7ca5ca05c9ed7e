package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/rs/zerolog"

	"sluice/auth"
	"sluice/engine/pgerr"
)

const (
	// alpnProtocol is the name that clients ask for in TLS (manual, 54.2.11 "SSL Session Encryption").
	alpnProtocol = "postgresql"

	// tlsHandshake is the first byte of a TLS connection. As the first of a start-up packet's length it would be 369 MB.
	tlsHandshake = 0x16
)

// certificate is the server's, read again when its files change, so that a renewal needs no restart.
type certificate struct {
	certPath, keyPath string
	log               zerolog.Logger

	mu       sync.Mutex // guards what follows
	loaded   [2]fileStamp
	current  *tls.Certificate
	endPoint []byte // for channel binding; nil: the certificate has none
}

// fileStamp tells whether a file is still the one that was read.
type fileStamp struct {
	modified time.Time
	size     int64
}

// loadCertificate reads certificate chain and key, both PEM.
func loadCertificate(certPath, keyPath string, log zerolog.Logger) (*certificate, error) {
	c := &certificate{certPath: certPath, keyPath: keyPath, log: log}
	stamps, err := c.stamps()
	if err == nil {
		err = c.load(stamps)
	}
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	return c, nil
}

// stamps look at both files.
func (c *certificate) stamps() (out [2]fileStamp, err error) {
	for i, path := range []string{c.certPath, c.keyPath} {
		info, err := os.Stat(path)
		if err != nil {
			return out, err
		}
		out[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return out, nil
}

// load reads both files.
func (c *certificate) load(stamps [2]fileStamp) error {
	pair, err := tls.LoadX509KeyPair(c.certPath, c.keyPath)
	if err != nil {
		return err
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return err
	}
	c.loaded, c.current = stamps, &pair
	if c.endPoint, err = auth.EndPoint(pair.Leaf); err != nil {
		c.log.Warn().Err(err).Msg("logins cannot be bound to the TLS certificate")
	}
	return nil
}

// get returns the certificate of now. Files that cannot be read, as in the middle of a renewal, leave that of before.
func (c *certificate) get() (cert *tls.Certificate, endPoint []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps, err := c.stamps()
	if err == nil && stamps != c.loaded {
		err = c.load(stamps)
	}
	if err != nil {
		c.log.Warn().Err(err).Msg("TLS certificate not readable, keeping the one of before")
	}
	return c.current, c.endPoint
}

// mayEncrypt says whether the connection can become TLS: not twice, and not on a Unix socket, which nobody can listen to.
func (s *session) mayEncrypt() bool {
	return s.server.cert != nil && s.tls == nil && remote(s.conn).Network() == "tcp"
}

// encrypt makes the connection a TLS one. What the client has sent before is not read: it was not encrypted, so somebody in
// between may have put it there.
func (s *session) encrypt() error {
	cert, endPoint := s.server.cert.get()
	conn := tls.Server(&preread{Conn: s.conn, in: s.in.take()}, &tls.Config{
		Certificates: []tls.Certificate{*cert},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{alpnProtocol},
	})
	if err := conn.Handshake(); err != nil { // within the deadline of the start
		return fmt.Errorf("TLS handshake: %w", err)
	}
	s.tls, s.endPoint = conn, endPoint
	s.in.conn, s.out.conn = conn, conn
	return nil
}

// encryptDirectly begins a connection that is TLS from its first byte. Its client must have asked for our protocol: the
// handshake could be meant for another one.
func (s *session) encryptDirectly() error {
	if !s.mayEncrypt() {
		return errors.New("a TLS connection, but there is no TLS here")
	}
	if err := s.encrypt(); err != nil {
		return err
	}
	if s.tls.ConnectionState().NegotiatedProtocol != alpnProtocol {
		return pgerr.Fatal(pgerrcode.ProtocolViolation,
			"received direct SSL connection request without ALPN protocol negotiation extension")
	}
	return nil
}

// preread is a connection of which some bytes have been read already.
type preread struct {
	net.Conn
	in []byte
}

// Read returns those bytes first.
func (c *preread) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}
