package pgcodec

import "unsafe"

// Vector is one column of a chunk as DuckDB lays it out in memory (duckdb.h, "Vector Interface"). It is valid until
// the next chunk is fetched. Vectors are flat: DuckDB flattens what its C API hands out.
type Vector struct {
	Type     *LogicalType
	Data     unsafe.Pointer // values side by side; what one is, vector accessors below say
	Validity unsafe.Pointer // one bit per row in words of 64, 1 = valid; nil = all valid
	Children []Vector       // LIST, MAP and ARRAY: one child (of a MAP a STRUCT of key and value); STRUCT: the fields; UNION: the tag, then the members
	Size     int            // rows in the child vectors
}

// Chunk is up to 2,048 rows of a result: all that its vectors hold, or some of them that lie side by side.
type Chunk struct {
	Columns  []Vector
	Rows     int
	First    int  // where the vectors have row 0
	Backward bool // rows come in the opposite of the vectors' order
}

// at is where the vectors have a row.
func (c *Chunk) at(row int) int {
	if c.Backward {
		return c.First - row
	}
	return c.First + row
}

// valid says whether the row is not NULL.
func (v *Vector) valid(row int) bool {
	if v.Validity == nil {
		return true
	}
	word := *(*uint64)(unsafe.Add(v.Validity, row>>6<<3))
	return word>>(uint(row)&63)&1 != 0
}

// Valid says whether the row is not NULL.
func (v *Vector) Valid(row int) bool { return v.valid(row) }

// at reads the row's value where a vector holds values of type T. The caller knows T from the logical type.
func at[T any](v *Vector, row int) T {
	return *(*T)(unsafe.Add(v.Data, uintptr(row)*unsafe.Sizeof(*new(T))))
}

// hugeint is DuckDB's 128-bit integer, two's complement (duckdb_hugeint, duckdb_uhugeint).
type hugeint struct {
	lower uint64
	upper int64
}

// interval is DuckDB's INTERVAL (duckdb_interval).
type interval struct {
	months int32
	days   int32
	micros int64
}

// listEntry is where a LIST or MAP row's elements lie in the child vector (duckdb_list_entry).
type listEntry struct {
	offset uint64
	length uint64
}

// stringBytes is the size of a duckdb_string_t; stringInline is how many bytes fit into it without a pointer.
const (
	stringBytes  = 16
	stringInline = 12
)

// bytesAt gives the bytes of a VARCHAR, BLOB, BIT, BIGNUM or GEOMETRY row, in DuckDB's memory.
func bytesAt(v *Vector, row int) []byte {
	p := unsafe.Add(v.Data, row*stringBytes)
	n := *(*uint32)(p)
	if n <= stringInline {
		return unsafe.Slice((*byte)(unsafe.Add(p, 4)), n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Add(p, 8)), n)
}

// elements gives the range of the child vector that a LIST, MAP or ARRAY row covers.
func elements(t *LogicalType, v *Vector, row int) (start, count int) {
	if t.ID == Array {
		return row * t.ArrayLen, t.ArrayLen
	}
	e := at[listEntry](v, row)
	return int(e.offset), int(e.length)
}
