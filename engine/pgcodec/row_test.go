package pgcodec

import (
	"encoding/hex"
	"strings"
	"testing"

	"sluice/engine/pgerr"
)

func TestRowEncoder_DataRow(t *testing.T) {
	var b vectorBuilder
	ints, texts := b.ints(Integer, 7, 8), b.strings("one", "a text of more than twelve bytes")
	b.setNull(&ints, 1)
	chunk := Chunk{Columns: []Vector{ints, texts}, Rows: 2}
	columns := []Column{Describe("i", simple(Integer)), Describe("t", typeVarchar)}
	cases := []struct {
		formats []int16
		row     int
		want    string
	}{
		{nil, 0, "D\x00\x00\x00\x12\x00\x02\x00\x00\x00\x017\x00\x00\x00\x03one"},
		{[]int16{1}, 0, "D\x00\x00\x00\x15\x00\x02\x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00\x03one"},
		{[]int16{1, 0}, 1, "D\x00\x00\x00\x2e\x00\x02\xff\xff\xff\xff\x00\x00\x00\x20a text of more than twelve bytes"},
	}
	for _, c := range cases {
		e := NewRowEncoder(columns, c.formats, DefaultSettings())
		if got := e.AppendDataRow([]byte("x"), &chunk, c.row); string(got) != "x"+c.want {
			t.Errorf("formats %v: got %q, want %q", c.formats, got, c.want)
		}
	}
	nulls := []Column{Describe("n", simple(SQLNull))}
	if got := NewRowEncoder(nulls, nil, nil).AppendRow(nil, &chunk, 0); string(got) != "\x00\x01\xff\xff\xff\xff" {
		t.Errorf("NULL's own type: %q", got)
	}
	if got := NewRowEncoder(nil, nil, nil).AppendDataRow(nil, &Chunk{Rows: 1}, 0); string(got) != "D\x00\x00\x00\x06\x00\x00" {
		t.Errorf("no columns: %q", got)
	}
}

// A row past the first word of the validity mask, and a mask that is not there.
func TestVector_Validity(t *testing.T) {
	var b vectorBuilder
	v := b.ints(BigInt, make([]int64, 200)...)
	b.setNull(&v, 64)
	b.setNull(&v, 199)
	for row := range 200 {
		if v.Valid(row) != (row != 64 && row != 199) {
			t.Errorf("row %d: %v", row, v.Valid(row))
		}
	}
	v.Validity = nil
	if !v.Valid(64) {
		t.Error("a row without a mask is NULL")
	}
}

// nested makes [[1,2],[3]] and its like: a vector of one row.
func nested(b *vectorBuilder, lists ...[]int64) Vector {
	inner := &LogicalType{ID: List, Child: simple(Integer)}
	value := Value{List: []Value{}}
	for _, list := range lists {
		if list == nil {
			value.List = append(value.List, Value{Null: true, Type: inner})
			continue
		}
		element := Value{List: []Value{}}
		for _, n := range list {
			element.List = append(element.List, Value{Int: n})
		}
		value.List = append(value.List, element)
	}
	return b.vector(&LogicalType{ID: List, Child: inner}, []Value{value})
}

func TestRowEncoder_UnequalLists(t *testing.T) {
	var b vectorBuilder
	cases := []struct {
		v      Vector
		text   string
		binary bool
	}{
		{nested(&b, []int64{1, 2}, []int64{3, 4}), "{{1,2},{3,4}}", true},
		{nested(&b, []int64{1, 2}, []int64{3}), "{{1,2},{3}}", false},
		{nested(&b, []int64{1}, nil), "{{1},NULL}", false},
		{nested(&b, nil, []int64{1}), "{NULL,{1}}", false},
		{nested(&b, []int64{}, []int64{}), "{}", true},
		{nested(&b), "{}", true},
		{nested(&b, []int64{}, []int64{1}), "{{},{1}}", false},
	}
	for _, c := range cases {
		column := []Column{Describe("l", c.v.Type)}
		chunk := Chunk{Columns: []Vector{c.v}, Rows: 1}
		text := NewRowEncoder(column, nil, DefaultSettings()).AppendRow(nil, &chunk, 0)
		if string(text[6:]) != c.text {
			t.Errorf("text is %s, want %s", text[6:], c.text)
		}
		e := NewRowEncoder(column, []int16{1}, DefaultSettings())
		got := e.AppendDataRow(nil, &chunk, 0)
		if (e.Err() == nil) != c.binary || (len(got) > 0) != c.binary || e.Err() != nil && pgerr.Code(e.Err()) != "2202E" {
			t.Errorf("%s: binary %x, %v", c.text, got, e.Err())
		}
	}
}

