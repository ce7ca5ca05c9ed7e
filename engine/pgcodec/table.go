package pgcodec

// PostgreSQL's type OIDs that this package names.
const (
	OIDBool        uint32 = 16
	OIDBytea       uint32 = 17
	OIDChar        uint32 = 18
	OIDName        uint32 = 19
	OIDInt8        uint32 = 20
	OIDInt2        uint32 = 21
	OIDInt2Vector  uint32 = 22
	OIDInt4        uint32 = 23
	OIDRegproc     uint32 = 24
	OIDText        uint32 = 25
	OIDOID         uint32 = 26
	OIDXID         uint32 = 28
	OIDJSON        uint32 = 114
	OIDXML         uint32 = 142
	OIDFloat4      uint32 = 700
	OIDFloat8      uint32 = 701
	OIDUnknown     uint32 = 705
	OIDBPChar      uint32 = 1042
	OIDVarchar     uint32 = 1043
	OIDDate        uint32 = 1082
	OIDTime        uint32 = 1083
	OIDTimestamp   uint32 = 1114
	OIDTimestampTZ uint32 = 1184
	OIDInterval    uint32 = 1186
	OIDTimeTZ      uint32 = 1266
	OIDBit         uint32 = 1560
	OIDVarbit      uint32 = 1562
	OIDNumeric     uint32 = 1700
	OIDRegclass    uint32 = 2205
	OIDRegtype     uint32 = 2206
	OIDUUID        uint32 = 2950
	OIDJSONB       uint32 = 3802
)

// Encoder appends the value of a row, without a length, to dst. It is never called for NULL.
type Encoder func(dst []byte, v *Vector, row int, s *Settings) []byte

// typeRow is what one DuckDB type is to a PostgreSQL client.
type typeRow struct {
	duck   Duck
	name   string // pg_type.typname
	oid    uint32
	array  uint32 // OID of the array of it
	len    int16  // pg_type.typlen
	text   func(*LogicalType) Encoder
	binary func(*LogicalType) Encoder
	write  func(*LogicalType) (textSetter, binarySetter) // COPY FROM straight into a vector; nil = not Writable
}

// fixed makes the factory of an encoder that needs nothing from the type.
func fixed(e Encoder) func(*LogicalType) Encoder {
	return func(*LogicalType) Encoder { return e }
}

// types has one row per DuckDB type: Describe, the encoders and the writers all read this table. LIST and ARRAY are
// not in it: they are the array of their element (array.go). Set in init, as nested encoders refer back to the table.
var types [64]typeRow

