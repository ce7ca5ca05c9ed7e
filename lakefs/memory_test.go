package lakefs_test

import (
	"runtime"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

// TestPG_Memory: what a read allocates does not depend on how much it reads, and what a writer holds does not depend on how
// much is written.
func TestPG_Memory(t *testing.T) {
	x := &fixture{dsn: embeddedtest.Start(t).DSN()}
	p := x.open(t, lakefs.Config{})
	t.Run("Reader", func(t *testing.T) { readerMemory(t, p) })
	t.Run("Writer", func(t *testing.T) { writerMemory(t, p) })
}

// readerMemory: a read of one piece is a handful of allocations, whatever its size; a larger one, so many for each piece.
func readerMemory(t *testing.T, p *lakefs.PG) {
	const piece, pieces, atMost = 1032 * chunkBytes, 4, 16
	f := lakefstest.Put(t, p, "lake", "f", lakefstest.Content(1, pieces*piece))
	allocs := func(size int) float64 {
		dst := make([]byte, size)
		return testing.AllocsPerRun(20, func() {
			if err := p.ReadAt(t.Context(), f, dst, 0); err != nil {
				t.Error(err)
			}
		})
	}
	small, large, all := allocs(chunkBytes), allocs(piece), allocs(pieces*piece)
	t.Logf("allocations: %v for a row, %v for 1032 rows, %v for %d pieces of them", small, large, all, pieces)
	if small > atMost || large > small+1 || all > pieces*(small+atMost) {
		t.Error("a read allocates more than it may")
	}
}

// writerMemory: three batches of 4.2 MB at most, and what pgx needs to send them.
func writerMemory(t *testing.T, p *lakefs.PG) {
	const parts, partBytes, heldMax = 40, 4 << 20, 16 << 20
	part := lakefstest.Content(1, partBytes)
	before := liveBytes()
	w, err := p.Create(t.Context(), "lake", "g")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	held := uint64(0)
	for range parts {
		if err := w.Write(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if now := liveBytes(); now > before {
			held = max(held, now-before)
		}
	}
	t.Logf("a writer of %d MB holds %d kB", parts*partBytes>>20, held>>10)
	if held > heldMax {
		t.Errorf("a writer holds %d bytes, more than %d", held, heldMax)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// liveBytes is what the heap holds once all garbage is gone.
func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
