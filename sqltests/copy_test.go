package sqltests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// copyRows is what the issue asks for: a million.
const copyRows = 1_000_000

// TestCopy_MillionRows loads a million rows in each format, counts them exactly, and reads them back byte for byte.
func TestCopy_MillionRows(t *testing.T) {
	s := shared(t)
	for format, write := range map[string]func(w *bufio.Writer, i int){"text": textRow, "csv": csvRow, "binary": binaryRow} {
		t.Run(format, func(t *testing.T) {
			conn := s.connect(t)
			name := "copy_million_" + format
			mustExec(t, conn, fmt.Sprintf("create table %s(i int, b text, f double precision)", name))
			defer run(conn, "drop table "+name)

			sent := sha256.New()
			tag, err := conn.CopyFrom(t.Context(), io.TeeReader(copyStream(format, write), sent), fmt.Sprintf("copy %s from stdin (format %s)", name, format))
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint("COPY ", copyRows); tag.String() != want {
				t.Errorf("tag %q, want %q", tag, want)
			}
			wantRow(t, conn, "select count(*), count(distinct i), sum(i), count(b), sum(f) from "+name,
				"1000000\t1000000\t499999500000\t900000\t124999875000")
			wantSame(t, conn, sent, fmt.Sprintf("copy (select * from %s order by i) to stdout (format %s)", name, format))
		})
	}
}

// copyStream is the client's data, made while it is sent.
func copyStream(format string, write func(*bufio.Writer, int)) io.Reader {
	r, pipe := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(pipe, 64<<10)
		if format == "binary" {
			w.WriteString("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		}
		for i := range copyRows {
			write(w, i)
		}
		if format == "binary" {
			w.WriteString("\xff\xff")
		}
		w.Flush()
		pipe.Close()
	}()
	return r
}

// copyLabel is a value with something to quote in every format; each tenth row has a NULL instead.
func copyLabel(i int) (string, bool) { return fmt.Sprintf("row \"%d\",\t\\", i), i%10 != 0 }

func textRow(w *bufio.Writer, i int) {
	b, ok := copyLabel(i)
	if b = strings.NewReplacer("\t", `\t`, `\`, `\\`).Replace(b); !ok {
		b = `\N`
	}
	fmt.Fprintf(w, "%d\t%s\t%v\n", i, b, float(i))
}

func csvRow(w *bufio.Writer, i int) {
	b, ok := copyLabel(i)
	if b = `"` + strings.ReplaceAll(b, `"`, `""`) + `"`; !ok {
		b = ""
	}
	fmt.Fprintf(w, "%d,%s,%v\n", i, b, float(i))
}

func binaryRow(w *bufio.Writer, i int) {
	row := binary.BigEndian.AppendUint16(nil, 3)
	row = binary.BigEndian.AppendUint32(append(row, 0, 0, 0, 4), uint32(i))
	if b, ok := copyLabel(i); ok {
		row = append(binary.BigEndian.AppendUint32(row, uint32(len(b))), b...)
	} else {
		row = append(row, 0xff, 0xff, 0xff, 0xff)
	}
	w.Write(binary.BigEndian.AppendUint64(append(row, 0, 0, 0, 8), math.Float64bits(float(i))))
}

// float is exact in text; quarters make fractions of one and two digits.
func float(i int) float64 { return float64(i) / 4 }

// wantSame reads a COPY TO and compares it with what was sent.
func wantSame(t *testing.T, conn *pgconn.PgConn, sent hash.Hash, sql string) {
	t.Helper()
	got := sha256.New()
	if _, err := conn.CopyTo(t.Context(), got, sql); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("%s: not the bytes that were sent", sql)
	}
}
