package pgcodec

import "bytes"

// readCSV reads a row of the CSV format.
func readCSV(d *CopyDecoder) ([][]byte, bool, error) {
	fields, ok, err := d.row(findCSVEnd, csvEnd, splitCSV)
	return fields, ok, err
}

// findCSVEnd finds the end of a line outside of quotes. Where it stops without one it remembers whether it is inside.
func findCSVEnd(d *CopyDecoder) int {
	quote, escape := d.options.Quote, d.options.Escape
	if escape == quote {
		escape = 0 // a doubled quote goes out of the quotes and in again
	}
	for d.scan < len(d.buf) {
		if !d.quoted {
			end := d.endOrQuote()
			if end >= 0 || end == needMore {
				return end
			}
			continue
		}
		if escape == 0 {
			i := bytes.IndexByte(d.buf[d.scan:], quote)
			if i < 0 {
				d.scan = len(d.buf)
				return -1
			}
			d.scan += i + 1
			d.quoted = false
			continue
		}
		switch b := d.buf[d.scan]; {
		case d.escaped:
			d.escaped = false
		case b == escape:
			d.escaped = true
		case b == quote:
			d.quoted = false
		}
		d.scan++
	}
	return -1
}

// What endOrQuote gives besides a place: the scan goes on inside quotes, or at the end of the buffer.
const (
	needMore = -1
	inQuotes = -2
)

// endOrQuote goes to the line's end, or into the next quotes, whichever comes first.
func (d *CopyDecoder) endOrQuote() int {
	rest := d.buf[d.scan:]
	end := d.indexEnd(rest)
	if end >= 0 {
		rest = rest[:end]
	}
	if i := bytes.IndexByte(rest, d.options.Quote); i >= 0 {
		d.quoted, d.escaped = true, false
		d.scan += i + 1
		return inQuotes
	}
	if end < 0 {
		d.scan = len(d.buf)
		return needMore
	}
	end += d.scan
	if d.eol == eolUnknown && !d.decideEnd(end) {
		d.scan = end
		return needMore
	}
	if d.eol == eolCRLF && d.buf[end] == '\n' && end > d.at && d.buf[end-1] == '\r' {
		return end - 1
	}
	return end
}

// csvEnd finds the end marker, which in CSV means something only alone in its line, and an end inside quotes.
func csvEnd(d *CopyDecoder, line []byte) (bool, error) {
	if d.quoted {
		return false, d.fail("unterminated CSV quoted field")
	}
	if len(line) == 2 && line[0] == '\\' && line[1] == '.' {
		return true, nil
	}
	return false, nil
}

// splitCSV cuts a line at the delimiters outside of quotes.
func splitCSV(d *CopyDecoder, line []byte, header bool) error {
	if d.columns == 0 && !header {
		if len(line) > 0 {
			return d.extra()
		}
		return nil
	}
	quotes := bytes.IndexByte(line, d.options.Quote) >= 0
	if quotes {
		d.reserve(len(line))
	}
	if err := d.strayCSVEnds(line, quotes); err != nil {
		return err
	}
	for i, more := 0, true; more; i++ {
		if i == d.columns && !header {
			return d.extra()
		}
		var field []byte
		var quoted bool
		if quotes {
			field, line, quoted, more = d.cutQuoted(line)
		} else {
			field, line, more = d.cutText(line, false)
		}
		if !more && i+1 < d.columns && !header {
			return d.missing(i + 1)
		}
		d.set(i, d.csvField(i, field, quoted, header), header)
	}
	return nil
}

// strayCSVEnds refuses line ends outside of quotes that are not the kind that ends lines.
func (d *CopyDecoder) strayCSVEnds(line []byte, quotes bool) error {
	if bytes.IndexByte(line, '\r') < 0 && bytes.IndexByte(line, '\n') < 0 {
		return nil
	}
	inside, escaped := false, false
	for _, b := range line {
		switch {
		case escaped:
			escaped = false
		case inside && b == d.options.Escape && d.options.Escape != d.options.Quote:
			escaped = true
		case quotes && b == d.options.Quote:
			inside = !inside
		case b == '\r' && !inside:
			return d.bareReturn()
		case b == '\n' && !inside:
			return d.bareNewline()
		}
	}
	return nil
}

// cutQuoted splits off the first field with its quotes resolved. Quotes may open and close anywhere in it.
func (d *CopyDecoder) cutQuoted(line []byte) (field, rest []byte, quoted, more bool) {
	quote, escape, delimiter := d.options.Quote, d.options.Escape, d.options.Delimiter
	start, inside := len(d.room), false
	i := 0
	for ; i < len(line); i++ {
		b := line[i]
		switch {
		case inside && b == escape && i+1 < len(line) && (line[i+1] == escape || line[i+1] == quote):
			i++
			d.room = append(d.room, line[i])
		case b == quote:
			inside, quoted = !inside, true
		case b == delimiter && !inside:
			return d.room[start:len(d.room):len(d.room)], line[i+1:], quoted, true
		default:
			d.room = append(d.room, b)
		}
	}
	return d.room[start:len(d.room):len(d.room)], nil, quoted, false
}

// csvField compares a field with the markers. Quotes keep it from being one, unless FORCE_NULL says otherwise.
func (d *CopyDecoder) csvField(i int, field []byte, quoted, header bool) []byte {
	isNull := string(field) == d.options.Null
	switch {
	case header:
		if isNull && !quoted {
			return nil
		}
	case isNull && !quoted && !d.notNull[i], isNull && quoted && d.forceNull[i]:
		return nil
	case d.options.HasDefault && !quoted && string(field) == d.options.Default:
		return defaultField
	}
	if field == nil {
		return []byte{}
	}
	return field[:len(field):len(field)]
}
