package lakefs

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"
)

const (
	batchRows  = 516 // 4.2 MB, half a reader's piece
	batchesMax = 3   // of a writer: one being filled, one waiting, one being sent

	copySQL = `COPY pgvfs.chunks (file_id, no, data) FROM STDIN (FORMAT binary)`
)

// A row of a binary COPY: the number of fields, then each field's length and value, in network byte order (PostgreSQL
// manual, COPY, "Binary Format").
const (
	idAt       = 6            // after number of fields and length
	noAt       = idAt + 8 + 4 // after id and length
	dataLenAt  = noAt + 4
	rowHead    = dataLenAt + 4
	rowBytes   = rowHead + chunkBytes
	batchBytes = batchRows * rowBytes
)

// copyHead is signature, flags and the length of an extension; copyTail marks the end.
const (
	copyHead = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTail = "\xff\xff"
)

// rowTemplate is a full row's head with neither id nor number.
var rowTemplate = makeRowTemplate()

func makeRowTemplate() (head [rowHead]byte) {
	binary.BigEndian.PutUint16(head[:], 3)
	binary.BigEndian.PutUint32(head[idAt-4:], 8)
	binary.BigEndian.PutUint32(head[noAt-4:], 4)
	binary.BigEndian.PutUint32(head[dataLenAt:], chunkBytes)
	return head
}

// batchPool holds full-size buffers of batches.
var batchPool = sync.Pool{New: func() any {
	buf := make([]byte, 0, batchBytes)
	return &buf
}}

// newBatchBuf is an empty buffer of full size.
func newBatchBuf() []byte { return (*batchPool.Get().(*[]byte))[:0] }

// batch collects bytes as rows that are ready for COPY but for the file's id. Rows begin at multiples of rowBytes; only
// the last may be short.
type batch struct {
	buf  []byte
	rows int32 // begun so far, in earlier batches too: the number of the next
}

// full reports whether only another batch can take more.
func (b *batch) full() bool { return len(b.buf) == batchBytes }

// append takes as much of p as fits into one row. The batch must not be full.
func (b *batch) append(p []byte) (n int, err error) {
	within := len(b.buf) % rowBytes
	if within == 0 {
		if b.rows == math.MaxInt32 {
			return 0, errors.New("the file is larger than 2147483647 rows of 8120 bytes")
		}
		b.grow()
		b.buf = append(b.buf, rowTemplate[:]...)
		binary.BigEndian.PutUint32(b.buf[len(b.buf)-rowHead+noAt:], uint32(b.rows))
		b.rows++
		within = rowHead
	}
	n = min(len(p), rowBytes-within)
	b.buf = append(b.buf, p[:n]...)
	return n, nil
}

// grow makes room for a row. Many files are small, and many may be open: the buffer becomes large by steps.
func (b *batch) grow() {
	if cap(b.buf)-len(b.buf) >= rowBytes {
		return
	}
	const step = 8
	larger := make([]byte, 0, 2*rowBytes)
	switch {
	case cap(b.buf) >= batchBytes/step:
		larger = newBatchBuf()
	case cap(b.buf) > 0:
		larger = make([]byte, 0, step*cap(b.buf))
	}
	b.buf = append(larger, b.buf...)
}

// seal makes a batch ready to be sent: it knows the file's id now, and how long its last row is.
func (b *batch) seal(id int64) {
	for at := 0; at < len(b.buf); at += rowBytes {
		binary.BigEndian.PutUint64(b.buf[at+idAt:], uint64(id))
		length := min(len(b.buf)-at, rowBytes) - rowHead
		binary.BigEndian.PutUint32(b.buf[at+dataLenAt:], uint32(length))
	}
}

// free gives the buffer back.
func (b *batch) free() {
	recycle(b.buf)
	b.buf = nil
}

// recycle puts a buffer that nobody uses any more into the pool, if it is one of full size.
func recycle(buf []byte) {
	if cap(buf) == batchBytes {
		batchPool.Put(&buf)
	}
}

// copySource is what a COPY reads: head, batches, tail. pgx reads it from a goroutine that can outlive the COPY when
// the connection breaks, hence stop.
type copySource struct {
	ctx     context.Context
	stream  *stream
	stopped chan struct{}
	rest    []byte // of what is being read
	batch   []byte // whose rest that is, if any
	ended   bool   // the tail has begun
}

// newCopySource starts with the head.
func newCopySource(ctx context.Context, s *stream) *copySource {
	return &copySource{ctx: ctx, stream: s, stopped: make(chan struct{}), rest: []byte(copyHead)}
}

// Read implements io.Reader. Its errors fail the COPY.
func (c *copySource) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next takes the next batch, after giving the last one back to the writer, or the tail.
func (c *copySource) next() error {
	if c.ended {
		return io.EOF
	}
	if c.batch != nil {
		c.stream.empty <- c.batch // never blocks: it has room for all there are
		c.batch = nil
	}
	select {
	case batch, ok := <-c.stream.full:
		c.batch, c.rest, c.ended = batch, batch, !ok
		if !ok {
			c.rest = []byte(copyTail)
		}
		return nil
	case <-c.stream.aborted:
		return errAborted
	case <-c.stopped:
		return io.ErrClosedPipe
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// stop ends a Read that waits, and all later ones.
func (c *copySource) stop() { close(c.stopped) }
