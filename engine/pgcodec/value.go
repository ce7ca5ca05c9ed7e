package pgcodec

import (
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// Value is a parameter of a client as DuckDB holds such a value. Which fields count depends on Type:
//
//	BOOLEAN, integers         Int
//	FLOAT, DOUBLE             Float
//	DECIMAL                   Hi and Int (as uint64): the 128-bit unscaled number; Type has width and scale
//	DATE                      Int: days since 1970
//	TIME                      Int: microseconds since midnight
//	TIMETZ                    Int: DuckDB's packed bits
//	TIMESTAMP, TIMESTAMPTZ    Int: microseconds since 1970
//	INTERVAL                  Months, Days, Int: microseconds
//	UUID                      Hi and Int (as uint64), the top bit flipped as in DuckDB's vectors
//	VARCHAR, BLOB, BIT        Bytes; a BIT's first byte counts its padding bits, as in DuckDB's vectors
//	LIST                      List
//
// A numeric of more than 38 digits is VARCHAR with its digits in Bytes: DuckDB casts it to what it meets. A numeric NaN
// or infinity is DOUBLE. Bytes may alias the source.
type Value struct {
	Null   bool
	Type   *LogicalType // set for NULL as well
	Int    int64
	Hi     int64
	Float  float64
	Months int32
	Days   int32
	Bytes  []byte
	List   []Value
}

// Arg is a parameter as Bind carries it.
type Arg struct {
	Format int16
	Data   []byte // nil = NULL
}

// Decode reads a parameter of a type in the format that came with it.
func (a Arg) Decode(oid uint32, s *Settings) (Value, error) {
	switch {
	case a.Data == nil:
		return Value{Null: true, Type: typeOrText(oid)}, nil
	case a.Format == FormatText:
		return DecodeText(oid, a.Data, s)
	case a.Format == FormatBinary:
		return DecodeBinary(oid, a.Data)
	}
	return Value{}, pgerr.Newf(pgerrcode.InvalidParameterValue, "unsupported format code: %d", a.Format)
}

// pgType is what a PostgreSQL type is as a parameter.
type pgType struct {
	oid    uint32
	array  uint32
	name   string       // pg_type.typname
	words  string       // as format_type() and error messages have it
	duck   *LogicalType // shared; never changed
	text   func(t *pgType, src []byte, s *Settings) (Value, error)
	binary func(t *pgType, src []byte) (Value, error)
}

// simple makes a type that has nothing but an id.
func simple(id Duck) *LogicalType { return &LogicalType{ID: id} }

// typeVarchar is the type of text.
var typeVarchar = simple(Varchar)

// pgTypes are the types that a parameter may have, besides arrays of them.
var pgTypes = []pgType{
	{OIDBool, 1000, "bool", "boolean", simple(Boolean), decodeTextBool, decodeBinBool},
	{OIDInt2, 1005, "int2", "smallint", simple(SmallInt), decodeTextInt, decodeBinInt},
	{OIDInt4, 1007, "int4", "integer", simple(Integer), decodeTextInt, decodeBinInt},
	{OIDInt8, 1016, "int8", "bigint", simple(BigInt), decodeTextInt, decodeBinInt},
	{OIDOID, 1028, "oid", "oid", simple(UInteger), decodeTextInt, decodeBinInt},
	{OIDXID, 1011, "xid", "xid", simple(UInteger), decodeTextInt, decodeBinInt},
	{OIDFloat4, 1021, "float4", "real", simple(Float), decodeTextFloat, decodeBinFloat},
	{OIDFloat8, 1022, "float8", "double precision", simple(Double), decodeTextFloat, decodeBinFloat},
	{OIDNumeric, 1231, "numeric", "numeric", simple(Decimal), decodeTextNumeric, decodeBinNumeric},
	{OIDText, 1009, "text", "text", typeVarchar, decodeString, decodeBinString},
	{OIDVarchar, 1015, "varchar", "character varying", typeVarchar, decodeString, decodeBinString},
	{OIDBPChar, 1014, "bpchar", "character", typeVarchar, decodeString, decodeBinString},
	{OIDName, 1003, "name", "name", typeVarchar, decodeString, decodeBinString},
	{OIDChar, 1002, "char", `"char"`, typeVarchar, decodeString, decodeBinString},
	{OIDUnknown, 0, "unknown", "unknown", typeVarchar, decodeString, decodeBinString},
	{2275, 1263, "cstring", "cstring", typeVarchar, decodeString, decodeBinString},
	{OIDXML, 143, "xml", "xml", typeVarchar, decodeString, decodeBinString},
	{OIDJSON, 199, "json", "json", &LogicalType{ID: Varchar, Alias: AliasJSON}, decodeString, decodeBinString},
	{OIDJSONB, 3807, "jsonb", "jsonb", &LogicalType{ID: Varchar, Alias: AliasJSON}, decodeString, decodeBinJSONB},
	{OIDRegclass, 2210, "regclass", "regclass", typeVarchar, decodeString, decodeBinReg},
	{OIDRegtype, 2211, "regtype", "regtype", typeVarchar, decodeString, decodeBinReg},
	{OIDRegproc, 1008, "regproc", "regproc", typeVarchar, decodeString, decodeBinReg},
	{OIDBytea, 1001, "bytea", "bytea", simple(Blob), decodeTextBytea, decodeBinBytea},
	{OIDBit, 1561, "bit", "bit", simple(Bit), decodeTextBit, decodeBinBit},
	{OIDVarbit, 1563, "varbit", "bit varying", simple(Bit), decodeTextBit, decodeBinBit},
	{OIDDate, 1182, "date", "date", simple(Date), decodeTextDate, decodeBinDate},
	{OIDTime, 1183, "time", "time without time zone", simple(Time), decodeTextTime, decodeBinTime},
	{OIDTimeTZ, 1270, "timetz", "time with time zone", simple(TimeTZ), decodeTextTimeTZ, decodeBinTimeTZ},
	{OIDTimestamp, 1115, "timestamp", "timestamp without time zone", simple(Timestamp), decodeTextTimestamp, decodeBinTimestamp},
	{OIDTimestampTZ, 1185, "timestamptz", "timestamp with time zone", simple(TimestampTZ), decodeTextTimestamp, decodeBinTimestamp},
	{OIDInterval, 1187, "interval", "interval", simple(Interval), decodeTextInterval, decodeBinInterval},
	{OIDUUID, 2951, "uuid", "uuid", simple(UUID), decodeTextUUID, decodeBinUUID},
}

// typeByOID and elementOf index pgTypes by the OIDs of the types and of their arrays; typeByName by typname.
var typeByOID, elementOf, typeByName = func() (map[uint32]*pgType, map[uint32]*pgType, map[string]*pgType) {
	oids, arrays, names := map[uint32]*pgType{}, map[uint32]*pgType{}, map[string]*pgType{}
	for i := range pgTypes {
		t := &pgTypes[i]
		oids[t.oid], names[t.name] = t, t
		if t.array != 0 {
			arrays[t.array] = t
		}
	}
	return oids, arrays, names
}()

// TypeOf is the DuckDB type of a PostgreSQL type OID; nil where there is none. numeric answers a DECIMAL of width 0:
// each value brings its own. Arrays answer a LIST of one level; a value may have more.
func TypeOf(oid uint32) *LogicalType {
	if t := typeByOID[oid]; t != nil {
		return t.duck
	}
	if t := elementOf[oid]; t != nil {
		return &LogicalType{ID: List, Child: t.duck}
	}
	return nil
}

// typeOrText is TypeOf with VARCHAR for what is not known.
func typeOrText(oid uint32) *LogicalType {
	if t := TypeOf(oid); t != nil {
		return t
	}
	return typeVarchar
}

// OIDByName finds a type by pg_type.typname, such as int4 or _int4; 0 where there is none.
func OIDByName(name string) uint32 {
	if t := typeByName[name]; t != nil {
		return t.oid
	}
	if len(name) > 1 && name[0] == '_' {
		if t := typeByName[name[1:]]; t != nil {
			return t.array
		}
	}
	return 0
}

// NameByOID is OIDByName's reverse; "" where there is none.
func NameByOID(oid uint32) string {
	if t := typeByOID[oid]; t != nil {
		return t.name
	}
	if t := elementOf[oid]; t != nil {
		return "_" + t.name
	}
	return ""
}

// DecodeText reads a parameter in text format. An OID of 0, or one that is not known, is text: DuckDB casts it.
// Errors are PostgreSQL's: 22P02, 22003, 22007, 22008, 22021 and their neighbours.
func DecodeText(oid uint32, src []byte, s *Settings) (Value, error) {
	if s == nil {
		s = DefaultSettings()
	}
	if t := typeByOID[oid]; t != nil {
		return t.text(t, src, s)
	}
	if t := elementOf[oid]; t != nil {
		return decodeTextArray(t, src, s)
	}
	return decodeString(&pgType{duck: typeVarchar}, src, s)
}

// DecodeBinary reads a parameter in binary format. Errors are 22P03 where the bytes do not make a value, 42883 where
// the type has no binary format here.
func DecodeBinary(oid uint32, src []byte) (Value, error) {
	if t := typeByOID[oid]; t != nil {
		return t.binary(t, src)
	}
	if t := elementOf[oid]; t != nil {
		return decodeBinArray(t, src)
	}
	if oid == 0 {
		return decodeBinString(typeByOID[OIDText], src)
	}
	return Value{}, pgerr.Newf(pgerrcode.UndefinedFunction, "no binary input function available for type with OID %d", oid)
}
