package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// prepareParams binds the statement and finds out its parameters' types: the declared ones, else what DuckDB says. What
// DuckDB cannot tell gets a cast and the statement is bound again: an undeclared parameter is text, as in PostgreSQL.
func (st *Statement) prepareParams(ctx context.Context, declared []uint32) error {
	n := max(st.stmt.Params, len(declared), len(st.types))
	st.params, st.casts = make([]uint32, n), make([]string, n)
	for i := range st.casts {
		st.casts[i] = declaredType(st.types, i)
	}
	for i, oid := range declared {
		st.params[i], st.casts[i] = oid, castNames[oid]
	}
	if err := st.bindCast(ctx); err != nil {
		return err
	}
	open := false
	for i := range n {
		t := ownedType(mapping.ParamLogicalType(st.prepared, mapping.IdxT(i+1)))
		if id := mapping.Type(t.ID); id != mapping.TypeInvalid && id != mapping.TypeSQLNull && id != mapping.TypeAny {
			if st.params[i] == 0 {
				st.params[i] = pgcodec.Describe("", t).OID
			}
			continue
		}
		if st.params[i] == 0 {
			st.params[i] = pgcodec.OIDText
		}
		if st.casts[i] == "" {
			open = true
			st.castOpen(i)
		}
	}
	if !open {
		return nil
	}
	return st.bindCast(ctx)
}

// looseCast describes a numeric whose width is not known before its value is.
const looseCast = "DECIMAL(38,9)"

// castOpen chooses the cast of a parameter that nothing around it says the type of.
func (st *Statement) castOpen(i int) {
	t := pgcodec.TypeOf(st.params[i])
	switch {
	case t == nil:
		st.casts[i] = "VARCHAR"
	case t.ID == pgcodec.Decimal:
		st.casts[i], st.loose = looseCast, append(st.loose, i)
	case t.ID == pgcodec.List && t.Child.ID == pgcodec.Decimal:
		st.casts[i], st.loose = looseCast+"[]", append(st.loose, i)
	default:
		st.casts[i] = pgcodec.DuckName(t)
	}
}

// castByValues makes the casts of loose parameters those of their values, and binds the statement again if that changes
// any.
func (st *Statement) castByValues(ctx context.Context, args []Arg) error {
	changed := false
	for _, i := range st.loose {
		if i >= len(args) || args[i].Data == nil {
			continue
		}
		v, err := args[i].Decode(st.params[i], &st.s.codec)
		if err != nil {
			return err
		}
		if name := pgcodec.DuckName(v.Type); name != st.casts[i] {
			st.casts[i], changed = name, true
		}
	}
	if !changed {
		return nil
	}
	if err := st.bindCast(ctx); err != nil {
		return err
	}
	return st.castColumns(ctx)
}

// bindCast binds stmt.SQL with the parameters' casts put in.
func (st *Statement) bindCast(ctx context.Context) error {
	st.names = nil
	st.splices = append(st.splices[:0], st.bytea...)
	for _, p := range st.stmt.ParamAt {
		if name := st.casts[p.N-1]; name != "" {
			st.splices = append(st.splices, splice{p.End, "::" + name})
		}
	}
	slices.SortStableFunc(st.splices, func(a, b splice) int { return a.at - b.at })
	if err := st.bindNow(ctx); err != nil {
		return err
	}
	st.columns = st.describeColumns()
	return nil
}

// prepareBytea looks up the columns of an INSERT with literals that may be bytea's, and has those read as PostgreSQL does.
func (st *Statement) prepareBytea(ctx context.Context) error {
	b := st.stmt.Bytea
	if b == nil {
		return nil
	}
	p, err := st.s.conn.prepare(ctx, "SELECT "+columnList(b.Columns)+" FROM "+b.Table)
	if err != nil {
		return err
	}
	defer mapping.DestroyPrepare(&p)
	n := int(mapping.PreparedStatementColumnCount(p))
	for _, l := range b.Literals {
		if l.Column < n && mapping.PreparedStatementColumnType(p, mapping.IdxT(l.Column)) == mapping.TypeBlob {
			skip := len(`\x`) + 1
			st.bytea = append(st.bytea, splice{l.Start, "from_hex(substr("}, splice{l.End, fmt.Sprintf(", %d))", skip)})
		}
	}
	return nil
}

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
	v, err := arg.Decode(st.params[i], &st.s.codec)
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

// castNames are DuckDB's names for the types that clients declare parameters as. What is not here is left for DuckDB to
// tell: a numeric has no width of its own, so it takes that of the column it is compared with or stored in.
var castNames = map[uint32]string{
	pgcodec.OIDBool: "BOOLEAN", pgcodec.OIDBytea: "BLOB", pgcodec.OIDInt8: "BIGINT", pgcodec.OIDInt2: "SMALLINT",
	pgcodec.OIDInt4: "INTEGER", pgcodec.OIDText: "VARCHAR", pgcodec.OIDOID: "BIGINT", pgcodec.OIDJSON: "JSON",
	pgcodec.OIDJSONB: "JSON", pgcodec.OIDFloat4: "FLOAT", pgcodec.OIDFloat8: "DOUBLE", pgcodec.OIDVarchar: "VARCHAR",
	pgcodec.OIDBPChar: "VARCHAR", pgcodec.OIDName: "VARCHAR", pgcodec.OIDChar: "VARCHAR", pgcodec.OIDDate: "DATE",
	pgcodec.OIDTime: "TIME", pgcodec.OIDTimeTZ: "TIMETZ", pgcodec.OIDTimestamp: "TIMESTAMP",
	pgcodec.OIDTimestampTZ: "TIMESTAMPTZ", pgcodec.OIDInterval: "INTERVAL", pgcodec.OIDUUID: "UUID",
	pgcodec.OIDVarbit: "BIT", pgcodec.OIDBit: "BIT",
}
