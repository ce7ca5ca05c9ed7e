package pgcodec

import "bytes"

// readText reads a row of the text format.
func readText(d *CopyDecoder) ([][]byte, bool, error) {
	return d.row(findTextEnd, textEnd, splitText)
}

// findTextEnd finds the end of a line. A line end after a backslash belongs to the data.
func findTextEnd(d *CopyDecoder) int {
	for d.scan < len(d.buf) {
		i := d.indexEnd(d.buf[d.scan:])
		if i < 0 {
			d.scan = len(d.buf)
			return -1
		}
		end := d.scan + i
		switch {
		case d.escapedAt(end):
			d.scan = end + 1
			continue
		case d.eol == eolUnknown && !d.decideEnd(end):
			return -1
		case d.eol == eolCRLF && d.buf[end] == '\n' && end > d.at && d.buf[end-1] == '\r' && !d.escapedAt(end-1):
			return end - 1
		}
		return end
	}
	return -1
}

// indexEnd finds the next byte that may end a line.
func (d *CopyDecoder) indexEnd(b []byte) int {
	switch d.eol {
	case eolUnknown:
		return bytes.IndexAny(b, "\r\n")
	case eolCR:
		return bytes.IndexByte(b, '\r')
	}
	return bytes.IndexByte(b, '\n')
}

// escapedAt says whether an odd number of backslashes stands before a place in the line.
func (d *CopyDecoder) escapedAt(end int) bool {
	n := 0
	for i := end - 1; i >= d.at && d.buf[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// textEnd finds the end marker. Anywhere but alone in its line it is an error.
func textEnd(d *CopyDecoder, line []byte) (bool, error) {
	if len(line) == 2 && line[0] == '\\' && line[1] == '.' {
		return true, nil
	}
	return false, nil
}

// splitText cuts a line at the delimiters. Lines without a backslash, which are nearly all, are not copied.
func splitText(d *CopyDecoder, line []byte, header bool) error {
	if bytes.IndexByte(line, '\r') >= 0 || d.eol == eolCR && bytes.IndexByte(line, '\n') >= 0 {
		if err := d.strayEnds(line); err != nil {
			return err
		}
	}
	if d.columns == 0 && !header {
		if len(line) > 0 {
			return d.extra()
		}
		return nil
	}
	escapes := bytes.IndexByte(line, '\\') >= 0
	if escapes {
		d.reserve(len(line))
	}
	for i, more := 0, true; more; i++ {
		if i == d.columns && !header {
			return d.extra()
		}
		var field []byte
		if field, line, more = d.cutText(line, escapes); !more && i+1 < d.columns && !header {
			return d.missing(i + 1)
		}
		value, err := d.textField(field, escapes)
		if err != nil {
			return err
		}
		d.set(i, value, header)
	}
	return nil
}

// strayEnds refuses a line end inside a line that no backslash escapes.
func (d *CopyDecoder) strayEnds(line []byte) error {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '\r':
			return d.bareReturn()
		case '\n':
			return d.bareNewline()
		}
	}
	return nil
}

// reserve makes room for the fields of a line, so that it does not move while they are written.
func (d *CopyDecoder) reserve(n int) {
	if cap(d.room) < n {
		d.room = make([]byte, 0, 2*n)
	}
	d.room = d.room[:0]
}

// cutText splits off the first field, escapes still in it.
func (d *CopyDecoder) cutText(line []byte, escapes bool) (field, rest []byte, more bool) {
	if !escapes {
		i := bytes.IndexByte(line, d.options.Delimiter)
		if i < 0 {
			return line, nil, false
		}
		return line[:i], line[i+1:], true
	}
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case d.options.Delimiter:
			return line[:i], line[i+1:], true
		}
	}
	return line, nil, false
}

// textField compares a field with the markers, as it was sent, and resolves its escapes.
func (d *CopyDecoder) textField(field []byte, escapes bool) ([]byte, error) {
	switch {
	case string(field) == d.options.Null:
		return nil, nil
	case d.options.HasDefault && string(field) == d.options.Default:
		return defaultField, nil
	case !escapes || bytes.IndexByte(field, '\\') < 0:
		return field[:len(field):len(field)], nil
	}
	start := len(d.room)
	numeric := false // \nnn and \xnn can make anything
	for i := 0; i < len(field); i++ {
		if field[i] != '\\' {
			d.room = append(d.room, field[i])
			continue
		}
		if i+1 == len(field) {
			break // a backslash before the end of the data
		}
		if field[i+1] == '.' {
			return nil, d.fail("end-of-copy marker corrupt")
		}
		b, n := textEscape(field[i+1:])
		numeric = numeric || b == 0 || b >= 0x80 && n > 1 || n > 1
		d.room = append(d.room, b)
		i += n
	}
	value := d.room[start:len(d.room):len(d.room)]
	if numeric {
		return value, d.check(value)
	}
	return value, nil
}

// textEscapes are the letters after a backslash that stand for control characters.
var textEscapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// textEscape gives the byte that the text after a backslash stands for, and how many bytes it took.
func textEscape(src []byte) (b byte, n int) {
	switch c := src[0]; {
	case c-'0' <= 7:
		for n < 3 && n < len(src) && src[n]-'0' <= 7 {
			b = b<<3 | (src[n] - '0')
			n++
		}
		return b, n
	case c == 'x' && len(src) > 1:
		n = 1
		for n < 3 && n < len(src) {
			digit, ok := hexValue(src[n])
			if !ok {
				break
			}
			b = b<<4 | digit
			n++
		}
		if n > 1 {
			return b, n
		}
		return 'x', 1
	case textEscapes[c] != 0:
		return textEscapes[c], 1
	}
	return src[0], 1
}
