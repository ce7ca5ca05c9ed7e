package proxy

import (
	"context"
	"errors"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine/pgcodec"
)

// cursor is a result on its way to the client: what a portal keeps between two Executes.
type cursor struct {
	result  result
	columns []pgcodec.Column // nil: the statement returns no rows
	encoder *pgcodec.RowEncoder
	ended   bool // the result has no more rows
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
	c.result, c.ended = nil, true
	return err
}

// next returns up to limit rows that are not sent yet, 0 for any number, or nil at the end of the result.
func (c *cursor) next(ctx context.Context, limit int64) (*pgcodec.Chunk, error) {
	if c.ended {
		return nil, nil
	}
	chunk, err := c.result.Next(ctx, limit)
	if errors.Is(err, io.EOF) {
		c.ended = true
		return nil, nil
	}
	return chunk, err
}

// sendRows sends DataRows until the result ends (c.ended) or limit rows are sent; 0 is no limit. At the
// limit it does not look whether more rows would come: PostgreSQL suspends there too.
func (s *session) sendRows(ctx context.Context, c *cursor, limit int64) (rows int64, err error) {
	for limit == 0 || rows < limit {
		chunk, err := c.next(ctx, max(limit-rows, 0))
		if err != nil || chunk == nil {
			return rows, err
		}
		n, err := s.sendChunk(ctx, c, chunk)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// sendChunk sends a chunk's rows.
func (s *session) sendChunk(ctx context.Context, c *cursor, chunk *pgcodec.Chunk) (rows int64, err error) {
	for row := range chunk.Rows {
		s.out.buf = c.encoder.AppendDataRow(s.out.buf, chunk, row)
		if s.out.full() {
			if err := s.out.spill(ctx); err != nil {
				return int64(row + 1), err
			}
		}
	}
	return int64(chunk.Rows), c.encoder.Err()
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
