package pgcodec

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// failure is why a text is no value. Parsers return it instead of an error, so that the good case allocates nothing and
// the caller, who knows the type's name and the whole text, words the error.
type failure uint8

// The failures, with PostgreSQL's SQLSTATE and words in failures below.
const (
	parsed failure = iota
	badSyntax
	outOfRange
	badDatetime
	fieldOverflow
	monthDayOverflow
	intervalOverflow
	zoneOverflow
	unknownZone
	datetimeRange
	badNumberRange
	intervalRange
)

// failures has code, message and hint by failure. The message gets the type's words (%T), the text (%S), or the time
// zone in it (%Z).
var failures = [...]struct{ code, message, hint string }{
	badSyntax:        {pgerrcode.InvalidTextRepresentation, `invalid input syntax for type %T: "%S"`, ""},
	outOfRange:       {pgerrcode.NumericValueOutOfRange, `value "%S" is out of range for type %T`, ""},
	badNumberRange:   {pgerrcode.NumericValueOutOfRange, `"%S" is out of range for type %T`, ""},
	badDatetime:      {pgerrcode.InvalidDatetimeFormat, `invalid input syntax for type %T: "%S"`, ""},
	fieldOverflow:    {pgerrcode.DatetimeFieldOverflow, `date/time field value out of range: "%S"`, ""},
	monthDayOverflow: {pgerrcode.DatetimeFieldOverflow, `date/time field value out of range: "%S"`, `Perhaps you need a different "datestyle" setting.`},
	intervalOverflow: {pgerrcode.IntervalFieldOverflow, `interval field value out of range: "%S"`, ""},
	zoneOverflow:     {pgerrcode.InvalidTimeZoneDisplacementValue, `time zone displacement out of range: "%S"`, ""},
	unknownZone:      {pgerrcode.InvalidParameterValue, `time zone "%Z" not recognized`, ""},
	intervalRange:    {pgerrcode.DatetimeFieldOverflow, "interval out of range", ""},
	datetimeRange:    {pgerrcode.DatetimeFieldOverflow, `%T out of range: "%S"`, ""},
}

// rangeWords are the types whose name in "out of range" differs from their name elsewhere.
var rangeWords = map[string]string{
	"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamp",
}

// syntaxWords do the same for "invalid input syntax": PostgreSQL leaves "without time zone" out there.
var syntaxWords = map[string]string{
	"timestamp without time zone": "timestamp", "time without time zone": "time",
}

// error words the failure; nil for parsed.
func (f failure) error(words string, src []byte) error {
	if f == parsed {
		return nil
	}
	spec := failures[f]
	switch {
	case f == datetimeRange && rangeWords[words] != "":
		words = rangeWords[words]
	case f == badDatetime && syntaxWords[words] != "":
		words = syntaxWords[words]
	}
	message := strings.NewReplacer("%T", words, "%S", string(src), "%Z", zoneIn(string(src))).Replace(spec.message)
	e := pgerr.New(spec.code, message)
	e.Hint = spec.hint
	return e
}

// zoneIn finds the zone's name in a text, in lower case.
func zoneIn(s string) string {
	for _, word := range strings.Fields(s) {
		if strings.ContainsRune(word, '/') && !isDigit(word[0]) {
			return strings.ToLower(word)
		}
	}
	return s
}

// text views bytes as a string for functions that keep none of it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// isSpace is C's isspace in ASCII.
func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// isDigit says 0 to 9.
func isDigit(b byte) bool { return b-'0' <= 9 }

// trim takes white space off both ends.
func trim(src []byte) []byte {
	for len(src) > 0 && isSpace(src[0]) {
		src = src[1:]
	}
	for len(src) > 0 && isSpace(src[len(src)-1]) {
		src = src[:len(src)-1]
	}
	return src
}

