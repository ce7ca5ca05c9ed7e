package pgcodec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// badBinary is PostgreSQL's error for bytes that are no value of the type.
func badBinary(message string) error {
	return pgerr.New(pgerrcode.InvalidBinaryRepresentation, message)
}

// errWrongSize is the error for a value with too few or too many bytes. PostgreSQL says more (which parameter), which
// only the caller knows.
func errWrongSize(words string, got int) error {
	return pgerr.New(pgerrcode.InvalidBinaryRepresentation, "incorrect binary data format").WithDetail(fmt.Sprintf("A value of type %s cannot have %d bytes.", words, got))
}

// decodeBinBool reads one byte.
func decodeBinBool(t *pgType, src []byte) (Value, error) {
	if len(src) != 1 {
		return Value{}, errWrongSize(t.words, len(src))
	}
	v := Value{Type: t.duck}
	if src[0] != 0 {
		v.Int = 1
	}
	return v, nil
}

// intBytes is the size of the integer types by DuckDB's id.
var intBytes = map[Duck]int{SmallInt: 2, Integer: 4, BigInt: 8, UInteger: 4}

// decodeBinInt reads a big-endian integer.
func decodeBinInt(t *pgType, src []byte) (Value, error) {
	if len(src) != intBytes[t.duck.ID] {
		return Value{}, errWrongSize(t.words, len(src))
	}
	n, _ := bigEndian(src)
	if t.duck.ID == UInteger {
		n = int64(uint32(n))
	}
	return Value{Type: t.duck, Int: n}, nil
}

// bigEndian reads a signed integer of 2, 4 or 8 bytes.
func bigEndian(src []byte) (int64, bool) {
	switch len(src) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(src))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(src))), true
	case 8:
		return int64(binary.BigEndian.Uint64(src)), true
	}
	return 0, false
}

// decodeBinFloat reads IEEE bits.
func decodeBinFloat(t *pgType, src []byte) (Value, error) {
	v := Value{Type: t.duck}
	switch {
	case t.duck.ID == Float && len(src) == 4:
		v.Float = float64(math.Float32frombits(binary.BigEndian.Uint32(src)))
	case t.duck.ID == Double && len(src) == 8:
		v.Float = math.Float64frombits(binary.BigEndian.Uint64(src))
	default:
		return v, errWrongSize(t.words, len(src))
	}
	return v, nil
}

// numericHeader is the size of what precedes the digits.
const numericHeader = 8

// numericBinary is a numeric's binary form, read and checked, as decimal text.
type numericBinary struct {
	decimal decimalText
	digits  []byte // ASCII, of all groups
}

// scanNumericBinary reads the format. Digits need not be in the form that PostgreSQL itself writes: zero groups at either
// end, and a scale that cuts digits off, are allowed, as PostgreSQL allows them.
func scanNumericBinary(src, room []byte) (n numericBinary, err error) {
	if len(src) < numericHeader {
		return n, errWrongSize("numeric", len(src))
	}
	count := int(binary.BigEndian.Uint16(src))
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	sign := binary.BigEndian.Uint16(src[4:])
	scale := int(binary.BigEndian.Uint16(src[6:]))
	if len(src) != numericHeader+2*count {
		return n, errWrongSize("numeric", len(src))
	}
	switch sign {
	case numericPositive, numericNegative:
		n.decimal.negative = sign == numericNegative
	case numericNaN:
		n.decimal.special = 'n'
		return n, nil
	case numericInf, numericNegInf:
		n.decimal.special, n.decimal.negative = 'i', sign == numericNegInf
		return n, nil
	default:
		return n, badBinary(`invalid sign in external "numeric" value`)
	}
	if scale&0x3fff != scale {
		return n, badBinary(`invalid scale in external "numeric" value`)
	}
	n.digits = room
	for i := numericHeader; i < len(src); i += 2 {
		d := binary.BigEndian.Uint16(src[i:])
		if d >= numericBase {
			return n, badBinary(`invalid digit in external "numeric" value`)
		}
		n.digits = appendPadded(n.digits, uint64(d), groupDigits)
	}
	whole := (weight + 1) * groupDigits
	kept := min(max(whole+scale, 0), len(n.digits)) // PostgreSQL cuts, it does not round
	n.digits = n.digits[:kept]
	n.decimal.first, n.decimal.whole, n.decimal.scale = n.digits, whole, scale
	for len(n.decimal.first) > 0 && n.decimal.first[0] == '0' {
		n.decimal.first = n.decimal.first[1:]
		n.decimal.whole--
	}
	return n, nil
}

