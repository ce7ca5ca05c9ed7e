package pgcodec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice/engine/pgerr"
)

// failureWant is an error of PostgreSQL's in testdata.
type failureWant struct{ Code, Message, Detail, Hint, Where string }

// loadJSON reads a file of testdata.
func loadJSON(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// inputsApart are texts that we treat otherwise than PostgreSQL, by type and text, and why.
var inputsApart = map[string]string{
	`timestamp "294276-12-31 23:59:59"`:                           "DuckDB's range ends in 294247",
	`timestamptz "294276-12-31 23:59:59"`:                         "DuckDB's range ends in 294247",
	`interval "0.0000015 seconds"`:                                "rounds what PostgreSQL's float arithmetic cuts",
	`interval "0.0000015 seconds"map[IntervalStyle:sql_standard]`: "the same",
	`int4[] "[0:2]={1,2,3}"`:                                      "lists have no lower bounds",
	`int4[] "[2:3][1:1]={{1},{2}}"`:                               "lists have no lower bounds",
	`int4[] "{{},{}}"`:                                            "as PostgreSQL 17 has it",
}

// copyApart are data that we treat otherwise than PostgreSQL, and why.
var copyApart = map[string]string{
	"a\tb\tc\n\\.": "an end marker without a line end is one too",
}

// TestDecodeText_LikePostgreSQL gives texts to DecodeText and expects PostgreSQL's value, or its error's code and message.
func TestDecodeText_LikePostgreSQL(t *testing.T) {
	var rows []struct {
		encoding
		Input string
		Error *failureWant
	}
	loadJSON(t, "inputs.json", &rows)
	for _, r := range rows {
		src, _ := hex.DecodeString(r.Input)
		name := fmt.Sprintf("%s %q", r.Type, src)
		if len(r.Settings) > 0 {
			name += fmt.Sprint(r.Settings)
		}
		if inputsApart[name] != "" {
			continue
		}
		value, err := DecodeText(r.OID, src, r.settings(t))
		if r.Error != nil {
			got := pgerr.From(err)
			switch {
			case got == nil:
				t.Errorf("%s: reads as %s, want %s %s", name, value.AppendDuck(nil), r.Error.Code, r.Error.Message)
			case got.Code != r.Error.Code || got.Message != r.Error.Message || got.Hint != r.Error.Hint:
				t.Errorf("%s: got %s %s (%s), want %s %s (%s)", name, got.Code, got.Message, got.Hint, r.Error.Code, r.Error.Message, r.Error.Hint)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, _ := hex.DecodeString(r.Binary)
		if value.Type == typeDouble && r.OID == OIDNumeric || bytes.Equal(encodeBack(&value), want) {
			continue
		}
		t.Errorf("%s: reads as %x (%s), want %x", name, encodeBack(&value), value.AppendDuck(nil), want)
	}
}

// encodeBack writes a value in binary.
func encodeBack(v *Value) []byte {
	var b vectorBuilder
	vector := b.vector(v.Type, []Value{*v})
	return BinaryEncoder(v.Type)(nil, &vector, 0, DefaultSettings())
}

// copyRow is one row of copy.json.
type copyRow struct {
	Options string
	Input   string
	Rows    [][]*string
	Output  string
	Error   *failureWant
}

// options reads the text of COPY's options as far as testdata needs it.
func (r *copyRow) options(t testing.TB, in bool) CopyOptions {
	t.Helper()
	var list []CopyOption
	for text := range strings.SplitSeq(r.Options, ", ") {
		name, value, _ := strings.Cut(text, " ")
		o := CopyOption{Name: strings.ToLower(name)}
		switch value = strings.TrimPrefix(value, "E"); {
		case name == "":
			continue
		case value == "*":
			o.List = []string{"*"}
		case strings.HasPrefix(value, "("):
			o.List = []string{strings.Trim(value, "()")}
		case value == `'\\t'`, value == `'\t'`:
			o.Value = "\t"
		case strings.HasPrefix(value, "'"):
			o.Value = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
		default:
			o.Value = value
		}
		list = append(list, o)
	}
	var columns []Column
	for _, name := range []string{"a", "b", "c"} {
		columns = append(columns, Describe(name, typeVarchar))
	}
	o, err := ParseCopyOptions(list, in, columns)
	if err != nil {
		t.Fatalf("%s: %v", r.Options, err)
	}
	o.Table = "t"
	return o
}

// decodeAll feeds data in pieces of a size.
func decodeAll(d *CopyDecoder, data []byte, size int) (rows [][]*string, err error) {
	take := func() error {
		for {
			fields, ok, err := d.Next()
			if !ok || err != nil {
				return err
			}
			row := make([]*string, len(fields))
			for i, f := range fields {
				if f != nil {
					s := string(f)
					row[i] = &s
				}
			}
			rows = append(rows, row)
		}
	}
	for len(data) > 0 {
		piece := bytes.Clone(data[:min(size, len(data))])
		data = data[len(piece):]
		if err := d.Write(piece); err != nil {
			return rows, err
		}
		clear(piece)
		if err := take(); err != nil {
			return rows, err
		}
	}
	if err := d.Finish(); err != nil {
		return rows, err
	}
	return rows, take()
}

// shown prints rows for comparison.
func shown(rows [][]*string) string {
	var out strings.Builder
	for _, row := range rows {
		for _, f := range row {
			if f == nil {
				out.WriteString("NULL ")
			} else {
				fmt.Fprintf(&out, "%q ", *f)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestCopy_LikePostgreSQL reads data as PostgreSQL's COPY FROM does, in pieces of several sizes, and writes rows as COPY TO.
func TestCopy_LikePostgreSQL(t *testing.T) {
	var rows []copyRow
	loadJSON(t, "copy.json", &rows)
	for _, r := range rows {
		if r.Output != "" {
			checkCopyOut(t, &r)
			continue
		}
		data, _ := hex.DecodeString(r.Input)
		if copyApart[string(data)] != "" {
			continue
		}
		for _, size := range []int{1, 2, 5, 1 << 20} {
			d := NewCopyDecoder(r.options(t, true), 3)
			got, err := decodeAll(d, data, size)
			name := fmt.Sprintf("%s %q by %d", r.Options, data, size)
			if r.Error == nil {
				if err != nil || shown(got) != shown(r.Rows) {
					t.Errorf("%s: got %s %v, want %s", name, shown(got), err, shown(r.Rows))
				}
				continue
			}
			e := pgerr.From(err)
			if e == nil {
				t.Errorf("%s: got %s, want %s %s", name, shown(got), r.Error.Code, r.Error.Message)
				continue
			}
			if e.Code != r.Error.Code || e.Message != r.Error.Message || e.Hint != r.Error.Hint {
				t.Errorf("%s: got %s %s (%s), want %s %s (%s)", name, e.Code, e.Message, e.Hint, r.Error.Code, r.Error.Message, r.Error.Hint)
			}
			if line, _, _ := strings.Cut(r.Error.Where, ":"); line != strings.Split(e.Where, ":")[0] {
				t.Errorf("%s: at %s, want %s", name, e.Where, r.Error.Where)
			}
		}
	}
}

// checkCopyOut compares what COPY TO writes.
func checkCopyOut(t *testing.T, r *copyRow) {
	t.Helper()
	var b vectorBuilder
	chunk := Chunk{Rows: len(r.Rows)}
	var columns []Column
	for i, name := range []string{"a", "b", "c"} {
		values := make([]Value, len(r.Rows))
		for row := range r.Rows {
			if f := r.Rows[row][i]; f == nil {
				values[row].Null = true
			} else {
				values[row].Bytes = []byte(*f)
			}
		}
		chunk.Columns = append(chunk.Columns, b.flat(typeVarchar, values))
		columns = append(columns, Describe(name, typeVarchar))
	}
	e := NewCopyEncoder(r.options(t, false), columns, nil)
	out := e.Header(nil)
	for row := range chunk.Rows {
		out = e.AppendRow(out, &chunk, row)
	}
	if out = e.Trailer(out); string(out) != r.Output {
		t.Errorf("%s: got\n%q\nwant\n%q", r.Options, out, r.Output)
	}
}
