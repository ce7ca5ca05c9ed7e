//go:build ignore

// Inputs asks a real PostgreSQL what it makes of parameters in text format and of COPY data, and writes testdata/inputs.json
// and testdata/copy.json.
//
//	go run inputs_gen.go -dsn 'host=/run/postgresql user=postgres' -dir testdata
//
// A PostgreSQL 15 answered; others word a few errors differently.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// failure is an error as PostgreSQL words it.
type failure struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
}

// input is one row of inputs.json.
type input struct {
	Type     string            `json:"type"`
	OID      uint32            `json:"oid"`
	Settings map[string]string `json:"settings,omitempty"`
	Input    string            `json:"input"`
	Binary   string            `json:"binary,omitempty"`
	Error    *failure          `json:"error,omitempty"`
}

// copyIn is one row of copy.json with data for COPY FROM; rows is what the table holds then.
type copyCase struct {
	Options string      `json:"options"`
	Input   string      `json:"input,omitempty"`
	Rows    [][]*string `json:"rows"`
	Output  string      `json:"output,omitempty"`
	Error   *failure    `json:"error,omitempty"`
}

// group is texts for one type.
type group struct {
	typ      string
	oid      uint32
	settings map[string]string
	texts    []string
}

var numbers = []string{
	"0", " 12 ", "+5", "-0", "007", "", " ", "x", "1x", "1 2", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "1.0", "1e3", "+-1", "-", "+",
}

var floats = []string{
	"0", " 1.5 ", "-0", ".5", "5.", "1e10", "1E-10", "+1e+5", "NaN", "nan", "inf", "Infinity", "-infinity", "+inf", "", "x", "1e", "1e400", "-1e400", "1e-400", "1e40",
	"1e-50", "1.5.5", "1_000", "0.1e", "--1", "infinit", "1 2", "1e38", "3.5e38",
}

var numerics = []string{
	"0", "0.0", " 12.50 ", "-.5", "5.", "1e3", "1.5e-3", "-1.50E+2", "NaN", "nan", "", "x", "1e", "1.2.3", "00012.00", "+7", "12345678901234567890.12345", "- 1", "1 2",
	"0e10", "0.00e2", ".", "-", "1e1x", "infinit",
}

var dates = []string{
	"2024-02-29", "20240229", "2024-2-9", "1999-01-08", "January 8, 1999", "Jan 8 1999", "8 Jan 1999", "1999 Jan 08", "1999-Jan-08", "Jan-08-1999", "08-Jan-1999", "08-Jan-99",
	"1/8/1999", "1/18/1999", "01/02/03", "99-Jan-08", "2024-02-30", "2024-13-01", "2023-02-29", "2024-00-10", "2024-01-00", "0001-01-01 BC", "0044-03-15 BC", "January 8, 99 BC",
	"infinity", "-infinity", "epoch", "", "x", "2024", "2024-01", "2024-01-01-01", "10000-01-01", "5874897-12-31", "0000-01-01", " 2024-01-01 ",
	"2024-01-01 10:00:00", "Mon Jan 01 2024", "2024.001", "2024-366", "1.2.2024", "2024/01/02", "12-31-2024", "31-12-2024", "990108", "  ", "2024-01-01x", "1999-01-08 AD",
}

var times = []string{
	"10:00", "10:00:01", "10:00:00.5", "10:00:00.1234567", "10:00:00.9999999", "24:00:00", "24:00:01", "25:00", "10:60", "10:00:60", "10:00:61", "10:00 PM", "10:00 am", "12:00 AM", "12:30 pm", "13:00 PM",
	"1:2", "", "x", "10", "allballs", "2024-01-01 10:00:00", "T10:00", "10:00:00 UTC", "10:00:00+02", "-10:00",
}

var timetzs = []string{
	"10:00+05:30", "10:00-08", "10:00 UTC", "10:00Z", "10:00:00.25+0530", "10:00 EST", "10:00+16", "10:00+15:59:59", "10:00-15:59", "10:00+5", "2024-01-01 10:00 America/New_York", "10:00 America/New_York", "x", "allballs",
}