func TestArray_FixedSize(t *testing.T) {
	var b vectorBuilder
	typ := &LogicalType{ID: Array, ArrayLen: 2, Child: simple(SmallInt)}
	v := Vector{Type: typ, Validity: b.validity(2), Children: []Vector{b.ints(SmallInt, 1, 2, 3, 4)}, Size: 4}
	if got := string(TextEncoder(typ)(nil, &v, 1, nil)); got != "{3,4}" {
		t.Errorf("text is %s", got)
	}
	want := "00000001000000000000001500000002000000010000000200030000000200" + "04"
	if got := hex.EncodeToString(BinaryEncoder(typ)(nil, &v, 1, nil)); got != want {
		t.Errorf("binary is %s, want %s", got, want)
	}
}

func TestJSON_NestedTypes(t *testing.T) {
	var b vectorBuilder
	structType := &LogicalType{ID: Struct, Fields: []Field{
		{"i", simple(Integer)},
		{`q"k`, typeVarchar},
		{"f", simple(Double)},
		{"b", simple(Boolean)},
		{"j", &LogicalType{ID: Varchar, Alias: AliasJSON}},
		{"ts", simple(TimestampTZ)},
		{"d", &LogicalType{ID: Decimal, Width: 5, Scale: 2}},
		{"raw", simple(Blob)},
		{"n", simple(Integer)},
	}}
	null := b.ints(Integer, 0)
	b.setNull(&null, 0)
	fields := []Vector{
		b.ints(Integer, -1), b.strings("a\"b\\c\n\x01é"), b.flat(simple(Double), []Value{{Float: 1e300}}), b.ints(Boolean, 1), b.strings(`[1, {"x": null}]`),
		b.ints(TimestampTZ, 1_500_000), b.flat(structType.Fields[6].Type, []Value{{Int: -150}}), b.flat(simple(Blob), []Value{{Bytes: []byte{0, 255}}}), null,
	}
	object := Vector{Type: structType, Children: fields}
	want := `{"i":-1,"q\"k":"a\"b\\c\n\u0001é","f":1e+300,"b":true,"j":[1, {"x": null}],"ts":"1970-01-01T00:00:01.5+00:00","d":-1.50,"raw":"\\x00ff","n":null}`
	s := DefaultSettings()
	s.DateStyle, s.ByteaOutput = DateGerman, ByteaEscape // must not show
	if got := string(TextEncoder(structType)(nil, &object, 0, s)); got != want {
		t.Errorf("struct:\n%s, want\n%s", got, want)
	}
	mapType := &LogicalType{ID: Map, Key: simple(Integer), Value: typeVarchar}
	entries := Vector{Children: []Vector{b.ints(Integer, 1, 2), b.strings("x", "y")}}
	b.setNull(&entries.Children[1], 1)
	m := b.vector(&LogicalType{ID: List, Child: simple(Integer)}, []Value{{List: make([]Value, 2)}})
	m.Children = []Vector{entries}
	if got := string(BinaryEncoder(mapType)(nil, &m, 0, s)); got != `{"1":"x","2":null}` {
		t.Errorf("map: %s", got)
	}
	unionType := &LogicalType{ID: Union, Fields: []Field{{"num", simple(Integer)}, {"str", typeVarchar}}}
	u := Vector{Children: []Vector{b.ints(UTinyInt, 1), b.ints(Integer, 0), b.strings("s")}}
	if got := string(TextEncoder(unionType)(nil, &u, 0, s)); got != `{"str":"s"}` {
		t.Errorf("union: %s", got)
	}
	listType := &LogicalType{ID: List, Child: structType}
	list := b.vector(&LogicalType{ID: List, Child: simple(Integer)}, []Value{{List: make([]Value, 1)}})
	list.Children = []Vector{object}
	if got := string(TextEncoder(listType)(nil, &list, 0, s)); got != "["+want+"]" {
		t.Errorf("list: %s", got)
	}
}

