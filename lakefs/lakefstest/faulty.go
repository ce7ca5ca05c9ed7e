package lakefstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sluice/lakefs"
)

// Faulty is a lakefs.Store over another one that fails by rules. Without rules it is as good as the inner store. It
// writes every call down.
type Faulty struct {
	inner lakefs.Store

	mu    sync.Mutex // guards all below; not held while the inner store works
	rules []*counted
	log   []string
	open  int // writers that have been neither closed nor aborted
}

// counted is a rule and how many calls it has been asked about.
type counted struct {
	Rule
	calls int
}

// NewFaulty makes a store that does not fail yet.
func NewFaulty(inner lakefs.Store) *Faulty { return &Faulty{inner: inner} }

// Inject sets the rules, which begin to count, instead of those before. The first one that picks a call decides about it;
// with none, no call fails.
func (f *Faulty) Inject(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
	for _, r := range rules {
		f.rules = append(f.rules, &counted{Rule: r})
	}
}

// TakeLog returns the calls made since it was last called, in the order in which they ended, one a line, with the errors
// of those that failed:
//
//	open v/p
//	read v/p 0+8120
//	publish v/p: no space left on device
func (f *Faulty) TakeLog() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := f.log
	f.log = nil
	return log
}

// OpenWriters counts the writers that have been neither closed nor aborted.
func (f *Faulty) OpenWriters() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// do makes a call as the rules will have it.
func (f *Faulty) do(ctx context.Context, c Call) (err error) {
	ended := false
	defer func() {
		if !ended {
			f.record(c, errors.New("panic"))
		}
	}()
	err = f.pick(c)(ctx, c)
	ended = true
	f.record(c, err)
	return err
}

// record writes a call down.
func (f *Faulty) record(c Call, err error) {
	line := c.String()
	if err != nil {
		line += ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, line)
}

// pick finds the fault of a call. Every rule that is about the call counts it, also behind the one that decides.
func (f *Faulty) pick(c Call) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var picked Fault
	for _, r := range f.rules {
		if !r.matches(c) {
			continue
		}
		r.calls++
		if picked == nil && (r.When == nil || r.When(r.calls)) {
			picked = r.Then
		}
	}
	if picked == nil {
		return func(_ context.Context, c Call) error { return c.Complete() }
	}
	return picked
}

