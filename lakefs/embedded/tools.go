package embedded

import (
	"context"
	"fmt"
	"os/exec"
)

// Tools are the programs of one version of PostgreSQL and whoever may run them, for servers other than Sluice's own:
// those of tests that need TLS, a standby or a certain version.
type Tools struct {
	programs programs
	who      *account
}

// FindTools finds a major version's programs, 0 for the newest: installed ones, else fetched ones.
func FindTools(ctx context.Context, major int, o Options) (Tools, error) {
	who, err := unprivileged()
	if err != nil {
		return Tools{}, err
	}
	p, err := findPrograms(ctx, major, who, o)
	if err != nil {
		return Tools{}, fmt.Errorf("find PostgreSQL's programs: %w", err)
	}
	return Tools{programs: p, who: who}, nil
}

// Major is the version.
func (t Tools) Major() int { return t.programs.major }

// Own gives a file or folder to whoever runs the programs.
func (t Tools) Own(path string) error { return t.who.own(path) }

// Command prepares one of the programs, with an environment in which nothing changes what it does.
func (t Tools) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return t.programs.commandContext(ctx, name, t.who, args...)
}

// Locales are initdb's arguments for UTF-8 text sorted by code point, those to try first in front.
func (t Tools) Locales() [][]string { return t.programs.locales() }

// Serve runs postgres with its output appended to a log file. On Linux it ends with this process, however that ends.
func (t Tools) Serve(log string, args ...string) (*Process, error) {
	child, err := startChild(t.programs.command("postgres", t.who, args...), log)
	if err != nil {
		return nil, err
	}
	return &Process{child}, nil
}

// Process is a running postgres.
type Process struct{ child *child }

// Stop is a fast shutdown, an immediate one when ctx ends, which is an error. Stopping twice is no error.
func (p *Process) Stop(ctx context.Context) error { return p.child.stop(ctx) }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.child.done }

// Failure says why a process has ended that nobody stopped, with the end of its log. Call after Done.
func (p *Process) Failure() error { return p.child.failure() }
