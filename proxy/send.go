package proxy

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// spillBytes is how much a result gathers before it goes to the writing goroutine: large enough that a
	// system call costs little a row, small enough that the first rows of a slow query do not wait long.
	spillBytes = 128 << 10
	// spillsQueued bounds how far the encoder may run ahead of the socket.
	spillsQueued = 4
	// keepBytes is the largest buffer that an idle session keeps.
	keepBytes = 4 << 10
)

// buffers are the pieces that travel from encoder to socket, shared by all sessions.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, spillBytes+spillBytes/4)
	return &b
}}

// sender gathers what goes to the client and writes it in order. Messages and rows are appended to buf;
// spill hands a full buffer to a goroutine that lives until the next flush, so that fetching and
// encoding overlap with writing.
//
// From held on the bytes are a promise that may yet be broken: completions of statements whose implicit
// transaction has not committed. flush leaves them in the buffer; release lets them go, revoke drops them.
type sender struct {
	conn net.Conn
	buf  []byte
	held int // offset of the first byte held back; -1: none
	err  error

	queue  chan []byte   // nil while no goroutine writes
	failed chan struct{} // closed when a write fails
	done   chan struct{} // closed when the goroutine has ended
	broken error         // the failed write's error; read after failed or done
}

// newSender returns a sender with nothing to send.
func newSender(conn net.Conn) *sender {
	return &sender{conn: conn, held: -1}
}

// send appends one message. An encoding error (a message over 1 GiB) surfaces in flush.
func (out *sender) send(msg pgproto3.BackendMessage) {
	buf, err := msg.Encode(out.buf)
	if err != nil {
		out.err = errors.Join(out.err, err)
		return
	}
	out.buf = buf
}

// hold keeps back what is sent from now on until release or revoke.
func (out *sender) hold() {
	if out.held < 0 {
		out.held = len(out.buf)
	}
}

// release lets everything held back go with the next flush.
func (out *sender) release() {
	out.held = -1
}

// revoke drops everything held back. It reports false when it was released already.
func (out *sender) revoke() bool {
	if out.held < 0 {
		return false
	}
	out.buf = out.buf[:out.held]
	out.held = -1
	return true
}

// full tells that the buffer is worth a spill.
func (out *sender) full() bool {
	return len(out.buf) >= spillBytes
}

// spill hands the buffer to the writing goroutine and takes a fresh one. Rows never wait for a commit, so
// what was held back goes too. It blocks while the client reads slower than rows come, until ctx ends.
func (out *sender) spill(ctx context.Context) error {
	out.release()
	if out.queue == nil {
		out.start()
	}
	select {
	case out.queue <- out.buf:
		out.buf = (*buffers.Get().(*[]byte))[:0]
		return nil
	case <-out.failed:
		return &brokenError{out.broken}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start begins the writing goroutine; flush ends it.
func (out *sender) start() {
	out.queue = make(chan []byte, spillsQueued)
	out.failed, out.done = make(chan struct{}), make(chan struct{})
	go out.write(out.queue)
}

// write writes buffers as they come. After a failed write it only takes them, so that nobody blocks.
func (out *sender) write(queue <-chan []byte) {
	defer close(out.done)
	for buf := range queue {
		if out.broken == nil {
			if _, out.broken = out.conn.Write(buf); out.broken != nil {
				close(out.failed)
			}
		}
		recycle(buf)
	}
}

// flush writes all that is not held back and returns once the kernel has it.
func (out *sender) flush() error {
	if out.err != nil {
		return &brokenError{out.err}
	}
	ready := len(out.buf)
	if out.held >= 0 {
		ready = out.held
	}
	if err := out.settle(); err != nil {
		return err
	}
	if ready == 0 {
		return nil
	}
	if _, err := out.conn.Write(out.buf[:ready]); err != nil {
		return &brokenError{err}
	}
	out.consume(ready)
	return nil
}

// settle waits for the writing goroutine, if there is one, to write what it was given, and ends it.
func (out *sender) settle() error {
	if out.queue == nil {
		return nil
	}
	close(out.queue)
	<-out.done
	out.queue = nil
	if out.broken != nil {
		return &brokenError{out.broken}
	}
	return nil
}

// consume drops the first n bytes and gives a large buffer back.
func (out *sender) consume(n int) {
	rest := out.buf[n:]
	if out.held >= 0 {
		out.held = 0
	}
	if len(rest) == 0 && cap(out.buf) > keepBytes {
		recycle(out.buf)
		out.buf = nil
		return
	}
	out.buf = append(out.buf[:0], rest...)
}

// recycle keeps a buffer for the next result, unless a huge row made it grow.
func recycle(buf []byte) {
	if cap(buf) >= spillBytes && cap(buf) <= 4*spillBytes {
		buf = buf[:0]
		buffers.Put(&buf)
	}
}
