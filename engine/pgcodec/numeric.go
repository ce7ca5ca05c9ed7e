package pgcodec

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// PostgreSQL's numeric in binary is four int16 (count of digits, weight of the first, sign, digits after the point to
// show) and digits in base 10,000 (src/backend/utils/adt/numeric.c, numeric_send).
const (
	numericBase = 10000
	groupDigits = 4 // decimal digits in one digit of base 10,000

	numericPositive = 0x0000
	numericNegative = 0x4000
	numericNaN      = 0xC000
	numericInf      = 0xD000
	numericNegInf   = 0xF000
	numericMask     = 0xC000 // of the special values all of these are set
)

// uint128Digits is how many decimal digits a 128-bit number has at most.
const uint128Digits = 39

// tenToThe19 is the largest power of ten in 64 bits.
const tenToThe19 = 10_000_000_000_000_000_000

// textUint64 writes a UBIGINT.
func textUint64(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return strconv.AppendUint(dst, at[uint64](v, row), 10)
}

// textHuge writes a HUGEINT.
func textHuge(dst []byte, v *Vector, row int, _ *Settings) []byte {
	negative, hi, lo := at[hugeint](v, row).magnitude()
	if negative {
		dst = append(dst, '-')
	}
	return appendUint128(dst, hi, lo)
}

// textUHuge writes a UHUGEINT.
func textUHuge(dst []byte, v *Vector, row int, _ *Settings) []byte {
	h := at[hugeint](v, row)
	return appendUint128(dst, uint64(h.upper), h.lower)
}

// magnitude splits a signed 128-bit number into its sign and absolute value.
func (h hugeint) magnitude() (negative bool, hi, lo uint64) {
	if h.upper >= 0 {
		return false, uint64(h.upper), h.lower
	}
	lo, borrow := bits.Sub64(0, h.lower, 0)
	hi, _ = bits.Sub64(0, uint64(h.upper), borrow)
	return true, hi, lo
}

// appendUint128 writes the decimal digits of an unsigned 128-bit number.
func appendUint128(dst []byte, hi, lo uint64) []byte {
	if hi == 0 {
		return strconv.AppendUint(dst, lo, 10)
	}
	top, low := divBy19(hi, lo)
	if top.hi == 0 {
		dst = strconv.AppendUint(dst, top.lo, 10)
		return appendPadded(dst, low, 19)
	}
	first, middle := divBy19(top.hi, top.lo)
	dst = strconv.AppendUint(dst, first.lo, 10)
	dst = appendPadded(dst, middle, 19)
	return appendPadded(dst, low, 19)
}

// uint128 is an unsigned 128-bit number.
type uint128 struct{ hi, lo uint64 }

// divBy19 divides by 10 to the 19th.
func divBy19(hi, lo uint64) (quotient uint128, remainder uint64) {
	quotient.hi, hi = hi/tenToThe19, hi%tenToThe19
	quotient.lo, remainder = bits.Div64(hi, lo, tenToThe19)
	return quotient, remainder
}

// appendPadded writes a number with leading zeros up to a width.
func appendPadded(dst []byte, n uint64, width int) []byte {
	start := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; i >= start && n > 0; i-- {
		dst[i] = '0' + byte(n%10)
		n /= 10
	}
	return dst
}

// powersOfTen are those that fit in 64 bits.
var powersOfTen = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// textDecimal chooses the reader of the DECIMAL's physical type.
func textDecimal(t *LogicalType) Encoder {
	scale := int(t.Scale)
	switch t.decimalBytes() {
	case 2:
		return textSmallDecimal[int16](scale)
	case 4:
		return textSmallDecimal[int32](scale)
	case 8:
		return textSmallDecimal[int64](scale)
	}
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		negative, hi, lo := at[hugeint](v, row).magnitude()
		if hi == 0 && scale < len(powersOfTen) {
			return appendDecimal64(dst, negative, lo, scale)
		}
		var buf [uint128Digits]byte
		return appendDecimalDigits(dst, negative, appendUint128(buf[:0], hi, lo), scale)
	}
}

// textSmallDecimal writes DECIMALs of up to 18 digits.
func textSmallDecimal[T integer](scale int) Encoder {
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		n := int64(at[T](v, row))
		if n < 0 {
			return appendDecimal64(dst, true, uint64(-n), scale)
		}
		return appendDecimal64(dst, false, uint64(n), scale)
	}
}