// typeRows is the table as it is written down.
func typeRows() []typeRow {
	return []typeRow{
		{Boolean, "bool", OIDBool, 1000, 1, fixed(textBool), fixed(binBool), setters(setTextBool, setBinBool)},
		{TinyInt, "int2", OIDInt2, 1005, 2, fixed(textInt[int8]), fixed(binInt2[int8]), setters(setTextInt[int8], setBinInt[int8])},
		{SmallInt, "int2", OIDInt2, 1005, 2, fixed(textInt[int16]), fixed(binInt2[int16]), setters(setTextInt[int16], setBinInt[int16])},
		{Integer, "int4", OIDInt4, 1007, 4, fixed(textInt[int32]), fixed(binInt4[int32]), setters(setTextInt[int32], setBinInt[int32])},
		{BigInt, "int8", OIDInt8, 1016, 8, fixed(textInt[int64]), fixed(binInt8[int64]), setters(setTextInt[int64], setBinInt[int64])},
		{UTinyInt, "int2", OIDInt2, 1005, 2, fixed(textInt[uint8]), fixed(binInt2[uint8]), setters(setTextInt[uint8], setBinInt[uint8])},
		{USmallInt, "int4", OIDInt4, 1007, 4, fixed(textInt[uint16]), fixed(binInt4[uint16]), setters(setTextInt[uint16], setBinInt[uint16])},
		{UInteger, "int8", OIDInt8, 1016, 8, fixed(textInt[uint32]), fixed(binInt8[uint32]), setters(setTextInt[uint32], setBinInt[uint32])},
		{UBigInt, "numeric", OIDNumeric, 1231, -1, fixed(textUint64), fixed(binUint64), setters(setTextHuge, setBinHuge)}, // int8 loses the upper half
		{HugeInt, "numeric", OIDNumeric, 1231, -1, fixed(textHuge), fixed(binHuge), setters(setTextHuge, setBinHuge)},
		{UHugeInt, "numeric", OIDNumeric, 1231, -1, fixed(textUHuge), fixed(binUHuge), setters(setTextHuge, setBinHuge)},
		{BigNum, "numeric", OIDNumeric, 1231, -1, fixed(textBigNum), fixed(binBigNum), nil},
		{Decimal, "numeric", OIDNumeric, 1231, -1, textDecimal, binDecimal, setters(setTextDecimal, setBinDecimal)},
		{Float, "float4", OIDFloat4, 1021, 4, fixed(textFloat4), fixed(binFloat4), setters(setTextFloat4, setBinFloat4)},
		{Double, "float8", OIDFloat8, 1022, 8, fixed(textFloat8), fixed(binFloat8), setters(setTextFloat8, setBinFloat8)},
		{Varchar, "text", OIDText, 1009, -1, fixed(rawBytes), fixed(rawBytes), setters(setText, setText)}, // alias JSON: json, see rowOf
		{Blob, "bytea", OIDBytea, 1001, -1, fixed(textBytea), fixed(rawBytes), setters(setTextBytea, setBinBytea)},
		{Bit, "varbit", OIDVarbit, 1563, -1, fixed(textBit), fixed(binBit), setters(setTextBit, setBinBit)},
		{Date, "date", OIDDate, 1182, 4, fixed(textDate), fixed(binDate), setters(setTextDate, setBinDate)},
		{Time, "time", OIDTime, 1183, 8, fixed(textTime), fixed(binTime), setters(setTextTime, setBinTime)},
		{TimeNS, "time", OIDTime, 1183, 8, fixed(textTimeNS), fixed(binTimeNS), nil},
		{TimeTZ, "timetz", OIDTimeTZ, 1270, 12, fixed(textTimeTZ), fixed(binTimeTZ), setters(setTextTimeTZ, setBinTimeTZ)},
		{Timestamp, "timestamp", OIDTimestamp, 1115, 8, textTimestamp, binTimestamp, setters(setTextTimestamp, setBinTimestamp)},
		{TimestampS, "timestamp", OIDTimestamp, 1115, 8, textTimestamp, binTimestamp, nil},
		{TimestampMS, "timestamp", OIDTimestamp, 1115, 8, textTimestamp, binTimestamp, nil},
		{TimestampNS, "timestamp", OIDTimestamp, 1115, 8, textTimestamp, binTimestamp, nil},
		{TimestampTZ, "timestamptz", OIDTimestampTZ, 1185, 8, fixed(textTimestampTZ), binTimestamp, setters(setTextTimestampTZ, setBinTimestamp)},
		{Interval, "interval", OIDInterval, 1187, 16, fixed(textInterval), fixed(binInterval), setters(setTextInterval, setBinInterval)},
		{UUID, "uuid", OIDUUID, 2951, 16, fixed(textUUID), fixed(binUUID), setters(setTextUUID, setBinUUID)},
		{Enum, "text", OIDText, 1009, -1, textEnum, textEnum, nil},
		{Struct, "json", OIDJSON, 199, -1, textJSON, textJSON, nil},
		{Map, "json", OIDJSON, 199, -1, textJSON, textJSON, nil},
		{Union, "json", OIDJSON, 199, -1, textJSON, textJSON, nil},
		{Geometry, "text", OIDText, 1009, -1, fixed(textGeometry), fixed(textGeometry), nil},
		{Variant, "text", OIDText, 1009, -1, fixed(textNothing), fixed(textNothing), nil}, // NeedsCast
		{SQLNull, "text", OIDText, 1009, -1, fixed(textNothing), fixed(textNothing), nil}, // all rows are NULL
	}
}

