package pgcodec

import (
	"encoding/binary"
	"math"
)

// binBool writes one byte.
func binBool(dst []byte, v *Vector, row int, _ *Settings) []byte {
	if at[uint8](v, row) != 0 {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// binInt2 writes an integer of up to 16 bits as int2.
func binInt2[T integer](dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(at[T](v, row)))
}

// binInt4 writes an integer of up to 32 bits as int4.
func binInt4[T integer](dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(at[T](v, row)))
}

// binInt8 writes an integer of up to 64 bits as int8.
func binInt8[T integer](dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(at[T](v, row)))
}

// binFloat4 writes the IEEE bits.
func binFloat4(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(at[float32](v, row)))
}

// binFloat8 writes the IEEE bits.
func binFloat8(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(at[float64](v, row)))
}

// binUUID writes the 16 bytes, DuckDB's flipped top bit undone.
func binUUID(dst []byte, v *Vector, row int, _ *Settings) []byte {
	h := at[hugeint](v, row)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.upper)^1<<63)
	return binary.BigEndian.AppendUint64(dst, h.lower)
}

// binBit writes varbit: the count of bits, then the bits from the top, where DuckDB has its padding in front.
func binBit(dst []byte, v *Vector, row int, _ *Settings) []byte {
	src := bytesAt(v, row)
	if len(src) == 0 {
		return append(dst, 0, 0, 0, 0)
	}
	pad := uint(src[0]) & 7
	bits := (len(src)-1)*8 - int(pad)
	dst = binary.BigEndian.AppendUint32(dst, uint32(bits))
	for i := 1; i < len(src); i++ {
		b := src[i] << pad
		if i+1 < len(src) {
			b |= byte(uint16(src[i+1]) >> (8 - pad))
		}
		dst = append(dst, b)
	}
	return dst
}
