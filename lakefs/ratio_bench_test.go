package lakefs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// The benchmarks of this file compare the store with what PostgreSQL gives without it, in one run: rounds of both take
// turns, and the medians are compared. They report the ratio and both figures, and nothing else that they print counts.
// Take a quiet machine, and -benchtime 1x.

const (
	ratioRows  = 128 * 1032 // of the large file: 1.07 GB
	ratioBytes = ratioRows * chunkBytes
	ratioWrite = 32 * 1032 * chunkBytes // 268 MB
	rounds     = 7
)

// BenchmarkRatio_SequentialRead reads a file of 1 GB from its beginning to its end, in reads of 8.4 MB a connection, and
// beside it the same rows by binary COPY, in a process that throws them away. Nothing of the file is in this process;
// PostgreSQL's buffers hold an eighth of it, the system's page cache perhaps all.
func BenchmarkRatio_SequentialRead(b *testing.B) {
	x := &fixture{dsn: embeddedtest.Start(b).DSN()}
	x.admin = connect(b, x.dsn)
	p := x.open(b, lakefs.Config{})
	f := putLarge(b, p, ratioBytes)
	x.exec(b, `VACUUM ANALYZE pgvfs.chunks`)
	for _, conns := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("%dconns", conns), func(b *testing.B) {
			dst := make([]byte, conns*1032*chunkBytes)
			store := func() error {
				for off := int64(0); off < f.Size; off += int64(len(dst)) {
					if err := p.ReadAt(b.Context(), f, dst, off); err != nil {
						return err
					}
				}
				return nil
			}
			b.ReportAllocs()
			report(b, "MB/s", rate(ratioBytes), store, func() error { return copyOut(b.Context(), x, f.ID, conns) })
		})
	}
}

// BenchmarkRatio_Write writes a file of 268 MB, and beside it the same rows by one binary COPY of encoded bytes into a
// table with the same columns, key, constraint and settings.
func BenchmarkRatio_Write(b *testing.B) {
	x := &fixture{dsn: embeddedtest.Start(b).DSN()}
	x.admin = connect(b, x.dsn)
	p := x.open(b, lakefs.Config{ReapGrace: -1})
	data := lakefstest.Content(1, ratioWrite)
	rows := encode(data)
	lakefstest.Put(b, p, "lake", "f", nil)
	x.exec(b, `CREATE TABLE raw (LIKE pgvfs.chunks INCLUDING ALL) WITH (toast_tuple_target = 8160)`)
	store := func() error {
		_, err := lakefstest.TryPut(b.Context(), p, "lake", "f", data)
		return err
	}
	raw := func() error {
		conn, err := x.admin.Acquire(b.Context())
		if err != nil {
			return err
		}
		defer conn.Release()
		_, err = conn.Conn().PgConn().CopyFrom(b.Context(), bytes.NewReader(rows), `COPY raw FROM STDIN (FORMAT binary)`)
		return err
	}
	clean := func() { // both fill empty tables
		x.exec(b, `SELECT pgvfs.reap('0')`)
		x.exec(b, `TRUNCATE raw`)
		x.exec(b, `DELETE FROM pgvfs.files`)
		x.exec(b, `TRUNCATE pgvfs.chunks, pgvfs.garbage`)
	}
	reportWith(b, "MB/s", rate(ratioWrite), clean, store, raw)
}

