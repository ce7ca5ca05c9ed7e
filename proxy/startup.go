package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine/pgerr"
)

const (
	// startupBytesMax is PostgreSQL's MAX_STARTUP_PACKET_LENGTH.
	startupBytesMax = 10_000
	// startupTime is PostgreSQL's default authentication_timeout: from accept until logged in.
	startupTime = 60 * time.Second
)

// Codes that stand where a start-up packet has its protocol version.
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSSEnc = 1234<<16 | 5680
)

// The protocol versions served. 3.2 only makes the cancel key longer.
const (
	protocolMajor = 3
	protocol32    = 3<<16 | 2
)

// startPacket is the packet that begins a session.
type startPacket struct {
	version  uint32            // as asked for
	params   map[string]string // parameters by name; options and _pq_ taken out
	user     string
	database string   // the user's name if the client gave none
	unknown  []string // protocol options we do not know, all that begin with _pq_
}

// start answers requests until a start-up packet comes, then logs the client in.
func (s *session) start(ctx context.Context) (state, error) {
	if !s.beginStart() {
		return nil, nil
	}
	if kind, err := s.in.first(); err != nil {
		return s.failStart(err)
	} else if kind == tlsHandshake {
		if err := s.encryptDirectly(); err != nil {
			return s.failStart(err)
		}
	}
	seen := map[uint32]bool{}
	for {
		body, err := s.in.startup()
		if err != nil {
			return s.failStart(err)
		}
		code := binary.BigEndian.Uint32(body)
		switch {
		case code == codeCancel:
			s.cancelRequest(body)
			return nil, nil
		case (code == codeSSL || code == codeGSSEnc) && !seen[code]:
			seen[code] = true
			if err := s.answerEncryption(code); err != nil {
				return s.failStart(err)
			}
		default:
			return s.startSession(ctx, body)
		}
	}
}

// beginStart sets the time within which the client has to be logged in. It reports false when the server
// is shutting down.
func (s *session) beginStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.idle = true
	s.conn.SetDeadline(time.Now().Add(startupTime))
	return true
}

// endStart lifts the time limit of the start. It reports false when shutdown came first.
func (s *session) endStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	if s.draining {
		return false
	}
	s.conn.SetDeadline(time.Time{})
	return true
}

// answerEncryption goes over to TLS, if there is a certificate, and declines GSS encryption; a client that is declined
// goes on as before or leaves. What it has sent already was meant to be encrypted: a man in the middle may have put it
// there, so it is not read.
func (s *session) answerEncryption(code uint32) error {
	if s.in.buffered() > 0 {
		return errors.New("data after encryption request")
	}
	if code != codeSSL || !s.mayEncrypt() {
		_, err := s.out.conn.Write([]byte{'N'})
		return err
	}
	if _, err := s.conn.Write([]byte{'S'}); err != nil {
		return err
	}
	return s.encrypt()
}

// cancelRequest passes on a cancel request. It is never answered, so that it tells nothing about keys.
func (s *session) cancelRequest(body []byte) {
	var m pgproto3.CancelRequest
	if err := m.Decode(body); err != nil {
		s.log.Debug().Msg("malformed cancel request")
		return
	}
	s.log.Debug().Uint32("pid", m.ProcessID).Bool("matched", s.server.keys.cancel(&m)).Msg("cancel request")
}

// failStart ends a connection that never became a session. Probes that connect and leave are daily life
// behind a balancer and logged as such.
func (s *session) failStart(err error) (state, error) {
	var e *pgerr.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.log.Debug().Msg("connection ended before its session began")
	case errors.As(err, &e):
		s.log.Debug().Str("code", e.Code).Msg(e.Message)
		s.sendFatal(e)
	default:
		s.log.Debug().AnErr("reason", err).Msg("client left before its session began")
	}
	return nil, nil
}

// sendFatal tells the client why it is not let in. Where every severity is FATAL no session exists yet.
func (s *session) sendFatal(e *pgerr.Error) {
	last := *e
	last.Severity = pgerr.SeverityFatal
	s.out.send(errorResponse(&last))
	_ = s.out.flush() // the connection ends either way
}

