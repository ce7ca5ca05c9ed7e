package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine/pgerr"
)

// Bounds on what one client may make the receiver hold.
const (
	// readBytes is what an idle session keeps to read into: a pipelined Parse, Bind, Execute and Sync fit.
	readBytes = 16 << 10
	// readAheadBytes bounds what the hang-up watch reads while a statement runs.
	readAheadBytes = 1 << 20
	// messageBytesMax is PostgreSQL's own bound on a message that carries data, one byte under 1 GiB.
	messageBytesMax = 1<<30 - 1
	// smallBytesMax is PostgreSQL's bound on a message that names things only.
	smallBytesMax = 10_000
	// saslBytesMax is PostgreSQL's bound on a SASL message.
	saslBytesMax = 1024
)

// frontend lists the messages a client may send once it is logged in: the bound of the body and how to
// make an empty one. No entry means PostgreSQL knows no such message.
var frontend = [256]struct {
	bytesMax int
	empty    func() pgproto3.FrontendMessage
}{
	'Q': {messageBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Query) }},
	'P': {messageBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Parse) }},
	'B': {messageBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Bind) }},
	'D': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Describe) }},
	'E': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Execute) }},
	'C': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Close) }},
	'H': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Flush) }},
	'S': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Sync) }},
	'F': {messageBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.FunctionCall) }},
	'd': {messageBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.CopyData) }},
	'c': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.CopyDone) }},
	'f': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.CopyFail) }},
	'X': {smallBytesMax, func() pgproto3.FrontendMessage { return new(pgproto3.Terminate) }},
}

// sessionBytes is the bound of a message after the login.
func sessionBytes(kind byte) int { return frontend[kind].bytesMax }

// saslBytes is the bound of a message during the login, where only 'p' may come.
func saslBytes(kind byte) int {
	if kind == 'p' {
		return saslBytesMax
	}
	return 0
}

// errReadAheadFull ends the hang-up watch of a client that pipelined more than readAheadBytes.
var errReadAheadFull = errors.New("read-ahead buffer is full")

// badMessage is a whole message whose body cannot be read: the session knows where the next one begins
// and goes on, which pgproto3's own Backend cannot promise.
type badMessage struct {
	kind  byte  // the message's type byte
	cause error // what pgproto3 said
}

// Error names the message and what is wrong with it.
func (e *badMessage) Error() string {
	return fmt.Sprintf("malformed message %q: %v", e.kind, e.cause)
}

// receiver frames client messages. It stands in for pgproto3.Backend because that one keeps its buffer to
// itself: here a read can be given up on a deadline and resumed, the next message's type can be looked
// at, a claimed length allocates nothing before its bytes arrive, and a bad body is not a broken stream.
type receiver struct {
	conn     net.Conn
	buf      []byte // bytes read and not yet consumed are buf[begin:end]
	begin    int
	end      int
	messages [256]pgproto3.FrontendMessage // one flyweight a type, made when first needed
}

// newReceiver returns a receiver that has read nothing yet.
func newReceiver(conn net.Conn) *receiver {
	return &receiver{conn: conn, buf: make([]byte, readBytes)}
}

// next returns the next message. It and its byte slices live until the next call. An error is a
// *badMessage (go on), a *pgerr.Error (the stream makes no sense: end) or the connection's. After a
// deadline passed, calling again resumes where the read stopped.
func (in *receiver) next() (pgproto3.FrontendMessage, error) {
	kind, body, err := in.frame(sessionBytes)
	if err != nil {
		return nil, err
	}
	if in.messages[kind] == nil {
		in.messages[kind] = frontend[kind].empty()
	}
	msg := in.messages[kind]
	if err := msg.Decode(body); err != nil {
		return nil, &badMessage{kind: kind, cause: err}
	}
	return msg, nil
}

