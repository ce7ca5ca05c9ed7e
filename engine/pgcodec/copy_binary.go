package pgcodec

import "encoding/binary"

// copySignature begins COPY's binary format; flags and the length of an extension follow, four bytes each.
const copySignature = "PGCOPY\n\xff\r\n\x00"

// The flags of the header: the lower half may be ignored, of the upper half only OIDs were ever given out.
const (
	copyFlagOIDs     = 1 << 16
	copyFlagsUnknown = 0xfffe0000
)

// copyHeaderBytes is the size of the header without an extension.
const copyHeaderBytes = len(copySignature) + 8

// readBinary reads a row of the binary format.
func readBinary(d *CopyDecoder) ([][]byte, bool, error) {
	if !d.preamble {
		if ok, err := d.readPreamble(); !ok || err != nil {
			return nil, false, err
		}
	}
	src := d.buf[d.at:]
	if len(src) == 0 && d.finished { // pgx sends no trailer, and PostgreSQL takes the end of the data for it
		d.ended = true
		return nil, false, nil
	}
	if len(src) < 2 {
		return nil, false, d.cutShort()
	}
	d.line = d.lines + 1
	count := int(int16(binary.BigEndian.Uint16(src)))
	if count == -1 {
		d.ended = true
		d.at += 2
		return nil, false, d.afterEnd(src[2:])
	}
	if count != d.columns {
		return nil, false, d.fail("row field count is %d, expected %d", count, d.columns)
	}
	size, ok, err := d.splitBinary(src)
	if !ok || err != nil {
		return nil, false, err
	}
	d.at += size
	d.lines++
	return d.fields, true, nil
}

// splitBinary finds the fields of a row; ok is false while not all of it is there.
func (d *CopyDecoder) splitBinary(src []byte) (size int, ok bool, err error) {
	size = 2
	for i := range d.columns {
		if len(src) < size+4 {
			return 0, false, d.cutShort()
		}
		n := int(int32(binary.BigEndian.Uint32(src[size:])))
		size += 4
		switch {
		case n == -1:
			d.fields[i] = nil
			continue
		case n < -1:
			return 0, false, d.fail("invalid field size")
		case n > len(src)-size:
			return 0, false, d.cutShort()
		}
		d.fields[i] = src[size : size+n : size+n]
		size += n
	}
	return size, true, nil
}

// readPreamble reads the header and its extension.
func (d *CopyDecoder) readPreamble() (ok bool, err error) {
	src := d.buf[d.at:]
	d.line = 1
	for i := range min(len(src), len(copySignature)) {
		if src[i] != copySignature[i] {
			return false, d.fail("COPY file signature not recognized")
		}
	}
	if len(src) < copyHeaderBytes {
		if d.finished && len(src) < len(copySignature) {
			return false, d.fail("COPY file signature not recognized")
		}
		return false, d.cutShort()
	}
	flags := binary.BigEndian.Uint32(src[len(copySignature):])
	extension := int64(int32(binary.BigEndian.Uint32(src[len(copySignature)+4:])))
	switch {
	case flags&copyFlagOIDs != 0:
		return false, d.fail("invalid COPY file header (WITH OIDS)")
	case flags&copyFlagsUnknown != 0:
		return false, d.fail("unrecognized critical flags in COPY file header")
	case extension < 0:
		return false, d.fail("invalid COPY file header (missing length)")
	case int64(len(src)) < int64(copyHeaderBytes)+extension:
		return false, d.cutShort()
	}
	d.at += copyHeaderBytes + int(extension)
	d.preamble = true
	return true, nil
}

// cutShort is nil while more data may come. A row that is not whole at the end of the data is an error; a client that
// broke off does not get that far, since it sends no CopyDone.
func (d *CopyDecoder) cutShort() error {
	if !d.finished {
		return nil
	}
	return d.fail("unexpected EOF in COPY data")
}
