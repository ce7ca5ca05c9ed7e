package lakefstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"sluice/lakefs"
)

// cancelledWrite: a context that ends takes the file with it, whether Create's or the call's.
func cancelledWrite(t *testing.T, s lakefs.Store, volume string) {
	for path, pick := range map[string]func(created, call context.Context) context.Context{
		"create's": func(created, _ context.Context) context.Context { return created },
		"call's":   func(_, call context.Context) context.Context { return call },
	} {
		for _, size := range []int{0, 1, 2 * batchBytes} {
			ctx, cancel := context.WithCancel(t.Context())
			w, err := s.Create(pick(ctx, t.Context()), volume, path)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), Content(3, size)); err != nil {
				t.Error(err)
			}
			cancel()
			if err := w.Write(pick(t.Context(), ctx), []byte{1}); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end of %s context, with %d bytes: write: %v", path, size, err)
			}
			if _, err = w.Close(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end of %s context, with %d bytes: close: %v", path, size, err)
			}
			w.Abort()
			WantNone(t, s, volume, path)
		}
	}
}

// contextCalls are one call of each kind. None may do anything when its context has ended.
var contextCalls = []struct {
	name string
	call func(ctx context.Context, s lakefs.Store, volume string, f *lakefs.File) error
}{
	{"open", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		_, err := s.Open(ctx, volume, "f")
		return err
	}},
	{"open nothing", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		_, err := s.Open(ctx, volume, "none")
		return err
	}},
	{"read", func(ctx context.Context, s lakefs.Store, _ string, f *lakefs.File) error {
		return s.ReadAt(ctx, f, make([]byte, f.Size), 0)
	}},
	{"create", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		w, err := s.Create(ctx, volume, "new")
		if err == nil {
			defer w.Abort()
			_, err = w.Close(context.WithoutCancel(ctx))
		}
		return err
	}},
	{"remove", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		return s.Remove(ctx, volume, "f")
	}},
	{"remove prefix", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		n, err := s.RemovePrefix(ctx, volume, "")
		return errors.Join(err, none(n == 0))
	}},
	{"rename", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		return s.Rename(ctx, volume, "f", "new")
	}},
	{"rename onto itself", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		return s.Rename(ctx, volume, "f", "f")
	}},
	{"list", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		paths, err := s.List(ctx, volume, "", 0)
		return errors.Join(err, none(len(paths) == 0))
	}},
	{"exists", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		found, err := s.Exists(ctx, volume, "f")
		return errors.Join(err, none(!found))
	}},
	{"glob", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		paths, err := s.Glob(ctx, volume, "*")
		return errors.Join(err, none(len(paths) == 0))
	}},
	{"glob without wildcards", func(ctx context.Context, s lakefs.Store, volume string, _ *lakefs.File) error {
		paths, err := s.Glob(ctx, volume, "f")
		return errors.Join(err, none(len(paths) == 0))
	}},
}

// errAnswered is an answer beside an error.
var errAnswered = errors.New("there is an answer although the context has ended")

// none is an error unless there is no answer.
func none(empty bool) error {
	if empty {
		return nil
	}
	return errAnswered
}

// cancelledCalls: a call whose context has ended fails with the context's error and changes nothing, whatever the store
// knows by heart, and the store goes on.
func cancelledCalls(t *testing.T, s lakefs.Store, volume string) {
	data := Content(1, 3*rowBytes)
	f := Put(t, s, volume, "f", data)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, expired} {
		for _, c := range contextCalls {
			WantFile(t, s, volume, "f", data) // known by heart now
			err := c.call(ctx, s, volume, f)
			if !errors.Is(err, ctx.Err()) || errors.Is(err, errAnswered) {
				t.Errorf("%s: %v, not %v", c.name, err, ctx.Err())
			}
			WantList(t, s, volume, "", 0, "f")
		}
	}
	WantFile(t, s, volume, "f", data)
}
