package lakefstest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

func TestFaulty(t *testing.T) {
	var stores []*lakefstest.Faulty
	lakefstest.Run(t, func(*testing.T) lakefs.Store {
		f := lakefstest.NewFaulty(lakefstest.NewMemory())
		stores = append(stores, f)
		return f
	})
	for _, f := range stores {
		if n := f.OpenWriters(); n != 0 {
			t.Errorf("%d writers are still open after %q", n, f.TakeLog()[0])
		}
	}
}

func TestFaulty_Shared(t *testing.T) {
	m := lakefstest.NewMemory()
	lakefstest.RunShared(t, lakefstest.Shared{
		Open: func(*testing.T) lakefs.Store { return lakefstest.NewFaulty(m) },
		Reap: func(*testing.T) { m.Reap() },
	})
}

func TestFaulty_Faults(t *testing.T) {
	lakefstest.RunFaults(t, func(*testing.T) lakefs.Store { return lakefstest.NewMemory() })
}

// errFull is the cause of the faults here.
var errFull = errors.New("no space left")

// calls make one call of each kind on a store that holds files a and b, in volume v.
var calls = map[lakefstest.Op]func(ctx context.Context, s lakefs.Store) error{
	lakefstest.OpOpen: func(ctx context.Context, s lakefs.Store) error {
		_, err := s.Open(ctx, "v", "a")
		return err
	},
	lakefstest.OpRead: func(ctx context.Context, s lakefs.Store) error {
		_, err := lakefstest.Get(ctx, s, "v", "a")
		return err
	},
	lakefstest.OpCreate: putNew,
	lakefstest.OpWrite:  putNew,
	lakefstest.OpClose:  putNew,
	lakefstest.OpRemove: func(ctx context.Context, s lakefs.Store) error { return s.Remove(ctx, "v", "a") },
	lakefstest.OpRename: func(ctx context.Context, s lakefs.Store) error { return s.Rename(ctx, "v", "a", "new") },
	lakefstest.OpRemovePrefix: func(ctx context.Context, s lakefs.Store) error {
		_, err := s.RemovePrefix(ctx, "v", "a")
		return err
	},
	lakefstest.OpList: func(ctx context.Context, s lakefs.Store) error {
		_, err := s.List(ctx, "v", "a", 1)
		return err
	},
	lakefstest.OpExists: func(ctx context.Context, s lakefs.Store) error {
		_, err := s.Exists(ctx, "v", "a")
		return err
	},
	lakefstest.OpGlob: func(ctx context.Context, s lakefs.Store) error {
		_, err := s.Glob(ctx, "v", "a*")
		return err
	},
}

// putNew writes a file.
func putNew(ctx context.Context, s lakefs.Store) error {
	_, err := lakefstest.TryPut(ctx, s, "v", "new", []byte("new"))
	return err
}

// changed are the paths after each kind of call; others leave a and b.
var changed = map[lakefstest.Op][]string{
	lakefstest.OpCreate:       {"a", "b", "new"},
	lakefstest.OpWrite:        {"a", "b", "new"},
	lakefstest.OpClose:        {"a", "b", "new"},
	lakefstest.OpRemove:       {"b"},
	lakefstest.OpRename:       {"b", "new"},
	lakefstest.OpRemovePrefix: {"b"},
}

// newFaulty is a store with files a and b in volume v, and an empty log.
func newFaulty(t *testing.T) *lakefstest.Faulty {
	f := lakefstest.NewFaulty(lakefstest.NewMemory())
	for _, path := range []string{"a", "b"} {
		lakefstest.Put(t, f, "v", path, []byte(path+"-text"))
	}
	f.TakeLog()
	return f
}

