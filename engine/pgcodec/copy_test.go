package pgcodec

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sluice/engine/pgerr"
)

// binaryCopy is a header, two rows of two fields, and the trailer.
const binaryCopy = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x03ext" +
	"\x00\x02\x00\x00\x00\x03abc\xff\xff\xff\xff" + "\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01x" + "\xff\xff"

func TestCopyBinary_AnyPieces(t *testing.T) {
	want := "\"abc\" NULL \n\"\" \"x\" \n"
	for size := 1; size <= len(binaryCopy); size++ {
		d := NewCopyDecoder(NewCopyOptions(CopyBinary), 2)
		rows, err := decodeAll(d, []byte(binaryCopy), size)
		if err != nil || shown(rows) != want || d.Line() != 3 {
			t.Errorf("by %d: %s, %v, line %d", size, shown(rows), err, d.Line())
		}
	}
}

// TestCopyBinary_NoTrailer takes the end of the data for the trailer, as PostgreSQL does: pgx sends none.
func TestCopyBinary_NoTrailer(t *testing.T) {
	d := NewCopyDecoder(NewCopyOptions(CopyBinary), 2)
	rows, err := decodeAll(d, []byte(binaryCopy[:len(binaryCopy)-2]), 1000)
	if want := "\"abc\" NULL \n\"\" \"x\" \n"; err != nil || shown(rows) != want {
		t.Errorf("got %s, %v", shown(rows), err)
	}
}

func TestCopyBinary_Refused(t *testing.T) {
	header := binaryCopy[:22]
	cases := []struct{ data, want string }{
		{binaryCopy[:len(binaryCopy)-3], "unexpected EOF in COPY data"},
		{binaryCopy[:len(binaryCopy)-1], "unexpected EOF in COPY data"},
		{"", "COPY file signature not recognized"},
		{"PGCOPX", "COPY file signature not recognized"},
		{"PGCO", "COPY file signature not recognized"},
		{binaryCopy[:15], "unexpected EOF in COPY data"},
		{binaryCopy + "x", "received copy data after EOF marker"},
		{header + "\x00\x03", "row field count is 3, expected 2"},
		{header + "\x00\x02\xff\xff\xff\xfe", "invalid field size"},
		{header + "\x80\x00", "row field count is -32768, expected 2"},
		{strings.Replace(binaryCopy, "\x00\x00\x00\x00\x00", "\x00\x00\x01\x00\x00", 1), "invalid COPY file header (WITH OIDS)"},
		{strings.Replace(binaryCopy, "\x00\x00\x00\x00\x00", "\x00\x80\x00\x00\x00", 1), "unrecognized critical flags in COPY file header"},
		{strings.Replace(binaryCopy, "\x00\x00\x00\x03", "\xff\x00\x00\x03", 1), "invalid COPY file header (missing length)"},
	}
	for _, c := range cases {
		for _, size := range []int{1, 7, 1000} {
			_, err := decodeAll(NewCopyDecoder(NewCopyOptions(CopyBinary), 2), []byte(c.data), size)
			if e := pgerr.From(err); e == nil || e.Message != c.want || e.Code != "22P04" {
				t.Errorf("%q by %d: got %v, want %s", c.data, size, err, c.want)
			}
		}
	}
}

func TestCopyBinary_RoundTrip(t *testing.T) {
	var b vectorBuilder
	chunk := Chunk{Columns: []Vector{b.ints(BigInt, 1, 2), b.strings("x", "y")}, Rows: 2}
	b.setNull(&chunk.Columns[1], 1)
	columns := []Column{Describe("a", simple(BigInt)), Describe("b", typeVarchar)}
	e := NewCopyEncoder(NewCopyOptions(CopyBinary), columns, nil)
	out := e.Header(nil)
	for row := range 2 {
		out = e.AppendRow(out, &chunk, row)
	}
	out = e.Trailer(out)
	rows, err := decodeAll(NewCopyDecoder(NewCopyOptions(CopyBinary), 2), out, 3)
	if want := `"\x00\x00\x00\x00\x00\x00\x00\x01" "x" ` + "\n" + `"\x00\x00\x00\x00\x00\x00\x00\x02" NULL ` + "\n"; err != nil || shown(rows) != want {
		t.Errorf("got %s, %v", shown(rows), err)
	}
	framed := NewCopyEncoder(NewCopyOptions(CopyText), columns, nil).AppendCopyData(nil, &chunk, 1)
	if string(framed) != "d\x00\x00\x00\x09"+"2\t\\N\n" {
		t.Errorf("CopyData is %q", framed)
	}
}

