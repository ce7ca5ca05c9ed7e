package pgcodec

import (
	"bytes"
	"math"
	"strings"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// intLimits are the ranges of integer types by DuckDB's id. oid and xid wrap negative numbers in PostgreSQL; not here.
var intLimits = map[Duck][2]int64{
	TinyInt: {math.MinInt8, math.MaxInt8}, SmallInt: {math.MinInt16, math.MaxInt16},
	Integer: {math.MinInt32, math.MaxInt32}, BigInt: {math.MinInt64, math.MaxInt64},
	UTinyInt: {0, math.MaxUint8}, USmallInt: {0, math.MaxUint16}, UInteger: {0, math.MaxUint32},
}

// decodeTextBool reads a boolean.
func decodeTextBool(t *pgType, src []byte, _ *Settings) (Value, error) {
	b, f := parseBool(src)
	v := Value{Type: t.duck}
	if b {
		v.Int = 1
	}
	return v, f.error(t.words, src)
}

// decodeTextInt reads an integer of the type's range.
func decodeTextInt(t *pgType, src []byte, _ *Settings) (Value, error) {
	limits := intLimits[t.duck.ID]
	n, f := parseInt(src, limits[0], limits[1])
	return Value{Type: t.duck, Int: n}, f.error(t.words, src)
}

// decodeTextFloat reads a real or double precision.
func decodeTextFloat(t *pgType, src []byte, _ *Settings) (Value, error) {
	bits := 64
	if t.duck.ID == Float {
		bits = 32
	}
	n, f := parseFloat(src, bits)
	return Value{Type: t.duck, Float: n}, f.error(t.words, src)
}

// decodeTextNumeric reads a numeric; see Value for what does not fit into a DECIMAL.
func decodeTextNumeric(t *pgType, src []byte, _ *Settings) (Value, error) {
	d, f := scanDecimal(src)
	if f != parsed {
		return Value{}, f.error(t.words, src)
	}
	return d.value(src), nil
}

// typeDouble is the type of numerics that are no number.
var typeDouble = simple(Double)

// value makes a DECIMAL, as wide as needed, of a number taken apart. src is its text.
func (d *decimalText) value(src []byte) Value {
	switch {
	case d.special == 'n':
		return Value{Type: typeDouble, Float: math.Float64frombits(quietNaN)}
	case d.special == 'i' && d.negative:
		return Value{Type: typeDouble, Float: math.Inf(-1)}
	case d.special == 'i':
		return Value{Type: typeDouble, Float: math.Inf(1)}
	}
	if d.scale > 38 {
		return Value{Type: typeVarchar, Bytes: trim(src)}
	}
	n, ok := d.unscaled(d.scale)
	if !ok {
		return Value{Type: typeVarchar, Bytes: trim(src)}
	}
	width := d.scale + max(d.whole, 0)
	if d.isZero() {
		width = d.scale
	}
	h := n.signed(d.negative)
	return Value{Type: &LogicalType{ID: Decimal, Width: uint8(min(max(width, 1), 38)), Scale: uint8(d.scale)}, Int: int64(h.lower), Hi: h.upper}
}

// decodeString takes text as it is, if it is UTF-8.
func decodeString(t *pgType, src []byte, _ *Settings) (Value, error) {
	return Value{Type: t.duck, Bytes: src}, checkUTF8(src)
}

// decodeTextBytea reads both formats of bytea.
func decodeTextBytea(t *pgType, src []byte, _ *Settings) (Value, error) {
	b, err := parseBytea(nil, src)
	return Value{Type: t.duck, Bytes: b}, err
}

// parseBytea appends the bytes of a bytea's text.
func parseBytea(dst, src []byte) ([]byte, error) {
	if len(src) >= 2 && src[0] == '\\' && src[1] == 'x' {
		return parseHex(dst, src[2:])
	}
	for i := 0; i < len(src); i++ {
		switch rest := src[i:]; {
		case rest[0] != '\\':
			dst = append(dst, rest[0])
		case len(rest) > 1 && rest[1] == '\\':
			dst = append(dst, '\\')
			i++
		case len(rest) > 3 && rest[1]-'0' <= 3 && rest[2]-'0' <= 7 && rest[3]-'0' <= 7:
			dst = append(dst, (rest[1]-'0')<<6|(rest[2]-'0')<<3|(rest[3]-'0'))
			i += 3
		default:
			return nil, pgerr.New(pgerrcode.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return dst, nil
}

// parseHex appends the bytes of hexadecimal digits; white space may stand between bytes.
func parseHex(dst, src []byte) ([]byte, error) {
	for i := 0; i < len(src); i += 2 {
		if isSpace(src[i]) {
			i--
			continue
		}
		high, ok := hexValue(src[i])
		if !ok {
			return nil, badHex(src[i:])
		}
		if i+1 == len(src) {
			return nil, pgerr.New(pgerrcode.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		low, ok := hexValue(src[i+1])
		if !ok {
			return nil, badHex(src[i+1:])
		}
		dst = append(dst, high<<4|low)
	}
	return dst, nil
}

// badHex names the character that is no digit.
func badHex(src []byte) error {
	r := []rune(string(src[:min(len(src), 4)]))
	return pgerr.Newf(pgerrcode.InvalidParameterValue, "invalid hexadecimal digit: %q", string(r[:1]))
}

// hexValue is the value of a hexadecimal digit.
func hexValue(b byte) (byte, bool) {
	switch {
	case b-'0' <= 9:
		return b - '0', true
	case b|0x20-'a' <= 5:
		return b | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// decodeTextBit reads zeros and ones, or hexadecimal digits after an x.
func decodeTextBit(t *pgType, src []byte, _ *Settings) (Value, error) {
	b, err := parseBit(nil, src)
	return Value{Type: t.duck, Bytes: b}, err
}

// parseBit appends a bit string in DuckDB's layout: a byte that counts the padding bits, which are ones and come first.
func parseBit(dst, src []byte) ([]byte, error) {
	hex := len(src) > 0 && src[0]|0x20 == 'x'
	if hex || len(src) > 0 && src[0]|0x20 == 'b' {
		src = src[1:]
	}
	if !hex {
		return appendBits(dst, len(src), func(i int) (byte, error) {
			if src[i] != '0' && src[i] != '1' {
				return 0, pgerr.Newf(pgerrcode.InvalidTextRepresentation, "%q is not a valid binary digit", string(src[i:i+1]))
			}
			return src[i] - '0', nil
		})
	}
	return appendBits(dst, 4*len(src), func(i int) (byte, error) {
		n, ok := hexValue(src[i/4])
		if !ok {
			return 0, pgerr.Newf(pgerrcode.InvalidTextRepresentation, "%q is not a valid hexadecimal digit", string(src[i/4:i/4+1]))
		}
		return n >> (3 - uint(i)&3) & 1, nil
	})
}

// appendBits writes DuckDB's layout of so many bits.
func appendBits(dst []byte, count int, bit func(i int) (byte, error)) ([]byte, error) {
	if count == 0 {
		return nil, pgerr.New(pgerrcode.InvalidTextRepresentation, "DuckDB has no empty bit string")
	}
	pad := (8 - count%8) % 8
	dst = append(dst, byte(pad))
	acc, have := byte(1<<uint(pad)-1), pad
	for i := range count {
		b, err := bit(i)
		if err != nil {
			return nil, err
		}
		acc = acc<<1 | b
		if have++; have == 8 {
			dst = append(dst, acc)
			acc, have = 0, 0
		}
	}
	return dst, nil
}

// decodeTextDate reads a date.
func decodeTextDate(t *pgType, src []byte, s *Settings) (Value, error) {
	days, f := parseDate(src, s)
	return Value{Type: t.duck, Int: int64(days)}, f.error(t.words, src)
}

// decodeTextTime reads a time of day.
func decodeTextTime(t *pgType, src []byte, s *Settings) (Value, error) {
	micros, f := parseTime(src, s)
	return Value{Type: t.duck, Int: micros}, f.error(t.words, src)
}

// decodeTextTimeTZ reads a time of day with an offset.
func decodeTextTimeTZ(t *pgType, src []byte, s *Settings) (Value, error) {
	bits, f := parseTimeTZ(src, s)
	return Value{Type: t.duck, Int: int64(bits)}, f.error(t.words, src)
}

// decodeTextTimestamp reads a time stamp, with time zone or without.
func decodeTextTimestamp(t *pgType, src []byte, s *Settings) (Value, error) {
	micros, f := parseTimestamp(src, t.duck.ID == TimestampTZ, s)
	return Value{Type: t.duck, Int: micros}, f.error(t.words, src)
}

// decodeTextInterval reads an interval.
func decodeTextInterval(t *pgType, src []byte, s *Settings) (Value, error) {
	i, f := parseInterval(src, s)
	return Value{Type: t.duck, Months: i.months, Days: i.days, Int: i.micros}, f.error(t.words, src)
}

// decodeTextUUID reads a UUID.
func decodeTextUUID(t *pgType, src []byte, _ *Settings) (Value, error) {
	h, f := parseUUID(src)
	return Value{Type: t.duck, Int: int64(h.lower), Hi: h.upper}, f.error(t.words, src)
}

// uuidDigits is the count of hexadecimal digits in a UUID.
const uuidDigits = 32

// parseUUID reads 32 digits, with a hyphen or none after every fourth, in braces or not; the top bit comes flipped.
func parseUUID(src []byte) (h hugeint, f failure) {
	if len(src) > 1 && src[0] == '{' && src[len(src)-1] == '}' {
		src = src[1 : len(src)-1]
	}
	var words [2]uint64
	n := 0
	for i, b := range src {
		if b == '-' && n%4 == 0 && n > 0 && n < uuidDigits && src[i-1] != '-' {
			continue
		}
		d, ok := hexValue(b)
		if !ok || n == uuidDigits {
			return h, badSyntax
		}
		words[n/16] = words[n/16]<<4 | uint64(d)
		n++
	}
	if n != uuidDigits {
		return h, badSyntax
	}
	return hugeint{words[1], int64(words[0] ^ 1<<63)}, parsed
}

// arrayParser reads an array literal.
type arrayParser struct {
	element  *pgType
	settings *Settings
	src      []byte
	at       int
	sizes    []int // elements of each dimension, as the first list of it showed
	leaf     int   // depth of the elements; 0 = not yet known
}

// decodeTextArray reads an array literal. DuckDB's lists have no lower bounds, so those are read and dropped.
func decodeTextArray(element *pgType, src []byte, s *Settings) (Value, error) {
	p := arrayParser{element: element, settings: s, src: src}
	p.space()
	if p.at < len(src) && src[p.at] == '[' {
		end := bytes.IndexByte(src, '=')
		if end < 0 || !validBounds(src[p.at:end]) {
			return Value{}, p.malformed(`"[" must introduce explicitly-specified array dimensions.`)
		}
		p.at = end + 1
		p.space()
	}
	if p.at >= len(src) || src[p.at] != '{' {
		return Value{}, p.malformed(`Array value must start with "{" or dimension information.`)
	}
	v, err := p.list(1)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(src) {
		return Value{}, p.malformed("Junk after closing right brace.")
	}
	return v.asArrayOf(element.duck), nil
}

// validBounds says whether the text is one or more of [n] and [m:n].
func validBounds(src []byte) bool {
	for b := range bytes.SplitSeq(bytes.TrimSuffix(bytes.TrimPrefix(trim(src), []byte("[")), []byte("]")), []byte("][")) {
		for n := range bytes.SplitSeq(b, []byte(":")) {
			if _, f := parseInt(n, math.MinInt32, math.MaxInt32); f != parsed {
				return false
			}
		}
	}
	return true
}

// asArrayOf sets the LIST types from the outermost in. Numerics become one type that holds all of them.
func (v Value) asArrayOf(element *LogicalType) Value {
	if element.ID == Decimal {
		leaf, exact := &LogicalType{ID: Decimal}, true
		v.widest(leaf, &exact)
		switch {
		case !exact:
			leaf = typeVarchar
			v.leavesToText()
		case leaf.Width == 0: // no element, or NULLs only
			leaf.Width = 1
		}
		element = leaf
	}
	v.setListType(element)
	return v
}

// setListType sets the types of a list and the lists in it.
func (v *Value) setListType(element *LogicalType) *LogicalType {
	child := element
	for i := range v.List {
		if v.List[i].List != nil {
			child = v.List[i].setListType(element)
		}
	}
	v.Type = &LogicalType{ID: List, Child: child}
	return v.Type
}

// widest widens a DECIMAL until it holds all elements. exact turns false where there is no such type: an element has too
// many digits or is NaN.
func (v *Value) widest(t *LogicalType, exact *bool) {
	for i := range v.List {
		element := &v.List[i]
		switch {
		case element.List != nil:
			element.widest(t, exact)
		case element.Null:
		case element.Type.ID != Decimal:
			*exact = false
		default:
			whole := max(t.Width-t.Scale, element.Type.Width-element.Type.Scale)
			t.Scale = max(t.Scale, element.Type.Scale)
			t.Width = whole + t.Scale
			*exact = *exact && t.Width <= 38
		}
	}
}

// leavesToText turns the elements of a list into VARCHAR, which DuckDB casts to what it needs.
func (v *Value) leavesToText() {
	for i := range v.List {
		element := &v.List[i]
		switch {
		case element.List != nil:
			element.leavesToText()
		case !element.Null:
			*element = Value{Type: typeVarchar, Bytes: element.AppendDuck([]byte{})}
		default:
			element.Type = typeVarchar
		}
	}
}

// malformed words the failure.
func (p *arrayParser) malformed(detail string) error {
	return pgerr.Newf(pgerrcode.InvalidTextRepresentation, `malformed array literal: "%s"`, p.src).WithDetail(detail)
}

// space passes white space.
func (p *arrayParser) space() {
	for p.at < len(p.src) && isSpace(p.src[p.at]) {
		p.at++
	}
}

const (
	detailSubArrays = "Multidimensional arrays must have sub-arrays with matching dimensions."
	detailEnd       = "Unexpected end of input."
)

// list reads one pair of braces.
func (p *arrayParser) list(depth int) (Value, error) {
	if depth > arrayDimensionsMax {
		return Value{}, pgerr.Newf(pgerrcode.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", depth, arrayDimensionsMax)
	}
	p.at++
	v := Value{List: []Value{}}
	for {
		p.space()
		if p.at >= len(p.src) {
			return v, p.malformed(detailEnd)
		}
		if p.src[p.at] == '}' {
			if len(v.List) > 0 {
				return v, p.malformed(`Unexpected "}" character.`)
			}
			p.at++
			return v, p.measure(depth, 0)
		}
		item, err := p.item(depth)
		if err != nil {
			return v, err
		}
		v.List = append(v.List, item)
		p.space()
		if p.at >= len(p.src) {
			return v, p.malformed(detailEnd)
		}
		separator := p.src[p.at]
		p.at++
		switch separator {
		case '}':
			return v, p.measure(depth, len(v.List))
		case ',':
		default:
			return v, p.malformed("Unexpected array element.")
		}
	}
}

// measure compares the count of a list with the first of its depth.
func (p *arrayParser) measure(depth, count int) error {
	for len(p.sizes) < depth {
		p.sizes = append(p.sizes, -1)
	}
	if p.sizes[depth-1] >= 0 && p.sizes[depth-1] != count {
		return p.malformed(detailSubArrays)
	}
	p.sizes[depth-1] = count
	return nil
}

// item reads an element or a list.
func (p *arrayParser) item(depth int) (Value, error) {
	if p.src[p.at] == '{' {
		if p.leaf != 0 && p.leaf <= depth {
			return Value{}, p.malformed(detailSubArrays)
		}
		return p.list(depth + 1)
	}
	if p.leaf != 0 && p.leaf != depth {
		return Value{}, p.malformed(detailSubArrays)
	}
	p.leaf = depth
	raw, quoted, err := p.token()
	if err != nil {
		return Value{}, err
	}
	if !quoted && strings.EqualFold(text(raw), "null") {
		return Value{Null: true, Type: p.element.duck}, nil
	}
	return p.element.text(p.element, raw, p.settings)
}

// token reads an element's text. Quotes may hold anything; outside of them a backslash escapes and space at the end
// does not count.
func (p *arrayParser) token() (raw []byte, quoted bool, err error) {
	out := []byte{}
	keep := 0 // of out, what must not be trimmed
	for inQuotes := false; p.at < len(p.src); p.at++ {
		switch b := p.src[p.at]; {
		case quoted && !inQuotes && !isSpace(b) && b != ',' && b != '}':
			return nil, false, p.malformed("Incorrectly quoted array element.")
		case b == '\\':
			if p.at++; p.at == len(p.src) {
				return nil, false, p.malformed(detailEnd)
			}
			out = append(out, p.src[p.at])
			keep = len(out)
		case b == '"' && !inQuotes && len(out) > 0:
			return nil, false, p.malformed("Incorrectly quoted array element.")
		case b == '"':
			inQuotes, quoted = !inQuotes, true
			keep = len(out)
		case inQuotes:
			out = append(out, b)
			keep = len(out)
		case b == ',' || b == '}':
			for len(out) > keep && isSpace(out[len(out)-1]) {
				out = out[:len(out)-1]
			}
			if len(out) == 0 && !quoted {
				return nil, false, p.malformed(`Unexpected "` + string(b) + `" character.`)
			}
			return out, quoted, nil
		case b == '{':
			return nil, false, p.malformed(`Unexpected "{" character.`)
		default:
			out = append(out, b)
		}
	}
	return nil, false, p.malformed(detailEnd)
}
