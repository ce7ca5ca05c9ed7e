package sqltests

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// answerBytesMax is far above any answer of these scripts: what is longer is no message.
const answerBytesMax = 64 << 20

// wireConn is one connection of a script, below every driver: it sends what it is told and keeps what comes.
type wireConn struct {
	net net.Conn
	in  *bufio.Reader
	out []byte // encoded, not yet sent

	piece int          // bytes a write, 0 for all at once
	owed  int          // how many ReadyForQuery are still to come
	bytes int          // how many single-byte answers are still to come
	early []wireAnswer // read while logging in, for the block's answers
	over  bool         // the server has hung up, and a block has read so
	pid   uint32
	key   []byte
}

// dialWire opens a connection to where a configuration points.
func dialWire(ctx context.Context, config *pgconn.Config) (*wireConn, error) {
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wireConn{net: c, in: bufio.NewReader(c)}, nil
}

// flush sends what waits. An error is not reported here: a server that has hung up shows when its answers are read.
func (c *wireConn) flush() {
	c.net.SetWriteDeadline(time.Now().Add(wireTimeout))
	step := c.piece
	if step == 0 {
		step = max(1, len(c.out))
	}
	for len(c.out) > 0 {
		n := min(step, len(c.out))
		if _, err := c.net.Write(c.out[:n]); err != nil {
			break
		}
		c.out = c.out[n:]
	}
	c.out, c.piece = nil, 0
}

// startup appends a start-up packet, its parameters in the order given.
func (c *wireConn) startup(version string, parameters []string) error {
	major, minor, _ := strings.Cut(version, ".")
	high, err := strconv.ParseUint(major, 10, 16)
	low, errLow := strconv.ParseUint(minor, 10, 16)
	if err = errors.Join(err, errLow); err != nil {
		return err
	}
	body := binary.BigEndian.AppendUint32(nil, uint32(high<<16|low))
	for _, s := range parameters {
		body = append(append(body, s...), 0)
	}
	body = append(body, 0)
	c.out = append(binary.BigEndian.AppendUint32(c.out, uint32(len(body)+4)), body...)
	c.owed++
	return nil
}

// login sends what waits and does the client's part of SCRAM-SHA-256, if the server wants it. What comes meanwhile is kept;
// it ends with AuthenticationOk or with whatever else the server says.
func (c *wireConn) login(password string, deadline time.Time) error {
	c.flush()
	answer := c.receive(deadline)
	for answer.name == "NegotiateProtocolVersion" {
		c.early = append(c.early, answer)
		answer = c.receive(deadline)
	}
	c.early = append(c.early, answer)
	if answer.name != "AuthenticationSASL" {
		return nil
	}
	client := newScram(password)
	c.out, _ = (&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: client.first()}).Encode(c.out)
	c.flush()
	answer = c.receive(deadline)
	c.early = append(c.early, answer)
	if answer.name != "AuthenticationSASLContinue" {
		return nil
	}
	final, err := client.final(string(answer.body[4:]))
	if err != nil {
		return err
	}
	c.out, _ = (&pgproto3.SASLResponse{Data: final}).Encode(c.out)
	c.flush()
	answer = c.receive(deadline)
	if c.early = append(c.early, answer); answer.name != "AuthenticationSASLFinal" {
		return nil
	}
	if string(answer.body[4:]) != client.signature {
		return errors.New("the server does not prove that it knows the password")
	}
	return nil
}

// scram is the client's side of RFC 5802 without channel binding.
type scram struct {
	password, nonce string
	signature       string // what the server's last message has to be
}

func newScram(password string) *scram {
	return &scram{password: password, nonce: rand.Text()}
}

func (s *scram) first() []byte { return []byte("n,,n=,r=" + s.nonce) }