// appendDecimal64 writes n / 10^scale with all digits after the point, as numeric prints its scale.
func appendDecimal64(dst []byte, negative bool, n uint64, scale int) []byte {
	if negative {
		dst = append(dst, '-')
	}
	if scale == 0 {
		return strconv.AppendUint(dst, n, 10)
	}
	unit := powersOfTen[scale]
	dst = append(strconv.AppendUint(dst, n/unit, 10), '.')
	return appendPadded(dst, n%unit, scale)
}

// appendDecimalDigits writes a number given by its digits, the last scale of them after the point.
func appendDecimalDigits(dst []byte, negative bool, digits []byte, scale int) []byte {
	if negative {
		dst = append(dst, '-')
	}
	whole := len(digits) - scale
	if whole > 0 {
		dst = append(dst, digits[:whole]...)
		digits = digits[whole:]
	} else {
		dst = append(dst, '0')
	}
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	for ; whole < 0; whole++ {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// binUint64 writes a UBIGINT as numeric.
func binUint64(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return appendNumeric64(dst, false, at[uint64](v, row), 0)
}

// binHuge writes a HUGEINT as numeric.
func binHuge(dst []byte, v *Vector, row int, _ *Settings) []byte {
	negative, hi, lo := at[hugeint](v, row).magnitude()
	return appendNumeric128(dst, negative, hi, lo, 0)
}

// binUHuge writes a UHUGEINT as numeric.
func binUHuge(dst []byte, v *Vector, row int, _ *Settings) []byte {
	h := at[hugeint](v, row)
	return appendNumeric128(dst, false, uint64(h.upper), h.lower, 0)
}

// binDecimal chooses the reader of the DECIMAL's physical type.
func binDecimal(t *LogicalType) Encoder {
	scale := int(t.Scale)
	switch t.decimalBytes() {
	case 2:
		return binSmallDecimal[int16](scale)
	case 4:
		return binSmallDecimal[int32](scale)
	case 8:
		return binSmallDecimal[int64](scale)
	}
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		negative, hi, lo := at[hugeint](v, row).magnitude()
		return appendNumeric128(dst, negative, hi, lo, scale)
	}
}

// binSmallDecimal writes DECIMALs of up to 18 digits.
func binSmallDecimal[T integer](scale int) Encoder {
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		n := int64(at[T](v, row))
		if n < 0 {
			return appendNumeric64(dst, true, uint64(-n), scale)
		}
		return appendNumeric64(dst, false, uint64(n), scale)
	}
}

// appendNumeric64 writes n / 10^scale in numeric's binary format.
func appendNumeric64(dst []byte, negative bool, n uint64, scale int) []byte {
	if scale > 16 {
		return appendNumeric128(dst, negative, 0, n, scale)
	}
	unit := powersOfTen[scale]
	whole, fraction := n/unit, n%unit
	groups := (scale + groupDigits - 1) / groupDigits
	fraction *= powersOfTen[groups*groupDigits-scale] // below 10^16: fits
	var digits [10]uint16                             // five before the point, four after it
	first, last := 5, 5
	for whole > 0 {
		first--
		digits[first], whole = uint16(whole%numericBase), whole/numericBase
	}
	for i := 5 + groups - 1; i >= 5; i-- {
		digits[i], fraction = uint16(fraction%numericBase), fraction/numericBase
	}
	last += groups
	weight := 5 - first - 1
	return appendNumericDigits(dst, negative, digits[first:last], weight, scale)
}

// appendNumeric128 does the same for 128 bits, by way of the decimal digits.
func appendNumeric128(dst []byte, negative bool, hi, lo uint64, scale int) []byte {
	var buf [uint128Digits]byte
	return appendNumericText(dst, negative, appendUint128(buf[:0], hi, lo), scale)
}

// appendNumericText writes a number given by its decimal digits, the last scale of them after the point.
func appendNumericText(dst []byte, negative bool, text []byte, scale int) []byte {
	var room [24]uint16
	digits := room[:0]
	whole := len(text) - scale // digits before the point; below 0 there are zeros between point and digits
	wholeGroups, at := 0, whole
	if whole > 0 {
		wholeGroups = (whole + groupDigits - 1) / groupDigits
		at = whole - wholeGroups*groupDigits
	}
	for ; at < len(text); at += groupDigits {
		digits = append(digits, group(text, at))
	}
	return appendNumericDigits(dst, negative, digits, wholeGroups-1, scale)
}