// Open implements lakefs.Store.
func (f *Faulty) Open(ctx context.Context, volume, path string) (file *lakefs.File, err error) {
	err = f.do(ctx, Call{Op: OpOpen, Volume: volume, Path: path, Complete: func() (err error) {
		file, err = f.inner.Open(ctx, volume, path)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// ReadAt implements lakefs.Store.
func (f *Faulty) ReadAt(ctx context.Context, file *lakefs.File, p []byte, off int64) error {
	return f.do(ctx, Call{
		Op: OpRead, Volume: file.Volume, Path: file.Path, Detail: fmt.Sprintf("%d+%d", off, len(p)), Buffer: p,
		Complete: func() error { return f.inner.ReadAt(ctx, file, p, off) },
	})
}

// Remove implements lakefs.Store.
func (f *Faulty) Remove(ctx context.Context, volume, path string) error {
	return f.do(ctx, Call{Op: OpRemove, Volume: volume, Path: path, Complete: func() error {
		return f.inner.Remove(ctx, volume, path)
	}})
}

// RemovePrefix implements lakefs.Store.
func (f *Faulty) RemovePrefix(ctx context.Context, volume, prefix string) (count int64, err error) {
	err = f.do(ctx, Call{Op: OpRemovePrefix, Volume: volume, Path: prefix, Complete: func() (err error) {
		count, err = f.inner.RemovePrefix(ctx, volume, prefix)
		return err
	}})
	if err != nil {
		return 0, err
	}
	return count, nil
}

// Rename implements lakefs.Store.
func (f *Faulty) Rename(ctx context.Context, volume, from, to string) error {
	return f.do(ctx, Call{Op: OpRename, Volume: volume, Path: from, To: to, Complete: func() error {
		return f.inner.Rename(ctx, volume, from, to)
	}})
}

// List implements lakefs.Store.
func (f *Faulty) List(ctx context.Context, volume, prefix string, limit int) ([]string, error) {
	return f.paths(ctx, Call{Op: OpList, Volume: volume, Path: prefix, Detail: fmt.Sprintf("limit %d", limit)}, func() ([]string, error) {
		return f.inner.List(ctx, volume, prefix, limit)
	})
}

// Glob implements lakefs.Store.
func (f *Faulty) Glob(ctx context.Context, volume, pattern string) ([]string, error) {
	return f.paths(ctx, Call{Op: OpGlob, Volume: volume, Path: pattern}, func() ([]string, error) {
		return f.inner.Glob(ctx, volume, pattern)
	})
}

// paths makes a call that answers with paths.
func (f *Faulty) paths(ctx context.Context, c Call, inner func() ([]string, error)) (paths []string, err error) {
	c.Complete = func() (err error) {
		paths, err = inner()
		return err
	}
	if err := f.do(ctx, c); err != nil {
		return nil, err
	}
	return paths, nil
}

// Exists implements lakefs.Store.
func (f *Faulty) Exists(ctx context.Context, volume, path string) (found bool, err error) {
	err = f.do(ctx, Call{Op: OpExists, Volume: volume, Path: path, Complete: func() (err error) {
		found, err = f.inner.Exists(ctx, volume, path)
		return err
	}})
	return found && err == nil, err
}

// Create implements lakefs.Store.
func (f *Faulty) Create(ctx context.Context, volume, path string) (lakefs.Writer, error) {
	w := &faultyWriter{store: f, ctx: ctx, call: Call{Volume: volume, Path: path}}
	c := w.call
	c.Op, c.Complete = OpCreate, func() (err error) {
		w.inner, err = f.inner.Create(ctx, volume, path)
		return err
	}
	if err := f.do(ctx, c); err != nil {
		if w.inner != nil {
			w.inner.Abort() // its answer was lost, so nobody else can
		}
		return nil, err
	}
	f.count(1)
	return w, nil
}

// count keeps the number of open writers.
func (f *Faulty) count(change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += change
}

// faultyWriter is a file being written.
type faultyWriter struct {
	store *Faulty
	inner lakefs.Writer
	ctx   context.Context // Create's
	call  Call            // volume and path
	err   error           // why it takes nothing any more
	ended bool            // nobody needs to end it any more
}

// errEnded is what a writer says that has been closed or given up, or whose last call did not even return.
var errEnded = errors.New("the writer has ended")

// Write implements lakefs.Writer.
func (w *faultyWriter) Write(ctx context.Context, p []byte) error {
	if w.err != nil {
		return w.err
	}
	detail := fmt.Sprintf("%d+%d", w.inner.Size(), len(p))
	return w.do(ctx, OpWrite, detail, func() error { return w.inner.Write(ctx, p) })
}

// Close implements lakefs.Writer. After a fault nothing of the inner file remains, unless it was the answer that was
// lost.
func (w *faultyWriter) Close(ctx context.Context) (file *lakefs.File, err error) {
	if w.err != nil {
		return nil, w.err
	}
	defer w.end()
	err = w.do(ctx, OpClose, "", func() (err error) {
		file, err = w.inner.Close(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// do makes a call, which ends with either context. If it fails or panics it is the last.
func (w *faultyWriter) do(ctx context.Context, op Op, detail string, complete func() error) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })()
	c := w.call
	c.Op, c.Detail, c.Complete = op, detail, complete
	w.err = errEnded // stays if the call panics
	w.err = w.store.do(both, c)
	return w.err
}

// Abort implements lakefs.Writer.
func (w *faultyWriter) Abort() {
	if w.ended {
		return
	}
	c := w.call
	c.Op = "abort"
	w.store.record(c, nil)
	w.end()
}

// end gives the inner writer up, which does nothing if that has been closed.
func (w *faultyWriter) end() {
	if w.ended {
		return
	}
	w.ended = true
	if w.err == nil {
		w.err = errEnded
	}
	w.inner.Abort()
	w.store.count(-1)
}

// Size implements lakefs.Writer.
func (w *faultyWriter) Size() int64 { return w.inner.Size() }
