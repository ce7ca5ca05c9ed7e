package pgcodec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
)

// encoding is one row of testdata/encodings.json: what a real PostgreSQL answered.
type encoding struct {
	Type     string
	SQL      string
	Settings map[string]string
	OID      uint32
	Text     string
	Binary   string
}

// loadEncodings reads the file.
func loadEncodings(t testing.TB) []encoding {
	t.Helper()
	raw, err := os.ReadFile("testdata/encodings.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []encoding
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// settings makes Settings of the row's.
func (e *encoding) settings(t testing.TB) *Settings {
	t.Helper()
	s := DefaultSettings()
	for name, value := range e.Settings {
		ok := true
		switch name {
		case "TimeZone":
			location, err := time.LoadLocation(value)
			s.Location, ok = location, err == nil
		case "DateStyle":
			ok = s.SetDateStyle(value)
		case "IntervalStyle":
			ok = s.SetIntervalStyle(value)
		case "bytea_output":
			ok = s.SetByteaOutput(value)
		case "extra_float_digits":
			s.ExtraFloatDigits, _ = strconv.Atoi(value)
		}
		if !ok {
			t.Fatalf("setting %s = %s", name, value)
		}
	}
	return s
}

// TestEncodings_LikePostgreSQL reads PostgreSQL's binary form into a value, lays it out as a DuckDB vector, and expects
// the encoders to write PostgreSQL's text and binary again.
func TestEncodings_LikePostgreSQL(t *testing.T) {
	for _, e := range loadEncodings(t) {
		t.Run(e.SQL, func(t *testing.T) {
			want, _ := hex.DecodeString(e.Binary)
			value, err := DecodeBinary(e.OID, want)
			if err != nil {
				t.Fatal(err)
			}
			var b vectorBuilder
			v := b.vector(value.Type, []Value{{Null: true, Type: value.Type}, value})
			s := e.settings(t)
			if got := string(TextEncoder(value.Type)(nil, &v, 1, s)); got != e.Text {
				t.Errorf("text of %v is %q, want %q", e.Settings, got, e.Text)
			}
			if e.OID == OIDJSONB || e.OID == OIDOID || e.OID == OIDNumeric && value.Type == typeVarchar { // other types in DuckDB
				return
			}
			if got := BinaryEncoder(value.Type)(nil, &v, 1, s); !bytes.Equal(got, want) {
				t.Errorf("binary is %x, want %x", got, want)
			}
			if got := Describe("c", value.Type).OID; got != e.OID {
				t.Errorf("OID is %d, want %d", got, e.OID)
			}
		})
	}
}

// TestEncodings_TextReadsBack reads PostgreSQL's text and expects the same value as from its binary.
func TestEncodings_TextReadsBack(t *testing.T) {
	for _, e := range loadEncodings(t) {
		if e.lossy() {
			continue
		}
		t.Run(e.SQL, func(t *testing.T) {
			raw, _ := hex.DecodeString(e.Binary)
			fromBinary, err := DecodeBinary(e.OID, raw)
			if err != nil {
				t.Fatal(err)
			}
			s := e.settings(t)
			fromText, err := DecodeText(e.OID, []byte(e.Text), s)
			if err != nil {
				t.Fatalf("text %q: %v", e.Text, err)
			}
			var b vectorBuilder
			v := b.vector(fromText.Type, []Value{fromText})
			w := b.vector(fromBinary.Type, []Value{fromBinary})
			got, want := BinaryEncoder(fromText.Type)(nil, &v, 0, s), BinaryEncoder(fromBinary.Type)(nil, &w, 0, s)
			if !bytes.Equal(got, want) {
				t.Errorf("text %q reads as %x, want %x", e.Text, got, want)
			}
		})
	}
}

// lossy says that the text does not tell the whole value: digits cut off, or a zone's abbreviation that means another
// zone to the reader (IST is Israel's), or one from before zones had hours.
func (e *encoding) lossy() bool {
	digits, isSet := e.Settings["extra_float_digits"]
	style := e.Settings["DateStyle"]
	return isSet && digits != "1" || style != "" && e.Settings["TimeZone"] != ""
}

func TestVector_DuckTypesWithoutTwin(t *testing.T) {
	var b vectorBuilder
	huge := func(id Duck, hi int64, lo uint64) Vector {
		return b.flat(simple(id), []Value{{Int: int64(lo), Hi: hi}})
	}
	geometry := b.flat(simple(Geometry), []Value{{Bytes: []byte{1, 0xab}}})
	enum := &LogicalType{ID: Enum, Enum: []string{"sad", "happy"}, EnumBits: 16}
	big := func(raw ...byte) Vector { return b.flat(simple(BigNum), []Value{{Bytes: raw}}) }
	ns := b.ints(TimestampNS, -1)
	cases := []struct {
		v    Vector
		want string
		name string
	}{
		{b.ints(TinyInt, -128), "-128", "int2"},
		{b.ints(UTinyInt, 255), "255", "int2"},
		{b.ints(USmallInt, 65535), "65535", "int4"},
		{b.ints(UInteger, math.MaxUint32), "4294967295", "int8"},
		{b.ints(UBigInt, -1), "18446744073709551615", "numeric"},
		{huge(HugeInt, math.MaxInt64, math.MaxUint64), "170141183460469231731687303715884105727", "numeric"},
		{huge(HugeInt, math.MinInt64, 0), "-170141183460469231731687303715884105728", "numeric"},
		{huge(HugeInt, -1, math.MaxUint64), "-1", "numeric"},
		{huge(HugeInt, 0, 10_000_000_000_000_000_000), "10000000000000000000", "numeric"},
		{huge(HugeInt, 5421010862427522170, 687399551400673280), "100000000000000000000000000000000000000", "numeric"},
		{huge(UHugeInt, -1, math.MaxUint64), "340282366920938463463374607431768211455", "numeric"},
		{big(0x80, 0, 1, 0), "0", "numeric"},
		{big(0x80, 0, 2, 1, 0), "256", "numeric"},
		{big(0x7f, 0xff, 0xfe, 0xfe), "-1", "numeric"},
		{b.ints(TimestampS, 86_400), "1970-01-02 00:00:00", "timestamp"},
		{b.ints(TimestampS, math.MaxInt64), "infinity", "timestamp"},
		{b.ints(TimestampMS, -1), "1969-12-31 23:59:59.999", "timestamp"},
		{ns, "1969-12-31 23:59:59.999999", "timestamp"},
		{b.ints(TimestampNS, -math.MaxInt64), "-infinity", "timestamp"},
		{b.ints(Timestamp, timestampLeast), "290309-12-22 00:00:00 BC", "timestamp"},
		{b.ints(Timestamp, timestampMost), "294247-01-10 04:00:54.775806", "timestamp"},
		{b.ints(Date, dateLeast), "5877642-06-25 BC", "date"},
		{b.ints(Date, 0), "1970-01-01", "date"},
		{b.ints(TimeNS, 1_999), "00:00:00.000001", "time"},
		{geometry, "01AB", "text"},
		{b.flat(enum, []Value{{Int: 1}}), "happy", "text"},
	}
	for _, c := range cases {
		s := DefaultSettings()
		if got := string(TextEncoder(c.v.Type)(nil, &c.v, 0, s)); got != c.want {
			t.Errorf("type %d: got %s, want %s", c.v.Type.ID, got, c.want)
		}
		if got := TypeName(c.v.Type); got != c.name {
			t.Errorf("type %d is %s, want %s", c.v.Type.ID, got, c.name)
		}
		// The binary form reads back as the same text, under the type that Describe named.
		raw := BinaryEncoder(c.v.Type)(nil, &c.v, 0, s)
		if c.name == "text" || c.v.Type.ID == Timestamp || c.v.Type.ID == Date {
			continue
		}
		value, err := DecodeBinary(Describe("", c.v.Type).OID, raw)
		if err != nil {
			t.Errorf("type %d: binary %x: %v", c.v.Type.ID, raw, err)
			continue
		}
		if got := string(value.AppendDuck(nil)); got != c.want {
			t.Errorf("type %d: binary reads %s, want %s", c.v.Type.ID, got, c.want)
		}
	}
}

func TestDescribe_OIDsAndModifiers(t *testing.T) {
	decimal := &LogicalType{ID: Decimal, Width: 10, Scale: 2}
	row := &LogicalType{ID: Struct, Fields: []Field{{"a", simple(Integer)}}}
	cases := []struct {
		t      *LogicalType
		oid    uint32
		len    int16
		typmod int32
	}{
		{decimal, 1700, -1, 10<<16 | 6},
		{&LogicalType{ID: List, Child: decimal}, 1231, -1, 10<<16 | 6},
		{&LogicalType{ID: Varchar, Alias: AliasJSON}, 114, -1, -1},
		{&LogicalType{ID: List, Child: &LogicalType{ID: Varchar, Alias: AliasJSON}}, 199, -1, -1},
		{&LogicalType{ID: Array, ArrayLen: 2, Child: &LogicalType{ID: List, Child: simple(Integer)}}, 1007, -1, -1},
		{row, 114, -1, -1},
		{&LogicalType{ID: List, Child: row}, 114, -1, -1},
		{&LogicalType{ID: Map, Key: simple(Varchar), Value: simple(Integer)}, 114, -1, -1},
		{simple(SQLNull), 25, -1, -1},
		{simple(200), 25, -1, -1},
		{simple(TimestampNS), 1114, 8, -1},
	}
	for _, c := range cases {
		got := Describe("n", c.t)
		if got.OID != c.oid || got.Len != c.len || got.TypMod != c.typmod {
			t.Errorf("%s: got %d %d %d, want %d %d %d", DuckName(c.t), got.OID, got.Len, got.TypMod, c.oid, c.len, c.typmod)
		}
	}
	if !NeedsCast(&LogicalType{ID: List, Child: simple(Variant)}) || NeedsCast(row) || !NeedsCast(simple(200)) {
		t.Error("NeedsCast is wrong")
	}
}
