package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	barDelay    = 500 * time.Millisecond // what is done sooner needs no bar
	barThrottle = 100 * time.Millisecond
	barWidth    = 30
)

// bar shows on standard error how far a long task is, if that is a terminal. It belongs to one goroutine.
type bar struct {
	shown *progressbar.ProgressBar // nil: no terminal
}

// newBar begins a task, of so many bytes or other things; a negative number is not known.
func newBar(what string, total int64, bytes bool) *bar {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return &bar{}
	}
	return &bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(&lateWriter{os.Stderr, time.Now().Add(barDelay)}),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(bytes),
		progressbar.OptionUseIECUnits(bytes),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(barWidth),
		progressbar.OptionThrottle(barThrottle),
		progressbar.OptionClearOnFinish(),
	)}
}

// set says how much is done, of how much. Drawing may fail, which is no reason for the task to.
func (b *bar) set(done, total int64) {
	if b.shown == nil {
		return
	}
	if total != b.shown.GetMax64() {
		b.shown.ChangeMax64(total)
	}
	_ = b.shown.Set64(done)
}

// clear takes the bar away, for a line of text to come or for good. The next set draws it again.
func (b *bar) clear() {
	if b.shown != nil {
		_ = b.shown.Clear()
	}
}

// lateWriter drops what is written before a time.
type lateWriter struct {
	io.Writer
	from time.Time
}

func (w *lateWriter) Write(p []byte) (int, error) {
	if time.Now().Before(w.from) {
		return len(p), nil
	}
	return w.Writer.Write(p)
}
