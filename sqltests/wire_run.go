package sqltests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// How long an answer may take: as any record, and what a block is worth that is known to fail or still to
// be written.
const (
	wireTimeout      = recordTimeout
	wireTimeoutShort = 5 * time.Second
)

// quietTime is how long nothing has to come until a script believes that nothing comes.
const quietTime = 300 * time.Millisecond

// WireRun is one pass of a wire script over one server.
type WireRun struct {
	Script  *WireScript
	Target  Target
	Version int    // the server's major version
	Schema  string // made for this run, alone on each connection's search path, dropped at the end like NAME_2
	Rewrite bool   // answers are going to be written into the file, so that those which differ are none of its faults

	// Report is told of each block that did not do what the file says, Log of what is worth knowing.
	Report, Log func(line int, format string, args ...any)

	conns   map[string]*wireConn
	current string
	actual  map[*wireWant][]string // for Rewrite
}

// Do runs the whole script. The error is about the server (no connection); failed blocks go to Report.
func (r *WireRun) Do(ctx context.Context) error {
	r.conns, r.current, r.actual = map[string]*wireConn{}, "a", map[*wireWant][]string{}
	defer r.closeAll()
	drop := fmt.Sprintf("DROP SCHEMA IF EXISTS %s CASCADE; DROP SCHEMA IF EXISTS %[1]s_2 CASCADE", r.Schema)
	if err := r.admin(ctx, drop+"; CREATE SCHEMA "+r.Schema); err != nil {
		return err
	}
	r.blocks(ctx)
	r.closeAll()
	return r.admin(context.WithoutCancel(ctx), drop)
}

// admin runs a statement of the test itself, on a connection that no script sees.
func (r *WireRun) admin(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, r.Target.Config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// closeAll hangs up on every connection.
func (r *WireRun) closeAll() {
	for _, c := range r.conns {
		c.net.Close()
	}
	clear(r.conns)
}

// blocks runs them in order, up to the first that surprises: what comes after it would be noise.
func (r *WireRun) blocks(ctx context.Context) {
	onSluice := r.Target.Kind == "sluice"
	for _, b := range r.Script.blocks {
		if !onSluice && r.Version < b.needs {
			r.Log(b.line, "left out: needs PostgreSQL %d", b.needs)
			continue
		}
		problem := r.block(ctx, b)
		marked := b.fails != "" && onSluice
		switch {
		case problem != "" && marked:
			r.Log(b.line, "fails as marked (%s): %s", b.fails, problem)
		case problem != "" && r.Script.fails != "" && onSluice:
			r.Log(b.line, "fails as marked (%s): %s", r.Script.fails, problem)
			return
		case problem != "":
			r.Report(b.line, "%s", problem)
			if !r.Rewrite {
				return
			}
		case marked:
			r.Report(b.line, "passes, but is marked as expected to fail (%s): take the mark off", b.fails)
		}
	}
	r.end(onSluice)
}

// end looks for answers that no block has read, and at a mark that nothing justified.
func (r *WireRun) end(onSluice bool) {
	last := len(r.Script.lines)
	for _, name := range slices.Sorted(maps.Keys(r.conns)) {
		c := r.conns[name]
		if answer := c.receive(time.Now().Add(time.Millisecond)); answer.name != wireNothing && !c.over {
			r.Report(last, "connection %s has an answer that no block reads: %s", name, r.show(answer, wireOptions{messages: true}))
		}
	}
	if r.Script.fails != "" && onSluice {
		r.Report(last, "passes, but is marked as expected to fail (%s): take the mark off", r.Script.fails)
	}
}

// block carries out one block and says what is wrong, "" when nothing is.
func (r *WireRun) block(ctx context.Context, b *wireBlock) string {
	wait := wireTimeout
	if r.Rewrite || r.Target.Kind == "sluice" && b.fails+r.Script.fails != "" {
		wait = wireTimeoutShort
	}
	for _, send := range b.sends {
		if err := r.send(ctx, send, wait); err != nil {
			return fmt.Sprintf("line %d, %s: %v", send.line, send.word, err)
		}
	}
	c, err := r.conn(ctx)
	if err != nil {
		return err.Error()
	}
	c.flush()
	want := b.want(r.Target.Kind, r.Version)
	if want == nil {
		return ""
	}
	got := r.render(c.answers(b.wireOptions, time.Now().Add(wait)), b.wireOptions)
	if want.on != "" || r.Target.Kind == "postgres" || r.Script.Only == r.Target.Kind {
		r.actual[want] = got
		if r.Rewrite && b.fails+r.Script.fails == "" {
			return ""
		}
	}
	return wireDiff(got, want.lines)
}

// wireDiff shows both sides in full: a script is small, and the lines explain each other.
func wireDiff(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("answer %d is %s, want %s; all of them:\n\t%s", i+1, lineAt(got, i), lineAt(want, i), strings.Join(got, "\n\t"))
}

// send carries out one line.
func (r *WireRun) send(ctx context.Context, s wireSend, wait time.Duration) error {
	rest := r.expand(s.rest)
	if do := wireSends[s.word]; do != nil {
		return do(r, ctx, rest, wait)
	}
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	message, err := wireMessages[s.word](rest)
	if err != nil {
		return err
	}
	if c.out, err = message.Encode(c.out); err != nil {
		return err
	}
	if endsInReady[s.word] {
		c.owed++
	}
	return nil
}

// endsInReady are the messages of which each is answered by a ReadyForQuery.
var endsInReady = map[string]bool{"Query": true, "Sync": true, "FunctionCall": true}

// expand puts in what a script cannot know, ${schema}, ${user}, ${database} and ${pid_NAME}, and what would make its lines too
// long, ${x9000}.
func (r *WireRun) expand(s string) string {
	return variable.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		known := map[string]string{"schema": r.Schema, "user": r.Target.Config.User, "database": r.Target.Config.Database}
		if c := r.conns[strings.TrimPrefix(name, "pid_")]; c != nil {
			known[name] = strconv.FormatUint(uint64(c.pid), 10)
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "x")); err == nil {
			known[name] = strings.Repeat("x", n)
		}
		if value, ok := known[name]; ok {
			return value
		}
		return ref
	})
}

// conn is the current connection, opened and logged in when first asked for.
func (r *WireRun) conn(ctx context.Context) (*wireConn, error) {
	if c := r.conns[r.current]; c != nil {
		return c, nil
	}
	c, err := dialWire(ctx, r.Target.Config)
	if err != nil {
		return nil, err
	}
	r.conns[r.current] = c
	c.startup("3.0", r.startupParameters())
	deadline := time.Now().Add(wireTimeout)
	if err := c.login(r.Target.Config.Password, deadline); err != nil {
		return nil, err
	}
	answers := c.answers(wireOptions{}, deadline)
	if last := answers[len(answers)-1]; last.name != "ReadyForQuery" {
		return nil, fmt.Errorf("connection %s: %s", r.current, r.show(last, wireOptions{messages: true}))
	}
	return c, nil
}

// startupParameters are those of an ordinary connection: whatever changes texts is fixed.
func (r *WireRun) startupParameters() []string {
	config := r.Target.Config
	return []string{
		"user", config.User, "database", config.Database, "search_path", r.Schema,
		"client_encoding", "UTF8", "DateStyle", "ISO, MDY", "TimeZone", "UTC", "IntervalStyle", "postgres",
	}
}

// nameOf is the script's name for the backend with this process id.
func (r *WireRun) nameOf(pid uint32) string {
	for name, c := range r.conns {
		if c.pid == pid {
			return name
		}
	}
	return "elsewhere"
}
