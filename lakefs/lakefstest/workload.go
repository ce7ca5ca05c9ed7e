package lakefstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"sluice/lakefs"
)

// Workload makes changes and reads at random on a store, one at a time, some of which fail, and checks every answer
// against a model: what a caller of a store counts on.
type Workload struct {
	Store  lakefs.Store
	Volume string // empty before
	Seed   uint64
	Steps  int

	// Arm is asked before each step what may go wrong with it. nil: nothing.
	Arm func(ctx context.Context, random *rand.Rand) Armed
}

// Armed is what may go wrong with a step.
type Armed struct {
	Context context.Context  // that the step's calls are given
	Cause   func(error) bool // reports whether a call may fail so; nil: none may fail
	Effect  Effect           // of a change that has failed
	Disarm  func()           // ends it before the outcome is looked at
}

// Effect is what a change that failed has done.
type Effect int

// A change is never done in part.
const (
	Undone Effect = iota
	Done
	Unknown // either of the two
)

// Run makes the steps. The error says which answer was wrong; the store's volume is as it was then.
func (w Workload) Run(ctx context.Context) error {
	k := &walk{Workload: w, random: rand.New(rand.NewPCG(w.Seed, 0)), files: map[string][]byte{}}
	for i := range w.Steps {
		m := moves[k.random.IntN(len(moves))](k)
		if err := k.step(ctx, m); err != nil {
			return fmt.Errorf("seed %d, step %d, %s: %w", w.Seed, i, m.text, err)
		}
	}
	return k.compare(ctx)
}

// walk is a Workload under way.
type walk struct {
	Workload
	random *rand.Rand
	files  map[string][]byte // what must be there, by path
	held   []held
}

// held is a file that was opened at some time.
type held struct {
	file *lakefs.File
	data []byte
}

// move is a step that has been decided on.
type move struct {
	text    string
	call    func(ctx context.Context) error // an errWrong if the answer contradicts the model
	effect  func()                          // on the model; nil: none
	missing bool                            // must end in ErrNotExist
}

// errWrong is an answer that no store may give, whatever fails.
var errWrong = errors.New("wrong answer")

// wrong makes an errWrong.
func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errWrong}, args...)...)
}

// step makes a move and judges how it ended. After a failure, and now and then, all files are looked at.
func (k *walk) step(ctx context.Context, m move) error {
	armed := Armed{Context: ctx}
	if k.Arm != nil {
		armed = k.Arm(ctx, k.random)
	}
	err := m.call(armed.Context)
	if armed.Disarm != nil {
		armed.Disarm()
	}
	effect, unexpected := judge(m, armed, err)
	if unexpected != nil {
		return unexpected
	}
	if effect == Unknown && k.compare(ctx) != nil {
		effect = Done
	}
	if effect == Done && m.effect != nil {
		m.effect()
	}
	if err == nil && k.random.IntN(16) > 0 {
		return nil
	}
	return k.compare(ctx)
}

// judge says what a move has done that ended so, or that it must not end so.
func judge(m move, armed Armed, err error) (Effect, error) {
	switch {
	case errors.Is(err, errWrong):
		return Unknown, err
	case m.missing && errors.Is(err, lakefs.ErrNotExist):
		return Undone, nil
	case m.missing && err == nil:
		return Unknown, wrong("no ErrNotExist")
	case err == nil:
		return Done, nil
	case armed.Cause == nil || !armed.Cause(err):
		return Unknown, fmt.Errorf("failed in another way than it was made to: %w", err)
	case m.missing:
		return Undone, nil
	}
	return armed.Effect, nil
}

// compare looks at everything.
func (k *walk) compare(ctx context.Context) error {
	paths, err := k.Store.List(ctx, k.Volume, "", 0)
	if err != nil {
		return err
	}
	if want := slices.Sorted(maps.Keys(k.files)); !slices.Equal(paths, want) {
		return wrong("the files are %q, not %q", paths, want)
	}
	for _, path := range paths {
		data, err := Get(ctx, k.Store, k.Volume, path)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, k.files[path]) {
			return wrong("%q holds %d other bytes than the %d written", path, len(data), len(k.files[path]))
		}
	}
	return nil
}

// walkPaths are the paths of a Workload: few, so that changes meet.
var walkPaths = []string{"a", "a/1", "a/2", "ab", "b", "é"}

// path picks a path, prefix a prefix of some.
func (k *walk) path() string   { return walkPaths[k.random.IntN(len(walkPaths))] }
func (k *walk) prefix() string { p := k.path(); return p[:k.random.IntN(2)*len(p)] }

// moves decide on a step each; what is there twice is made more often.
var moves = []func(k *walk) move{
	put, put, put, abort, remove, removePrefix, rename, rename, list, glob, exists, read, read, read, readHeld,
}

// content is a new file's, of a size that matters to layout v2 or of none that does. One that streams is rare.
func (k *walk) content() []byte {
	sizes := []int{0, 1, 100, rowBytes - 1, rowBytes, rowBytes + 1, 3*rowBytes + 5}
	size := sizes[k.random.IntN(len(sizes))]
	if k.random.IntN(40) == 0 {
		size = batchBytes + 5
	}
	return Content(k.random.Uint64(), size)
}

// put writes a file, in place of what is there.
func put(k *walk) move {
	path, data := k.path(), k.content()
	return move{
		text: fmt.Sprintf("put %d bytes at %q", len(data), path),
		call: func(ctx context.Context) error {
			f, err := TryPut(ctx, k.Store, k.Volume, path, data)
			if err != nil {
				return err
			}
			if f.Size != int64(len(data)) || f.Path != path {
				return wrong("published %+v", f)
			}
			k.hold(f, data)
			return nil
		},
		effect: func() { k.files[path] = data },
	}
}