// checkUTF8 refuses what PostgreSQL's UTF8 encoding refuses: invalid sequences and the zero byte (22021).
func checkUTF8(src []byte) error {
	if utf8.Valid(src) && bytes.IndexByte(src, 0) < 0 {
		return nil
	}
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if src[i] == 0 || r == utf8.RuneError && n == 1 {
			return badUTF8(src[i:])
		}
		i += n
	}
	return nil
}

// badUTF8 names the bytes of the sequence that is wrong, as many as its first byte promises.
func badUTF8(src []byte) error {
	n := 1
	switch b := src[0]; {
	case b >= 0xf0 && b <= 0xf7:
		n = 4
	case b >= 0xe0 && b < 0xf0:
		n = 3
	case b >= 0xc0 && b < 0xe0:
		n = 2
	}
	message := `invalid byte sequence for encoding "UTF8":`
	for _, b := range src[:min(n, len(src))] {
		message += " 0x" + string(appendHex(nil, []byte{b}))
	}
	return pgerr.New(pgerrcode.CharacterNotInRepertoire, message)
}

// parseBool reads PostgreSQL's words for true and false, and any prefix that is clear.
func parseBool(src []byte) (bool, failure) {
	src = trim(src)
	if len(src) == 1 {
		switch src[0] {
		case 't', 'T', '1', 'y', 'Y':
			return true, parsed
		case 'f', 'F', '0', 'n', 'N':
			return false, parsed
		}
		return false, badSyntax
	}
	for _, word := range [...]struct {
		text  string
		least int
		value bool
	}{{"true", 2, true}, {"false", 2, false}, {"yes", 2, true}, {"no", 2, false}, {"on", 2, true}, {"off", 2, false}} {
		if len(src) >= word.least && len(src) <= len(word.text) && strings.EqualFold(text(src), word.text[:len(src)]) {
			return word.value, parsed
		}
	}
	return false, badSyntax
}

// parseInt reads a decimal integer between two bounds.
func parseInt(src []byte, least, most int64) (int64, failure) {
	src = trim(src)
	negative := false
	if len(src) > 0 && (src[0] == '-' || src[0] == '+') {
		negative = src[0] == '-'
		src = src[1:]
	}
	if len(src) == 0 {
		return 0, badSyntax
	}
	var n uint64
	over := false
	for _, b := range src {
		d := uint64(b - '0')
		if d > 9 {
			return 0, badSyntax
		}
		if n > (math.MaxUint64-9)/10 {
			over = true
			continue
		}
		n = n*10 + d
	}
	switch {
	case over:
		return 0, outOfRange
	case negative && n > -uint64(least), !negative && n > uint64(most):
		return 0, outOfRange
	case negative:
		return -int64(n), parsed
	}
	return int64(n), parsed
}

// quietNaN are the bits of NaN that C has; Go's own NaN has another one set, and clients see the bits.
const quietNaN = 0x7ff8000000000000

// parseFloat reads a floating-point number.
func parseFloat(src []byte, bits int) (float64, failure) {
	src = trim(src)
	if len(src) == 0 || bytes.IndexByte(src, '_') >= 0 {
		return 0, badSyntax
	}
	f, err := strconv.ParseFloat(text(src), bits)
	switch {
	case err == nil && f == 0 && bytes.ContainsAny(mantissa(src), "123456789"):
		return 0, badNumberRange // underflow
	case err == nil && math.IsNaN(f):
		return math.Float64frombits(quietNaN), parsed
	case err == nil:
		return f, parsed
	case math.IsInf(f, 0):
		return 0, badNumberRange
	}
	return 0, badSyntax
}

// mantissa is the number without its exponent.
func mantissa(src []byte) []byte {
	if i := bytes.IndexAny(src, "eE"); i >= 0 {
		return src[:i]
	}
	return src
}

// decimalText is a number in decimal notation, taken apart: digits with a point after the first whole of them.
type decimalText struct {
	negative bool
	special  byte // 'n' NaN, 'i' infinity; 0 = a number
	first    []byte
	second   []byte // the digits after the point, so that nothing has to be copied
	whole    int    // digits before the point, exponent included; may be below 0 or above the count of digits
	scale    int    // digits after the point as written, exponent included; at least 0
}

