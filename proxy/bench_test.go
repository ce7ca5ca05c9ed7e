package proxy

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// BenchmarkQuery_Small is one round trip of a one-row SELECT: what the proxy adds to a statement.
func BenchmarkQuery_Small(b *testing.B) {
	c := serve(b).login(b)
	for b.Loop() {
		c.send(query("rows 1"))
		c.until('Z')
	}
}

// BenchmarkExecute_Small is the same by Parse, Bind, Execute and Sync.
func BenchmarkExecute_Small(b *testing.B) {
	c := serve(b).login(b)
	for b.Loop() {
		c.send(all(pbe("rows 1"), syncMessage)...)
		c.until('Z')
	}
}

// BenchmarkQuery_Rows streams a million rows of one bigint column over loopback to a client that only
// counts bytes.
func BenchmarkQuery_Rows(b *testing.B) {
	c := serve(b).login(b)
	const rows = 1_000_000
	end := []byte(fmt.Sprintf("SELECT %d\x00Z\x00\x00\x00\x05I", rows))
	buf := make([]byte, 1<<20)
	for b.Loop() {
		c.conn.SetDeadline(time.Now().Add(waitMax))
		c.send(query(fmt.Sprintf("rows %d", rows)))
		for got := buf[:0]; !bytes.HasSuffix(got, end); {
			kept := copy(buf, got[max(0, len(got)-len(end)):]) // the end may come in two pieces
			n, err := c.conn.Read(buf[kept:])
			if err != nil {
				b.Fatal(err)
			}
			got = buf[:kept+n]
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