// numericRoom is enough for the digits of common numerics.
const numericRoom = 64

// decodeBinNumeric reads a numeric.
func decodeBinNumeric(_ *pgType, src []byte) (Value, error) {
	var room [numericRoom]byte
	n, err := scanNumericBinary(src, room[:0])
	if err != nil {
		return Value{}, err
	}
	d := &n.decimal
	if _, ok := d.unscaled(min(d.scale, 38)); d.special != 0 || ok && d.scale <= 38 {
		return d.value(nil), nil
	}
	return Value{Type: typeVarchar, Bytes: d.appendText(nil)}, nil
}

// appendText writes the number in decimal notation with its scale.
func (d *decimalText) appendText(dst []byte) []byte {
	if d.negative {
		dst = append(dst, '-')
	}
	if d.whole <= 0 {
		dst = append(dst, '0')
	}
	for i := range max(d.whole, 0) {
		dst = append(dst, '0'+d.digitOrZero(i))
	}
	if d.scale > 0 {
		dst = append(dst, '.')
	}
	for i := d.whole; i < d.whole+d.scale; i++ {
		dst = append(dst, '0'+d.digitOrZero(i))
	}
	return dst
}

// digitOrZero is the i-th digit, or the zero before the first and after the last.
func (d *decimalText) digitOrZero(i int) byte {
	if i < 0 || i >= d.len() {
		return 0
	}
	return d.digit(i)
}

// decodeBinString takes text as it is, if it is UTF-8.
func decodeBinString(t *pgType, src []byte) (Value, error) {
	return Value{Type: t.duck, Bytes: src}, checkUTF8(src)
}

// jsonbVersion is the first byte of jsonb's binary format.
const jsonbVersion = 1

// decodeBinJSONB takes the text after the version.
func decodeBinJSONB(t *pgType, src []byte) (Value, error) {
	if len(src) == 0 {
		return Value{}, errWrongSize(t.words, 0)
	}
	if src[0] != jsonbVersion {
		return Value{}, pgerr.Newf(pgerrcode.InternalError, "unsupported jsonb version number %d", src[0])
	}
	return decodeBinString(t, src[1:])
}

// decodeBinReg reads an OID and hands it on as its digits, which a cast to a reg type understands like a name.
func decodeBinReg(t *pgType, src []byte) (Value, error) {
	if len(src) != 4 {
		return Value{}, errWrongSize(t.words, len(src))
	}
	return Value{Type: t.duck, Bytes: strconv.AppendUint(nil, uint64(binary.BigEndian.Uint32(src)), 10)}, nil
}

// decodeBinBytea takes the bytes.
func decodeBinBytea(t *pgType, src []byte) (Value, error) {
	return Value{Type: t.duck, Bytes: src}, nil
}

// decodeBinBit reads a bit string into DuckDB's layout.
func decodeBinBit(t *pgType, src []byte) (Value, error) {
	b, err := scanBitBinary(nil, src)
	return Value{Type: t.duck, Bytes: b}, err
}

// scanBitBinary appends DuckDB's layout of a bit string in PostgreSQL's.
func scanBitBinary(dst, src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, errWrongSize("bit varying", len(src))
	}
	count := int64(int32(binary.BigEndian.Uint32(src)))
	src = src[4:]
	if count < 0 || (count+7)/8 != int64(len(src)) {
		return nil, badBinary("invalid length in external bit string")
	}
	return appendBits(dst, int(count), func(i int) (byte, error) {
		return src[i>>3] >> (7 - uint(i)&7) & 1, nil
	})
}

