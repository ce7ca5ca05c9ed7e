//go:build ignore

// Encodings asks a real PostgreSQL for the text and binary form of values and writes testdata/encodings.json.
//
//	go run encodings_gen.go -dsn 'host=/run/postgresql user=postgres' > testdata/encodings.json
//
// Any server from 14 on gives the same bytes.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
)

// encoding is one row of the file.
type encoding struct {
	Type     string            `json:"type"`
	SQL      string            `json:"sql"`
	Settings map[string]string `json:"settings,omitempty"`
	OID      uint32            `json:"oid"`
	Text     string            `json:"text"`
	Binary   string            `json:"binary"`
}

// group is values of one type under one set of settings.
type group struct {
	typ      string
	settings map[string]string
	values   []string
}

// set makes settings of name and value pairs.
func set(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

var floats = []string{
	"0", "-0", "1", "-1", "1.5", "0.1", "0.0001", "0.00009999", "1e-5", "123456", "1234567", "999999", "1e6", "1e14", "999999999999999",
	"1e15", "1.2345678901234567e17", "1e20", "1e22", "1e23", "3.4028235e38", "1.1754944e-38", "1e-45", "NaN", "Infinity", "-Infinity", "16777216", "0.3", "2.5e-7",
}

var doubles = append([]string{"1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "9007199254740993", "0.30000000000000004", "4.35", "1e-7"}, floats...)

var intervals = []string{
	"0", "1 year 2 mons 3 days 04:05:06.789", "-1 year -2 mons -3 days -04:05:06.789", "1 year", "-1 year", "1 mon", "-1 mon", "1 day", "-1 day",
	"00:00:01", "-00:00:01", "00:00:00.000001", "-00:00:00.000001", "00:01:00", "-00:01:00", "1 day -00:00:01", "-1 day +00:00:01", "1 mon -1 day",
	"-1 mon +1 day", "1 year -1 day +00:00:00.5", "100:00:00", "-100:59:59.99", "178000000 years", "-178000000 years", "2147483647 days", "1 day 00:00:01",
	"2 years 13 mons", "23:59:59.999999", "1 mon 1 sec", "00:00:01.5", "-00:00:01.5", "-1 day -00:00:00.5", "2562047788:00:54.775807",
}

var timestamps = []string{
	"1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2000-01-01 00:00:00", "2024-02-29 12:34:56.789", "2024-06-15 12:00:00.1", "0001-01-01 00:00:00",
	"0001-12-31 23:59:59.5 BC", "4713-12-31 00:00:00 BC", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "294246-12-31 23:59:59.999999",
	"infinity", "-infinity", "1900-03-01 00:00:01", "2100-12-31 00:00:00.000001", "1883-11-18 12:00:00", "2024-03-31 01:30:00", "2024-10-27 01:30:00",
}

var dates = []string{
	"1970-01-01", "1969-12-31", "2000-01-01", "2000-02-29", "1900-02-28", "0001-01-01", "0001-12-31 BC", "4713-12-31 BC", "9999-12-31",
	"10000-01-01", "5874897-12-31", "infinity", "-infinity", "2024-12-31",
}

var groups = []group{
	{"bool", nil, []string{"t", "f"}},
	{"int2", nil, []string{"0", "-1", "32767", "-32768"}},
	{"int4", nil, []string{"0", "-1", "2147483647", "-2147483648"}},
	{"int8", nil, []string{"0", "-1", "9223372036854775807", "-9223372036854775808"}},
	{"oid", nil, []string{"0", "4294967295"}},
	{"float4", nil, floats},
	{"float8", nil, doubles},
	{"float8", set("extra_float_digits", "0"), doubles},
	{"float4", set("extra_float_digits", "0"), floats},
	{"float8", set("extra_float_digits", "-10"), []string{"1.23456789", "123456789", "0"}},
	{"numeric", nil, []string{
		"0", "0.0", "0.000000", "1", "-1", "10000", "9999", "100000000", "0.1", "0.0001", "0.00001", "0.00010000", "-0.5", "123.456", "1234567890.12345",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001",
		"9999999999999999999999.9999999999999999", "1000000.00", "170141183460469231731687303715884105727", "100.0000", "12345678.000001", "1e10", "5.0000000000000000000",
		"18446744073709551615", "-9223372036854775808.5", "0.9999999999999999", "0.99999999999999999", "10.12345678901234567", "99999999.9999999999",
	}},
	{"text", nil, []string{"", "a", "twelve bytes", "thirteen bytes", "héllo wörld ✓ 𝄞", "tab\tquote'", "NULL"}},
	{"json", nil, []string{`{"a": [1, null, "x"]}`, "null"}},
	{"jsonb", nil, []string{`{"a": [1, null, "x"]}`, "1.50"}},
	{"bytea", nil, []string{"", `\x00`, `\x00ff5c27`, `\x00112233445566778899aabbccddeeff`}},
	{"bytea", set("bytea_output", "escape"), []string{"", `\x00ff5c277e7f20`, `\x6162`}},
	{"varbit", nil, []string{"1", "0", "10101010", "101010101", "111111111111111", "00000000000000001", "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001"}},
	{"date", nil, dates},
	{"date", set("DateStyle", "SQL, DMY"), dates},
	{"date", set("DateStyle", "SQL, MDY"), dates},
	{"date", set("DateStyle", "Postgres, DMY"), dates},
	{"date", set("DateStyle", "Postgres, MDY"), dates},
	{"date", set("DateStyle", "German"), dates},
	{"time", nil, []string{"00:00:00", "23:59:59.999999", "24:00:00", "12:34:56.7", "01:02:03.000001", "10:00:00.120"}},
	{"timetz", nil, []string{"10:00:00+05:30", "10:00:00-08", "00:00:00+00", "23:59:59.999999+15:59", "24:00:00-15:59", "10:00:00+01:02:03", "10:00:00-00:30"}},
	{"timestamp", nil, timestamps},
	{"timestamp", set("DateStyle", "SQL, DMY"), timestamps},
	{"timestamp", set("DateStyle", "SQL, MDY"), timestamps},
	{"timestamp", set("DateStyle", "Postgres, DMY"), timestamps},
	{"timestamp", set("DateStyle", "Postgres, MDY"), timestamps},
	{"timestamp", set("DateStyle", "German"), timestamps},
	{"timestamptz", nil, timestamps},
	{"timestamptz", set("TimeZone", "America/New_York"), timestamps},
	{"timestamptz", set("TimeZone", "Europe/Berlin"), timestamps},
	{"timestamptz", set("TimeZone", "Asia/Kolkata"), timestamps},
	{"timestamptz", set("TimeZone", "Asia/Kolkata", "DateStyle", "SQL, DMY"), timestamps[3:]},
	{"timestamptz", set("TimeZone", "America/New_York", "DateStyle", "Postgres, MDY"), timestamps[3:9]},
	{"timestamptz", set("TimeZone", "Europe/Berlin", "DateStyle", "German"), timestamps[3:9]},
	{"interval", nil, intervals},
	{"interval", set("IntervalStyle", "postgres_verbose"), intervals},
	{"interval", set("IntervalStyle", "sql_standard"), intervals},
	{"interval", set("IntervalStyle", "iso_8601"), intervals},
	{"uuid", nil, []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "7fffffff-ffff-ffff-8000-000000000000"}},
	{"bool[]", nil, []string{"{t,f,NULL}"}},
	{"int4[]", nil, []string{"{}", "{1}", "{1,NULL,3}", "{{1,2},{3,4}}", "{{{1},{2}},{{3},{NULL}}}", "{NULL}"}},
	{"int8[]", nil, []string{"{}", "{9223372036854775807}"}},
	{"float8[]", nil, []string{"{1.5,NaN,-Infinity,1e300}"}},
	{"numeric[]", nil, []string{"{1.50,-2.25,NULL}"}},
	{"text[]", nil, []string{
		"{}", `{"a,b","{\"",NULL,""}`, `{"NULL","null",nULL}`, `{"a b","a\tb",é,"back\\slash","quo\"te"}`, `{{a,b},{"c d",NULL}}`, `{" x","x "}`,
		"{\"new\nline\"}",
	}},
	{"timestamp[]", nil, []string{`{"2020-01-01 00:00:00",infinity,NULL}`}},
	{"date[]", nil, []string{"{2020-01-01,-infinity}"}},
	{"interval[]", nil, []string{`{"1 day","01:00:00"}`}},
	{"bytea[]", nil, []string{`{"\\x00ff","\\x"}`}},
	{"uuid[]", nil, []string{"{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"}},
	{"varbit[]", nil, []string{"{101,1}"}},
}

func main() {
	dsn := flag.String("dsn", "", "a PostgreSQL server")
	flag.Parse()
	if err := run(context.Background(), *dsn); err != nil {
		log.Fatal(err)
	}
}

// run asks for every value and writes the file to standard output.
func run(ctx context.Context, dsn string) error {
	var all []encoding
	for _, g := range groups {
		conn, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		settings := "SET TimeZone = 'UTC';"
		for name, value := range g.settings {
			settings += fmt.Sprintf("SET %s = '%s';", name, value)
		}
		if _, err := conn.Exec(ctx, settings).ReadAll(); err != nil {
			return err
		}
		for _, v := range g.values {
			e, err := ask(ctx, conn, g, v)
			if err != nil {
				return fmt.Errorf("%s %q: %w", g.typ, v, err)
			}
			all = append(all, e)
		}
		if err := conn.Close(ctx); err != nil {
			return err
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	return out.Encode(all)
}

// ask gets one value in both formats. The value's text is read in UTC and ISO style, so that settings affect output only.
func ask(ctx context.Context, conn *pgconn.PgConn, g group, v string) (encoding, error) {
	quoted, err := conn.EscapeString(v)
	if err != nil {
		return encoding{}, err
	}
	e := encoding{Type: g.typ, SQL: fmt.Sprintf("'%s'::%s", quoted, g.typ), Settings: g.settings}
	for format := int16(0); format <= 1; format++ {
		r := conn.ExecParams(ctx, "SELECT "+e.SQL, nil, nil, nil, []int16{format}).Read()
		if r.Err != nil {
			return e, r.Err
		}
		e.OID = r.FieldDescriptions[0].DataTypeOID
		if format == 0 {
			e.Text = string(r.Rows[0][0])
		} else {
			e.Binary = hex.EncodeToString(r.Rows[0][0])
		}
	}
	return e, nil
}