var stamps = []string{
	"2024-02-29 12:34:56", "2024-02-29T12:34:56", "2024-02-29 12:34:56.789", "2024-02-29 12:34:56.7891234", "2024-02-29 12:34:56.9999999", "2024-02-29 23:59:59.9999999", "2024-02-29 12:34", "2024-02-29",
	"20240229T123456", "2024-02-29 12:34:56+02", "2024-02-29 12:34:56-03:30", "2024-02-29T12:34:56Z", "2024-02-29 12:34:56 UTC", "2024-02-29 12:34:56 America/New_York", "2024-07-01 12:34:56 Europe/Berlin",
	"2024-02-29 12:34:56 EST", "2024-02-29 12:34:56+0530", "2024-02-29 12:34:56 +05:30:10", "Thu Feb 29 12:34:56 2024", "Thu Feb 29 12:34:56 2024 PST", "Feb 29 2024 12:34:56 PM", "29 Feb 2024 1:02 pm",
	"infinity", "-infinity", "epoch", "", "x", "2024-02-29 24:00:00", "2024-02-29 24:00:01", "2024-02-29 25:00:00", "2024-02-29 12:60:00", "2024-02-29 12:34:61", "2024-02-30 10:00:00", "2024-13-01 10:00:00",
	"0001-01-01 00:00:00 BC", "0044-03-15 12:00:00+00 BC", "294276-12-31 23:59:59", "12/31/2024 10:00", "31.12.2024 10:00", "2024-02-29 12:34:56+16:00", "2024-02-29 12:34:56 Foo/Bar", "2024-02-29 12:34:56 foo",
	"12:34:56", "2024-02-29 12:34:56 12:00", "2024-02-29 2024-02-29", "1999-01-08 04:05:06 -8:00", "2024-02-29 12:34:56.", "2024-02-29  12:34:56",
}

var berlin = []string{
	"2024-03-31 02:30:00", "2024-03-31 01:59:59", "2024-03-31 03:00:00", "2024-10-27 02:30:00", "2024-10-27 01:59:59", "2024-10-27 03:00:00", "1900-01-01 00:00:00", "1890-01-01 00:00:00", "2060-07-01 00:00:00",
	"2024-06-01 12:00:00+00", "1947-05-11 03:30:00",
}

var intervals = []string{
	"1 year", "1 year 2 mons 3 days 04:05:06", "@ 1 hour ago", "1 day 2 hours 3 minutes 4 seconds", "1.5 days", "1.5 months", "1.5 years", "0.5 weeks", "1 week", "2 decades", "1 century", "1 millennium", "-1 day",
	"1 day ago", "P1Y2M3DT4H5M6S", "P1Y2M3DT4H5M6.5S", "PT0S", "P1W", "P-1Y", "PT-1H", "P0001-02-03T04:05:06", "1-2", "-1-2", "1-2 3 4:05:06", "3 4:05:06", "4:05:06", "4:05", "-4:05:06", "100:00:00", "1:2:3.5",
	"5", "5.5", "1 5", "", "x", "1 x", "1 day x", "P", "PT", "P1", "1 year 1 year", "2147483647 years", "178956970 years", "178956971 years", "2147483647 days", "2147483648 days", "10:60", "10:00:61", "1h 2m 3s", "1d", "1 mon 2",
	"1 microsecond", "1.5 ms", "0.0000015 seconds", "1 day -01:00:00", "-1 day +01:00:00", "1 year -2 mons", "ago", "1 hour ago ago", "infinity", "1 min", "1 mins", "1 msec", "3 days 1", "1.1 mon", "-1.5 days", "-0.5 mon",
}

var bools = []string{"t", "true", "TRUE", "tr", "y", "yes", "on", "1", "f", "false", "n", "no", "of", "off", "0", "o", "", " t ", "2", "truex", "ye", "nope"}

var uuids = []string{
	"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
	"", "x", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111", "a0eebc9-99c0b-4ef8-bb6d-6bb9bd380a11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
}