// TestFaulty_Kinds: each kind of call fails in each way, and has done what that way says.
func TestFaulty_Kinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault lakefstest.Fault
		want  error
		done  bool
	}{
		{"Before", lakefstest.Before(errFull), errFull, false},
		{"After", lakefstest.After(errFull), errFull, true},
		{"Torn", lakefstest.Torn(1, errFull), errFull, true},
		{"Block", lakefstest.Block(), context.DeadlineExceeded, false},
		{"Delay", lakefstest.Delay(time.Nanosecond), nil, true},
		{"DelayPastEnd", lakefstest.Delay(time.Hour), context.DeadlineExceeded, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, op := range lakefstest.Ops {
				f := newFaulty(t)
				f.Inject(lakefstest.Rule{Op: op, Then: c.fault})
				ctx, cancel := context.WithTimeout(t.Context(), timeout(c.want))
				err := calls[op](ctx, f)
				cancel()
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v, not %v", op, err, c.want)
				}
				f.Inject()
				want := changed[op]
				unpublished := err != nil && (op == lakefstest.OpCreate || op == lakefstest.OpWrite)
				if want == nil || !c.done || unpublished {
					want = []string{"a", "b"}
				}
				lakefstest.WantList(t, f, "v", "", 0, want...)
				if n := f.OpenWriters(); n != 0 {
					t.Errorf("%s: %d writers are still open", op, n)
				}
			}
		})
	}
}

// timeout is how long a call may take that ends by its context, or otherwise.
func timeout(want error) time.Duration {
	if errors.Is(want, context.DeadlineExceeded) {
		return time.Millisecond
	}
	return time.Minute
}

// TestFaulty_Panic: a panic goes through, and leaves a writer that can be given up and nothing else.
func TestFaulty_Panic(t *testing.T) {
	for _, op := range lakefstest.Ops {
		f := newFaulty(t)
		f.Inject(lakefstest.Rule{Op: op, Then: lakefstest.Panic("a bug")})
		func() {
			defer func() {
				if p := recover(); p != "a bug" {
					t.Errorf("%s: %v", op, p)
				}
			}()
			t.Errorf("%s: %v instead of a panic", op, calls[op](t.Context(), f))
		}()
		if log := f.TakeLog(); !slices.ContainsFunc(log, func(line string) bool { return strings.HasSuffix(line, ": panic") }) {
			t.Errorf("%s: %q", op, log)
		}
		f.Inject()
		lakefstest.WantList(t, f, "v", "", 0, "a", "b")
		if n := f.OpenWriters(); n != 0 {
			t.Errorf("%s: %d writers are still open", op, n)
		}
	}
}

// TestFaulty_Torn: the first bytes are there, the rest of the buffer is as it was.
func TestFaulty_Torn(t *testing.T) {
	f := newFaulty(t)
	file, err := f.Open(t.Context(), "v", "a")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"______", "a_____", "a-____"} {
		f.Inject(lakefstest.Rule{Op: lakefstest.OpRead, Then: lakefstest.Torn(n, errFull)})
		p := []byte("______")
		if err := f.ReadAt(t.Context(), file, p, 0); !errors.Is(err, errFull) || string(p) != want {
			t.Errorf("%q %v, not %q", p, err, want)
		}
	}
}