// final answers the server's challenge r=nonce,s=salt,i=iterations.
func (s *scram) final(challenge string) ([]byte, error) {
	fields := map[string]string{}
	for field := range strings.SplitSeq(challenge, ",") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	salt, err := base64.StdEncoding.DecodeString(fields["s"])
	iterations, errI := strconv.Atoi(fields["i"])
	if err = errors.Join(err, errI); err != nil {
		return nil, fmt.Errorf("challenge %q: %w", challenge, err)
	}
	salted, err := pbkdf2.Key(sha256.New, s.password, salt, iterations, sha256.Size)
	if err != nil {
		return nil, err
	}
	last := "c=biws,r=" + fields["r"]
	signed := "n=,r=" + s.nonce + "," + challenge + "," + last
	key := mac(salted, "Client Key")
	stored := sha256.Sum256(key)
	proof := mac(stored[:], signed)
	for i := range proof {
		proof[i] ^= key[i]
	}
	s.signature = "v=" + base64.StdEncoding.EncodeToString(mac(mac(salted, "Server Key"), signed))
	return []byte(last + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// answers reads up to the block's end: what `until` says, else as many ReadyForQuery as Query and Sync were sent.
func (c *wireConn) answers(o wireOptions, deadline time.Time) []wireAnswer {
	hidden := func(a wireAnswer) bool { return slices.Contains(o.hide, a.name) }
	got, seen := slices.DeleteFunc(c.early, hidden), 0
	c.early = nil
	if o.until == "quiet" {
		deadline = time.Now().Add(quietTime)
	}
	for {
		answer := c.receive(deadline)
		if !hidden(answer) { // there may be millions of them
			got = append(got, answer)
		}
		c.over = answer.name == wireClosed
		if answer.name == "ReadyForQuery" {
			c.owed = max(0, c.owed-1)
		}
		if answer.name == o.until {
			seen++
		}
		if o.ends(answer.name, seen, c.owed) {
			break
		}
	}
	if o.until == "ReadyForQuery" {
		c.owed = 0 // a script that counts them itself knows of a Sync that is never answered
	}
	return got
}

// ends says whether an answer is the last to wait for. A server that does not give the awaited one is not waited for in vain:
// an error ends the reading where no Sync or Query leads on from it.
func (o wireOptions) ends(name string, seen, owed int) bool {
	switch {
	case name == wireClosed || name[0] == '(': // nothing, or no message
		return true
	case o.until == "":
		return owed == 0 && (name == "ReadyForQuery" || name == "ErrorResponse")
	case o.until == "closed" || o.until == "quiet":
		return false
	case seen >= o.count:
		return true
	}
	return name == "ErrorResponse" && o.until != "ReadyForQuery"
}

// receive reads one answer. The end of the connection and the deadline are answers too.
func (c *wireConn) receive(deadline time.Time) wireAnswer {
	c.net.SetReadDeadline(deadline)
	first, err := c.in.ReadByte()
	if err != nil {
		return ended(err)
	}
	if c.bytes > 0 {
		c.bytes--
		if first != 'E' { // an old server's error, or one that refuses to be asked twice
			return wireAnswer{name: "Byte", body: []byte{first}}
		}
	}
	body, err := c.body()
	if err != nil {
		return wireAnswer{name: fmt.Sprintf("(%q broken off: %v)", first, err)}
	}
	c.note(first, body)
	return newAnswer(first, body)
}

// body reads what a message's type promised, without a deadline that might cut it in two.
func (c *wireConn) body() ([]byte, error) {
	c.net.SetReadDeadline(time.Now().Add(wireTimeout))
	header := make([]byte, 4)
	if _, err := io.ReadFull(c.in, header); err != nil {
		return nil, err
	}
	length := int32(binary.BigEndian.Uint32(header))
	if length < 4 || length > answerBytesMax {
		return nil, fmt.Errorf("length %d", length)
	}
	body := make([]byte, length-4)
	_, err := io.ReadFull(c.in, body)
	return body, err
}

// note keeps what a later CancelRequest needs.
func (c *wireConn) note(kind byte, body []byte) {
	if kind == 'K' && len(body) > 4 {
		c.pid, c.key = binary.BigEndian.Uint32(body), body[4:]
	}
}

// ended tells silence from the end of the connection.
func ended(err error) wireAnswer {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return wireAnswer{name: wireNothing}
	}
	return wireAnswer{name: wireClosed}
}