// frame returns the type and the body of the next message if bound knows its type: zero is
// no such message.
func (in *receiver) frame(bound func(kind byte) int) (kind byte, body []byte, err error) {
	if err := in.fill(5); err != nil {
		return 0, nil, err
	}
	kind = in.buf[in.begin]
	size := int64(int32(binary.BigEndian.Uint32(in.buf[in.begin+1:])))
	if bound(kind) == 0 {
		return 0, nil, pgerr.Fatal(pgerrcode.ProtocolViolation, fmt.Sprintf("invalid frontend message type %d", kind))
	}
	if size < 4 || size-4 > int64(bound(kind)) {
		return 0, nil, pgerr.Fatal(pgerrcode.ProtocolViolation, "invalid message length")
	}
	whole := 1 + int(size)
	if err := in.fill(whole); err != nil {
		return 0, nil, err
	}
	body = in.buf[in.begin+5 : in.begin+whole : in.begin+whole]
	in.begin += whole
	return kind, body, nil
}

// startup returns the body of one start-up packet, which has a length and no type.
func (in *receiver) startup() ([]byte, error) {
	if err := in.fill(4); err != nil {
		return nil, err
	}
	size := int64(int32(binary.BigEndian.Uint32(in.buf[in.begin:])))
	if size < 8 || size > startupBytesMax {
		return nil, pgerr.Fatal(pgerrcode.ProtocolViolation, "invalid length of startup packet")
	}
	whole := int(size)
	if err := in.fill(whole); err != nil {
		return nil, err
	}
	body := in.buf[in.begin+4 : in.begin+whole : in.begin+whole]
	in.begin += whole
	return body, nil
}

// buffered counts the bytes that were read and not consumed.
func (in *receiver) buffered() int {
	return in.end - in.begin
}

// first waits for the connection's first byte and returns it, unconsumed.
func (in *receiver) first() (byte, error) {
	if err := in.fill(1); err != nil {
		return 0, err
	}
	return in.buf[in.begin], nil
}

// take returns what was read and not consumed, and forgets it.
func (in *receiver) take() []byte {
	taken := append([]byte(nil), in.buf[in.begin:in.end]...)
	in.begin, in.end = 0, 0
	return taken
}

// nextIs tells whether the next message is already here, at least its first byte, and has this type.
func (in *receiver) nextIs(kind byte) bool {
	return in.buffered() > 0 && in.buf[in.begin] == kind
}

// fill reads until n unconsumed bytes are there. What was read before an error stays.
func (in *receiver) fill(n int) error {
	for in.buffered() < n {
		in.makeRoom(n)
		k, err := in.conn.Read(in.buf[in.end:])
		in.end += k
		if err != nil && in.buffered() < n {
			return err
		}
	}
	return nil
}

// makeRoom leaves space to read into. The buffer doubles towards n and no further than the bytes that
// came justify, and shrinks back once a large message is consumed.
func (in *receiver) makeRoom(n int) {
	if in.begin == in.end {
		in.begin, in.end = 0, 0
		if len(in.buf) > readBytes && n <= readBytes {
			in.buf = make([]byte, readBytes)
		}
	}
	if in.begin+n <= len(in.buf) {
		return
	}
	if in.begin > 0 {
		in.end = copy(in.buf, in.buf[in.begin:in.end])
		in.begin = 0
	}
	if in.end == len(in.buf) {
		in.grow(min(2*len(in.buf), n))
	}
}

// grow moves what is unconsumed to a larger buffer, leaving the old one to whoever still reads from it.
func (in *receiver) grow(size int) {
	larger := make([]byte, size)
	in.end = copy(larger, in.buf[in.begin:in.end])
	in.begin, in.buf = 0, larger
}

// readAhead waits for more bytes than are there now and keeps them for later. It never moves bytes in
// place, since the message in work may still point into the buffer.
func (in *receiver) readAhead() error {
	if in.end == len(in.buf) {
		if in.buffered() >= readAheadBytes {
			return errReadAheadFull
		}
		in.grow(2 * len(in.buf))
	}
	k, err := in.conn.Read(in.buf[in.end:])
	in.end += k
	if k > 0 {
		return nil
	}
	return err
}
