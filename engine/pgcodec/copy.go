package pgcodec

import (
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// CopyFormat is COPY's FORMAT.
type CopyFormat uint8

// The formats of COPY.
const (
	CopyText CopyFormat = iota
	CopyCSV
	CopyBinary
)

// HeaderMode is COPY's HEADER.
type HeaderMode uint8

// What is done about a first line with column names.
const (
	HeaderNone  HeaderMode = iota
	HeaderLine             // written; skipped when read
	HeaderMatch            // read and compared with the columns
)

// CopyOptions are the options of a COPY and what its error messages name. NewCopyOptions has the defaults.
type CopyOptions struct {
	Format        CopyFormat
	Delimiter     byte
	Quote         byte // CSV
	Escape        byte // CSV
	Null          string
	Default       string // text that stands for a column's default, if HasDefault; see IsDefault
	HasDefault    bool
	Header        HeaderMode
	ForceQuote    []int // CSV, COPY TO: columns, counted from 0
	ForceQuoteAll bool
	ForceNotNull  []int // CSV, COPY FROM
	ForceNull     []int // CSV, COPY FROM
	Encoding      string
	Table         string   // for the context of errors: `COPY t, line 3`; empty = no context
	ColumnNames   []string // for HEADER and for errors
}

// NewCopyOptions gives a format's defaults.
func NewCopyOptions(format CopyFormat) CopyOptions {
	o := CopyOptions{Format: format, Delimiter: '\t', Null: `\N`}
	if format == CopyCSV {
		o.Delimiter, o.Quote, o.Escape, o.Null = ',', '"', '"', ""
	}
	return o
}

// copyDelimitersRefused are what PostgreSQL refuses as a delimiter of text format: they mean something else there.
const copyDelimitersRefused = "\\.abcdefghijklmnopqrstuvwxyz0123456789"

// Check refuses options that do not go together, in PostgreSQL's words.
func (o *CopyOptions) Check() error {
	csv, special := o.Format == CopyCSV, string([]byte{o.Delimiter, o.Quote})
	markers := []string{o.Null}
	if o.HasDefault {
		markers = append(markers, o.Default)
	}
	refuse := func(code, message string) error { return pgerr.New(code, message) }
	switch {
	case o.Format == CopyBinary && o.Header != HeaderNone:
		return refuse(pgerrcode.FeatureNotSupported, "cannot specify HEADER in BINARY mode")
	case o.Format == CopyBinary && o.HasDefault:
		return refuse(pgerrcode.SyntaxError, "cannot specify DEFAULT in BINARY mode")
	case o.Format == CopyBinary:
		return nil
	case o.Delimiter == '\n' || o.Delimiter == '\r':
		return refuse(pgerrcode.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return")
	case o.Delimiter == 0 || o.Delimiter >= 0x80:
		return refuse(pgerrcode.FeatureNotSupported, "COPY delimiter must be a single one-byte character")
	case !csv && strings.IndexByte(copyDelimitersRefused, o.Delimiter) >= 0:
		return refuse(pgerrcode.InvalidParameterValue, fmt.Sprintf("COPY delimiter cannot be %q", string(o.Delimiter)))
	case csv && o.Delimiter == o.Quote:
		return refuse(pgerrcode.InvalidParameterValue, "COPY delimiter and quote must be different")
	}
	for i, marker := range markers {
		word := [...]string{"null", "default"}[i]
		switch {
		case strings.ContainsAny(marker, "\r\n"):
			return refuse(pgerrcode.InvalidParameterValue, "COPY "+word+" representation cannot use newline or carriage return")
		case strings.IndexByte(marker, special[0]) >= 0:
			return refuse(pgerrcode.FeatureNotSupported, "COPY delimiter character must not appear in the "+strings.ToUpper(word)+" specification")
		case csv && strings.IndexByte(marker, special[1]) >= 0:
			return refuse(pgerrcode.FeatureNotSupported, "CSV quote character must not appear in the "+strings.ToUpper(word)+" specification")
		}
	}
	if o.HasDefault && o.Default == o.Null {
		return refuse(pgerrcode.InvalidParameterValue, "NULL specification and DEFAULT specification cannot be the same")
	}
	return nil
}

// copyLineMax is how long one row may be, PostgreSQL's own limit (MaxAllocSize).
const copyLineMax = 1<<30 - 1

// copyShownMax is how much of a row or field an error's context shows.
const copyShownMax = 100

// defaultField is what CopyDecoder.Next gives for the text of the DEFAULT option.
var defaultField = []byte("DEFAULT")

// IsDefault says whether a field of CopyDecoder.Next stands for the column's default value.
func IsDefault(field []byte) bool {
	return len(field) == len(defaultField) && &field[0] == &defaultField[0]
}

// rowReader takes one row off the decoder's buffer.
type rowReader func(d *CopyDecoder) (fields [][]byte, ok bool, err error)

// CopyDecoder cuts COPY FROM's data into fields. Feed it with Write, in pieces that may end anywhere, and call Next
// until it gives nothing; after the last piece call Finish, and Next until it gives nothing once more.
type CopyDecoder struct {
	options  CopyOptions
	columns  int
	read     rowReader
	buf      []byte
	at       int // start of the row that is read next
	scan     int // up to here there is no end of that row
	finished bool
	ended    bool // \. or the binary trailer was seen
	err      error

	line      int // of the row last read, from 1
	lines     int // rows passed, a header included; line ends in quotes do not count, as in PostgreSQL
	shown     []byte
	fields    [][]byte
	room      []byte // what the fields with escapes point to
	eol       lineEnd
	quoted    bool // CSV: scan is inside quotes
	escaped   bool // CSV: the byte before scan escapes the next
	header    bool // still to be read
	notNull   []bool
	forceNull []bool
	preamble  bool // binary: the header has been read
}

// NewCopyDecoder prepares for rows of so many columns. The options have passed Check.
func NewCopyDecoder(o CopyOptions, columns int) *CopyDecoder {
	d := &CopyDecoder{options: o, columns: columns, fields: make([][]byte, columns), header: o.Header != HeaderNone}
	d.notNull, d.forceNull = marks(o.ForceNotNull, columns), marks(o.ForceNull, columns)
	switch o.Format {
	case CopyCSV:
		d.read = readCSV
	case CopyBinary:
		d.read = readBinary
	default:
		d.read = readText
	}
	return d
}

// marks turns a list of columns into a flag for each.
func marks(list []int, columns int) []bool {
	m := make([]bool, columns)
	for _, i := range list {
		if i >= 0 && i < columns {
			m[i] = true
		}
	}
	return m
}

// Write takes bytes of CopyData; p may be reused afterwards. It fails with 54000 when a row gets too long.
func (d *CopyDecoder) Write(p []byte) error {
	if d.ended {
		return d.afterEnd(p)
	}
	if d.at > 0 {
		n := copy(d.buf, d.buf[d.at:])
		d.buf = d.buf[:n]
		d.scan -= d.at
		d.at = 0
	}
	if len(d.buf)+len(p) > copyLineMax && len(d.buf) > copyLineMax/2 {
		return pgerr.New(pgerrcode.ProgramLimitExceeded, "row of COPY data is too long").
			WithDetail(fmt.Sprintf("A row cannot be longer than %d bytes.", copyLineMax))
	}
	d.buf = append(d.buf, p...)
	return nil
}

// afterEnd says what data after the end marker means: PostgreSQL drops it in text and CSV.
func (d *CopyDecoder) afterEnd(p []byte) error {
	if d.options.Format == CopyBinary && len(p) > 0 {
		d.err = d.fail("received copy data after EOF marker")
		return d.err
	}
	return nil
}

// Finish says that no more data comes. What is left in the buffer is read by Next.
func (d *CopyDecoder) Finish() error {
	d.finished = true
	return d.err
}

// Next gives the fields of the next row: nil = NULL, IsDefault = the column's default. ok is false when more data is
// needed, or after the last row. The fields live until the next call of Next or Write. An error is final.
func (d *CopyDecoder) Next() (fields [][]byte, ok bool, err error) {
	if d.err != nil {
		return nil, false, d.err
	}
	if d.ended {
		return nil, false, nil
	}
	fields, ok, err = d.read(d)
	d.err = err
	return fields, ok, err
}

// Line is the number of the line, or in binary of the row, that Next gave last; 1 is the first, a header included.
func (d *CopyDecoder) Line() int { return d.line }

// fail makes the error for data that breaks the format, with the line as context.
func (d *CopyDecoder) fail(format string, args ...any) *pgerr.Error {
	return pgerr.Newf(pgerrcode.BadCopyFileFormat, format, args...).WithWhere(d.context())
}

// context is the place of an error: the line with its text.
func (d *CopyDecoder) context() string {
	switch {
	case d.options.Table == "":
		return ""
	case d.options.Format == CopyBinary || d.shown == nil:
		return fmt.Sprintf("COPY %s, line %d", d.options.Table, d.line)
	}
	return fmt.Sprintf("COPY %s, line %d: \"%s\"", d.options.Table, d.line, shorten(d.shown))
}

// Where is the place of an error in a field of the last row, for errors of conversion that the caller finds.
func (d *CopyDecoder) Where(column int, field []byte) string {
	switch {
	case d.options.Table == "":
		return ""
	case d.options.Format == CopyBinary:
		return fmt.Sprintf("COPY %s, line %d, column %s", d.options.Table, d.line, d.columnName(column))
	case field == nil:
		return fmt.Sprintf("COPY %s, line %d, column %s: null input", d.options.Table, d.line, d.columnName(column))
	}
	return fmt.Sprintf("COPY %s, line %d, column %s: \"%s\"", d.options.Table, d.line, d.columnName(column), shorten(field))
}

// columnName is a column's name, or its number where none was given.
func (d *CopyDecoder) columnName(i int) string {
	if i < len(d.options.ColumnNames) {
		return d.options.ColumnNames[i]
	}
	return fmt.Sprint(i + 1)
}

// shorten cuts long text for a context, between characters.
func shorten(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), copyShownMax+4)]), "")
	if len(s) <= copyShownMax && len(b) <= copyShownMax {
		return s
	}
	cut := 0
	for i := range s {
		if i > copyShownMax {
			break
		}
		cut = i
	}
	return s[:cut] + "..."
}
