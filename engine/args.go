package engine

import (
	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// bindArgs decodes the client's arguments by the types that Params told it and binds them.
func (st *Statement) bindArgs(args []Arg) error {
	if len(args) != len(st.params) {
		return pgerr.Newf(pgerrcode.ProtocolViolation, "bind message supplies %d parameters, but the statement requires %d",
			len(args), len(st.params))
	}
	for i, arg := range args {
		if err := st.bindArg(i, arg); err != nil {
			return err
		}
	}
	return nil
}

// bindArg binds parameter i, counted from 0. A parameter that the text does not use is decoded all the same.
func (st *Statement) bindArg(i int, arg Arg) error {
	v, err := decodeArg(st.params[i], arg, &st.s.codec)
	if err != nil {
		return err
	}
	if i >= int(mapping.NParams(st.prepared)) {
		return nil
	}
	value := duckValue(&v)
	defer mapping.DestroyValue(&value)
	if mapping.BindValue(st.prepared, mapping.IdxT(i+1), value) == mapping.StateError {
		return parseDuckError(mapping.PrepareError(st.prepared))
	}
	return nil
}

// decodeArg reads one argument in the format it came in.
func decodeArg(oid uint32, arg Arg, settings *pgcodec.Settings) (pgcodec.Value, error) {
	if arg.Data == nil {
		return pgcodec.Value{Null: true, Type: pgcodec.TypeOf(oid)}, nil
	}
	switch arg.Format {
	case pgcodec.FormatText:
		return pgcodec.DecodeText(oid, arg.Data, settings)
	case pgcodec.FormatBinary:
		return pgcodec.DecodeBinary(oid, arg.Data)
	}
	return pgcodec.Value{}, pgerr.Newf(pgerrcode.ProtocolViolation, "unsupported format code: %d", arg.Format)
}

// duckValues makes DuckDB's value of a decoded one, by its type.
var duckValues = map[pgcodec.Duck]func(*pgcodec.Value) mapping.Value{
	pgcodec.Boolean:  func(v *pgcodec.Value) mapping.Value { return mapping.CreateBool(v.Int != 0) },
	pgcodec.TinyInt:  func(v *pgcodec.Value) mapping.Value { return mapping.CreateInt8(int8(v.Int)) },
	pgcodec.SmallInt: func(v *pgcodec.Value) mapping.Value { return mapping.CreateInt16(int16(v.Int)) },
	pgcodec.Integer:  func(v *pgcodec.Value) mapping.Value { return mapping.CreateInt32(int32(v.Int)) },
	pgcodec.BigInt:   func(v *pgcodec.Value) mapping.Value { return mapping.CreateInt64(v.Int) },
	pgcodec.UInteger: func(v *pgcodec.Value) mapping.Value { return mapping.CreateUInt32(uint32(v.Int)) },
	pgcodec.Float:    func(v *pgcodec.Value) mapping.Value { return mapping.CreateFloat(float32(v.Float)) },
	pgcodec.Double:   func(v *pgcodec.Value) mapping.Value { return mapping.CreateDouble(v.Float) },
	pgcodec.Varchar:  func(v *pgcodec.Value) mapping.Value { return mapping.CreateVarchar(string(v.Bytes)) },
	pgcodec.Blob:     func(v *pgcodec.Value) mapping.Value { return mapping.CreateBlob(v.Bytes) },
	pgcodec.Date:     func(v *pgcodec.Value) mapping.Value { return mapping.CreateDate(mapping.NewDate(int32(v.Int))) },
	pgcodec.Time:     func(v *pgcodec.Value) mapping.Value { return mapping.CreateTime(mapping.NewTime(v.Int)) },
	pgcodec.TimeTZ: func(v *pgcodec.Value) mapping.Value {
		return mapping.CreateTimeTZValue(mapping.NewTimeTZ(uint64(v.Int)))
	},
	pgcodec.Timestamp:   func(v *pgcodec.Value) mapping.Value { return mapping.CreateTimestamp(mapping.NewTimestamp(v.Int)) },
	pgcodec.TimestampTZ: func(v *pgcodec.Value) mapping.Value { return mapping.CreateTimestampTZ(mapping.NewTimestamp(v.Int)) },
	pgcodec.Interval: func(v *pgcodec.Value) mapping.Value {
		return mapping.CreateInterval(mapping.NewInterval(v.Months, v.Days, v.Int))
	},
}

// duckValue makes DuckDB's value; the caller destroys it. What has no constructor of its own goes as text, which
// DuckDB casts to the parameter's type.
func duckValue(v *pgcodec.Value) mapping.Value {
	switch {
	case v.Null || v.Type == nil:
		return mapping.CreateNullValue()
	case v.Type.ID == pgcodec.List:
		return listValue(v)
	}
	if create, ok := duckValues[v.Type.ID]; ok {
		return create(v)
	}
	return mapping.CreateVarchar(string(v.AppendDuck(nil)))
}

// listValue makes a LIST of its elements' values. Elements without a constructor make the whole list a text.
func listValue(v *pgcodec.Value) mapping.Value {
	if _, ok := duckValues[v.Type.Child.ID]; !ok {
		return mapping.CreateVarchar(string(v.AppendDuck(nil)))
	}
	child := duckType(v.Type.Child)
	defer mapping.DestroyLogicalType(&child)
	values := make([]mapping.Value, len(v.List))
	for i := range v.List {
		values[i] = duckValue(&v.List[i])
	}
	defer func() {
		for i := range values {
			mapping.DestroyValue(&values[i])
		}
	}()
	return mapping.CreateListValue(child, values)
}

// castNames are DuckDB's names for the types that clients declare parameters as. An OID that is not here is left for
// DuckDB to tell, and decoded as text.
var castNames = map[uint32]string{
	pgcodec.OIDBool: "BOOLEAN", pgcodec.OIDBytea: "BLOB", pgcodec.OIDInt8: "BIGINT", pgcodec.OIDInt2: "SMALLINT",
	pgcodec.OIDInt4: "INTEGER", pgcodec.OIDText: "VARCHAR", pgcodec.OIDOID: "BIGINT", pgcodec.OIDJSON: "JSON",
	pgcodec.OIDJSONB: "JSON", pgcodec.OIDFloat4: "FLOAT", pgcodec.OIDFloat8: "DOUBLE", pgcodec.OIDVarchar: "VARCHAR",
	pgcodec.OIDBPChar: "VARCHAR", pgcodec.OIDName: "VARCHAR", pgcodec.OIDChar: "VARCHAR", pgcodec.OIDDate: "DATE",
	pgcodec.OIDTime: "TIME", pgcodec.OIDTimeTZ: "TIMETZ", pgcodec.OIDTimestamp: "TIMESTAMP",
	pgcodec.OIDTimestampTZ: "TIMESTAMPTZ", pgcodec.OIDInterval: "INTERVAL", pgcodec.OIDUUID: "UUID",
	pgcodec.OIDVarbit: "BIT", pgcodec.OIDBit: "BIT",
}

// castName is the type to cast a declared parameter to, or "" where the value says it best: a numeric has no width of
// its own, so DuckDB takes the one of each value.
func castName(oid uint32) string {
	if name, ok := castNames[oid]; ok {
		return name
	}
	if t := pgcodec.TypeOf(oid); t != nil && t.ID == pgcodec.List {
		if element, ok := castNames[pgcodec.Describe("", t.Child).OID]; ok {
			return element + "[]"
		}
	}
	return ""
}
