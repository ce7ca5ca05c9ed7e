package lakefs

import (
	"encoding/json"
	"math"
	"sync/atomic"
	"time"
)

// counters are what all stores of this process have done since it began. They only grow: a rate is the difference of
// two samples.
var counters struct {
	opens     atomic.Int64 // files looked up, hits included
	openHits  atomic.Int64 // answered by an open cache
	openTime  atomic.Int64 // nanoseconds
	reads     atomic.Int64 // ranges read
	readBytes atomic.Int64
	readTime  atomic.Int64 // nanoseconds, summed over reads that may have run side by side
	pieces    atomic.Int64 // queries for rows, repeated ones included
}

// Stats is those counters as a JSON object: what pgvfs_stats() returns. Names and units are the pgvfs extension's.
func Stats() string {
	text, err := json.Marshal(struct {
		Opens     int64   `json:"opens"`
		OpenHits  int64   `json:"open_hits"`
		OpenMS    float64 `json:"open_ms"`
		Reads     int64   `json:"reads"`
		ReadBytes int64   `json:"read_bytes"`
		ReadMS    float64 `json:"read_ms"`
		Pieces    int64   `json:"pieces"`
	}{
		counters.opens.Load(), counters.openHits.Load(), milliseconds(counters.openTime.Load()),
		counters.reads.Load(), counters.readBytes.Load(), milliseconds(counters.readTime.Load()),
		counters.pieces.Load(),
	})
	if err != nil {
		panic(err) // numbers always marshal
	}
	return string(text)
}

// milliseconds keeps one decimal of a time in nanoseconds.
func milliseconds(ns int64) float64 { return math.Round(float64(ns)/1e5) / 10 }

// countOpen counts one look-up that began at a time.
func countOpen(begin time.Time, hit bool) {
	counters.opens.Add(1)
	if hit {
		counters.openHits.Add(1)
	}
	counters.openTime.Add(int64(time.Since(begin)))
}

// countRead counts one range.
func countRead(begin time.Time, bytes int) {
	counters.reads.Add(1)
	counters.readBytes.Add(int64(bytes))
	counters.readTime.Add(int64(time.Since(begin)))
}