func TestCopyDecoder_Default(t *testing.T) {
	for _, c := range []struct {
		format CopyFormat
		data   string
	}{{CopyText, "a\t\\D\tx\\D\n"}, {CopyCSV, "a,\\D,\"\\D\"\n"}} {
		o := NewCopyOptions(c.format)
		o.Default, o.HasDefault = `\D`, true
		d := NewCopyDecoder(o, 3)
		if err := d.Write([]byte(c.data)); err != nil {
			t.Fatal(err)
		}
		fields, ok, err := d.Next()
		if !ok || err != nil || IsDefault(fields[0]) || !IsDefault(fields[1]) || IsDefault(fields[2]) {
			t.Errorf("%q: %q, %v, %v", c.data, fields, ok, err)
		}
	}
	if IsDefault([]byte("DEFAULT")) {
		t.Error("text of a client is taken for the marker")
	}
}

func TestCopyDecoder_NoColumns(t *testing.T) {
	rows, err := decodeAll(NewCopyDecoder(NewCopyOptions(CopyText), 0), []byte("\n\n"), 1)
	if err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if _, err = decodeAll(NewCopyDecoder(NewCopyOptions(CopyCSV), 0), []byte("x\n"), 1); pgerr.Code(err) != "22P04" {
		t.Errorf("a field too many: %v", err)
	}
}

func TestCopyDecoder_Where(t *testing.T) {
	o := NewCopyOptions(CopyText)
	o.Table, o.ColumnNames = "t", []string{"a", "b"}
	d := NewCopyDecoder(o, 2)
	long := strings.Repeat("é", 80)
	if err := d.Write([]byte("1\t" + long + "\n")); err != nil {
		t.Fatal(err)
	}
	fields, _, err := d.Next()
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Where(1, fields[1]); got != `COPY t, line 1, column b: "`+strings.Repeat("é", 50)+`..."` {
		t.Errorf("got %s", got)
	}
	if got := d.Where(0, nil); got != "COPY t, line 1, column a: null input" {
		t.Errorf("got %s", got)
	}
}

// A million small rows must not make the decoder look at anything twice, nor grow.
func TestCopyDecoder_BufferStaysSmall(t *testing.T) {
	d := NewCopyDecoder(NewCopyOptions(CopyCSV), 2)
	piece := bytes.Repeat([]byte("1,\"x\ny\"\n"), 1000)
	rows := 0
	for range 100 {
		if err := d.Write(piece[:len(piece)-3]); err != nil {
			t.Fatal(err)
		}
		for _, ok, err := d.Next(); ok || err != nil; _, ok, err = d.Next() {
			if err != nil {
				t.Fatal(err)
			}
			rows++
		}
		if err := d.Write(piece[len(piece)-3:]); err != nil {
			t.Fatal(err)
		}
	}
	if cap(d.buf) > 4*len(piece) || rows != 99_999+0 && rows < 99_000 {
		t.Errorf("%d rows, buffer of %d bytes", rows, cap(d.buf))
	}
}

