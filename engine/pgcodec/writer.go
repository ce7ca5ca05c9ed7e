package pgcodec

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// A textSetter writes a value given in text format into a row; a binarySetter one in binary format.
type (
	textSetter   = func(w *VectorWriter, row int, src []byte) error
	binarySetter = func(w *VectorWriter, row int, src []byte) error
)

// setters makes the table's entry of a type whose setters read what they need from the writer.
func setters(text textSetter, binary binarySetter) func(*LogicalType) (textSetter, binarySetter) {
	return func(*LogicalType) (textSetter, binarySetter) { return text, binary }
}

// VectorWriter writes values of COPY FROM straight into the memory of a flat vector. Values without errors allocate
// nothing.
type VectorWriter struct {
	typ      *LogicalType
	oid      uint32
	settings *Settings
	data     unsafe.Pointer
	validity unsafe.Pointer
	assign   func(row int, b []byte)
	text     textSetter
	binary   binarySetter
	room     []byte // for values that have to be built before they are assigned
	words    string // the type's name in messages
	least    int64  // integers: the range
	most     int64
}

// Writable says whether a type's values are written into its own vectors. Those of lists, structs, maps, unions, enums,
// BIGNUM and the rarer time stamps are not.
func Writable(t *LogicalType) bool {
	return !t.nested() && rowOf(t).write != nil
}

// NewVectorWriter prepares for a column of v.Type and points to v's memory. assign stores a VARCHAR, BLOB or BIT and
// copies what it is given. Where the type is not Writable, assign gets text for a VARCHAR vector, out of which FromText
// makes the value.
func NewVectorWriter(v *Vector, s *Settings, assign func(row int, b []byte)) *VectorWriter {
	if s == nil {
		s = DefaultSettings()
	}
	t := v.Type
	oid := Describe("", t).OID
	w := &VectorWriter{typ: t, oid: oid, settings: s, assign: assign, words: wordsOf(oid), data: v.Data, validity: v.Validity}
	switch {
	case Writable(t):
		w.text, w.binary = rowOf(t).write(t)
	case t.nested() && !t.asJSON():
		w.text, w.binary = setTextList, setBinCast
	default:
		w.text, w.binary = setText, setBinCast
	}
	limits := intLimits[t.ID]
	w.least, w.most = limits[0], limits[1]
	return w
}

// setTextList writes an array literal as DuckDB spells a list.
func setTextList(w *VectorWriter, row int, src []byte) error {
	v, err := DecodeText(w.oid, src, w.settings)
	if err == nil {
		w.room = v.AppendDuck(w.room[:0])
		w.assign(row, w.room)
	}
	return err
}

// setBinCast writes a value in binary format as text that DuckDB casts.
func setBinCast(w *VectorWriter, row int, src []byte) error {
	v, err := DecodeBinary(w.oid, src)
	if err == nil {
		w.room = v.AppendDuck(w.room[:0])
		w.assign(row, w.room)
	}
	return err
}

// Reset points to the memory of another vector. validity may be nil as long as SetNull is not called; a row set with
// SetText or SetBinary has to be valid already, as all rows of a fresh or reset chunk are.
func (w *VectorWriter) Reset(data, validity unsafe.Pointer) {
	w.data, w.validity = data, validity
}

// SetText writes a value in text format.
func (w *VectorWriter) SetText(row int, src []byte) error { return w.text(w, row, src) }

// SetBinary writes a value in binary format.
func (w *VectorWriter) SetBinary(row int, src []byte) error { return w.binary(w, row, src) }

// SetNull writes a NULL.
func (w *VectorWriter) SetNull(row int) {
	word := (*uint64)(unsafe.Add(w.validity, row>>6<<3))
	*word &^= 1 << (uint(row) & 63)
}

// put stores a value of fixed size.
func put[T any](w *VectorWriter, row int, v T) {
	*(*T)(unsafe.Add(w.data, uintptr(row)*unsafe.Sizeof(v))) = v
}

// setTextBool writes a BOOLEAN.
func setTextBool(w *VectorWriter, row int, src []byte) error {
	b, f := parseBool(src)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, b)
	return nil
}

// setBinBool writes a BOOLEAN.
func setBinBool(w *VectorWriter, row int, src []byte) error {
	if len(src) != 1 {
		return errWrongSize(w.words, len(src))
	}
	put(w, row, src[0] != 0)
	return nil
}

// setTextInt writes an integer of up to 64 bits.
func setTextInt[T integer](w *VectorWriter, row int, src []byte) error {
	n, f := parseInt(src, w.least, w.most)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, T(n))
	return nil
}

// setBinInt writes an integer of up to 64 bits from one of the size that the column is described with.
func setBinInt[T integer](w *VectorWriter, row int, src []byte) error {
	n, ok := bigEndian(src)
	if !ok || len(src) != int(rowOf(w.typ).len) {
		return errWrongSize(w.words, len(src))
	}
	if n < w.least || n > w.most {
		return pgerr.Newf(pgerrcode.NumericValueOutOfRange, `value "%d" is out of range for type %s`, n, w.words)
	}
	put(w, row, T(n))
	return nil
}

