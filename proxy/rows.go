package proxy

import (
	"context"
	"errors"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine/pgcodec"
)

// cursor is a place in a result: what a portal keeps between two Executes.
type cursor struct {
	result  result
	columns []pgcodec.Column // nil: the statement returns no rows
	encoder *pgcodec.RowEncoder
	chunk   *pgcodec.Chunk // valid until the next is fetched
	row     int            // first row of chunk not sent yet
	ended   bool           // the result has no more chunks
}

// newCursor returns a cursor before the first row. formats are as in Bind.
func (s *session) newCursor(r result, formats []int16) *cursor {
	c := &cursor{result: r, columns: r.Columns()}
	if c.columns != nil {
		c.encoder = pgcodec.NewRowEncoder(c.columns, formats, s.engine.Settings())
	}
	return c
}

// close gives the result back to the engine.
func (c *cursor) close() error {
	if c.result == nil {
		return nil
	}
	err := c.result.Close()
	c.result, c.chunk, c.ended = nil, nil, true
	return err
}

// more makes the next unsent row current and reports false at the end of the result.
func (c *cursor) more(ctx context.Context) (bool, error) {
	for !c.ended && (c.chunk == nil || c.row >= c.chunk.Rows) {
		chunk, err := c.result.Next(ctx)
		if errors.Is(err, io.EOF) {
			c.chunk, c.ended = nil, true
			break
		}
		if err != nil {
			return false, err
		}
		c.chunk, c.row = chunk, 0
	}
	return !c.ended, nil
}

// sendRows sends DataRows until the result ends (c.ended) or limit rows are sent; 0 is no limit. At the
// limit it does not look whether more rows would come: PostgreSQL suspends there too.
func (s *session) sendRows(ctx context.Context, c *cursor, limit int64) (rows int64, err error) {
	for limit == 0 || rows < limit {
		more, err := c.more(ctx)
		if err != nil || !more {
			return rows, err
		}
		if c.encoder == nil { // a count that DuckDB returns as a row and PostgreSQL only in the tag
			c.row = c.chunk.Rows
			continue
		}
		n, err := s.sendChunk(ctx, c, limit-rows)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// sendChunk sends what is left of the current chunk, at most limit rows if limit is positive.
func (s *session) sendChunk(ctx context.Context, c *cursor, limit int64) (int64, error) {
	end := c.chunk.Rows
	if limit > 0 {
		end = min(end, c.row+int(limit))
	}
	first := c.row
	for c.row < end {
		s.out.buf = c.encoder.AppendDataRow(s.out.buf, c.chunk, c.row)
		c.row++
		if s.out.full() {
			if err := s.out.spill(ctx); err != nil {
				return int64(c.row - first), err
			}
		}
	}
	return int64(c.row - first), c.encoder.Err()
}

// rowDescription describes columns in the formats that their values will have.
func rowDescription(columns []pgcodec.Column, formats []int16) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, len(columns))}
	for i, c := range columns {
		d.Fields[i] = pgproto3.FieldDescription{
			Name:         []byte(cString(c.Name)),
			DataTypeOID:  c.OID,
			DataTypeSize: c.Len,
			TypeModifier: c.TypMod,
			Format:       pgcodec.FormatOf(formats, i),
		}
	}
	return d
}
