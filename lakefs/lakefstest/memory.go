package lakefstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/lakefs"
)

// Memory is a lakefs.Store that ends with the process. Bytes of removed files are kept, as if the grace were endless.
type Memory struct {
	mu     sync.Mutex
	lastID int64
	files  map[string]*lakefs.File // by URL
	data   map[int64][]byte        // by ID
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{files: map[string]*lakefs.File{}, data: map[int64][]byte{}}
}

// Open implements lakefs.Store.
func (m *Memory) Open(ctx context.Context, volume, path string) (*lakefs.File, error) {
	if err := check(ctx, volume); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[url(volume, path)]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", url(volume, path), lakefs.ErrNotExist)
	}
	return f, nil
}

// ReadAt implements lakefs.Store.
func (m *Memory) ReadAt(ctx context.Context, f *lakefs.File, p []byte, off int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	data := m.data[f.ID]
	m.mu.Unlock()
	if off < 0 || off > int64(len(data)-len(p)) {
		return fmt.Errorf("read %s: bytes from %d on are not all within its %d", f.URL(), off, len(data))
	}
	copy(p, data[off:])
	return nil
}

// Remove implements lakefs.Store.
func (m *Memory) Remove(ctx context.Context, volume, path string) error {
	if err := check(ctx, volume); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[url(volume, path)]; !ok {
		return fmt.Errorf("remove %s: %w", url(volume, path), lakefs.ErrNotExist)
	}
	delete(m.files, url(volume, path))
	return nil
}

// RemovePrefix implements lakefs.Store.
func (m *Memory) RemovePrefix(ctx context.Context, volume, prefix string) (int64, error) {
	paths, err := m.List(ctx, volume, prefix, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, path := range paths {
		delete(m.files, url(volume, path))
	}
	return int64(len(paths)), err
}

// Rename implements lakefs.Store.
func (m *Memory) Rename(ctx context.Context, volume, from, to string) error {
	if err := errors.Join(check(ctx, volume), lakefs.CheckPath(to)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[url(volume, from)]
	if !ok {
		return fmt.Errorf("rename %s: %w", url(volume, from), lakefs.ErrNotExist)
	}
	moved := *f
	moved.Path = to
	delete(m.files, url(volume, from))
	m.files[url(volume, to)] = &moved
	return nil
}

// List implements lakefs.Store.
func (m *Memory) List(ctx context.Context, volume, prefix string, limit int) ([]string, error) {
	if err := check(ctx, volume); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var paths []string
	for _, f := range m.files {
		if f.Volume == volume && strings.HasPrefix(f.Path, prefix) {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	if limit > 0 && len(paths) > limit {
		paths = paths[:limit]
	}
	return paths, nil
}

// Exists implements lakefs.Store.
func (m *Memory) Exists(ctx context.Context, volume, path string) (bool, error) {
	_, err := m.Open(ctx, volume, path)
	if errors.Is(err, lakefs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Glob implements lakefs.Store.
func (m *Memory) Glob(ctx context.Context, volume, pattern string) ([]string, error) {
	paths, err := m.List(ctx, volume, "", 0)
	return slices.DeleteFunc(paths, func(path string) bool { return !lakefs.MatchPath(pattern, path) }), err
}

// Create implements lakefs.Store.
func (m *Memory) Create(ctx context.Context, volume, path string) (lakefs.Writer, error) {
	if err := errors.Join(check(ctx, volume), lakefs.CheckPath(path)); err != nil {
		return nil, err
	}
	return &memoryWriter{store: m, ctx: ctx, volume: volume, path: path}, nil
}

// publish is the end of a write.
func (m *Memory) publish(volume, path string, data []byte) *lakefs.File {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastID++
	f := &lakefs.File{ID: m.lastID, Size: int64(len(data)), CreatedAt: time.Now(), Volume: volume, Path: path}
	m.files[f.URL()], m.data[f.ID] = f, data
	return f
}

// memoryWriter is a file being written.
type memoryWriter struct {
	store        *Memory
	ctx          context.Context
	volume, path string
	buf          bytes.Buffer
	ended        bool
}

// Write implements lakefs.Writer.
func (w *memoryWriter) Write(ctx context.Context, p []byte) error {
	if err := w.usable(ctx); err != nil {
		return err
	}
	w.buf.Write(p)
	return nil
}

// Close implements lakefs.Writer.
func (w *memoryWriter) Close(ctx context.Context) (*lakefs.File, error) {
	if err := w.usable(ctx); err != nil {
		return nil, err
	}
	w.ended = true
	return w.store.publish(w.volume, w.path, w.buf.Bytes()), nil
}

// Abort implements lakefs.Writer.
func (w *memoryWriter) Abort() { w.ended = true }

// Size implements lakefs.Writer.
func (w *memoryWriter) Size() int64 { return int64(w.buf.Len()) }

// usable fails when the writer has ended or must end now.
func (w *memoryWriter) usable(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), w.ctx.Err()); err != nil {
		w.ended = true
		return err
	}
	if w.ended {
		return fmt.Errorf("write %s: the writer has ended", url(w.volume, w.path))
	}
	return nil
}

// check is what every call checks first.
func check(ctx context.Context, volume string) error {
	return errors.Join(ctx.Err(), lakefs.CheckVolume(volume))
}

// url is a file's key.
func url(volume, path string) string { return lakefs.Scheme + volume + "/" + path }