// hugeNames are the DuckDB types whose range is narrower than numeric's.
var hugeNames = map[Duck]string{UBigInt: "ubigint", HugeInt: "hugeint", UHugeInt: "uhugeint"}

// setTextHuge writes a UBIGINT, HUGEINT or UHUGEINT; fractions are rounded as numeric(n,0) rounds them.
func setTextHuge(w *VectorWriter, row int, src []byte) error {
	d, f := scanDecimal(src)
	if f != parsed {
		return f.error(w.words, src)
	}
	return w.setHuge(row, &d, src)
}

// setBinHuge does so from numeric's binary format.
func setBinHuge(w *VectorWriter, row int, src []byte) error {
	var room [numericRoom]byte
	n, err := scanNumericBinary(src, room[:0])
	if err != nil {
		return err
	}
	return w.setHuge(row, &n.decimal, nil)
}

// setHuge writes the number into the type's physical form. src is its text, where there is one.
func (w *VectorWriter) setHuge(row int, d *decimalText, src []byte) error {
	n, ok := d.unsigned128()
	switch {
	case d.special != 0 || !ok:
	case w.typ.ID == UBigInt && n.hi == 0 && (!d.negative || n.lo == 0):
		put(w, row, n.lo)
		return nil
	case w.typ.ID == UHugeInt && (!d.negative || n == uint128{}):
		put(w, row, hugeint{n.lo, int64(n.hi)})
		return nil
	case w.typ.ID == HugeInt && (n.hi < 1<<63 || d.negative && n == uint128{1 << 63, 0}):
		put(w, row, n.signed(d.negative))
		return nil
	}
	if src == nil && d.special == 0 {
		src = d.appendText(nil)
	}
	return pgerr.Newf(pgerrcode.NumericValueOutOfRange, `value "%s" is out of range for type %s`, src, hugeNames[w.typ.ID])
}

// unsigned128 gives the absolute value, rounded to a whole number; false when it exceeds 128 bits.
func (d *decimalText) unsigned128() (n uint128, ok bool) {
	if d.whole > uint128Digits {
		return n, d.isZero()
	}
	if d.whole < uint128Digits {
		return d.unscaled(0)
	}
	for i := range d.whole { // 39 digits: the last one may overflow
		var next uint128
		if next, ok = n.mul10addChecked(d.digitOrZero(i)); !ok {
			return n, false
		}
		n = next
	}
	if d.digitOrZero(d.whole) >= 5 {
		if n == (uint128{math.MaxUint64, math.MaxUint64}) {
			return n, false
		}
		n = n.add1()
	}
	return n, true
}

// setTextDecimal writes a DECIMAL.
func setTextDecimal(w *VectorWriter, row int, src []byte) error {
	d, f := scanDecimal(src)
	if f != parsed {
		return f.error(w.words, src)
	}
	return w.setDecimal(row, &d)
}

// setBinDecimal writes a DECIMAL.
func setBinDecimal(w *VectorWriter, row int, src []byte) error {
	var room [numericRoom]byte
	n, err := scanNumericBinary(src, room[:0])
	if err != nil {
		return err
	}
	return w.setDecimal(row, &n.decimal)
}

// setDecimal rounds to the scale and writes the physical form that the width has.
func (w *VectorWriter) setDecimal(row int, d *decimalText) error {
	n, ok := d.unscaled(int(w.typ.Scale))
	if d.special != 0 || !ok || !n.less(decimalLimits[w.typ.Width]) {
		return w.decimalOverflow(d)
	}
	h := n.signed(d.negative)
	switch w.typ.decimalBytes() {
	case 2:
		put(w, row, int16(h.lower))
	case 4:
		put(w, row, int32(h.lower))
	case 8:
		put(w, row, int64(h.lower))
	default:
		put(w, row, h)
	}
	return nil
}

// decimalOverflow is PostgreSQL's error for a value that the type modifier does not allow.
func (w *VectorWriter) decimalOverflow(d *decimalText) error {
	width, scale := w.typ.Width, w.typ.Scale
	detail := fmt.Sprintf("A field with precision %d, scale %d must round to an absolute value less than %s%d.", width, scale, "10^", width-scale)
	switch {
	case d.special == 'n':
		detail = fmt.Sprintf("A field with precision %d, scale %d cannot hold NaN.", width, scale)
	case d.special == 'i':
		detail = fmt.Sprintf("A field with precision %d, scale %d cannot hold an infinite value.", width, scale)
	case width == scale:
		detail = fmt.Sprintf("A field with precision %d, scale %d must round to an absolute value less than 1.", width, scale)
	}
	return pgerr.New(pgerrcode.NumericValueOutOfRange, "numeric field overflow").WithDetail(detail)
}

