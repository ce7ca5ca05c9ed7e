package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine"
	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// copy runs COPY FROM STDIN or TO STDOUT and returns its tag.
func (s *session) copy(w *work, st statement, c *engine.Copy, args []engine.Arg, mode engine.Mode) (string, error) {
	if c.In {
		return s.copyIn(w, st, c, mode)
	}
	return s.copyOut(w, st, c, args, mode)
}

// copyIn asks the client for data and feeds it to the engine until the client says it is done.
func (s *session) copyIn(w *work, st statement, c *engine.Copy, mode engine.Mode) (string, error) {
	in, err := st.CopyIn(w.ctx, mode)
	if err != nil {
		return "", err
	}
	s.out.send(&pgproto3.CopyInResponse{OverallFormat: copyFormat(c), ColumnFormatCodes: copyFormats(c)})
	s.out.release() // the client sends nothing before it has the answer
	if err := s.out.flush(); err != nil {
		in.Abort(err)
		return "", err
	}
	return s.feed(w, in)
}

// feed hands CopyData on until CopyDone. Flush and Sync are ignored as in PostgreSQL: a driver that sent
// Sync right after Execute sends another one after the data. The engine ends the COPY with its own errors;
// what goes wrong here aborts it.
func (s *session) feed(w *work, in copyIn) (tag string, err error) {
	abort := func(err error) (string, error) {
		in.Abort(err)
		return "", err
	}
	for {
		msg, err := s.receiveCopy(w)
		if err != nil {
			return abort(err)
		}
		switch m := msg.(type) {
		case *pgproto3.CopyData:
			if err := in.Write(w.ctx, m.Data); err != nil {
				return "", err
			}
		case *pgproto3.CopyDone:
			return in.Finish(w.ctx)
		case *pgproto3.CopyFail:
			return abort(pgerr.Newf(pgerrcode.QueryCanceled, "COPY from stdin failed: %s", m.Message))
		case *pgproto3.Flush, *pgproto3.Sync:
		case *pgproto3.Terminate:
			return abort(&brokenError{io.EOF})
		default:
			return abort(pgerr.New(pgerrcode.ProtocolViolation, "unexpected message during COPY from stdin"))
		}
	}
}

// receiveCopy returns the next message of a COPY. A cancel request and the end of the grace period break
// the read; the watch stands aside for it, since the read itself notices a client that hangs up.
func (s *session) receiveCopy(w *work) (pgproto3.FrontendMessage, error) {
	s.disarm()
	defer s.arm()
	s.setReading(true)
	if w.ctx.Err() != nil {
		s.setReading(false)
		return nil, context.Cause(w.ctx)
	}
	msg, err := s.in.next()
	s.setReading(false)
	if w.ctx.Err() != nil { // whether or not the message came before the deadline
		s.allowRead()
	}
	var bad *badMessage
	var known *pgerr.Error
	switch {
	case err == nil, errors.As(err, &bad), errors.As(err, &known):
		return msg, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, context.Cause(w.ctx)
	}
	return nil, &brokenError{err}
}

// setReading marks a read that an interruption has to break.
func (s *session) setReading(reading bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = reading
}

// copyOut sends a result as COPY data.
func (s *session) copyOut(w *work, st statement, c *engine.Copy, args []engine.Arg, mode engine.Mode) (tag string, err error) {
	r, err := st.Run(w.ctx, args, mode)
	if err != nil {
		return "", err
	}
	cur := &cursor{result: r}
	defer func() { err = errors.Join(err, cur.close()) }()
	s.out.send(&pgproto3.CopyOutResponse{OverallFormat: copyFormat(c), ColumnFormatCodes: copyFormats(c)})
	rows, err := s.sendCopyRows(w.ctx, cur, c)
	if err != nil {
		return "", err
	}
	s.out.send(&pgproto3.CopyDone{})
	return r.Tag(rows), nil
}

// sendCopyRows sends one CopyData a row, as PostgreSQL does and drivers expect. The header of a binary
// COPY shares the first one (psycopg reads it there); a CSV header line has its own.
func (s *session) sendCopyRows(ctx context.Context, cur *cursor, c *engine.Copy) (rows int64, err error) {
	enc := pgcodec.NewCopyEncoder(c.Options, c.Columns, s.engine.Settings())
	at := s.beginCopyData()
	s.out.buf = enc.Header(s.out.buf)
	if c.Options.Format != pgcodec.CopyBinary {
		s.endCopyData(at)
		at = s.beginCopyData()
	}
	for {
		chunk, err := cur.next(ctx, 0)
		if err != nil {
			s.out.buf = s.out.buf[:at]
			return rows, err
		}
		if chunk == nil {
			break
		}
		for row := range chunk.Rows {
			s.out.buf = enc.AppendRow(s.out.buf, chunk, row)
			s.endCopyData(at)
			rows++
			if s.out.full() {
				if err := s.out.spill(ctx); err != nil {
					return rows, err
				}
			}
			at = s.beginCopyData()
		}
		if err := enc.Err(); err != nil {
			s.out.buf = s.out.buf[:at]
			return rows, err
		}
	}
	s.out.buf = enc.Trailer(s.out.buf)
	s.endCopyData(at)
	return rows, nil
}

// copyDataHeader is the type byte and the length of a CopyData message.
const copyDataHeader = 5

// beginCopyData appends a CopyData message without data and returns its offset.
func (s *session) beginCopyData() int {
	at := len(s.out.buf)
	s.out.buf = append(s.out.buf, 'd', 0, 0, 0, 0)
	return at
}

// endCopyData fills in the length of the CopyData message at an offset, and drops one without data.
func (s *session) endCopyData(at int) {
	size := len(s.out.buf) - at
	if size == copyDataHeader {
		s.out.buf = s.out.buf[:at]
		return
	}
	binary.BigEndian.PutUint32(s.out.buf[at+1:], uint32(size-1))
}

// copyFormat is the overall format of a COPY: 1 for binary.
func copyFormat(c *engine.Copy) byte {
	if c.Options.Format == pgcodec.CopyBinary {
		return 1
	}
	return 0
}

// copyFormats is the format of each column of a COPY, which is the overall one.
func copyFormats(c *engine.Copy) []uint16 {
	formats := make([]uint16, len(c.Columns))
	for i := range formats {
		formats[i] = uint16(copyFormat(c))
	}
	return formats
}