// decodeBinDate reads days since 2000.
func decodeBinDate(t *pgType, src []byte) (Value, error) {
	days, err := scanDate(src)
	return Value{Type: t.duck, Int: int64(days)}, err
}

// scanDate gives days since 1970.
func scanDate(src []byte) (int32, error) {
	if len(src) != 4 {
		return 0, errWrongSize("date", len(src))
	}
	days := int32(binary.BigEndian.Uint32(src))
	switch {
	case days == math.MaxInt32:
		return dateInfinity, nil
	case days == math.MinInt32:
		return dateNegInfinity, nil
	case int64(days)+int64(epochDays) > dateMost:
		return 0, pgerr.New(pgerrcode.DatetimeFieldOverflow, "date out of range")
	}
	return days + epochDays, nil
}

// decodeBinTime reads microseconds since midnight.
func decodeBinTime(t *pgType, src []byte) (Value, error) {
	micros, err := scanTime(src)
	return Value{Type: t.duck, Int: micros}, err
}

// scanTime checks the range, which includes 24:00:00.
func scanTime(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, errWrongSize("time", len(src))
	}
	micros := int64(binary.BigEndian.Uint64(src))
	if micros < 0 || micros > microsPerDay {
		return 0, pgerr.New(pgerrcode.DatetimeFieldOverflow, "time out of range")
	}
	return micros, nil
}

// decodeBinTimeTZ reads a time and an offset in seconds west.
func decodeBinTimeTZ(t *pgType, src []byte) (Value, error) {
	bits, err := scanTimeTZ(src)
	return Value{Type: t.duck, Int: int64(bits)}, err
}

// scanTimeTZ gives DuckDB's packed bits.
func scanTimeTZ(src []byte) (uint64, error) {
	if len(src) != 12 {
		return 0, errWrongSize("time with time zone", len(src))
	}
	micros, err := scanTime(src[:8])
	if err != nil {
		return 0, err
	}
	west := int32(binary.BigEndian.Uint32(src[8:]))
	if west < -timeTZOffsetMax || west > timeTZOffsetMax {
		return 0, pgerr.New(pgerrcode.InvalidTimeZoneDisplacementValue, "time zone displacement out of range")
	}
	return joinTimeTZ(micros, -int(west)), nil
}

// decodeBinTimestamp reads microseconds since 2000.
func decodeBinTimestamp(t *pgType, src []byte) (Value, error) {
	micros, err := scanTimestamp(src)
	return Value{Type: t.duck, Int: micros}, err
}

// scanTimestamp gives microseconds since 1970.
func scanTimestamp(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, errWrongSize("timestamp", len(src))
	}
	micros := int64(binary.BigEndian.Uint64(src))
	switch {
	case micros == math.MaxInt64:
		return timestampInfinity, nil
	case micros == math.MinInt64:
		return timestampNegInf, nil
	case micros > timestampMost-epochMicros: // the other end cannot overflow: DuckDB's range begins earlier
		return 0, pgerr.New(pgerrcode.DatetimeFieldOverflow, "timestamp out of range")
	}
	return micros + epochMicros, nil
}

// decodeBinInterval reads microseconds, days and months.
func decodeBinInterval(t *pgType, src []byte) (Value, error) {
	i, err := scanInterval(src)
	return Value{Type: t.duck, Months: i.months, Days: i.days, Int: i.micros}, err
}

// scanInterval reads the 16 bytes.
func scanInterval(src []byte) (interval, error) {
	if len(src) != 16 {
		return interval{}, errWrongSize("interval", len(src))
	}
	return interval{
		micros: int64(binary.BigEndian.Uint64(src)), days: int32(binary.BigEndian.Uint32(src[8:])),
		months: int32(binary.BigEndian.Uint32(src[12:])),
	}, nil
}

// decodeBinUUID reads 16 bytes.
func decodeBinUUID(t *pgType, src []byte) (Value, error) {
	h, err := scanUUID(src)
	return Value{Type: t.duck, Int: int64(h.lower), Hi: h.upper}, err
}

