package pgcodec

import (
	"math"
	"math/big"
	"strconv"
)

// integer is any integer that DuckDB stores in up to 64 bits and that fits in an int64.
type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// textBool writes t or f.
func textBool(dst []byte, v *Vector, row int, _ *Settings) []byte {
	if at[uint8](v, row) != 0 {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

// textInt writes an integer that fits in an int64.
func textInt[T integer](dst []byte, v *Vector, row int, _ *Settings) []byte {
	return strconv.AppendInt(dst, int64(at[T](v, row)), 10)
}

// textFloat4 writes a FLOAT.
func textFloat4(dst []byte, v *Vector, row int, s *Settings) []byte {
	return appendFloat(dst, float64(at[float32](v, row)), 32, s)
}

// textFloat8 writes a DOUBLE.
func textFloat8(dst []byte, v *Vector, row int, s *Settings) []byte {
	return appendFloat(dst, at[float64](v, row), 64, s)
}

// floatDigits are the digits that a float4 or float8 keeps in any case (FLT_DIG, DBL_DIG). PostgreSQL changes to an
// exponent from 10 to that power on, and below 0.0001.
func floatDigits(bits int) int {
	if bits == 32 {
		return 6
	}
	return 15
}

// appendFloat writes a float as PostgreSQL does: the shortest text that reads back the same where extra_float_digits
// is above 0, else with 15 (6) digits and that many more.
func appendFloat(dst []byte, f float64, bits int, s *Settings) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case s != nil && s.ExtraFloatDigits <= 0:
		return strconv.AppendFloat(dst, f, 'g', max(floatDigits(bits)+s.ExtraFloatDigits, 1), bits)
	}
	limit := 1e15
	if bits == 32 {
		limit = 1e6
	}
	if a := math.Abs(f); a != 0 && (a < smallest(bits) || a >= limit) {
		from := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, bits)
		if a >= limit && onBoundary(text(dst[from:]), f, bits) {
			return appendInside(dst[:from], f, bits)
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, bits)
}

// smallest is the float nearest to 0.0001, below which an exponent is written.
func smallest(bits int) float64 {
	if bits == 32 {
		return float64(float32(1e-4))
	}
	return 1e-4
}

// rawBytes writes VARCHAR in both formats, and BLOB in binary.
func rawBytes(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return append(dst, bytesAt(v, row)...)
}

// textNothing stands for types whose values never arrive here.
func textNothing(dst []byte, _ *Vector, _ int, _ *Settings) []byte { return dst }

const hexDigits = "0123456789abcdef"

// appendHex writes two digits per byte.
func appendHex(dst, src []byte) []byte {
	for _, b := range src {
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// textBytea writes a BLOB as bytea_output says.
func textBytea(dst []byte, v *Vector, row int, s *Settings) []byte {
	src := bytesAt(v, row)
	if s != nil && s.ByteaOutput == ByteaEscape {
		return appendEscaped(dst, src)
	}
	return appendHex(append(dst, '\\', 'x'), src)
}

// appendEscaped writes bytea's escape format: octal for what is not printable ASCII, a doubled backslash.
func appendEscaped(dst, src []byte) []byte {
	for _, b := range src {
		switch {
		case b == '\\':
			dst = append(dst, '\\', '\\')
		case b < 0x20 || b > 0x7e:
			dst = append(dst, '\\', '0'+b>>6, '0'+b>>3&7, '0'+b&7)
		default:
			dst = append(dst, b)
		}
	}
	return dst
}

// textGeometry writes a GEOMETRY's WKB in upper-case hexadecimal, as PostGIS prints one.
func textGeometry(dst []byte, v *Vector, row int, _ *Settings) []byte {
	const upperDigits = "0123456789ABCDEF"
	for _, b := range bytesAt(v, row) {
		dst = append(dst, upperDigits[b>>4], upperDigits[b&15])
	}
	return dst
}

// textBit writes a BIT as zeros and ones. DuckDB's first byte counts the padding bits before the first bit.
func textBit(dst []byte, v *Vector, row int, _ *Settings) []byte {
	src := bytesAt(v, row)
	if len(src) == 0 {
		return dst
	}
	for i, n := int(src[0]), (len(src)-1)*8; i < n; i++ {
		dst = append(dst, '0'+src[1+i>>3]>>(7-uint(i)&7)&1)
	}
	return dst
}

// textUUID writes a UUID. DuckDB keeps it as a 128-bit integer with the top bit flipped, so that it sorts.
func textUUID(dst []byte, v *Vector, row int, _ *Settings) []byte {
	h := at[hugeint](v, row)
	hi, lo := uint64(h.upper)^1<<63, h.lower
	for shift := 60; shift >= 0; shift -= 4 {
		if shift == 28 || shift == 12 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[hi>>uint(shift)&15])
	}
	dst = append(dst, '-')
	for shift := 60; shift >= 0; shift -= 4 {
		if shift == 44 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[lo>>uint(shift)&15])
	}
	return dst
}

// textEnum writes an ENUM's name from its dictionary, in both formats.
func textEnum(t *LogicalType) Encoder {
	switch t.EnumBits {
	case 8:
		return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
			return append(dst, t.Enum[at[uint8](v, row)]...)
		}
	case 16:
		return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
			return append(dst, t.Enum[at[uint16](v, row)]...)
		}
	}
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		return append(dst, t.Enum[at[uint32](v, row)]...)
	}
}

// onBoundary says whether decimal text lies exactly half-way between f and its neighbour. Go takes such text for the
// shortest when it is read back as f; PostgreSQL does not: 1e23 prints as 9.999999999999999e+22. It happens only to large
// numbers, whose neighbours are more than 2 apart.
func onBoundary(text string, f float64, bits int) bool {
	mantissaBits := 53
	if bits == 32 {
		mantissaBits = 24
	}
	fraction, exponent := math.Frexp(math.Abs(f))
	shift := exponent - mantissaBits - 1 // the boundary is an odd number shifted by this
	if shift < 0 || exponent > 3*mantissaBits || int64(math.Ldexp(fraction, mantissaBits))&1 != 0 {
		return false
	}
	distance := new(big.Float).SetPrec(512).SetFloat64(f)
	shown, _, err := new(big.Float).SetPrec(512).Parse(text, 10)
	if err != nil {
		return false
	}
	distance.Sub(distance, shown)
	half := new(big.Float).SetMantExp(big.NewFloat(1), shift)
	return distance.Abs(distance).Cmp(half) == 0
}

// appendInside writes the fewest digits that lie closer to f than to its neighbours.
func appendInside(dst []byte, f float64, bits int) []byte {
	from := len(dst)
	for digits := floatDigits(bits) - 1; ; digits++ {
		dst = strconv.AppendFloat(dst[:from], f, 'e', digits, bits)
		back, _ := strconv.ParseFloat(text(dst[from:]), bits)
		if back == f && !onBoundary(text(dst[from:]), f, bits) {
			return dst
		}
	}
}
