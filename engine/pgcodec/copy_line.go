package pgcodec

import (
	"bytes"
	"errors"

	"sluice/engine/pgerr"
)

// lineEnd is how lines end. The first line decides for all, as in PostgreSQL.
type lineEnd uint8

// The line ends.
const (
	eolUnknown lineEnd = iota
	eolLF
	eolCRLF
	eolCR
)

// nextLine takes the next line off the buffer, without its end. find looks for the end from scan on: the place of the
// byte that ends the line, -1 when it is not there yet.
func (d *CopyDecoder) nextLine(find func(d *CopyDecoder) int) (line []byte, ok bool, err error) {
	end := find(d)
	if end < 0 {
		if !d.finished || d.at == len(d.buf) {
			return nil, false, nil
		}
		line = d.buf[d.at:]
		if d.eol == eolCRLF || d.eol == eolUnknown {
			line = bytes.TrimSuffix(line, []byte{'\r'}) // the last line's end, cut in two
		}
		d.at, d.scan = len(d.buf), len(d.buf)
	} else {
		line = d.buf[d.at:end]
		next := end + 1
		switch {
		case d.eol == eolCRLF && d.buf[end] == '\r':
			next++
		case d.eol == eolCRLF:
			d.line, d.shown = d.lines+1, line
			return nil, false, d.bareNewline()
		}
		d.at, d.scan = next, next
	}
	d.lines++
	d.line, d.shown = d.lines, line
	return line, true, nil
}

// decideEnd looks at the first line end, at a place in the buffer. False when the byte after a carriage return is
// still to come.
func (d *CopyDecoder) decideEnd(end int) bool {
	switch {
	case d.buf[end] == '\n':
		d.eol = eolLF
	case end+1 < len(d.buf) && d.buf[end+1] == '\n':
		d.eol = eolCRLF
	case end+1 < len(d.buf) || d.finished:
		d.eol = eolCR
	default:
		return false
	}
	return true
}

// bareNewline is the error for a line feed where lines end otherwise.
func (d *CopyDecoder) bareNewline() error {
	if d.options.Format == CopyCSV {
		return d.fail("unquoted newline found in data").WithHint("Use quoted CSV field to represent newline.")
	}
	return d.fail("literal newline found in data").WithHint(`Use "\n" to represent newline.`)
}

// bareReturn is the error for a carriage return where lines end otherwise.
func (d *CopyDecoder) bareReturn() error {
	if d.options.Format == CopyCSV {
		return d.fail("unquoted carriage return found in data").WithHint("Use quoted CSV field to represent carriage return.")
	}
	return d.fail("literal carriage return found in data").WithHint(`Use "\r" to represent carriage return.`)
}

// check refuses a line that is not UTF-8 or holds a zero byte.
func (d *CopyDecoder) check(line []byte) error {
	return d.placed(checkUTF8(line))
}

// placed adds the line to an error that has no place yet.
func (d *CopyDecoder) placed(err error) error {
	if err == nil {
		return nil
	}
	var e *pgerr.Error
	if errors.As(err, &e) && e.Where == "" {
		e.Where = d.context()
	}
	return err
}

// missing is the error for a row with too few fields.
func (d *CopyDecoder) missing(column int) error {
	return d.fail("missing data for column \"%s\"", d.columnName(column))
}

// extra is the error for a row with too many fields.
func (d *CopyDecoder) extra() error {
	return d.fail("extra data after last expected column")
}

// splitter cuts a line into fields. With header set it takes any number of them and no marker of the columns' options.
type splitter func(d *CopyDecoder, line []byte, header bool) error

// row handles what text and CSV have in common: the header, the check of the encoding, the end of the data.
func (d *CopyDecoder) row(find func(*CopyDecoder) int, isEnd func(*CopyDecoder, []byte) (bool, error), split splitter) ([][]byte, bool, error) {
	for {
		line, ok, err := d.nextLine(find)
		if !ok || err != nil {
			return nil, false, err
		}
		end, err := isEnd(d, line)
		if end || err != nil {
			d.ended = err == nil
			return nil, false, err
		}
		if d.header {
			d.header = false
			if err := d.readHeader(line, split); err != nil {
				return nil, false, err
			}
			continue
		}
		if err := d.check(line); err != nil {
			return nil, false, err
		}
		if err := split(d, line, false); err != nil {
			return nil, false, err
		}
		return d.fields, true, nil
	}
}

// readHeader skips the first line, or compares it with the columns' names.
func (d *CopyDecoder) readHeader(line []byte, split splitter) error {
	if d.options.Header != HeaderMatch {
		return nil
	}
	saved := d.fields
	d.fields = d.fields[:0:0]
	err := split(d, line, true)
	got := d.fields
	d.fields = saved
	if err != nil {
		return err
	}
	if len(got) != d.columns {
		return d.fail("wrong number of fields in header line: got %d, expected %d", len(got), d.columns)
	}
	for i, name := range got {
		switch want := d.columnName(i); {
		case name == nil:
			return d.fail("column name mismatch in header line field %d: got null value (\"%s\"), expected \"%s\"", i+1, d.options.Null, want)
		case string(name) != want:
			return d.fail("column name mismatch in header line field %d: got \"%s\", expected \"%s\"", i+1, name, want)
		}
	}
	return nil
}

// set stores a field, in the header's list or in the row's.
func (d *CopyDecoder) set(i int, field []byte, header bool) {
	if header {
		d.fields = append(d.fields, field)
		return
	}
	d.fields[i] = field
}
