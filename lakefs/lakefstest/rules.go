package lakefstest

import (
	"context"
	"strconv"
	"time"

	"sluice/lakefs"
)

// Op is a kind of call, as the log of a Faulty names it.
type Op string

// The calls of lakefs.Store and lakefs.Writer that a rule can be about. Abort cannot fail, so it has no rule.
const (
	OpOpen         Op = "open"
	OpRead         Op = "read"
	OpCreate       Op = "create"
	OpWrite        Op = "write"
	OpClose        Op = "publish" // Writer.Close
	OpRemove       Op = "remove"
	OpRemovePrefix Op = "remove-prefix"
	OpRename       Op = "rename"
	OpList         Op = "list"
	OpExists       Op = "exists"
	OpGlob         Op = "glob"
)

// Ops are all kinds of calls.
var Ops = []Op{OpOpen, OpRead, OpCreate, OpWrite, OpClose, OpRemove, OpRemovePrefix, OpRename, OpList, OpExists, OpGlob}

// Rule says which calls fail, and how.
type Rule struct {
	Op   Op     // empty: every kind
	Path string // pattern of the call's path, prefix or pattern, of a rename's either path (see lakefs.MatchPath); empty: every
	When When   // which of these calls; nil: all
	Then Fault
}

// matches reports whether a rule is about a call.
func (r Rule) matches(c Call) bool {
	if r.Op != "" && r.Op != c.Op {
		return false
	}
	return r.Path == "" || lakefs.MatchPath(r.Path, c.Path) || (c.Op == OpRename && lakefs.MatchPath(r.Path, c.To))
}

// When picks calls by their number among those that a rule is about, from 1.
type When func(n int) bool

// Nth picks one call.
func Nth(n int) When { return func(i int) bool { return i == n } }

// EveryNth picks each nth call.
func EveryNth(n int) When { return func(i int) bool { return i%n == 0 } }

// Call is a call on its way to the inner store.
type Call struct {
	Op       Op
	Volume   string
	Path     string
	To       string       // a rename's target
	Detail   string       // what else the log says about it
	Buffer   []byte       // what a read fills
	Complete func() error // makes the call on the inner store
}

// String is the call as a line of the log.
func (c Call) String() string {
	text := string(c.Op) + " " + printable(c.Volume+"/"+c.Path)
	if c.Op == OpRename {
		text += " " + printable(c.Volume+"/"+c.To)
	}
	if c.Detail != "" {
		text += " " + c.Detail
	}
	return text
}

// printable is a text as it is, or quoted if it would not show as what it is.
func printable(text string) string {
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

// Fault answers a call in the inner store's stead. It may complete the call first, or not. ctx is the call's, and for a
// file being written also ends with Create's.
type Fault func(ctx context.Context, c Call) error

// Before fails a call that never reaches the inner store.
func Before(err error) Fault {
	return func(context.Context, Call) error { return err }
}

// After fails a call that has taken effect: the answer was lost. What fails by itself keeps its error.
func After(err error) Fault {
	return func(_ context.Context, c Call) error {
		if failed := c.Complete(); failed != nil {
			return failed
		}
		return err
	}
}

// Delay makes a call wait for a time before it is made. If its context ends first it is not made.
func Delay(d time.Duration) Fault {
	return func(ctx context.Context, c Call) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return c.Complete()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Block makes a call wait until its context ends; it is never made.
func Block() Fault {
	return func(ctx context.Context, _ Call) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// Torn fails a read that has filled only the first n bytes of its buffer. Without an error it is what no store may do:
// tests are to notice.
func Torn(n int, err error) Fault {
	return func(_ context.Context, c Call) error {
		before := append([]byte(nil), c.Buffer...)
		if failed := c.Complete(); failed != nil {
			return failed
		}
		n := min(n, len(before))
		copy(c.Buffer[n:], before[n:])
		return err
	}
}

// Panic panics instead of making the call.
func Panic(text string) Fault {
	return func(context.Context, Call) error { panic(text) }
}
