package lakefstest

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"sluice/lakefs"
)

// Content is size bytes that are different for each seed and do not repeat. AES makes them since the processor does
// that at the speed of copying, with the race detector too.
func Content(seed uint64, size int) []byte {
	var key, start [aes.BlockSize]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has one of the right lengths
	}
	data := make([]byte, size)
	cipher.NewCTR(block, start[:]).XORKeyStream(data, data)
	return data
}

// Put writes a file whole.
func Put(tb testing.TB, s lakefs.Store, volume, path string, data []byte) *lakefs.File {
	tb.Helper()
	f, err := TryPut(tb.Context(), s, volume, path, data)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// TryPut is Put for a write that may fail.
func TryPut(ctx context.Context, s lakefs.Store, volume, path string, data []byte) (*lakefs.File, error) {
	w, err := s.Create(ctx, volume, path)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	for part := range slices.Chunk(data, 1<<20-1) {
		if err := w.Write(ctx, part); err != nil {
			return nil, err
		}
	}
	if w.Size() != int64(len(data)) {
		return nil, fmt.Errorf("the writer counts %d bytes instead of %d", w.Size(), len(data))
	}
	return w.Close(ctx)
}

// Get reads a file whole.
func Get(ctx context.Context, s lakefs.Store, volume, path string) ([]byte, error) {
	f, err := s.Open(ctx, volume, path)
	if err != nil {
		return nil, err
	}
	data := make([]byte, f.Size)
	return data, s.ReadAt(ctx, f, data, 0)
}

// WantFile fails the test unless the file is there with just these bytes.
func WantFile(tb testing.TB, s lakefs.Store, volume, path string, data []byte) {
	tb.Helper()
	got, err := Get(tb.Context(), s, volume, path)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		tb.Errorf("%s holds %d other bytes than the %d wanted", path, len(got), len(data))
	}
}

// WantNone fails the test if the file is there.
func WantNone(tb testing.TB, s lakefs.Store, volume, path string) {
	tb.Helper()
	if _, err := s.Open(tb.Context(), volume, path); !errors.Is(err, lakefs.ErrNotExist) {
		tb.Errorf("open %s: %v", path, err)
	}
	if found, err := s.Exists(tb.Context(), volume, path); err != nil || found {
		tb.Errorf("exists %s: %t %v", path, found, err)
	}
}

// WantList fails the test unless these are the paths with a prefix.
func WantList(tb testing.TB, s lakefs.Store, volume, prefix string, limit int, want ...string) {
	tb.Helper()
	got, err := s.List(tb.Context(), volume, prefix, limit)
	if err != nil || !slices.Equal(got, want) {
		tb.Errorf("list %q, limit %d: %q %v, not %q", prefix, limit, got, err, want)
	}
}

// wantIs fails the test unless err is or wraps target.
func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("%v, not %v", err, target)
	}
}