// BenchmarkRatio_RangedRead reads 64 KB anywhere in a file, and beside it makes one bare round trip: SELECT 1, prepared.
// rows_µs is what a bare connection of pgx takes to get the same rows, which says how much of the ratio is PostgreSQL's
// and the socket's.
func BenchmarkRatio_RangedRead(b *testing.B) {
	x := &fixture{dsn: embeddedtest.Start(b).DSN()}
	x.admin = connect(b, x.dsn)
	p := x.open(b, lakefs.Config{})
	f := putLarge(b, p, benchBytes)
	conn, err := x.admin.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	dst := make([]byte, 64<<10)
	var store, rows, bare []time.Duration
	one := 0
	for i := 0; b.Loop(); i++ {
		off := int64(i) * 999_983 % (f.Size - int64(len(dst)))
		store = append(store, timed(b, func() error { return p.ReadAt(b.Context(), f, dst, off) }))
		rows = append(rows, timed(b, func() error { return drain(b.Context(), conn.Conn(), f.ID, off, len(dst)) }))
		bare = append(bare, timed(b, func() error {
			return conn.QueryRow(b.Context(), `SELECT 1`, pgx.QueryExecModeCacheStatement).Scan(&one)
		}))
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	b.ReportMetric(micros(median(store))/micros(median(bare)), "ratio")
	b.ReportMetric(micros(median(store)), "store_µs")
	b.ReportMetric(micros(median(bare)), "bare_µs")
	b.ReportMetric(micros(median(rows)), "rows_µs")
}

// drain gets the rows of a range and does nothing with them.
func drain(ctx context.Context, conn *pgx.Conn, id, off int64, size int) error {
	rows, err := conn.Query(ctx, `SELECT no, data FROM pgvfs.chunks WHERE file_id = $1 AND no >= $2 AND no <= $3`,
		pgx.QueryResultFormats{pgx.BinaryFormatCode}, id, off/chunkBytes, (off+int64(size)-1)/chunkBytes)
	if err != nil {
		return err
	}
	for rows.Next() {
		_ = rows.RawValues()
	}
	return rows.Err()
}

// report compares two ways of doing the same.
func report(b *testing.B, unit string, figure func(time.Duration) float64, store, bare func() error) {
	reportWith(b, unit, figure, func() {}, store, bare)
}

// reportWith is report with something to do before each, in nobody's time.
func reportWith(b *testing.B, unit string, figure func(time.Duration) float64, before func(), store, bare func() error) {
	var stores, bares []time.Duration
	for b.Loop() {
		for range rounds {
			before()
			stores = append(stores, timed(b, store))
			before()
			bares = append(bares, timed(b, bare))
		}
	}
	ours, theirs := figure(median(stores)), figure(median(bares))
	b.ReportMetric(ours/theirs, "ratio")
	b.ReportMetric(ours, "store_"+unit)
	b.ReportMetric(theirs, "bare_"+unit)
}

// timed runs fn and takes its time.
func timed(b *testing.B, fn func() error) time.Duration {
	begin := time.Now()
	if err := fn(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// rate is a time as MB/s.
func rate(bytes int) func(time.Duration) float64 {
	return func(d time.Duration) float64 { return float64(bytes) / 1e6 / d.Seconds() }
}

// median is the middle one.
func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// putLarge writes a file without holding it.
func putLarge(b *testing.B, p *lakefs.PG, size int) *lakefs.File {
	w, err := p.Create(b.Context(), "lake", "large")
	if err != nil {
		b.Fatal(err)
	}
	defer w.Abort()
	part := lakefstest.Content(1, 1032*chunkBytes)
	for left := size; left > 0; left -= len(part) {
		if err := w.Write(b.Context(), part[:min(left, len(part))]); err != nil {
			b.Fatal(err)
		}
	}
	f, err := w.Close(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// copyOut pulls a file's rows by binary COPY, a share of them on each of some connections.
func copyOut(ctx context.Context, x *fixture, id int64, conns int) error {
	group, ctx := errgroup.WithContext(ctx)
	share := ratioRows / conns
	for i := range conns {
		group.Go(func() error {
			conn, err := x.admin.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			sql := fmt.Sprintf(`COPY (SELECT data FROM pgvfs.chunks WHERE file_id = %d AND no >= %d AND no < %d) TO STDOUT (FORMAT binary)`,
				id, i*share, (i+1)*share)
			return discard(ctx, conn.Conn().PgConn(), sql)
		})
	}
	return group.Wait()
}

// discard runs a COPY TO and throws its bytes away.
func discard(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.CopyTo(ctx, io.Discard, sql)
	return err
}