// scanUUID flips the top bit.
func scanUUID(src []byte) (hugeint, error) {
	if len(src) != 16 {
		return hugeint{}, errWrongSize("uuid", len(src))
	}
	return hugeint{binary.BigEndian.Uint64(src[8:]), int64(binary.BigEndian.Uint64(src) ^ 1<<63)}, nil
}

// arrayHeader is the size of an array's dimensions count, flags and element OID; arrayDimension of one dimension.
const (
	arrayHeader    = 12
	arrayDimension = 8
)

// decodeBinArray reads an array. Lower bounds are dropped: DuckDB's lists have none.
func decodeBinArray(element *pgType, src []byte) (Value, error) {
	if len(src) < arrayHeader {
		return Value{}, badBinary("insufficient data left in message")
	}
	depth := int(int32(binary.BigEndian.Uint32(src)))
	flags, oid := binary.BigEndian.Uint32(src[4:]), binary.BigEndian.Uint32(src[8:])
	switch {
	case depth < 0:
		return Value{}, badBinary("invalid number of dimensions: " + strconv.Itoa(depth))
	case depth > arrayDimensionsMax:
		return Value{}, pgerr.Newf(pgerrcode.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", depth, arrayDimensionsMax)
	case flags > 1:
		return Value{}, badBinary("invalid array flags")
	case oid != element.oid && !(element.duck == typeVarchar && typeByOID[oid] != nil && typeByOID[oid].duck == typeVarchar):
		return Value{}, pgerr.Newf(pgerrcode.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)", oid, wordsOf(oid), element.oid, element.words)
	}
	src = src[arrayHeader:]
	if len(src) < depth*arrayDimension {
		return Value{}, badBinary("insufficient data left in message")
	}
	sizes := make([]int, depth)
	total := int64(1)
	for i := range sizes {
		sizes[i] = int(int32(binary.BigEndian.Uint32(src[i*arrayDimension:])))
		if sizes[i] < 0 || int64(sizes[i])*total > int64(len(src)) { // each element has at least its length
			return Value{}, badBinary("insufficient data left in message")
		}
		total *= int64(sizes[i])
	}
	r := arrayReader{element: element, src: src[depth*arrayDimension:]}
	if depth == 0 || total == 0 {
		if len(r.src) > 0 {
			return Value{}, badBinary("improper binary format in array element")
		}
		return Value{List: []Value{}}.asArrayOf(element.duck), nil
	}
	v, err := r.list(sizes)
	if err == nil && len(r.src) > 0 {
		err = badBinary("improper binary format in array element")
	}
	if err != nil {
		return Value{}, err
	}
	return v.asArrayOf(element.duck), nil
}

// wordsOf is a type's name for messages.
func wordsOf(oid uint32) string {
	if t := typeByOID[oid]; t != nil {
		return t.words
	}
	return "-"
}

// arrayReader reads the elements of an array.
type arrayReader struct {
	element *pgType
	src     []byte
}

// list reads one dimension.
func (r *arrayReader) list(sizes []int) (Value, error) {
	v := Value{List: make([]Value, 0, sizes[0])}
	for range sizes[0] {
		var item Value
		var err error
		if len(sizes) > 1 {
			item, err = r.list(sizes[1:])
		} else {
			item, err = r.item()
		}
		if err != nil {
			return v, err
		}
		v.List = append(v.List, item)
	}
	return v, nil
}

// item reads one element.
func (r *arrayReader) item() (Value, error) {
	if len(r.src) < 4 {
		return Value{}, badBinary("insufficient data left in message")
	}
	n := int(int32(binary.BigEndian.Uint32(r.src)))
	r.src = r.src[4:]
	if n == -1 {
		return Value{Null: true, Type: r.element.duck}, nil
	}
	if n < 0 || n > len(r.src) {
		return Value{}, badBinary("insufficient data left in message")
	}
	item := bytes.Clone(r.src[:n:n])
	if item == nil {
		item = []byte{}
	}
	r.src = r.src[n:]
	return r.element.binary(r.element, item)
}
