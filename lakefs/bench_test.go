package lakefs_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// benchBytes is a usual Parquet file's size.
const benchBytes = 64 << 20

// BenchmarkWrite writes a file: through a store, and by a COPY of bytes that have been encoded before, which is what
// PostgreSQL allows. On 2 busy cores, the server's included, two runs of each: 142 MB/s against 96 and 117.
func BenchmarkWrite(b *testing.B) {
	x := &fixture{dsn: embeddedtest.Start(b).DSN()}
	x.admin = connect(b, x.dsn)
	p := x.open(b, lakefs.Config{ReapGrace: -1})
	data := lakefstest.Content(1, benchBytes)
	lakefstest.Put(b, p, "lake", "f", nil)
	b.Run("Store", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			lakefstest.Put(b, p, "lake", "f", data)
			b.StopTimer()
			x.exec(b, `SELECT pgvfs.reap('0')`)
			x.exec(b, `VACUUM pgvfs.chunks`) // the next run fills the space again
			b.StartTimer()
		}
	})
	b.Run("RawCopy", func(b *testing.B) {
		rows := encode(data)
		b.SetBytes(benchBytes)
		for b.Loop() {
			onRaw(b, x, func(conn *pgconn.PgConn) error {
				_, err := conn.CopyFrom(b.Context(), bytes.NewReader(rows), `COPY pgvfs.chunks FROM STDIN (FORMAT binary)`)
				return err
			})
			b.StopTimer()
			x.exec(b, `DELETE FROM pgvfs.chunks WHERE file_id = 0`)
			x.exec(b, `VACUUM pgvfs.chunks`)
			b.StartTimer()
		}
	})
}

// BenchmarkRead reads a file whole and in parts: through a store, and by a COPY whose bytes are thrown away. On the
// same machine: 530 to 550 MB/s against 390 to 770; a row takes 0.10 to 0.27 ms.
func BenchmarkRead(b *testing.B) {
	x := &fixture{dsn: embeddedtest.Start(b).DSN()}
	x.admin = connect(b, x.dsn)
	p := x.open(b, lakefs.Config{})
	f := lakefstest.Put(b, p, "lake", "f", lakefstest.Content(1, benchBytes))
	for _, size := range []int{chunkBytes, 128 << 10, 1 << 20, 8 << 20, benchBytes} {
		b.Run("Store/"+strconv.Itoa(size>>10)+"KiB", func(b *testing.B) {
			dst := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for off := int64(0); b.Loop(); off = (off + 1<<20 + 1) % (benchBytes - int64(size) + 1) {
				if err := p.ReadAt(b.Context(), f, dst, off); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("RawCopy", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			onRaw(b, x, func(conn *pgconn.PgConn) error {
				_, err := conn.CopyTo(b.Context(), io.Discard, `COPY (SELECT no, data FROM pgvfs.chunks) TO STDOUT (FORMAT binary)`)
				return err
			})
		}
	})
}

// onRaw runs fn on a connection below pgx.
func onRaw(b *testing.B, x *fixture, fn func(*pgconn.PgConn) error) {
	conn, err := x.admin.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	if err := fn(conn.Conn().PgConn()); err != nil {
		b.Fatal(err)
	}
}

// encode is data as a binary COPY of the file 0.
func encode(data []byte) []byte {
	out := append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	for no := 0; len(data) > 0; no++ {
		row := data[:min(len(data), chunkBytes)]
		data = data[len(row):]
		out = binary.BigEndian.AppendUint16(out, 3)
		out = binary.BigEndian.AppendUint32(out, 8)
		out = binary.BigEndian.AppendUint64(out, 0)
		out = binary.BigEndian.AppendUint32(out, 4)
		out = binary.BigEndian.AppendUint32(out, uint32(no))
		out = binary.BigEndian.AppendUint32(out, uint32(len(row)))
		out = append(out, row...)
	}
	return append(out, "\xff\xff"...)
}