var byteas = []string{`\x00ff`, `\x00 ff`, `\xfF`, `\x`, ``, `abc`, `a\\b`, `\000\377`, `\x0`, `\x0g`, `\x é`, `a\b`, `\400`, `\47`, `a\`}

var bits = []string{"1", "0101", "b101", "B1", "x1F", "XAB", "2", "1012", "xG", " 1"}

var arrays = []string{
	"{}", "{1,2,3}", "{1,NULL,3}", "{{1,2},{3,4}}", " { 1 , 2 } ", "[0:2]={1,2,3}", "[2:3][1:1]={{1},{2}}", "{{1,2},{3}}", "{1,{2}}", "{{1},2}", "{1,2", "1,2}", "{1,,2}", "{,1}", "{1,}", "{1} x", "{x}", "", "{{},{}}", `{"1","2"}`,
	"{null}", "{NULL}", "{{{{{{1}}}}}}", "{{{{{{{1}}}}}}}", "{99999999999}", "{1 2}", "{-5, +6}", "{\"1\" , 2}", "{[1]}", "[1:2]={1,2}",
}

var textArrays = []string{
	`{a,b}`, `{"a,b","c\"d","e\\f"}`, `{a\,b,c\"d}`, `{ a b , c }`, `{"NULL",null,nUlL}`, `{""}`, `{a"b"c}`, `{"a"b}`, `{a`, `{"a}`, `{a}b`, `{a{b}`, `{"a\`, `{é,✓}`, `{" a "," b"}`, "{\ta\n,b}", `{a\ }`, `{\N}`,
}

var groups = []group{
	{"bool", 16, nil, bools},
	{"int2", 21, nil, numbers},
	{"int4", 23, nil, numbers},
	{"int8", 20, nil, numbers},
	{"float4", 700, nil, floats},
	{"float8", 701, nil, floats},
	{"numeric", 1700, nil, numerics},
	{"text", 25, nil, []string{"", "a", "\xff", "ab\xc3", "\xc3\x28", "\xed\xa0\x80", "\xf0\x9d\x84\x9e"}},
	{"bytea", 17, nil, byteas},
	{"varbit", 1562, nil, bits},
	{"uuid", 2950, nil, uuids},
	{"date", 1082, nil, dates},
	{"date", 1082, map[string]string{"DateStyle": "ISO, DMY"}, dates},
	{"date", 1082, map[string]string{"DateStyle": "ISO, YMD"}, dates},
	{"time", 1083, nil, times},
	{"timetz", 1266, nil, timetzs},
	{"timestamp", 1114, nil, stamps},
	{"timestamptz", 1184, nil, stamps},
	{"timestamptz", 1184, map[string]string{"TimeZone": "Europe/Berlin"}, berlin},
	{"interval", 1186, nil, intervals},
	{"interval", 1186, map[string]string{"IntervalStyle": "sql_standard"}, intervals},
	{"int4[]", 1007, nil, arrays},
	{"text[]", 1009, nil, textArrays},
}

// copyOptions and their data for COPY FROM a table of three text columns.
var copies = []struct {
	options string
	inputs  []string
}{
	{"", []string{
		"a\tb\tc\n", "a\tb\tc", "", "a\tb\tc\nd\te\tf\n", "\\N\t\\\\N\t\n", "a\\tb\tc\\nd\te\\\\f\n", "\\b\\f\\n\\r\\t\\v\tx\ty\n", "\\101\\x41\\x4\t\\q\t\\x\n", "a\tb\n", "a\tb\tc\td\n", "\n",
		"a\tb\tc\r\nd\te\tf\r\n", "a\tb\tc\rd\te\tf\r", "a\tb\tc\nd\te\tf\r\n", "a\tb\tc\r\nd\te\tf\n", "a\tb\tc\n\\.\nx\n", "a\tb\tc\n\\.", "a\\\nb\tc\td\n", "a\tb\\.\tc\n", "\\.x\tb\tc\n", "a\tb\t\\000\n", "a\t\\xff\tc\n",
		"a\tb\t\xff\n", "a\tb\tc\\\n", "é\t✓\t\\303\\251\n", "a\tb\tc\\", "a\tb\rc\td\n", "\\.\n", "a\t\\ \t\\\tx\n", "a\tb\tc\n\n", "\x00\tb\tc\n",
	}},
	{"DELIMITER '|', NULL ''", []string{"a||c\n", "a\\|b|\\N|c\n", "||\n", "a\tb|c|\\\\\n"}},
	{"NULL 'nil'", []string{"nil\t\\nil\tnill\n"}},
	{"HEADER", []string{"a\tb\tc\nd\te\tf\n", "x\n1\t2\t3\n", ""}},
	{"HEADER match", []string{"a\tb\tc\nd\te\tf\n", "a\tB\tc\n", "a\tb\n", "a\tb\tc\td\n", "a\t\\N\tc\n"}},
	{"FORMAT csv", []string{
		"a,b,c\n", "a,b,c", "a,\"b\n\"\"c\"\"\",d\n", ",\"\",x\n", "a,b\n", "a,b,c,d\n", "\n", "a,\"b,c\n", "a\"b\"c,d,e\n", "\"a\"\"b\",\"c\"d,e\n", "a,b,c\r\nd,e,f\r\n", "a,\"b\r\nc\",d\r\n", "a,b,c\nd,e,f\r\n", "a,b,c\r\nd,e,f\n",
		"a,b,c\n\\.\n", "\\.,b,c\n", "\\.\n", "\\N,\\\\N,\"\\N\"\n", "a,b,\xff\n", "a,b,c\n\n", "\"a\rb\",c,d\n", "a\rb,c,d\n", " a , \"b\" ,c\n", "\"a\n\\.\nb\",c,d\n", "é,\"✓\",c\n", "a,b,\"\n", "a,\"b\nc\",\"d\ne\"\nf,g\n",
		"a,b,\"c\"\"\"\n", "\"\"\"\",\"\"\"\"\"\",x\n",
	}},
	{"FORMAT csv, NULL 'nil', FORCE_NULL (c)", []string{"nil,\"nil\",\"nil\"\n", "a,,nil\n"}},
	{"FORMAT csv, FORCE_NOT_NULL (a)", []string{",,x\n", "\"\",,\n"}},
	{"FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (a)", []string{",\"\",x\n", "\"\",,\n"}},
	{"FORMAT csv, QUOTE '''', ESCAPE '\\', DELIMITER ';'", []string{"'a\\'b';'c\\\\d';e\n", "'a\\nb';c\\d;'e;\nf'\n", "'a\\\nb';c;d\n", "\"a;b;c\n", "'a''b';c;d\n", "'a\\';b;c\n"}},
	{"FORMAT csv, HEADER match", []string{"a,\"b\",c\n1,2,3\n", "a,,c\n1,2,3\n", "\"a\nx\",b,c\n"}},
	{"FORMAT csv, HEADER", []string{"\"a\nb\",\nd,e,f\n", "a\n"}},
}

// rows for COPY TO.
var outRows = [][]*string{
	{str("a"), str("b c"), nil},
	{str(""), str("\\N"), str("\\.")},
	{str("x,y"), str("q\"q"), str("l\nm")},
	{str("t\tt"), str("r\rr"), str("\\")},
	{str("\b\f\v\x01"), str("é✓"), str("a|b;c'd")},
	{nil, nil, nil},
	{str("nil"), str("\"\""), str(" s ")},
}

var outOptions = []string{
	"", "DELIMITER '|', NULL ''", "NULL 'nil'", "HEADER", "FORMAT csv", "FORMAT csv, HEADER", "FORMAT csv, FORCE_QUOTE *", "FORMAT csv, FORCE_QUOTE (b), NULL 'nil'",
	"FORMAT csv, QUOTE '''', ESCAPE '\\', DELIMITER ';'", "FORMAT csv, DELIMITER E'\\t'",
}

// str points to a string.
func str(s string) *string { return &s }

func main() {
	dsn := flag.String("dsn", "", "a PostgreSQL server")
	dir := flag.String("dir", ".", "where the files go")
	flag.Parse()
	ctx := context.Background()
	if err := errors.Join(inputs(ctx, *dsn, *dir), copyData(ctx, *dsn, *dir)); err != nil {
		log.Fatal(err)
	}
}

// write stores a file.
func write(path string, content any) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := json.NewEncoder(f)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	return errors.Join(out.Encode(content), f.Close())
}

// failed takes an error of PostgreSQL's apart; others are returned.
func failed(err error) (*failure, error) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return nil, err
	}
	return &failure{e.Code, e.Message, e.Detail, e.Hint, e.Where}, nil
}

