package lakefstest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"sluice/lakefs"
)

// roundTripRanges: files whose sizes lie around the bounds of rows, batches and pieces, whole and in parts.
func roundTripRanges(t *testing.T, s lakefs.Store, volume string) {
	sizes := []int{0, 1, rowBytes - 1, rowBytes, rowBytes + 1, batchBytes - 1, batchBytes, batchBytes + 5, 2 * batchBytes, 3*pieceBytes + 17}
	for i, size := range sizes {
		path, data := fmt.Sprint("size/", size), Content(uint64(i), size)
		f := Put(t, s, volume, path, data)
		if f.Size != int64(size) || f.Volume != volume || f.Path != path {
			t.Errorf("published %+v for %d bytes at %s", f, size, path)
		}
		WantFile(t, s, volume, path, data)
		for _, r := range [][2]int{
			{0, 1},
			{0, size},
			{size / 2, 1},
			{size / 3, size / 2},
			{rowBytes - 1, 2},
			{rowBytes, rowBytes},
			{pieceBytes - 1, 2},
			{pieceBytes - 1, pieceBytes + 2},
			{rowBytes - 1, pieceBytes},
			{size - 1, 1},
			{size, 0},
		} {
			wantRange(t, s, f, data, r[0], r[1])
		}
	}
}

// wantRange reads a part of a file, if it has such a part, into the middle of a buffer whose rest must stay.
func wantRange(tb testing.TB, s lakefs.Store, f *lakefs.File, data []byte, off, length int) {
	tb.Helper()
	if off < 0 || off+length > len(data) {
		return
	}
	const margin = "margin"
	got := []byte(margin + string(make([]byte, length)) + margin)
	if err := s.ReadAt(tb.Context(), f, got[len(margin):][:length:length], int64(off)); err != nil {
		tb.Error(err)
	}
	if string(got[:len(margin)]) != margin || string(got[len(margin)+length:]) != margin {
		tb.Errorf("%s: reading %d bytes at %d wrote more than them", f.Path, length, off)
	}
	if !bytes.Equal(got[len(margin):][:length], data[off:off+length]) {
		tb.Errorf("%s: other bytes at %d, length %d", f.Path, off, length)
	}
}

// readBeyondEnd: a range must lie within the file, also where the arithmetic of it could run over.
func readBeyondEnd(t *testing.T, s lakefs.Store, volume string) {
	for _, size := range []int64{0, 1, 100, rowBytes} {
		f := Put(t, s, volume, "f", Content(1, int(size)))
		for _, off := range []int64{
			0, 1, -1, size - 1, size, size + 1, 99, 1 << 31, 1 << 32, 1 << 40, -1 << 31, -1 << 32,
			math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - size, math.MinInt64, math.MinInt64 + 1, math.MinInt64 + size,
		} {
			for _, length := range []int64{0, 1, 2, size, size + 1} {
				within := off >= 0 && off <= size && length <= size-off
				if err := s.ReadAt(t.Context(), f, make([]byte, length), off); (err == nil) != within {
					t.Errorf("%d bytes at %d of %d: %v", length, off, size, err)
				}
			}
		}
		if err := s.ReadAt(t.Context(), f, nil, size); err != nil {
			t.Errorf("nothing at the end: %v", err)
		}
	}
}

// oddWrites: how a file is cut into writes does not matter, the writer counts along, and what it was given may change
// as soon as Write has returned.
func oddWrites(t *testing.T, s lakefs.Store, volume string) {
	around := func(bound, size int) (parts []int) { // byte by byte round a bound, also nothing at all
		return []int{0, bound - 3, 1, 1, 1, 0, 1, 1, 1, size - bound - 3, 0}
	}
	for i, c := range []struct {
		size  int
		parts []int // their sizes; the last is repeated
	}{
		{0, nil},
		{0, []int{0, 0}},
		{3*rowBytes + 5, []int{1}},
		{rowBytes, []int{1}},
		{3*rowBytes + 5, []int{7}},
		{9 * rowBytes, []int{rowBytes}},
		{9*rowBytes + 9, []int{rowBytes - 1}},
		{9 * rowBytes, []int{rowBytes + 1}},
		{2*rowBytes + 10, around(rowBytes, 2*rowBytes+10)},
		{batchBytes, around(batchBytes-3, batchBytes)},
		{batchBytes + 10, around(batchBytes, batchBytes+10)},
		{2*batchBytes + 10, around(2*batchBytes, 2*batchBytes+10)},
		{2*batchBytes + 1, []int{batchBytes}},
		{2 * batchBytes, []int{batchBytes - 1, 2, batchBytes - 1}},
	} {
		path, data := fmt.Sprint(i), Content(uint64(i), c.size)
		w, err := s.Create(t.Context(), volume, path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		writeParts(t, w, data, c.parts)
		if f, err := w.Close(t.Context()); err != nil || f.Size != int64(c.size) {
			t.Fatalf("case %d: %+v %v", i, f, err)
		}
		WantFile(t, s, volume, path, data)
	}
}

// writeParts writes data in parts of these sizes, the last of them as often as it takes.
func writeParts(t *testing.T, w lakefs.Writer, data []byte, parts []int) {
	t.Helper()
	var buf []byte
	written := 0
	for i := 0; i < len(parts) || written < len(data); i++ {
		n := min(parts[min(i, len(parts)-1)], len(data)-written)
		buf = append(buf[:0], data[written:][:n]...)
		if err := w.Write(t.Context(), buf); err != nil {
			t.Fatal(err)
		}
		clear(buf)
		written += n
		if w.Size() != int64(written) {
			t.Fatalf("the writer counts %d bytes instead of %d", w.Size(), written)
		}
	}
}

// hugeWrite: one call may bring more than any buffer holds.
func hugeWrite(t *testing.T, s lakefs.Store, volume string) {
	data := Content(1, 2*pieceBytes+3)
	w, err := s.Create(t.Context(), volume, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	writeParts(t, w, data, []int{len(data)})
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	WantFile(t, s, volume, "f", data)
}