// hold remembers an open file.
func (k *walk) hold(f *lakefs.File, data []byte) {
	const most = 8
	if len(k.held) < most {
		k.held = append(k.held, held{f, data})
		return
	}
	k.held[k.random.IntN(most)] = held{f, data}
}

// abort begins a file and gives it up.
func abort(k *walk) move {
	path, data := k.path(), k.content()
	return move{text: fmt.Sprintf("abort %q", path), call: func(ctx context.Context) error {
		w, err := k.Store.Create(ctx, k.Volume, path)
		if err != nil {
			return err
		}
		defer w.Abort()
		return w.Write(ctx, data)
	}}
}

// remove removes a file, if it is there.
func remove(k *walk) move {
	path := k.path()
	return move{
		text:    fmt.Sprintf("remove %q", path),
		call:    func(ctx context.Context) error { return k.Store.Remove(ctx, k.Volume, path) },
		effect:  func() { delete(k.files, path) },
		missing: k.files[path] == nil,
	}
}

// removePrefix removes what begins so.
func removePrefix(k *walk) move {
	prefix := k.path()
	want := k.under(prefix)
	return move{
		text: fmt.Sprintf("remove everything under %q", prefix),
		call: func(ctx context.Context) error {
			n, err := k.Store.RemovePrefix(ctx, k.Volume, prefix)
			if err == nil && n != int64(len(want)) {
				return wrong("%d files instead of %d", n, len(want))
			}
			return err
		},
		effect: func() {
			maps.DeleteFunc(k.files, func(path string, _ []byte) bool { return slices.Contains(want, path) })
		},
	}
}

// under are the paths that begin so.
func (k *walk) under(prefix string) (paths []string) {
	for path := range k.files {
		if strings.HasPrefix(path, prefix) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// rename moves a file, if it is there, perhaps onto another or onto itself.
func rename(k *walk) move {
	from, to := k.path(), k.path()
	data := k.files[from]
	return move{
		text: fmt.Sprintf("rename %q to %q", from, to),
		call: func(ctx context.Context) error { return k.Store.Rename(ctx, k.Volume, from, to) },
		effect: func() {
			delete(k.files, from)
			k.files[to] = data
		},
		missing: data == nil,
	}
}

// list lists what begins so.
func list(k *walk) move {
	prefix, limit := k.prefix(), k.random.IntN(4)
	want := k.under(prefix)
	if limit > 0 && len(want) > limit {
		want = want[:limit]
	}
	return move{text: fmt.Sprintf("list %q, limit %d", prefix, limit), call: func(ctx context.Context) error {
		paths, err := k.Store.List(ctx, k.Volume, prefix, limit)
		return orWrong(err, slices.Equal(paths, want), paths)
	}}
}

// orWrong is a call's error, or that its answer is wrong.
func orWrong(err error, right bool, answer any) error {
	if err == nil && !right {
		return wrong("%q", answer)
	}
	return err
}

// glob lists what matches.
func glob(k *walk) move {
	pattern := k.path() + "*"
	want := slices.DeleteFunc(k.under(""), func(path string) bool { return !lakefs.MatchPath(pattern, path) })
	return move{text: fmt.Sprintf("glob %q", pattern), call: func(ctx context.Context) error {
		paths, err := k.Store.Glob(ctx, k.Volume, pattern)
		return orWrong(err, slices.Equal(paths, want), paths)
	}}
}

// exists asks for a file.
func exists(k *walk) move {
	path := k.path()
	return move{text: fmt.Sprintf("exists %q", path), call: func(ctx context.Context) error {
		found, err := k.Store.Exists(ctx, k.Volume, path)
		return orWrong(err, found == (k.files[path] != nil), found)
	}}
}

// read opens a file, if it is there, and reads a part.
func read(k *walk) move {
	path := k.path()
	data := k.files[path]
	off, length := k.span(data)
	return move{text: fmt.Sprintf("read %q", path), missing: data == nil, call: func(ctx context.Context) error {
		f, err := k.Store.Open(ctx, k.Volume, path)
		if err != nil {
			return err
		}
		if f.Size != int64(len(data)) {
			return wrong("%+v for %d bytes", f, len(data))
		}
		k.hold(f, data)
		return k.readSpan(ctx, held{f, data}, off, length)
	}}
}

// readHeld reads a part of a file that is open, whatever has become of its path.
func readHeld(k *walk) move {
	if len(k.held) == 0 {
		return put(k)
	}
	h := k.held[k.random.IntN(len(k.held))]
	off, length := k.span(h.data)
	return move{text: fmt.Sprintf("read what was %q", h.file.Path), call: func(ctx context.Context) error {
		return k.readSpan(ctx, h, off, length)
	}}
}

// span picks a part.
func (k *walk) span(data []byte) (off, length int) {
	off = k.random.IntN(len(data) + 1)
	return off, k.random.IntN(len(data) - off + 1)
}

// readSpan reads a part. A read that does not fail is never torn.
func (k *walk) readSpan(ctx context.Context, h held, off, length int) error {
	p := make([]byte, length)
	if err := k.Store.ReadAt(ctx, h.file, p, int64(off)); err != nil {
		return err
	}
	if !bytes.Equal(p, h.data[off:][:length]) {
		return wrong("other bytes at %d, length %d", off, length)
	}
	return nil
}