func TestValue_AppendDuck(t *testing.T) {
	cases := []struct {
		oid  uint32
		text string
		want string
	}{
		{OIDInt4, "-7", "-7"},
		{OIDNumeric, "1.50", "1.50"},
		{OIDNumeric, strings.Repeat("9", 50), strings.Repeat("9", 50)},
		{OIDBytea, `\x00ff`, `\x00\xff`},
		{OIDDate, "0044-03-15 BC", "0044-03-15 (BC)"},
		{OIDTimestamp, "infinity", "infinity"},
		{OIDUUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		{OIDVarbit, "1" + strings.Repeat("0", 100), "1" + strings.Repeat("0", 100)},
		{OIDBool, "t", "t"},
		{OIDFloat8, "-inf", "-Infinity"},
		{OIDInterval, "1 day 02:00", "1 day 02:00:00"},
		{OIDText, "a'b", "a'b"},
		{1009, `{a,"b\"\\c",NULL,"NULL"}`, `["a","b\"\\c",NULL,"NULL"]`},
		{1007, "{{1,2},{3,4}}", `[["1","2"],["3","4"]]`},
		{1007, "{}", "[]"},
		{1231, "{{1.5},{22.25}}", `[["1.5"],["22.25"]]`},
		{1231, "{1,NaN,NULL}", `["1","NaN",NULL]`},
		{OIDTimeTZ, "10:00+05:30", "10:00:00+05:30"},
		{OIDTimestampTZ, "2024-01-01 00:00+01", "2023-12-31 23:00:00+00"},
	}
	for _, c := range cases {
		v, err := DecodeText(c.oid, []byte(c.text), nil)
		if got := string(v.AppendDuck(nil)); got != c.want || err != nil {
			t.Errorf("%d %s: got %s, %v, want %s", c.oid, c.text, got, err, c.want)
		}
	}
	if got := string((&Value{Null: true}).AppendDuck(nil)); got != "NULL" {
		t.Errorf("NULL is %s", got)
	}
}

// Numerics that are not in the form that PostgreSQL writes (cases.md, D1).
func TestDecodeBinary_NumericForms(t *testing.T) {
	cases := []struct{ raw, want string }{
		{"0002 0001 0000 0000 0064 0000", "1000000"},
		{"0002 0001 0000 0000 0000 0064", "100"},
		{"0000 0000 0000 0000", "0"},
		{"0000 0000 0000 0014", "0.00000000000000000000"},
		{"0000 0005 4000 0002", "0.00"},
		{"0001 0000 0000 0002 0001", "1.00"},
		{"0002 0000 0000 0001 0001 04d2", "1.1"}, // cut, not rounded: 1.1234
		{"0002 0000 0000 0001 0001 0726", "1.1"}, // 1.1830
		{"0001 ffff 0000 0004 0001", "0.0001"},
		{"0001 fffe 0000 0008 2328", "0.00009000"},
		{"0003 0001 4000 0004 0001 0000 0001", "-10000.0001"},
		{"0000 0000 c000 0000", "NaN"},
		{"0000 0000 d000 0000", "Infinity"},
		{"0000 0000 f000 0000", "-Infinity"},
		{"0001 0009 0000 0000 0001", "1" + strings.Repeat("0", 36)},
		{"0001 000a 0000 0000 0001", "1" + strings.Repeat("0", 40)},
	}
	for _, c := range cases {
		raw, err := hex.DecodeString(strings.ReplaceAll(c.raw, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		v, err := DecodeBinary(OIDNumeric, raw)
		if got := string(v.AppendDuck(nil)); got != c.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", c.raw, got, err, c.want)
		}
	}
}

func TestDecodeBinary_Refused(t *testing.T) {
	cases := []struct {
		oid  uint32
		raw  string
		code string
	}{
		{OIDBool, "", "22P03"},
		{OIDInt4, "0001", "22P03"},
		{OIDInt8, "00000001", "22P03"},
		{OIDFloat8, "00000000", "22P03"},
		{OIDUUID, "00", "22P03"},
		{OIDNumeric, "00", "22P03"},
		{OIDNumeric, "0001000000000000", "22P03"},
		{OIDNumeric, "00010000000000002710", "22P03"},
		{OIDNumeric, "0000000012340000", "22P03"},
		{OIDNumeric, "000000000000ffff", "22P03"},
		{OIDText, "ff", "22021"},
		{OIDText, "6100", "22021"},
		{OIDJSONB, "02", "XX000"},
		{OIDJSONB, "", "22P03"},
		{OIDVarbit, "0000000901", "22P03"},
		{OIDVarbit, "ffffffff", "22P03"},
		{OIDDate, "7ffffffe", "22008"},
		{OIDTime, "ffffffffffffffff", "22008"},
		{OIDTimestamp, "7ffffffffffffffe", "22008"},
		{OIDTimeTZ, "000000000000000000010000", "22009"},
		{OIDInterval, "00", "22P03"},
		{1007, "00", "22P03"},
		{1007, "ffffffff0000000000000017", "22P03"},
		{1007, "000000070000000000000017", "54000"},
		{1007, "000000010000000000000019", "42804"},
		{1007, "0000000100000000000000177fffffff00000001", "22P03"},
		{1007, "00000001000000000000001700000001000000010000000400", "22P03"},
		{1007, "00000001000000000000001700000001000000010000000400000001ff", "22P03"},
		{1007, "000000000000000000000017ff", "22P03"},
		{869, "00", "42883"},
	}
	for _, c := range cases {
		raw, err := hex.DecodeString(c.raw)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := DecodeBinary(c.oid, raw); pgerr.Code(err) != c.code {
			t.Errorf("%d %s: got %s, %v, want %s", c.oid, c.raw, v.AppendDuck(nil), err, c.code)
		}
	}
	if v, err := DecodeBinary(1007, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23}); err != nil || v.List == nil || len(v.List) != 0 {
		t.Errorf("an array of no dimensions: %+v, %v", v, err)
	}
	if v, err := (Arg{Format: 1}).Decode(OIDInt4, nil); err != nil || !v.Null || v.Type.ID != Integer {
		t.Errorf("NULL: %+v, %v", v, err)
	}
	if _, err := (Arg{Format: 2, Data: []byte{}}).Decode(OIDInt4, nil); pgerr.Code(err) != "22023" {
		t.Errorf("format 2: %v", err)
	}
}

func TestOIDByName_RoundTrip(t *testing.T) {
	for _, name := range []string{"int4", "_int4", "text", "_text", "timestamptz", "regclass", "_numeric"} {
		oid := OIDByName(name)
		if oid == 0 || NameByOID(oid) != name || TypeOf(oid) == nil {
			t.Errorf("%s: OID %d, name %s", name, oid, NameByOID(oid))
		}
	}
	if OIDByName("nosuch") != 0 || OIDByName("_") != 0 || NameByOID(1) != "" || TypeOf(1) != nil {
		t.Error("something is known that should not be")
	}
}

func TestSettings_DateStyle(t *testing.T) {
	cases := []struct{ set, want string }{
		{"ISO", "ISO, MDY"},
		{"iso, dmy", "ISO, DMY"},
		{"ymd", "ISO, YMD"},
		{"SQL,European", "SQL, DMY"},
		{"German", "German, DMY"},
		{"German, MDY", "German, MDY"},
		{"postgres, us", "Postgres, MDY"},
		{"nosuch", "ISO, MDY"},
		{"iso, nosuch", "ISO, MDY"},
	}
	for _, c := range cases {
		s := DefaultSettings()
		ok := s.SetDateStyle(c.set)
		if got := s.DateStyleText(); got != c.want || ok == strings.Contains(c.set, "nosuch") {
			t.Errorf("%s: got %s, %v", c.set, got, ok)
		}
	}
}

func TestDuckName_Spelling(t *testing.T) {
	typ := &LogicalType{ID: Struct, Fields: []Field{
		{`a"b`, &LogicalType{ID: List, Child: &LogicalType{ID: Decimal, Width: 9, Scale: 3}}},
		{"m", &LogicalType{ID: Map, Key: typeVarchar, Value: &LogicalType{ID: Array, ArrayLen: 3, Child: simple(UBigInt)}}},
		{"e", &LogicalType{ID: Enum, Enum: []string{"it's"}}},
		{"j", &LogicalType{ID: Varchar, Alias: AliasJSON}},
	}}
	want := `STRUCT("a""b" DECIMAL(9,3)[], "m" MAP(VARCHAR, UBIGINT[3]), "e" ENUM('it''s'), "j" JSON)`
	if got := DuckName(typ); got != want {
		t.Errorf("got %s", got)
	}
	if got := FromText(typ, "c0"); !strings.HasPrefix(got, "CAST(CAST(c0 AS JSON) AS STRUCT(") {
		t.Errorf("got %s", got)
	}
	for id := range types {
		if row := &types[id]; row.oid != 0 && duckNames[Duck(id)] == "" {
			switch row.duck {
			case Decimal, Enum, Struct, Map, Union:
			default:
				t.Errorf("type %d has no name", id)
			}
		}
	}
}

// The elements of a numeric array differ in scale; the array has one type for all of them.
func TestDecodeText_NumericArrayType(t *testing.T) {
	cases := []struct{ text, want string }{
		{"{1,2.50}", "DECIMAL(3,2)[]"},
		{"{{100},{0.125}}", "DECIMAL(6,3)[][]"},
		{"{}", "DECIMAL(1,0)[]"},
		{"{NULL}", "DECIMAL(1,0)[]"},
		{"{1,Infinity}", "VARCHAR[]"},
		{"{1e37,0.01}", "VARCHAR[]"},
	}
	for _, c := range cases {
		v, err := DecodeText(1231, []byte(c.text), nil)
		if got := DuckName(v.Type); got != c.want || err != nil {
			t.Errorf("%s is %s, %v, want %s", c.text, got, err, c.want)
		}
	}
}