func TestParseCopyOptions_Refused(t *testing.T) {
	columns := []Column{Describe("a", typeVarchar)}
	csv := CopyOption{Name: "format", Value: "csv"}
	binary := CopyOption{Name: "format", Value: "binary"}
	cases := []struct {
		in   bool
		list []CopyOption
		code string
	}{
		{true, []CopyOption{{Name: "nosuch"}}, "42601"},
		{true, []CopyOption{csv, csv}, "42601"},
		{true, []CopyOption{{Name: "format", Value: "xml"}}, "22023"},
		{true, []CopyOption{{Name: "delimiter", Value: "ab"}}, "0A000"},
		{true, []CopyOption{{Name: "delimiter", Value: "a"}}, "22023"},
		{true, []CopyOption{{Name: "delimiter", Value: "\n"}}, "22023"},
		{true, []CopyOption{{Name: "quote", Value: "x"}}, "0A000"},
		{true, []CopyOption{csv, {Name: "quote", Value: ","}}, "22023"},
		{true, []CopyOption{binary, {Name: "null", Value: ""}}, "42601"},
		{true, []CopyOption{binary, {Name: "header"}}, "0A000"},
		{true, []CopyOption{{Name: "header", Value: "maybe"}}, "42601"},
		{false, []CopyOption{{Name: "header", Value: "match"}}, "0A000"},
		{true, []CopyOption{csv, {Name: "force_quote", List: []string{"a"}}}, "0A000"},
		{true, []CopyOption{csv, {Name: "force_null", List: []string{"z"}}}, "42P10"},
		{true, []CopyOption{{Name: "force_null", List: []string{"a"}}}, "0A000"},
		{false, []CopyOption{csv, {Name: "force_not_null", List: []string{"a"}}}, "0A000"},
		{true, []CopyOption{{Name: "encoding", Value: "latin1"}}, "0A000"},
		{true, []CopyOption{{Name: "null", Value: "a\nb"}}, "22023"},
		{true, []CopyOption{{Name: "null", Value: "\t"}}, "0A000"},
		{true, []CopyOption{csv, {Name: "null", Value: `"`}}, "0A000"},
		{true, []CopyOption{{Name: "default", Value: `\N`}}, "22023"},
		{false, []CopyOption{{Name: "default", Value: `\D`}}, "0A000"},
		{true, []CopyOption{{Name: "on_error", Value: "ignore"}}, "0A000"},
	}
	for _, c := range cases {
		if _, err := ParseCopyOptions(c.list, c.in, columns); pgerr.Code(err) != c.code {
			t.Errorf("%+v: got %v, want %s", c.list, err, c.code)
		}
	}
	o, err := ParseCopyOptions([]CopyOption{csv, {Name: "header", Value: "true"}, {Name: "quote", Value: "'"}, {Name: "force_quote", List: []string{"*"}}, {Name: "encoding", Value: "UTF8"}}, false, columns)
	if err != nil || o.Header != HeaderLine || o.Escape != '\'' || len(o.ForceQuote) != 1 || o.ColumnNames[0] != "a" {
		t.Errorf("got %+v, %v", o, err)
	}
}

// FuzzCopyDecoder feeds any bytes in pieces, and expects the same rows and errors whatever the pieces.
func FuzzCopyDecoder(f *testing.F) {
	f.Add([]byte("a\tb\n\\N\tx\\ty\r\n\\.\n"), uint8(0), uint8(1))
	f.Add([]byte("a,\"b\n\"\"c\"\r\nx,y"), uint8(1), uint8(2))
	f.Add([]byte(binaryCopy), uint8(2), uint8(3))
	f.Add([]byte("'a\\'b';c\\\r"), uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, kind, size uint8) {
		o := NewCopyOptions(CopyFormat(kind % 3))
		if kind%4 == 3 {
			o = NewCopyOptions(CopyCSV)
			o.Quote, o.Escape, o.Delimiter = '\'', '\\', ';'
		}
		want, wantErr := decodeAll(NewCopyDecoder(o, 2), data, len(data)+1)
		got, err := decodeAll(NewCopyDecoder(o, 2), data, int(size)+1)
		if shown(got) != shown(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("in pieces of %d: %s %v, in one: %s %v", int(size)+1, shown(got), err, shown(want), wantErr)
		}
	})
}

// FuzzCopyRoundTrip writes two texts and reads them back.
func FuzzCopyRoundTrip(f *testing.F) {
	f.Add("a\tb", "\\N", uint8(0))
	f.Add("a\"b", "\\.", uint8(1))
	f.Add("'\\", "\r\n", uint8(3))
	f.Fuzz(func(t *testing.T, x, y string, kind uint8) {
		if checkUTF8([]byte(x+"|"+y)) != nil {
			return
		}
		o := NewCopyOptions(CopyFormat(kind % 3))
		if kind%4 == 3 {
			o = NewCopyOptions(CopyCSV)
			o.Quote, o.Escape, o.Delimiter = '\'', '\\', ';'
		}
		var b vectorBuilder
		chunk := Chunk{Columns: []Vector{b.strings(x), b.strings(y)}, Rows: 1}
		e := NewCopyEncoder(o, []Column{Describe("x", typeVarchar), Describe("y", typeVarchar)}, nil)
		data := e.Trailer(e.AppendRow(e.Header(nil), &chunk, 0))
		rows, err := decodeAll(NewCopyDecoder(o, 2), data, 3)
		if err != nil || len(rows) != 1 || rows[0][0] == nil || rows[0][1] == nil || *rows[0][0] != x || *rows[0][1] != y {
			t.Errorf("%q %q became %q, %s, %v", x, y, data, shown(rows), err)
		}
	})
}
