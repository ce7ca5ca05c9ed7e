package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

const (
	logBytesMax  = 10 << 20 // a log larger than this is set aside at the next start
	logTailBytes = 2 << 10  // how much of the log an error quotes
)

// child is the server's process.
type child struct {
	cmd      *exec.Cmd
	logPath  string
	stopping atomic.Bool
	done     chan struct{} // closed when the process has ended
	exit     error         // what Wait said; read after done
	logStart int64         // where this process's lines begin in the log
}

// startChild runs the server with its output appended to a log file.
func startChild(cmd *exec.Cmd, logPath string) (*child, error) {
	log, size, err := openLog(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	c := &child{cmd: cmd, logPath: logPath, done: make(chan struct{}), logStart: size}
	started := make(chan error, 1)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("run %q: %w", cmd.Path, err)
	}
	return c, nil
}

// run starts the process and waits for its end. The kernel ties the signal at the parent's death to the thread that
// forked (prctl(2), PR_SET_PDEATHSIG), so this goroutine keeps its thread for as long as the process lives.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err == nil {
		c.exit = c.cmd.Wait()
		close(c.done)
	}
}

// stop ends the process: fast, at once when ctx ends, by force when even that does not help.
func (c *child) stop(ctx context.Context) error {
	c.stopping.Store(true)
	select {
	case <-c.done:
		return nil
	default:
	}
	_ = c.cmd.Process.Signal(interrupt) // fails only if the process has just ended
	select {
	case <-c.done:
		return c.exitError()
	case <-ctx.Done():
	}
	_ = c.cmd.Process.Signal(quit)
	select {
	case <-c.done:
	case <-time.After(quitGrace):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
	return fmt.Errorf("embedded PostgreSQL did not shut down in time and was ended at once; it recovers at its next start: %w", context.Cause(ctx))
}

// exitError is nil for an exit with 0.
func (c *child) exitError() error {
	if c.exit == nil {
		return nil
	}
	return c.failure()
}

// failure says how the process ended, with the end of its log, where PostgreSQL says why. Call after done.
func (c *child) failure() error {
	err := c.exit
	if err == nil {
		err = errors.New("it stopped by itself")
	}
	return fmt.Errorf("postgres ended: %w\nlast lines of %q:\n%s", err, c.logPath, c.logTail())
}

// logTail is the end of what this process has logged.
func (c *child) logTail() string {
	f, err := os.Open(c.logPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(c.logStart, info.Size()-logTailBytes)
	text := make([]byte, max(0, info.Size()-from))
	n, _ := f.ReadAt(text, from) // a log that shrank meanwhile is quoted as far as it goes
	return strings.TrimSpace(string(text[:n]))
}

// openLog opens the log for appending and returns its size. One earlier log is kept beside a new one.
func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logBytesMax {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
