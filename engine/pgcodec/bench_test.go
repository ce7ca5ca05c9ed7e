package pgcodec

import (
	"bytes"
	"fmt"
	"testing"
)

// benchRows is a DuckDB chunk's size.
const benchRows = 2048

// benchVector fills a chunk's column with one value.
func benchVector(b *vectorBuilder, v Value) Vector {
	values := make([]Value, benchRows)
	for i := range values {
		values[i] = v
	}
	return b.vector(v.Type, values)
}

// benchColumns are the columns that results are mostly made of.
func benchColumns(b *vectorBuilder) map[string]Vector {
	decimal := &LogicalType{ID: Decimal, Width: 15, Scale: 2}
	return map[string]Vector{
		"int8":      benchVector(b, Value{Type: simple(BigInt), Int: 1234567}),
		"text":      benchVector(b, Value{Type: typeVarchar, Bytes: []byte("carefully final deposits")}),
		"numeric":   benchVector(b, Value{Type: decimal, Int: 1234567}),
		"timestamp": benchVector(b, Value{Type: simple(Timestamp), Int: 1_700_000_000_123_000}),
		"date":      benchVector(b, Value{Type: simple(Date), Int: 19_000}),
		"float8":    benchVector(b, Value{Type: simple(Double), Float: 1234.5678}),
	}
}

func BenchmarkRowEncoder(b *testing.B) {
	var build vectorBuilder
	for name, v := range benchColumns(&build) {
		for format, kind := range []string{"text", "binary"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				chunk := Chunk{Columns: []Vector{v}, Rows: benchRows}
				e := NewRowEncoder([]Column{Describe("c", v.Type)}, []int16{int16(format)}, DefaultSettings())
				buf := make([]byte, 0, 1<<20)
				b.ReportAllocs()
				for b.Loop() {
					buf = buf[:0]
					for row := range benchRows {
						buf = e.AppendDataRow(buf, &chunk, row)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
			})
		}
	}
}

// lineitem is a row like TPC-H's, with 16 columns.
func lineitem(delimiter string) []byte {
	var out bytes.Buffer
	for i, f := range []string{"1", "155190", "7706", "1", "17", "21168.23", "0.04", "0.02", "N", "O", "1996-03-13", "1996-02-12", "1996-03-22", "DELIVER IN PERSON", "TRUCK", "egular courts above the"} {
		if i > 0 {
			out.WriteString(delimiter)
		}
		out.WriteString(f)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func BenchmarkCopyDecoder(b *testing.B) {
	for format, delimiter := range []string{"\t", ","} {
		b.Run(fmt.Sprintf("format %d", format), func(b *testing.B) {
			data := bytes.Repeat(lineitem(delimiter), 500)
			d := NewCopyDecoder(NewCopyOptions(CopyFormat(format)), 16)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_ = d.Write(data)
				for _, ok, _ := d.Next(); ok; _, ok, _ = d.Next() {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/row")
		})
	}
}

func BenchmarkVectorWriter(b *testing.B) {
	var build vectorBuilder
	for name, c := range map[string]struct {
		t    *LogicalType
		text string
	}{
		"int8": {simple(BigInt), "155190"}, "numeric": {&LogicalType{ID: Decimal, Width: 15, Scale: 2}, "21168.23"},
		"date": {simple(Date), "1996-03-13"}, "timestamp": {simple(Timestamp), "1996-03-13 12:34:56.789"}, "float8": {simple(Double), "1234.5678"},
	} {
		b.Run(name, func(b *testing.B) {
			_, w := newWriter(&build, c.t, 1)
			text := []byte(c.text)
			b.ReportAllocs()
			for b.Loop() {
				_ = w.SetText(0, text)
			}
		})
	}
}
