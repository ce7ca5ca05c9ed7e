package pgcodec

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"sluice/engine/pgerr"
)

// newWriter makes a vector of rows and a writer to it.
func newWriter(b *vectorBuilder, t *LogicalType, rows int) (*Vector, *VectorWriter) {
	v := b.flat(t, make([]Value, rows))
	return &v, NewVectorWriter(&v, DefaultSettings(), func(row int, s []byte) {
		words := unsafeRow(&v, row)
		b.setString(words, s)
	})
}

// TestVectorWriter_LikePostgreSQL writes PostgreSQL's text and binary of each scalar value into vectors, and expects the
// encoders to read them back.
func TestVectorWriter_LikePostgreSQL(t *testing.T) {
	for _, e := range loadEncodings(t) {
		if e.lossy() {
			continue
		}
		want, _ := hex.DecodeString(e.Binary)
		value, err := DecodeBinary(e.OID, want)
		if err != nil {
			t.Fatal(err)
		}
		typ := value.Type
		if !Writable(typ) || e.OID == OIDJSONB || e.OID == OIDOID || e.OID == OIDNumeric && typ == typeVarchar {
			continue
		}
		var b vectorBuilder
		v, w := newWriter(&b, typ, 3)
		w.settings = e.settings(t)
		if err := w.SetText(0, []byte(e.Text)); err != nil {
			t.Errorf("%s: text: %v", e.SQL, err)
		}
		if err := w.SetBinary(1, want); err != nil {
			t.Errorf("%s: binary: %v", e.SQL, err)
		}
		w.SetNull(2)
		for row := range 2 {
			if got := BinaryEncoder(typ)(nil, v, row, nil); !bytes.Equal(got, want) {
				t.Errorf("%s: row %d is %x, want %x", e.SQL, row, got, want)
			}
		}
		if v.Valid(2) || !v.Valid(0) {
			t.Errorf("%s: NULL went astray", e.SQL)
		}
	}
}

func TestVectorWriter_RangesAndRounding(t *testing.T) {
	decimal := func(width, scale uint8) *LogicalType { return &LogicalType{ID: Decimal, Width: width, Scale: scale} }
	cases := []struct {
		t          *LogicalType
		text, want string // want: the value, or a SQLSTATE and the detail's end
	}{
		{decimal(5, 2), "123.456", "123.46"},
		{decimal(5, 2), "-123.455", "-123.46"},
		{decimal(5, 2), "0.005", "0.01"},
		{decimal(5, 2), "0.0049", "0.00"},
		{decimal(5, 2), "999.995", "22003 10^3."},
		{decimal(5, 2), "1000", "22003 10^3."},
		{decimal(5, 2), "1e2", "100.00"},
		{decimal(5, 2), "1e-9999", "0.00"},
		{decimal(5, 2), "1e9999", "22003 10^3."},
		{decimal(5, 2), "NaN", "22003 NaN."},
		{decimal(5, 2), "Infinity", "22003 infinite value."},
		{decimal(2, 2), "0.995", "22003 than 1."},
		{decimal(5, 2), "0e99999", "0.00"},
		{decimal(38, 0), strings.Repeat("9", 38), strings.Repeat("9", 38)},
		{decimal(38, 0), "1" + strings.Repeat("0", 38), "22003 10^38."},
		{decimal(38, 37), "9.5", "9.5" + strings.Repeat("0", 36)},
		{decimal(9, 0), "999999999.4", "999999999"},
		{decimal(18, 4), "-99999999999999.9999", "-99999999999999.9999"},
		{decimal(5, 2), "x", "22P02"},
		{decimal(5, 2), "", "22P02"},
		{simple(TinyInt), "-128", "-128"},
		{simple(TinyInt), "128", "22003"},
		{simple(UTinyInt), "255", "255"},
		{simple(UTinyInt), "-1", "22003"},
		{simple(USmallInt), "65536", "22003"},
		{simple(UInteger), "4294967295", "4294967295"},
		{simple(UInteger), "4294967296", "22003"},
		{simple(UBigInt), "18446744073709551615", "18446744073709551615"},
		{simple(UBigInt), "18446744073709551616", "22003"},
		{simple(UBigInt), "-1", "22003"},
		{simple(UBigInt), "-0", "0"},
		{simple(UBigInt), "1.5", "2"},
		{simple(HugeInt), "170141183460469231731687303715884105727", "170141183460469231731687303715884105727"},
		{simple(HugeInt), "170141183460469231731687303715884105728", "22003"},
		{simple(HugeInt), "-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"},
		{simple(HugeInt), "-170141183460469231731687303715884105729", "22003"},
		{simple(UHugeInt), "340282366920938463463374607431768211455", "340282366920938463463374607431768211455"},
		{simple(UHugeInt), "340282366920938463463374607431768211456", "22003"},
		{simple(UHugeInt), "340282366920938463463374607431768211455.5", "22003"},
		{simple(HugeInt), "1e30", "1" + strings.Repeat("0", 30)},
		{simple(HugeInt), "nan", "22003"},
		{simple(Varchar), "a\x00", "22021"},
		{simple(Varchar), "\xff", "22021"},
		{simple(Bit), "", "22P02"},
		{simple(Bit), "0101", "0101"},
		{simple(Timestamp), "2024-02-30", "22008"},
		{simple(Timestamp), "294248-01-01", "22008"},
		{simple(Date), "x", "22007"},
	}
	for _, c := range cases {
		var b vectorBuilder
		v, w := newWriter(&b, c.t, 1)
		got := ""
		if err := w.SetText(0, []byte(c.text)); err != nil {
			got = pgerr.Code(err)
			if at := strings.IndexByte(c.want, ' '); at > 0 && strings.HasSuffix(pgerr.From(err).Detail, c.want[at+1:]) {
				got = c.want
			}
		} else {
			got = string(TextEncoder(c.t)(nil, v, 0, DefaultSettings()))
		}
		if got != c.want {
			t.Errorf("%s %q: got %s, want %s", DuckName(c.t), c.text, got, c.want)
		}
	}
}