// setTextFloat4 writes a FLOAT.
func setTextFloat4(w *VectorWriter, row int, src []byte) error {
	n, f := parseFloat(src, 32)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, float32(n))
	return nil
}

// setBinFloat4 writes a FLOAT.
func setBinFloat4(w *VectorWriter, row int, src []byte) error {
	if len(src) != 4 {
		return errWrongSize(w.words, len(src))
	}
	put(w, row, binary.BigEndian.Uint32(src))
	return nil
}

// setTextFloat8 writes a DOUBLE.
func setTextFloat8(w *VectorWriter, row int, src []byte) error {
	n, f := parseFloat(src, 64)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, n)
	return nil
}

// setBinFloat8 writes a DOUBLE.
func setBinFloat8(w *VectorWriter, row int, src []byte) error {
	if len(src) != 8 {
		return errWrongSize(w.words, len(src))
	}
	put(w, row, binary.BigEndian.Uint64(src))
	return nil
}

// setText writes a VARCHAR in both formats, if it is UTF-8: DuckDB's own checks do not cover vectors.
func setText(w *VectorWriter, row int, src []byte) error {
	if err := checkUTF8(src); err != nil {
		return err
	}
	w.assign(row, src)
	return nil
}

// setTextBytea writes a BLOB.
func setTextBytea(w *VectorWriter, row int, src []byte) (err error) {
	if w.room, err = parseBytea(w.room[:0], src); err != nil {
		return err
	}
	w.assign(row, w.room)
	return nil
}

// setBinBytea writes a BLOB.
func setBinBytea(w *VectorWriter, row int, src []byte) error {
	w.assign(row, src)
	return nil
}

// setTextBit writes a BIT.
func setTextBit(w *VectorWriter, row int, src []byte) (err error) {
	if w.room, err = parseBit(w.room[:0], src); err != nil {
		return err
	}
	w.assign(row, w.room)
	return nil
}

// setBinBit writes a BIT.
func setBinBit(w *VectorWriter, row int, src []byte) (err error) {
	if w.room, err = scanBitBinary(w.room[:0], src); err != nil {
		return err
	}
	w.assign(row, w.room)
	return nil
}

// setTextDate writes a DATE.
func setTextDate(w *VectorWriter, row int, src []byte) error {
	days, f := parseDate(src, w.settings)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, days)
	return nil
}

// setBinDate writes a DATE.
func setBinDate(w *VectorWriter, row int, src []byte) error {
	days, err := scanDate(src)
	if err == nil {
		put(w, row, days)
	}
	return err
}

// setTextTime writes a TIME.
func setTextTime(w *VectorWriter, row int, src []byte) error {
	micros, f := parseTime(src, w.settings)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, micros)
	return nil
}

// setBinTime writes a TIME.
func setBinTime(w *VectorWriter, row int, src []byte) error {
	micros, err := scanTime(src)
	if err == nil {
		put(w, row, micros)
	}
	return err
}

// setTextTimeTZ writes a TIMETZ.
func setTextTimeTZ(w *VectorWriter, row int, src []byte) error {
	bits, f := parseTimeTZ(src, w.settings)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, bits)
	return nil
}

// setBinTimeTZ writes a TIMETZ.
func setBinTimeTZ(w *VectorWriter, row int, src []byte) error {
	bits, err := scanTimeTZ(src)
	if err == nil {
		put(w, row, bits)
	}
	return err
}

// setTextTimestamp writes a TIMESTAMP.
func setTextTimestamp(w *VectorWriter, row int, src []byte) error {
	micros, f := parseTimestamp(src, false, w.settings)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, micros)
	return nil
}

// setTextTimestampTZ writes a TIMESTAMPTZ.
func setTextTimestampTZ(w *VectorWriter, row int, src []byte) error {
	micros, f := parseTimestamp(src, true, w.settings)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, micros)
	return nil
}

// setBinTimestamp writes a TIMESTAMP or TIMESTAMPTZ.
func setBinTimestamp(w *VectorWriter, row int, src []byte) error {
	micros, err := scanTimestamp(src)
	if err == nil {
		put(w, row, micros)
	}
	return err
}

// setTextInterval writes an INTERVAL.
func setTextInterval(w *VectorWriter, row int, src []byte) error {
	i, f := parseInterval(src, w.settings)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, i)
	return nil
}

// setBinInterval writes an INTERVAL.
func setBinInterval(w *VectorWriter, row int, src []byte) error {
	i, err := scanInterval(src)
	if err == nil {
		put(w, row, i)
	}
	return err
}

// setTextUUID writes a UUID.
func setTextUUID(w *VectorWriter, row int, src []byte) error {
	h, f := parseUUID(src)
	if f != parsed {
		return f.error(w.words, src)
	}
	put(w, row, h)
	return nil
}

// setBinUUID writes a UUID.
func setBinUUID(w *VectorWriter, row int, src []byte) error {
	h, err := scanUUID(src)
	if err == nil {
		put(w, row, h)
	}
	return err
}