// TestFaulty_Rules: which calls a rule picks.
func TestFaulty_Rules(t *testing.T) {
	var none lakefstest.Op
	for _, c := range []struct {
		rule  lakefstest.Rule
		fails string // of six times open a, open b: those that do
	}{
		{lakefstest.Rule{}, "abababababab"},
		{lakefstest.Rule{Op: none, Path: "a"}, "aaaaaa"},
		{lakefstest.Rule{Path: "[!a]"}, "bbbbbb"},
		{lakefstest.Rule{Path: "c*"}, ""},
		{lakefstest.Rule{Op: lakefstest.OpRead}, ""},
		{lakefstest.Rule{Op: lakefstest.OpOpen, When: lakefstest.Nth(1)}, "a"},
		{lakefstest.Rule{When: lakefstest.Nth(4)}, "b"},
		{lakefstest.Rule{When: lakefstest.EveryNth(3)}, "abab"},
		{lakefstest.Rule{Path: "b", When: lakefstest.EveryNth(3)}, "bb"},
	} {
		f := newFaulty(t)
		c.rule.Then = lakefstest.Before(errFull)
		f.Inject(c.rule)
		var fails []byte
		for range 6 {
			for _, path := range []string{"a", "b"} {
				if _, err := f.Open(t.Context(), "v", path); errors.Is(err, errFull) {
					fails = append(fails, path...)
				}
			}
		}
		if string(fails) != c.fails {
			t.Errorf("%+v: %s, not %s", c.rule, fails, c.fails)
		}
	}
	f := newFaulty(t)
	f.Inject(
		lakefstest.Rule{Path: "b", When: lakefstest.Nth(2), Then: lakefstest.Before(errFull)},
		lakefstest.Rule{Op: lakefstest.OpRename, Then: lakefstest.Before(context.Canceled)},
	)
	for i, want := range []error{context.Canceled, errFull, context.Canceled} { // the second rule, the first, the second
		if err := f.Rename(t.Context(), "v", "a", "b"); !errors.Is(err, want) {
			t.Errorf("rename %d: %v", i, err)
		}
	}
}

// TestFaulty_Log: every call is a line, also those that failed.
func TestFaulty_Log(t *testing.T) {
	f := newFaulty(t)
	f.Inject(lakefstest.Rule{Op: lakefstest.OpWrite, When: lakefstest.Nth(2), Then: lakefstest.Before(errFull)})
	for range 2 {
		_ = putNew(t.Context(), f) // fails once
	}
	_, _ = f.Exists(t.Context(), "v", "a\n")
	_, _ = f.List(t.Context(), "v", "a/", 3)
	_, _ = f.RemovePrefix(t.Context(), "v", "")
	_ = f.Rename(t.Context(), "v", "a", "b")
	want := `create v/new
write v/new 0+3
publish v/new
create v/new
write v/new 0+3: no space left
abort v/new
exists "v/a\n"
list v/a/ limit 3
remove-prefix v/
rename v/a v/b: rename pgvfs://v/a: no such file
`
	if got := strings.Join(f.TakeLog(), "\n") + "\n"; got != want {
		t.Errorf("%s", got)
	}
	if log := f.TakeLog(); len(log) != 0 {
		t.Errorf("taken twice: %q", log)
	}
}

// TestWorkload_Finds: faults that no store may have are noticed.
func TestWorkload_Finds(t *testing.T) {
	for name, rule := range map[string]lakefstest.Rule{
		"torn read":          {Op: lakefstest.OpRead, When: lakefstest.EveryNth(40), Then: lakefstest.Torn(0, nil)},
		"lost write":         {Op: lakefstest.OpWrite, When: lakefstest.EveryNth(20), Then: lakefstest.Before(nil)},
		"lost remove":        {Op: lakefstest.OpRemove, When: lakefstest.EveryNth(10), Then: lakefstest.Before(nil)},
		"lost rename":        {Op: lakefstest.OpRename, When: lakefstest.EveryNth(10), Then: lakefstest.Before(nil)},
		"unwanted error":     {Op: lakefstest.OpExists, When: lakefstest.Nth(10), Then: lakefstest.Before(errFull)},
		"lost remove-prefix": {Op: lakefstest.OpRemovePrefix, When: lakefstest.EveryNth(5), Then: lakefstest.Before(nil)},
	} {
		f := lakefstest.NewFaulty(lakefstest.NewMemory())
		f.Inject(rule)
		if err := (lakefstest.Workload{Store: f, Volume: "v", Steps: 2000}).Run(t.Context()); err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
	if err := (lakefstest.Workload{Store: lakefstest.NewMemory(), Volume: "v", Steps: 2000}).Run(t.Context()); err != nil {
		t.Error(err)
	}
}