// Types that are not written directly become text that DuckDB casts.
func TestVectorWriter_CastTypes(t *testing.T) {
	ints := &LogicalType{ID: List, Child: simple(Integer)}
	cases := []struct {
		t          *LogicalType
		text, want string
	}{
		{ints, "{1,NULL,3}", `["1",NULL,"3"]`},
		{ints, "{}", "[]"},
		{ints, "{1,x}", "22P02"},
		{&LogicalType{ID: List, Child: ints}, "{{1},{2}}", `[["1"],["2"]]`},
		{&LogicalType{ID: Struct, Fields: []Field{{"a", simple(Integer)}}}, `{"a": 1}`, `{"a": 1}`},
		{&LogicalType{ID: Enum, Enum: []string{"x"}, EnumBits: 8}, "x", "x"},
		{&LogicalType{ID: List, Child: typeVarchar}, `{"a\"b",c d}`, `["a\"b","c d"]`},
		{simple(TimestampNS), "2024-01-01 00:00:00.123456789", "2024-01-01 00:00:00.123456789"},
	}
	for _, c := range cases {
		got := ""
		w := NewVectorWriter(&Vector{Type: c.t}, DefaultSettings(), func(_ int, s []byte) { got = string(s) })
		if err := w.SetText(0, []byte(c.text)); err != nil {
			got = pgerr.Code(err)
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s", DuckName(c.t), c.text, got, c.want)
		}
		if Writable(c.t) {
			t.Errorf("%s is writable", DuckName(c.t))
		}
	}
	raw, _ := hex.DecodeString("000000010000000000000017000000020000000100000004000000010000000400000002")
	got := ""
	w := NewVectorWriter(&Vector{Type: ints}, nil, func(_ int, s []byte) { got = string(s) })
	if err := w.SetBinary(0, raw); err != nil || got != `["1","2"]` {
		t.Errorf("binary array: %s, %v", got, err)
	}
}

func TestVectorWriter_NoAllocation(t *testing.T) {
	var b vectorBuilder
	cases := []struct {
		t    *LogicalType
		text string
	}{
		{simple(BigInt), "-1234567890123"},
		{simple(Double), "1234.5678"},
		{&LogicalType{ID: Decimal, Width: 18, Scale: 2}, "12345.67"},
		{simple(Date), "2024-02-29"},
		{simple(Timestamp), "2024-02-29 12:34:56.789"},
		{simple(TimestampTZ), "2024-02-29 12:34:56+02"},
		{simple(Boolean), "true"},
		{simple(UUID), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		{simple(Time), "12:34:56"},
		{simple(HugeInt), "170141183460469231731687303715884105727"},
	}
	for _, c := range cases {
		_, w := newWriter(&b, c.t, 1)
		text := []byte(c.text)
		if n := testing.AllocsPerRun(100, func() { _ = w.SetText(0, text) }); n > 0 {
			t.Errorf("%s: %v allocations", DuckName(c.t), n)
		}
	}
}
