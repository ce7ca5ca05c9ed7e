package pgcodec

import (
	"encoding/binary"
	"slices"
	"strings"
)

// CopyEncoder writes COPY TO's data. A row is one CopyData message's worth.
type CopyEncoder struct {
	options CopyOptions
	columns []copyColumn
	rows    *RowEncoder // binary
	s       *Settings
}

// copyColumn is one column of COPY TO.
type copyColumn struct {
	name   string
	encode Encoder
	plain  bool // its text never holds a delimiter, quote, line end or backslash
	quote  bool // FORCE_QUOTE
}

// NewCopyEncoder prepares for rows of these columns. The options have passed Check.
func NewCopyEncoder(o CopyOptions, cols []Column, s *Settings) *CopyEncoder {
	if s == nil {
		s = DefaultSettings()
	}
	e := &CopyEncoder{options: o, s: s, rows: NewRowEncoder(cols, []int16{FormatBinary}, s)}
	for i, c := range cols {
		e.columns = append(e.columns, copyColumn{
			name: c.Name, encode: TextEncoder(c.Type), plain: o.plain(c.Type),
			quote: o.ForceQuoteAll || slices.Contains(o.ForceQuote, i),
		})
	}
	return e
}

// plain says whether a type's text needs no look for characters to escape: numbers and times, under the usual
// delimiters and null markers.
func (o *CopyOptions) plain(t *LogicalType) bool {
	if !strings.ContainsRune("\t,|;", rune(o.Delimiter)) || o.Null != "" && o.Null != `\N` || o.Format == CopyCSV && o.Quote != '"' && o.Quote != '\'' {
		return false
	}
	switch t.ID {
	case Boolean, TinyInt, SmallInt, Integer, BigInt, UTinyInt, USmallInt, UInteger, UBigInt, HugeInt, UHugeInt, Decimal,
		Float, Double, Date, Time, TimeTZ, Timestamp, TimestampS, TimestampMS, TimestampNS, TimestampTZ, UUID:
		return true
	}
	return false
}

// Header appends what comes before the first row: the binary header, or the line of column names.
func (e *CopyEncoder) Header(dst []byte) []byte {
	if e.options.Format == CopyBinary {
		return append(append(dst, copySignature...), 0, 0, 0, 0, 0, 0, 0, 0)
	}
	if e.options.Header == HeaderNone {
		return dst
	}
	for i, c := range e.columns {
		if i > 0 {
			dst = append(dst, e.options.Delimiter)
		}
		from := len(dst)
		dst = e.protect(append(dst, c.name...), from, false)
	}
	return append(dst, '\n')
}

// AppendRow appends one row with its line end. Where Err is not nil afterwards nothing was appended.
func (e *CopyEncoder) AppendRow(dst []byte, c *Chunk, row int) []byte {
	if e.options.Format == CopyBinary {
		return e.rows.AppendRow(dst, c, row)
	}
	row = c.at(row)
	for i := range e.columns {
		if i > 0 {
			dst = append(dst, e.options.Delimiter)
		}
		v := &c.Columns[i]
		if !v.valid(row) {
			dst = append(dst, e.options.Null...)
			continue
		}
		from := len(dst)
		dst = e.columns[i].encode(dst, v, row, e.s)
		if !e.columns[i].plain || e.columns[i].quote {
			dst = e.protect(dst, from, e.columns[i].quote)
		}
	}
	return append(dst, '\n')
}

// AppendCopyData appends one row as a whole CopyData message.
func (e *CopyEncoder) AppendCopyData(dst []byte, c *Chunk, row int) []byte {
	start := len(dst)
	dst = e.AppendRow(append(dst, 'd', 0, 0, 0, 0), c, row)
	if e.Err() != nil {
		return dst[:start]
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// Trailer appends what comes after the last row: of binary, the end marker.
func (e *CopyEncoder) Trailer(dst []byte) []byte {
	if e.options.Format == CopyBinary {
		return append(dst, 0xff, 0xff)
	}
	return dst
}

// Err is the first row's failure, see RowEncoder.Err.
func (e *CopyEncoder) Err() error { return e.rows.Err() }

// protect escapes or quotes the text from a place on, as the format has it.
func (e *CopyEncoder) protect(dst []byte, from int, force bool) []byte {
	if e.options.Format == CopyCSV {
		return e.quoteCSV(dst, from, force)
	}
	return e.escapeText(dst, from)
}

// textOutEscapes are the control characters that have a letter.
var textOutEscapes = [' ']byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v'}

// escapeText sets a backslash before what text format would misread.
func (e *CopyEncoder) escapeText(dst []byte, from int) []byte {
	delimiter := e.options.Delimiter
	escapes := 0
	for _, b := range dst[from:] {
		if b == '\\' || b == delimiter || b < ' ' && textOutEscapes[b] != 0 {
			escapes++
		}
	}
	if escapes == 0 {
		return dst
	}
	read := len(dst) - 1
	dst = slices.Grow(dst, escapes)[:len(dst)+escapes]
	for write := len(dst) - 1; write > read; read-- {
		b := dst[read]
		switch {
		case b < ' ' && textOutEscapes[b] != 0:
			dst[write], dst[write-1] = textOutEscapes[b], '\\'
			write -= 2
		case b == '\\' || b == delimiter:
			dst[write], dst[write-1] = b, '\\'
			write -= 2
		default:
			dst[write] = b
			write--
		}
	}
	return dst
}

// quoteCSV puts text in quotes that CSV would misread: a delimiter, quote or line end in it, the null marker, and the
// end marker as the only column.
func (e *CopyEncoder) quoteCSV(dst []byte, from int, force bool) []byte {
	o := &e.options
	text, escapes, need := dst[from:], 0, force
	for _, b := range text {
		switch b {
		case o.Quote, o.Escape:
			escapes++
			need = need || b == o.Quote
		case o.Delimiter, '\n', '\r':
			need = true
		}
	}
	if !need && string(text) != o.Null && !(len(e.columns) == 1 && string(text) == `\.`) {
		return dst
	}
	read := len(dst) - 1
	dst = slices.Grow(dst, escapes+2)[:len(dst)+escapes+2]
	write := len(dst) - 1
	dst[write] = o.Quote
	for write--; read >= from; read-- {
		b := dst[read]
		dst[write] = b
		write--
		if b == o.Quote || b == o.Escape {
			dst[write] = o.Escape
			write--
		}
	}
	dst[from] = o.Quote
	return dst
}