// len is the count of digits.
func (d *decimalText) len() int { return len(d.first) + len(d.second) }

// digit is the i-th digit.
func (d *decimalText) digit(i int) byte {
	if i < len(d.first) {
		return d.first[i] - '0'
	}
	return d.second[i-len(d.first)] - '0'
}

// decimalExponentMax bounds exponents; PostgreSQL's numeric has at most 131,072 digits before the point.
const decimalExponentMax = 200_000

// scanDecimal takes a numeric literal apart.
func scanDecimal(src []byte) (d decimalText, f failure) {
	src = trim(src)
	if len(src) > 0 && (src[0] == '-' || src[0] == '+') {
		d.negative = src[0] == '-'
		src = src[1:]
	}
	if len(src) == 0 {
		return d, badSyntax
	}
	if !isDigit(src[0]) && src[0] != '.' {
		switch word := text(src); {
		case strings.EqualFold(word, "nan") && !d.negative:
			d.special = 'n'
		case strings.EqualFold(word, "infinity"), strings.EqualFold(word, "inf"):
			d.special = 'i'
		default:
			return d, badSyntax
		}
		return d, parsed
	}
	d.first, src = digits(src)
	if len(src) > 0 && src[0] == '.' {
		d.second, src = digits(src[1:])
	}
	if d.len() == 0 {
		return d, badSyntax
	}
	d.whole, d.scale = len(d.first), len(d.second)
	if len(src) > 0 {
		exponent, f := scanExponent(src)
		if f != parsed {
			return d, f
		}
		d.whole += exponent
		d.scale = max(d.scale-exponent, 0)
	}
	for len(d.first) > 0 && d.first[0] == '0' {
		d.first = d.first[1:]
		d.whole--
	}
	if len(d.first) == 0 {
		for len(d.second) > 0 && d.second[0] == '0' {
			d.second = d.second[1:]
			d.whole--
		}
	}
	return d, parsed
}

// digits splits off the digits at the start.
func digits(src []byte) (run, rest []byte) {
	n := 0
	for n < len(src) && isDigit(src[n]) {
		n++
	}
	return src[:n], src[n:]
}

// scanExponent reads e+10 to the end of the text.
func scanExponent(src []byte) (int, failure) {
	if src[0] != 'e' && src[0] != 'E' {
		return 0, badSyntax
	}
	n, f := parseInt(src[1:], -decimalExponentMax, decimalExponentMax)
	if len(src) > 1 && isSpace(src[1]) {
		return 0, badSyntax
	}
	return int(n), f
}

// unscaled gives the number times 10^scale as an unsigned 128-bit integer, rounded half away from zero. False when it
// has more than 38 digits.
func (d *decimalText) unscaled(scale int) (n uint128, ok bool) {
	count, want := d.len(), d.whole+scale
	if count == 0 || want < 0 {
		return n, true
	}
	if want > 38 {
		return n, false
	}
	for i := range min(want, count) {
		n = n.mul10add(d.digit(i))
	}
	for range want - count {
		n = n.mul10add(0)
	}
	if want < count && d.digit(want) >= 5 {
		n = n.add1()
	}
	return n, n.less(tenToThe38)
}

// tenToThe38 is the first number that DECIMAL(38) cannot hold.
var tenToThe38 = powerOfTen128(38)

// powerOfTen128 gives 10^n for n up to 38.
func powerOfTen128(n int) uint128 {
	p := uint128{0, 1}
	for range n {
		p = p.mul10add(0)
	}
	return p
}

// decimalLimits has the first number too large for each DECIMAL width.
var decimalLimits = func() (l [39]uint128) {
	for i := range l {
		l[i] = powerOfTen128(i)
	}
	return l
}()

// isZero says whether the number has no digit other than zero.
func (d *decimalText) isZero() bool {
	for i := range d.len() {
		if d.digit(i) != 0 {
			return false
		}
	}
	return true
}
