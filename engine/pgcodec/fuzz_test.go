package pgcodec

import (
	"encoding/hex"
	"testing"
)

// seedEncodings adds PostgreSQL's values to a fuzz test.
func seedEncodings(f *testing.F, add func(oid uint32, text string, binary []byte)) {
	f.Helper()
	for _, e := range loadEncodings(f) {
		raw, _ := hex.DecodeString(e.Binary)
		add(e.OID, e.Text, raw)
	}
}

// FuzzDecodeText reads any text, and what it takes it has to be able to print and read again.
func FuzzDecodeText(f *testing.F) {
	seedEncodings(f, func(oid uint32, text string, _ []byte) { f.Add(oid, []byte(text)) })
	f.Fuzz(func(t *testing.T, oid uint32, src []byte) {
		v, err := DecodeText(oid, src, DefaultSettings())
		if err != nil || v.Null || v.Type.ID == List {
			return
		}
		var b vectorBuilder
		vector := b.vector(v.Type, []Value{v})
		text := TextEncoder(v.Type)(nil, &vector, 0, DefaultSettings())
		again, err := DecodeText(Describe("", v.Type).OID, text, DefaultSettings())
		if err != nil {
			t.Fatalf("%d %q prints as %q, which gives %v", oid, src, text, err)
		}
		if got := string(again.AppendDuck(nil)); got != string(v.AppendDuck(nil)) {
			t.Errorf("%d %q prints as %q, which reads as %s", oid, src, text, got)
		}
	})
}

// FuzzDecodeBinary reads any bytes, and what it takes it has to be able to print.
func FuzzDecodeBinary(f *testing.F) {
	seedEncodings(f, func(oid uint32, _ string, raw []byte) { f.Add(oid, raw) })
	f.Fuzz(func(t *testing.T, oid uint32, src []byte) {
		v, err := DecodeBinary(oid, src)
		if err != nil || v.Null {
			return
		}
		var b vectorBuilder
		vector := b.vector(v.Type, []Value{v})
		TextEncoder(v.Type)(nil, &vector, 0, DefaultSettings())
		if check := arrayCheck(v.Type); check == nil || check(&vector, 0) == nil {
			BinaryEncoder(v.Type)(nil, &vector, 0, DefaultSettings())
		}
		v.AppendDuck(nil)
	})
}

// FuzzParseStamp reads dates in every order; it must end and not panic.
func FuzzParseStamp(f *testing.F) {
	for _, s := range []string{"2024-02-29 12:34:56.789+05:30", "Thu Feb 29 12:34:56 2024 PST", "8 Jan 99 BC", "20240101T101010", "now", "Jan-08-1999", "1 year 2 mons", "P1Y2M3DT4H", "@ 1 hour ago"} {
		f.Add([]byte(s), uint8(0))
	}
	f.Fuzz(func(_ *testing.T, src []byte, order uint8) {
		s := DefaultSettings()
		s.DateOrder, s.IntervalStyle = DateOrder(order%3), IntervalStyle(order%4)
		parseTimestamp(src, order%2 == 0, s)
		parseInterval(src, s)
		parseTimeTZ(src, s)
	})
}