// inputs writes inputs.json. Texts are in hexadecimal, as some are not UTF-8.
func inputs(ctx context.Context, dsn, dir string) error {
	var all []input
	for _, g := range groups {
		conn, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		set := "SET TimeZone = 'UTC';"
		for name, value := range g.settings {
			set += fmt.Sprintf("SET %s = '%s';", name, value)
		}
		if _, err := conn.Exec(ctx, set).ReadAll(); err != nil {
			return err
		}
		for _, text := range g.texts {
			i := input{Type: g.typ, OID: g.oid, Settings: g.settings, Input: hex.EncodeToString([]byte(text))}
			r := conn.ExecParams(ctx, "SELECT $1::"+g.typ, [][]byte{[]byte(text)}, []uint32{g.oid}, []int16{0}, []int16{1}).Read()
			if r.Err != nil {
				if i.Error, err = failed(r.Err); err != nil {
					return err
				}
				i.Error.Where = ""
			} else {
				i.Binary = hex.EncodeToString(r.Rows[0][0])
			}
			all = append(all, i)
		}
		conn.Close(ctx)
	}
	return write(filepath.Join(dir, "inputs.json"), all)
}

// copyData writes copy.json.
func copyData(ctx context.Context, dsn, dir string) error {
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE TEMP TABLE t (n serial, a text, b text, c text)").ReadAll(); err != nil {
		return err
	}
	var all []copyCase
	with := func(options string) string {
		if options == "" {
			return ""
		}
		return " WITH (" + options + ")"
	}
	for _, group := range copies {
		for _, in := range group.inputs {
			c := copyCase{Options: group.options, Input: hex.EncodeToString([]byte(in))}
			if _, err := conn.Exec(ctx, "TRUNCATE t").ReadAll(); err != nil {
				return err
			}
			_, err := conn.CopyFrom(ctx, strings.NewReader(in), "COPY t (a, b, c) FROM STDIN"+with(group.options))
			if err != nil {
				if c.Error, err = failed(err); err != nil {
					return err
				}
			} else {
				r := conn.ExecParams(ctx, "SELECT a, b, c FROM t ORDER BY n", nil, nil, nil, nil).Read()
				if r.Err != nil {
					return r.Err
				}
				for _, row := range r.Rows {
					c.Rows = append(c.Rows, texts(row))
				}
			}
			all = append(all, c)
		}
	}
	if _, err := conn.Exec(ctx, "TRUNCATE t").ReadAll(); err != nil {
		return err
	}
	for _, row := range outRows {
		params := make([][]byte, len(row))
		for i, s := range row {
			if s != nil {
				params[i] = []byte(*s)
			}
		}
		if r := conn.ExecParams(ctx, "INSERT INTO t (a, b, c) VALUES ($1, $2, $3)", params, nil, nil, nil).Read(); r.Err != nil {
			return r.Err
		}
	}
	for _, options := range outOptions {
		var out strings.Builder
		if _, err := conn.CopyTo(ctx, &out, "COPY (SELECT a, b, c FROM t ORDER BY n) TO STDOUT"+with(options)); err != nil {
			return err
		}
		all = append(all, copyCase{Options: options, Rows: outRows, Output: out.String()})
	}
	return write(filepath.Join(dir, "copy.json"), all)
}

// texts copies a row.
func texts(row [][]byte) []*string {
	out := make([]*string, len(row))
	for i, f := range row {
		if f != nil {
			out[i] = str(string(f))
		}
	}
	return out
}
