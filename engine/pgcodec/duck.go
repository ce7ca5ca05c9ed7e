package pgcodec

import (
	"bytes"
	"strconv"
	"strings"
	"unsafe"
)

// duckNames are DuckDB's SQL names of the types that need nothing else.
var duckNames = map[Duck]string{
	Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Integer: "INTEGER", BigInt: "BIGINT", UTinyInt: "UTINYINT",
	USmallInt: "USMALLINT", UInteger: "UINTEGER", UBigInt: "UBIGINT", Float: "FLOAT", Double: "DOUBLE",
	Timestamp: "TIMESTAMP", Date: "DATE", Time: "TIME", Interval: "INTERVAL", HugeInt: "HUGEINT", UHugeInt: "UHUGEINT",
	Varchar: "VARCHAR", Blob: "BLOB", TimestampS: "TIMESTAMP_S", TimestampMS: "TIMESTAMP_MS", TimestampNS: "TIMESTAMP_NS",
	UUID: "UUID", Bit: "BIT", TimeTZ: "TIMETZ", TimestampTZ: "TIMESTAMPTZ", BigNum: "BIGNUM", TimeNS: "TIME_NS",
	Geometry: "GEOMETRY", Variant: "VARIANT", SQLNull: `"NULL"`,
}

// DuckName is a type as DuckDB's SQL spells it, fit for a CAST. Named enums are spelled out.
func DuckName(t *LogicalType) string {
	switch t.ID {
	case Decimal:
		if t.Width == 0 {
			return "DECIMAL"
		}
		return "DECIMAL(" + strconv.Itoa(int(t.Width)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case List:
		return DuckName(t.Child) + "[]"
	case Array:
		return DuckName(t.Child) + "[" + strconv.Itoa(t.ArrayLen) + "]"
	case Struct:
		return "STRUCT(" + fieldNames(t.Fields) + ")"
	case Union:
		return "UNION(" + fieldNames(t.Fields) + ")"
	case Map:
		return "MAP(" + DuckName(t.Key) + ", " + DuckName(t.Value) + ")"
	case Enum:
		quoted := make([]string, len(t.Enum))
		for i, name := range t.Enum {
			quoted[i] = "'" + strings.ReplaceAll(name, "'", "''") + "'"
		}
		return "ENUM(" + strings.Join(quoted, ", ") + ")"
	}
	if t.isJSON() {
		return AliasJSON
	}
	if name := duckNames[t.ID]; name != "" {
		return name
	}
	return "VARCHAR"
}

// fieldNames spells the fields of a STRUCT or UNION. Those of a row(…) have no names, which SQL cannot say: they get some.
func fieldNames(fields []Field) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		name := f.Name
		if name == "" {
			name = "f" + strconv.Itoa(i+1)
		}
		out[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `" ` + DuckName(f.Type)
	}
	return strings.Join(out, ", ")
}

// FromText is DuckDB's SQL for the value of a type out of an expression with the text that a VectorWriter wrote for a
// type that is not Writable.
func FromText(t *LogicalType, expression string) string {
	if t.asJSON() {
		return "CAST(CAST(" + expression + " AS JSON) AS " + DuckName(t) + ")"
	}
	return "CAST(" + expression + " AS " + DuckName(t) + ")"
}

// AppendDuck appends the value as text that DuckDB casts to the value's type, whatever the session's settings: lists in
// square brackets, blobs with \x before each byte, dates before year 1 with (BC). NULL appends NULL.
func (v *Value) AppendDuck(dst []byte) []byte {
	if v.Null || v.Type == nil {
		return append(dst, "NULL"...)
	}
	switch v.Type.ID {
	case List:
		return v.appendDuckList(dst)
	case Varchar:
		return append(dst, v.Bytes...)
	case Blob:
		return appendDuckBlob(dst, v.Bytes)
	case Float, Double:
		return appendFloat(dst, v.Float, 64, &jsonStyle)
	}
	var room [16]byte // one row of a vector
	encode := TextEncoder(v.Type)
	from := len(dst)
	dst = encode(dst, &Vector{Type: v.Type, Data: v.row(&room)}, 0, &jsonStyle)
	if bc := []byte(" BC"); bytes.HasSuffix(dst[from:], bc) {
		dst = append(dst[:len(dst)-len(bc)], " (BC)"...)
	}
	return dst
}

// row lays the value out as a vector's row.
func (v *Value) row(room *[16]byte) unsafe.Pointer {
	p := unsafe.Pointer(room)
	switch v.Type.ID {
	case Interval:
		*(*interval)(p) = interval{v.Months, v.Days, v.Int}
	case Decimal, UUID, HugeInt, UHugeInt:
		*(*hugeint)(p) = hugeint{uint64(v.Int), v.Hi} // a narrower DECIMAL reads the lower bytes
	case Bit:
		n := len(v.Bytes)
		*(*uint32)(p) = uint32(n)
		if n <= stringInline {
			copy(room[4:], v.Bytes)
		} else {
			*(**byte)(unsafe.Add(p, 8)) = unsafe.SliceData(v.Bytes)
		}
	default:
		*(*int64)(p) = v.Int
	}
	return p
}

// appendDuckBlob writes every byte as \xNN, which needs no look at what it is.
func appendDuckBlob(dst, src []byte) []byte {
	for _, b := range src {
		dst = append(dst, '\\', 'x', hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// appendDuckList writes a list's elements, each in quotes.
func (v *Value) appendDuckList(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range v.List {
		if i > 0 {
			dst = append(dst, ',')
		}
		element := &v.List[i]
		from := len(dst)
		dst = element.AppendDuck(dst)
		if element.Null || element.Type.ID == List {
			continue
		}
		escapes := bytes.Count(dst[from:], []byte{'"'}) + bytes.Count(dst[from:], []byte{'\\'})
		dst = quoteInPlace(dst, from, escapes)
	}
	return append(dst, ']')
}