// group reads four decimal digits from a place that may lie partly before or after the text, where there are zeros.
func group(text []byte, at int) uint16 {
	var n uint16
	for i := at; i < at+groupDigits; i++ {
		n *= 10
		if i >= 0 && i < len(text) {
			n += uint16(text[i] - '0')
		}
	}
	return n
}

// appendNumericDigits writes the format itself, without zero digits at either end.
func appendNumericDigits(dst []byte, negative bool, digits []uint16, weight, scale int) []byte {
	for len(digits) > 0 && digits[0] == 0 {
		digits = digits[1:]
		weight--
	}
	for len(digits) > 0 && digits[len(digits)-1] == 0 {
		digits = digits[:len(digits)-1]
	}
	sign := uint16(numericPositive)
	if negative {
		sign = numericNegative
	}
	if len(digits) == 0 {
		weight, sign = 0, numericPositive
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(digits)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, uint16(scale))
	for _, d := range digits {
		dst = binary.BigEndian.AppendUint16(dst, d)
	}
	return dst
}

// bigNumHeader is the size of a BIGNUM's header: its top bit says positive, the rest counts the bytes of the absolute
// value, which follows big-endian. Of a negative number all bits are inverted, so that the bytes sort
// (duckdb/common/types/bignum.hpp).
const bigNumHeader = 3

// bigNumDigits gives the sign and the decimal digits of a BIGNUM.
func bigNumDigits(src []byte) (negative bool, digits []byte) {
	if len(src) <= bigNumHeader {
		return false, []byte{'0'}
	}
	negative = src[0]&0x80 == 0
	magnitude := append([]byte(nil), src[bigNumHeader:]...)
	if negative {
		for i := range magnitude {
			magnitude[i] = ^magnitude[i]
		}
	}
	return negative, new(big.Int).SetBytes(magnitude).Append(nil, 10)
}

// textBigNum writes a BIGNUM.
func textBigNum(dst []byte, v *Vector, row int, _ *Settings) []byte {
	negative, digits := bigNumDigits(bytesAt(v, row))
	return appendDecimalDigits(dst, negative, digits, 0)
}

// binBigNum writes a BIGNUM as numeric.
func binBigNum(dst []byte, v *Vector, row int, _ *Settings) []byte {
	negative, digits := bigNumDigits(bytesAt(v, row))
	return appendNumericText(dst, negative, digits, 0)
}

// mul10add gives 10n + d. The caller keeps it below 2^128.
func (n uint128) mul10add(d byte) uint128 {
	if n.hi == 0 && n.lo < math.MaxUint64/10 {
		return uint128{0, n.lo*10 + uint64(d)}
	}
	carry, lo := bits.Mul64(n.lo, 10)
	lo, c := bits.Add64(lo, uint64(d), 0)
	return uint128{n.hi*10 + carry + c, lo}
}

// add1 gives n + 1.
func (n uint128) add1() uint128 {
	lo, carry := bits.Add64(n.lo, 1, 0)
	return uint128{n.hi + carry, lo}
}

// less compares.
func (n uint128) less(m uint128) bool {
	return n.hi < m.hi || n.hi == m.hi && n.lo < m.lo
}

// signed gives the two's complement of a number below 2^127.
func (n uint128) signed(negative bool) hugeint {
	if !negative {
		return hugeint{n.lo, int64(n.hi)}
	}
	lo, borrow := bits.Sub64(0, n.lo, 0)
	hi, _ := bits.Sub64(0, n.hi, borrow)
	return hugeint{lo, int64(hi)}
}

// mul10addChecked is mul10add for numbers that may exceed 128 bits; false when they do.
func (n uint128) mul10addChecked(d byte) (uint128, bool) {
	over, hi := bits.Mul64(n.hi, 10)
	carry, lo := bits.Mul64(n.lo, 10)
	lo, c := bits.Add64(lo, uint64(d), 0)
	hi, c = bits.Add64(hi, carry, c)
	return uint128{hi, lo}, over == 0 && c == 0
}