// startSession turns a start-up packet into a session that is ready.
func (s *session) startSession(ctx context.Context, body []byte) (state, error) {
	p, err := decodeStart(body)
	if err != nil {
		return s.failStart(err)
	}
	if !s.server.takeSlot() {
		return s.failStart(pgerr.New(pgerrcode.TooManyConnections, "sorry, too many clients already"))
	}
	s.slot = true
	s.negotiate(p)
	if err := s.login(ctx, p); err != nil {
		return s.failStart(err)
	}
	if !s.endStart() {
		return s.failStart(errShutdown)
	}
	return s.readyForQuery()
}

// negotiate tells a client that asked for more than we have what it gets instead.
func (s *session) negotiate(p *startPacket) {
	if p.version <= protocol32 && len(p.unknown) == 0 {
		return
	}
	s.out.send(&pgproto3.NegotiateProtocolVersion{
		NewestMinorProtocol: min(p.version, protocol32),
		UnrecognizedOptions: p.unknown,
	})
}

// decodeStart reads a start-up packet: a version, then pairs of strings, then an empty string. pgproto3's
// own decoder knows two versions only and would refuse the newer ones that have to be negotiated.
func decodeStart(body []byte) (*startPacket, error) {
	p := &startPacket{version: binary.BigEndian.Uint32(body), params: map[string]string{}}
	if major := p.version >> 16; major != protocolMajor {
		return nil, pgerr.Fatal(pgerrcode.FeatureNotSupported, fmt.Sprintf(
			"unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", major, p.version&0xffff))
	}
	if err := p.decodePairs(body[4:]); err != nil {
		return nil, err
	}
	p.user, p.database = p.params["user"], p.params["database"]
	if p.user == "" {
		return nil, pgerr.Fatal(pgerrcode.InvalidAuthorizationSpecification,
			"no PostgreSQL user name specified in startup packet")
	}
	if p.database == "" {
		p.database = p.user
	}
	delete(p.params, "user")
	delete(p.params, "database")
	return p, p.checkReplication()
}

// decodePairs fills params and unknown. Settings given by name win over those in options.
func (p *startPacket) decodePairs(rest []byte) error {
	for {
		name, after, ok := bytes.Cut(rest, []byte{0})
		if ok && len(name) == 0 && len(after) == 0 {
			break
		}
		value, after, more := bytes.Cut(after, []byte{0})
		if !ok || !more || len(name) == 0 {
			return pgerr.Fatal(pgerrcode.ProtocolViolation,
				"invalid startup packet layout: expected terminator as last byte")
		}
		rest = after
		if strings.HasPrefix(string(name), "_pq_.") {
			p.unknown = append(p.unknown, string(name))
			continue
		}
		p.params[string(name)] = string(value)
	}
	options := p.params["options"]
	delete(p.params, "options")
	return p.decodeOptions(options)
}

// decodeOptions reads the parts of libpq's options that set something: -c name=value and --name=value.
func (p *startPacket) decodeOptions(options string) error {
	words := splitOptions(options)
	for i := 0; i < len(words); i++ {
		setting, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			setting, ok = strings.CutPrefix(words[i], "-c")
			if ok && setting == "" && i+1 < len(words) {
				i++
				setting = words[i]
			}
		}
		name, value, assigned := strings.Cut(setting, "=")
		if !ok || !assigned || name == "" {
			return pgerr.Fatal(pgerrcode.SyntaxError,
				fmt.Sprintf("invalid command-line argument for server process: %s", words[i]))
		}
		name = strings.ReplaceAll(name, "-", "_")
		if _, given := p.params[name]; !given {
			p.params[name] = value
		}
	}
	return nil
}

// splitOptions splits at white space; a backslash keeps the next character.
func splitOptions(options string) []string {
	var words []string
	var word []byte
	inWord := false
	for i := 0; i < len(options); i++ {
		c := options[i]
		switch {
		case c == '\\' && i+1 < len(options):
			i++
			word, inWord = append(word, options[i]), true
		case strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			if inWord {
				words = append(words, string(word))
			}
			word, inWord = word[:0], false
		default:
			word, inWord = append(word, c), true
		}
	}
	if inWord {
		words = append(words, string(word))
	}
	return words
}

// checkReplication refuses what only a PostgreSQL with a write-ahead log can give.
func (p *startPacket) checkReplication() error {
	switch strings.ToLower(p.params["replication"]) {
	case "", "false", "off", "no", "0":
		delete(p.params, "replication")
		return nil
	}
	return pgerr.Fatal(pgerrcode.FeatureNotSupported, "replication connections are not supported")
}

// remote is the client's address, for the log and the engine.
func remote(conn net.Conn) net.Addr {
	return conn.RemoteAddr()
}
