package pgcodec

import (
	"encoding/binary"
	"unsafe"
)

// vectorBuilder makes vectors in Go's memory that look like DuckDB's. Long strings are referred to from raw memory, so
// it also keeps them alive.
type vectorBuilder struct{ keep []any }

// words gives zeroed memory aligned to 8 bytes.
func (b *vectorBuilder) words(bytes int) unsafe.Pointer {
	m := make([]uint64, bytes/8+2)
	b.keep = append(b.keep, m)
	return unsafe.Pointer(unsafe.SliceData(m))
}

// physicalBytes is the size of a type's row.
func physicalBytes(t *LogicalType) int {
	switch t.ID {
	case Boolean, TinyInt, UTinyInt:
		return 1
	case SmallInt, USmallInt:
		return 2
	case Integer, UInteger, Float, Date:
		return 4
	case Decimal:
		return int(t.decimalBytes())
	case Enum:
		return int(t.EnumBits) / 8
	case HugeInt, UHugeInt, UUID, Interval, Varchar, Blob, Bit, BigNum, List, Map, Geometry:
		return 16
	}
	return 8
}

// flat makes a vector of values of a type that is no list.
func (b *vectorBuilder) flat(t *LogicalType, values []Value) Vector {
	size := physicalBytes(t)
	v := Vector{Type: t, Data: b.words(size * len(values)), Validity: b.validity(len(values))}
	for i := range values {
		if values[i].Null {
			b.setNull(&v, i)
			continue
		}
		b.set(unsafe.Add(v.Data, i*size), t, &values[i])
	}
	return v
}

// validity makes a mask without NULLs.
func (b *vectorBuilder) validity(rows int) unsafe.Pointer {
	p := b.words(rows/8 + 8)
	for i := range rows/64 + 1 {
		*(*uint64)(unsafe.Add(p, i*8)) = ^uint64(0)
	}
	return p
}

// setNull clears a row's bit.
func (b *vectorBuilder) setNull(v *Vector, row int) {
	*(*uint64)(unsafe.Add(v.Validity, row/64*8)) &^= 1 << (row % 64)
}

// set writes a row.
func (b *vectorBuilder) set(p unsafe.Pointer, t *LogicalType, v *Value) {
	switch t.ID {
	case Float:
		*(*float32)(p) = float32(v.Float)
	case Double:
		*(*float64)(p) = v.Float
	case Varchar, Blob, Bit, BigNum, Geometry:
		b.setString(p, v.Bytes)
	case Interval:
		*(*interval)(p) = interval{v.Months, v.Days, v.Int}
	case HugeInt, UHugeInt, UUID:
		*(*hugeint)(p) = hugeint{uint64(v.Int), v.Hi}
	default:
		var raw [16]byte
		binary.LittleEndian.PutUint64(raw[:], uint64(v.Int))
		binary.LittleEndian.PutUint64(raw[8:], uint64(v.Hi))
		copy(unsafe.Slice((*byte)(p), physicalBytes(t)), raw[:])
	}
}

// setString writes a duckdb_string_t.
func (b *vectorBuilder) setString(p unsafe.Pointer, s []byte) {
	*(*uint32)(p) = uint32(len(s))
	if len(s) <= stringInline {
		copy(unsafe.Slice((*byte)(unsafe.Add(p, 4)), stringInline), s)
		return
	}
	own := append([]byte(nil), s...)
	b.keep = append(b.keep, own)
	copy(unsafe.Slice((*byte)(unsafe.Add(p, 4)), 4), own)
	*(**byte)(unsafe.Add(p, 8)) = unsafe.SliceData(own)
}

// vector makes a vector of any type from values.
func (b *vectorBuilder) vector(t *LogicalType, values []Value) Vector {
	if t.ID != List {
		return b.flat(t, values)
	}
	v := Vector{Type: t, Data: b.words(16 * len(values)), Validity: b.validity(len(values))}
	var elements []Value
	for i := range values {
		if values[i].Null {
			b.setNull(&v, i)
			continue
		}
		*(*listEntry)(unsafe.Add(v.Data, i*16)) = listEntry{uint64(len(elements)), uint64(len(values[i].List))}
		elements = append(elements, values[i].List...)
	}
	v.Children = []Vector{b.vector(t.Child, elements)}
	v.Size = len(elements)
	return v
}

// strings makes a VARCHAR vector.
func (b *vectorBuilder) strings(values ...string) Vector {
	list := make([]Value, len(values))
	for i, s := range values {
		list[i].Bytes = []byte(s)
	}
	return b.flat(typeVarchar, list)
}

// ints makes a vector of an integer type.
func (b *vectorBuilder) ints(id Duck, values ...int64) Vector {
	list := make([]Value, len(values))
	for i, n := range values {
		list[i].Int = n
	}
	return b.flat(simple(id), list)
}

// unsafeRow points to a row of 16 bytes.
func unsafeRow(v *Vector, row int) unsafe.Pointer { return unsafe.Add(v.Data, row*stringBytes) }
