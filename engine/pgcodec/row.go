package pgcodec

import "encoding/binary"

// FormatText and FormatBinary are the format codes of Bind and RowDescription.
const (
	FormatText   int16 = 0
	FormatBinary int16 = 1
)

// RowEncoder builds DataRow messages. The encoders of its columns are chosen once.
type RowEncoder struct {
	settings *Settings
	encoders []Encoder
	checks   []columnCheck
	err      error
}

// columnCheck finds rows that a column's format cannot express. Only nested lists in binary have one.
type columnCheck struct {
	column int
	check  func(v *Vector, row int) error
}

// NewRowEncoder prepares for rows of these columns. formats are Bind's result formats: none (all text), one for all
// columns, or one for each; the caller has checked the count.
func NewRowEncoder(cols []Column, formats []int16, s *Settings) *RowEncoder {
	if s == nil {
		s = DefaultSettings()
	}
	e := &RowEncoder{settings: s, encoders: make([]Encoder, len(cols))}
	for i := range cols {
		if cols[i].Type.ID == SQLNull {
			continue // no encoder: always NULL, whatever the vector's mask says
		}
		if FormatOf(formats, i) == FormatText {
			e.encoders[i] = TextEncoder(cols[i].Type)
			continue
		}
		e.encoders[i] = BinaryEncoder(cols[i].Type)
		if check := arrayCheck(cols[i].Type); check != nil {
			e.checks = append(e.checks, columnCheck{i, check})
		}
	}
	return e
}

// FormatOf is the format code of column i under Bind's rules for a list of them.
func FormatOf(formats []int16, i int) int16 {
	switch len(formats) {
	case 0:
		return FormatText
	case 1:
		return formats[0]
	}
	return formats[i]
}

// AppendDataRow appends the whole DataRow message of a row: 'D', length, field count, fields. Where Err is not nil
// afterwards, the row could not be expressed and nothing was appended.
func (e *RowEncoder) AppendDataRow(dst []byte, c *Chunk, row int) []byte {
	row = c.at(row)
	if len(e.checks) > 0 && !e.checked(c, row) {
		return dst
	}
	start := len(dst)
	n := len(e.encoders)
	dst = append(dst, 'D', 0, 0, 0, 0, byte(n>>8), byte(n))
	dst = e.appendFields(dst, c, row)
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// AppendRow appends a count of fields and the fields, each with its length: DataRow's body, and COPY BINARY's tuple.
func (e *RowEncoder) AppendRow(dst []byte, c *Chunk, row int) []byte {
	row = c.at(row)
	if len(e.checks) > 0 && !e.checked(c, row) {
		return dst
	}
	n := len(e.encoders)
	return e.appendFields(append(dst, byte(n>>8), byte(n)), c, row)
}

// appendFields appends length and bytes of each field; -1 stands for NULL. row is the vectors'.
func (e *RowEncoder) appendFields(dst []byte, c *Chunk, row int) []byte {
	for i, encode := range e.encoders {
		v := &c.Columns[i]
		if encode == nil || !v.valid(row) {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		at := len(dst)
		dst = encode(append(dst, 0, 0, 0, 0), v, row, e.settings)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// checked runs the columns' checks and keeps the first failure. row is the vectors'.
func (e *RowEncoder) checked(c *Chunk, row int) bool {
	for _, k := range e.checks {
		v := &c.Columns[k.column]
		if !v.valid(row) {
			continue
		}
		if err := k.check(v, row); err != nil {
			if e.err == nil {
				e.err = err
			}
			return false
		}
	}
	return true
}

// Err is the first row's failure: 2202E where nested lists of unequal length were asked for in binary.
func (e *RowEncoder) Err() error { return e.err }