// jsonRow stands in for VARCHAR's row where the alias is JSON.
var jsonRow = typeRow{Varchar, "json", OIDJSON, 199, -1, fixed(rawBytes), fixed(rawBytes), setters(setText, setText)}

// unknownRow stands in for a type id that this version of DuckDB does not have.
var unknownRow = typeRow{Invalid, "text", OIDText, 1009, -1, fixed(textNothing), fixed(textNothing), nil}

func init() {
	for _, row := range typeRows() {
		types[row.duck] = row
	}
}

// rowOf finds the table's row of a type that is no LIST or ARRAY.
func rowOf(t *LogicalType) *typeRow {
	switch {
	case t.isJSON():
		return &jsonRow
	case int(t.ID) >= len(types) || types[t.ID].oid == 0:
		return &unknownRow
	}
	return &types[t.ID]
}

// asJSON says whether the type goes to the client as one JSON document: what has fields, and lists of it.
func (t *LogicalType) asJSON() bool {
	inner := t.innermost()
	return inner.ID == Struct || inner.ID == Map || inner.ID == Union
}

// NeedsCast says that the type cannot be encoded from its vector: package engine casts it to VARCHAR in DuckDB.
func NeedsCast(t *LogicalType) bool {
	switch t.ID {
	case List, Array:
		return NeedsCast(t.Child)
	case Map:
		return NeedsCast(t.Key) || NeedsCast(t.Value)
	case Struct, Union:
		for _, f := range t.Fields {
			if NeedsCast(f.Type) {
				return true
			}
		}
		return false
	}
	return rowOf(t) == &unknownRow || t.ID == Variant
}

// Column is what RowDescription says about a column.
type Column struct {
	Name   string
	Type   *LogicalType
	OID    uint32
	Len    int16 // pg_type.typlen: -1 = varying
	TypMod int32 // -1 = none
}

// Describe makes the description of a result column of a DuckDB type.
func Describe(name string, t *LogicalType) Column {
	c := Column{Name: name, Type: t, TypMod: -1}
	row := rowOf(t.innermost())
	switch {
	case t.asJSON():
		c.OID, c.Len = OIDJSON, -1
	case t.nested():
		c.OID, c.Len = row.array, -1
	default:
		c.OID, c.Len = row.oid, row.len
	}
	if inner := t.innermost(); inner.ID == Decimal && inner.Width > 0 {
		c.TypMod = DecimalTypMod(inner.Width, inner.Scale)
	}
	return c
}

// DecimalTypMod is pg_attribute.atttypmod of numeric(width, scale).
func DecimalTypMod(width, scale uint8) int32 {
	return int32(width)<<16 | int32(scale) + 4
}

// TypeName is pg_type.typname of what Describe says about a type, such as int4 or _int4.
func TypeName(t *LogicalType) string {
	switch {
	case t.asJSON():
		return "json"
	case t.nested():
		return "_" + rowOf(t.innermost()).name
	}
	return rowOf(t).name
}

// TextEncoder chooses the encoder of PostgreSQL's text format.
func TextEncoder(t *LogicalType) Encoder {
	switch {
	case t.asJSON():
		return textJSON(t)
	case t.nested():
		return textArray(t)
	}
	return rowOf(t).text(t)
}

// BinaryEncoder chooses the encoder of PostgreSQL's binary format.
func BinaryEncoder(t *LogicalType) Encoder {
	switch {
	case t.asJSON():
		return textJSON(t)
	case t.nested():
		return binArray(t)
	}
	return rowOf(t).binary(t)
}
