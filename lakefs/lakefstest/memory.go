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
	"unicode/utf8"

	"sluice/lakefs"
)

// Memory is a lakefs.Store that ends with the process, and the model that others are compared with. Bytes of removed
// files are kept until Reap.
type Memory struct {
	mu       sync.Mutex
	lastID   int64
	lastTime time.Time             // the latest CreatedAt given out
	files    map[name]*lakefs.File // what is published
	data     map[int64][]byte      // by ID, also of what no longer is
}

// name is a file's key.
type name struct{ volume, path string }

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{files: map[name]*lakefs.File{}, data: map[int64][]byte{}}
}

// Open implements lakefs.Store.
func (m *Memory) Open(ctx context.Context, volume, path string) (*lakefs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := check(ctx, volume); err != nil {
		return nil, failed("open", volume, path, err)
	}
	f, ok := m.files[name{volume, path}]
	if !ok {
		return nil, failed("open", volume, path, lakefs.ErrNotExist)
	}
	found := *f
	return &found, nil
}

// ReadAt implements lakefs.Store.
func (m *Memory) ReadAt(ctx context.Context, f *lakefs.File, p []byte, off int64) error {
	if err := ctx.Err(); err != nil {
		return failed("read", f.Volume, f.Path, err)
	}
	if n := int64(len(p)); off < 0 || off > f.Size || n > f.Size-off {
		return failed("read", f.Volume, f.Path, fmt.Errorf("%d bytes from %d on are not all within its %d", n, off, f.Size))
	}
	m.mu.Lock()
	data, ok := m.data[f.ID]
	m.mu.Unlock()
	if len(p) == 0 {
		return nil // needs no bytes, so it does not miss any
	}
	if !ok {
		return failed("read", f.Volume, f.Path, fmt.Errorf("the bytes of file %d are missing: %w", f.ID, lakefs.ErrReaped))
	}
	copy(p, data[off:])
	return nil
}

// Remove implements lakefs.Store.
func (m *Memory) Remove(ctx context.Context, volume, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := check(ctx, volume); err != nil {
		return failed("remove", volume, path, err)
	}
	if _, ok := m.files[name{volume, path}]; !ok {
		return failed("remove", volume, path, lakefs.ErrNotExist)
	}
	delete(m.files, name{volume, path})
	return nil
}

// RemovePrefix implements lakefs.Store.
func (m *Memory) RemovePrefix(ctx context.Context, volume, prefix string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := check(ctx, volume); err != nil {
		return 0, failed("remove everything under", volume, prefix, err)
	}
	paths := m.under(volume, prefix)
	for _, path := range paths {
		delete(m.files, name{volume, path})
	}
	return int64(len(paths)), nil
}

// Rename implements lakefs.Store.
func (m *Memory) Rename(ctx context.Context, volume, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(check(ctx, volume), lakefs.CheckPath(to)); err != nil {
		return failed("rename", volume, from, err)
	}
	f, ok := m.files[name{volume, from}]
	if !ok {
		return failed("rename", volume, from, lakefs.ErrNotExist)
	}
	moved := *f
	moved.Path = to
	delete(m.files, name{volume, from})
	m.files[name{volume, to}] = &moved
	return nil
}

// List implements lakefs.Store.
func (m *Memory) List(ctx context.Context, volume, prefix string, limit int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := check(ctx, volume); err != nil {
		return nil, failed("list", volume, prefix, err)
	}
	paths := m.under(volume, prefix)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(check(ctx, volume), lakefs.CheckPath(path)); err != nil {
		return nil, failed("create", volume, path, err)
	}
	return &memoryWriter{store: m, ctx: ctx, name: name{volume, path}, created: m.now()}, nil
}

// Reap drops the bytes of all files that are no longer published, as if a grace had passed: reading them is ErrReaped.
func (m *Memory) Reap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	published := map[int64]bool{}
	for _, f := range m.files {
		published[f.ID] = true
	}
	for id := range m.data {
		if !published[id] {
			delete(m.data, id)
		}
	}
}

// under is List without its checks. A prefix is text: what is not UTF-8 begins no path, even where it is the first half
// of a character.
func (m *Memory) under(volume, prefix string) (paths []string) {
	if !utf8.ValidString(prefix) {
		return nil
	}
	for n := range m.files {
		if n.volume == volume && strings.HasPrefix(n.path, prefix) {
			paths = append(paths, n.path)
		}
	}
	slices.Sort(paths)
	return paths
}

// now is a time for CreatedAt: later than any before it by what DuckDB can tell apart, a microsecond.
func (m *Memory) now() time.Time {
	now := time.Now().Truncate(time.Microsecond)
	if !now.After(m.lastTime) {
		now = m.lastTime.Add(time.Microsecond)
	}
	m.lastTime = now
	return now
}

// memoryWriter is a file being written.
type memoryWriter struct {
	store   *Memory
	ctx     context.Context // Create's
	name    name
	created time.Time
	buf     bytes.Buffer
	ended   error // why it takes nothing any more
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
	w.end(errors.New("it has been closed"))
	m := w.store
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastID++
	f := lakefs.File{ID: m.lastID, Size: w.Size(), CreatedAt: w.created, Volume: w.name.volume, Path: w.name.path}
	published := f
	m.files[w.name], m.data[f.ID] = &published, w.buf.Bytes()
	return &f, nil
}

// Abort implements lakefs.Writer.
func (w *memoryWriter) Abort() { w.end(errors.New("it has been given up")) }

// Size implements lakefs.Writer.
func (w *memoryWriter) Size() int64 { return int64(w.buf.Len()) }

// usable fails when the writer has ended or must end now.
func (w *memoryWriter) usable(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), w.ctx.Err()); err != nil {
		w.end(err)
	}
	if w.ended != nil {
		return failed("write", w.name.volume, w.name.path, w.ended)
	}
	return nil
}

// end makes the writer useless, for the first reason given.
func (w *memoryWriter) end(why error) {
	if w.ended == nil {
		w.ended = why
	}
}

// check is what every call on names checks first.
func check(ctx context.Context, volume string) error {
	return errors.Join(ctx.Err(), lakefs.CheckVolume(volume))
}

// failed says in an error what was being done to what.
func failed(verb, volume, path string, err error) error {
	return fmt.Errorf("%s %s: %w", verb, lakefs.Scheme+volume+"/"+path, err)
}
