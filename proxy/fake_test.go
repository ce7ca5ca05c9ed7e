package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/jackc/pgerrcode"

	"sluice/engine"
	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// fakeLake is an engine of a dozen statements, for what DuckDB does not do on demand. Its journal lists what ran, in
// order, over all sessions.
type fakeLake struct {
	mu        sync.Mutex
	journal   []string
	commitErr error // what the next commit of an implicit block ends with
	sessions  int   // open now
}

func (l *fakeLake) Lake() string { return "lake" }

func (l *fakeLake) NewSession(_ context.Context, cfg engine.SessionConfig) (backend, error) {
	if zone := cfg.Params["TimeZone"]; zone == "Foo/Bar" {
		return nil, pgerr.Newf(pgerrcode.InvalidParameterValue, "invalid value for parameter \"TimeZone\": %q", zone)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions++
	return &fakeSession{lake: l, cfg: cfg, zone: "UTC", status: 'I', kept: map[string]statement{}, bound: map[string]*fakePortal{}}, nil
}

func (l *fakeLake) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal = append(l.journal, fmt.Sprintf(format, args...))
}

// notes returns the journal so far.
func (l *fakeLake) notes() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.journal, ", ")
}

func (l *fakeLake) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions
}

type fakeSession struct {
	lake     *fakeLake
	cfg      engine.SessionConfig
	zone     string
	status   byte
	implicit bool
	kept     map[string]statement
	bound    map[string]*fakePortal
}

func (s *fakeSession) Keep(name string, st statement) error {
	if _, taken := s.kept[name]; taken {
		return pgerr.Newf(pgerrcode.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	s.kept[name] = st
	return nil
}

func (s *fakeSession) Kept(_ context.Context, name string) (statement, error) {
	if st, ok := s.kept[name]; ok {
		return st, nil
	}
	return nil, pgerr.Newf(pgerrcode.InvalidSQLStatementName, "prepared statement %q does not exist", name)
}

func (s *fakeSession) Forget(name string) { delete(s.kept, name) }

func (s *fakeSession) Bind(name string, st statement, args []engine.Arg) (bound, error) {
	if s.bound[name] != nil {
		return nil, pgerr.Newf(pgerrcode.DuplicateCursor, "cursor %q already exists", name)
	}
	p := &fakePortal{s: s, name: name, st: st, args: args}
	if name != "" {
		s.bound[name] = p
	}
	return p, nil
}

func (s *fakeSession) Cursor(string) bound { return nil }

// fakePortal is a bound statement.
type fakePortal struct {
	s    *fakeSession
	name string
	st   statement
	args []engine.Arg
}

func (p *fakePortal) Columns() []pgcodec.Column {
	if p.st == nil {
		return nil
	}
	return p.st.Columns()
}

func (p *fakePortal) Run(ctx context.Context, mode engine.Mode) (result, error) {
	return p.st.Run(ctx, p.args, mode)
}

func (p *fakePortal) Closed() bool { return p.name != "" && p.s.bound[p.name] != p }

func (p *fakePortal) Close() {
	if !p.Closed() {
		delete(p.s.bound, p.name)
	}
}

// IdleTimeouts follow from the user's name: what the fake lake's clients can say.
func (s *fakeSession) IdleTimeouts() (session, inTransaction time.Duration) {
	if s.cfg.User == "hasty" {
		return 200 * time.Millisecond, 100 * time.Millisecond
	}
	return 0, 0
}

func (s *fakeSession) Parse(sql string) ([]engine.Query, error) {
	var queries []engine.Query
	for text := range strings.SplitSeq(sql, ";") {
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(text, "--") {
			queries = append(queries, engine.Query{Text: text})
		}
	}
	return queries, nil
}

func (s *fakeSession) Prepare(_ context.Context, q engine.Query, _ []uint32) (statement, error) {
	verb, rest, _ := strings.Cut(q.Text, " ")
	if s.status == 'E' && verb != "rollback" {
		return nil, pgerr.New(pgerrcode.InFailedSQLTransaction, "current transaction is aborted")
	}
	if verb == "selct" {
		return nil, pgerr.New(pgerrcode.SyntaxError, `syntax error at or near "selct"`).WithPosition(1)
	}
	n := int64(-1)
	if rest != "" {
		fmt.Sscan(rest, &n)
	}
	return &fakeStatement{s: s, verb: verb, rest: rest, n: n}, nil
}

func (s *fakeSession) Sync(context.Context) error {
	if !s.implicit {
		return nil
	}
	s.implicit = false
	s.lake.note("commit")
	s.lake.mu.Lock()
	defer s.lake.mu.Unlock()
	err := s.lake.commitErr
	s.lake.commitErr = nil
	return err
}

func (s *fakeSession) Fail() {
	if s.implicit {
		s.lake.note("abort")
	}
	s.implicit = false
	if s.status == 'T' {
		s.status = 'E'
	}
}

func (s *fakeSession) TxStatus() byte              { return s.status }
func (s *fakeSession) Settings() *pgcodec.Settings { return pgcodec.DefaultSettings() }

func (s *fakeSession) ParameterStatus() []engine.Param {
	return []engine.Param{{Name: "server_version", Value: "15.0"}, {Name: "TimeZone", Value: s.zone}}
}

func (s *fakeSession) Close() {
	s.lake.mu.Lock()
	defer s.lake.mu.Unlock()
	s.lake.sessions--
}

// fakeStatement is one verb and perhaps a number.
type fakeStatement struct {
	s    *fakeSession
	verb string
	rest string
	n    int64
}

func (st *fakeStatement) Params() []uint32 {
	if st.verb == "param" {
		return []uint32{20}
	}
	return nil
}

func (st *fakeStatement) Columns() []pgcodec.Column {
	switch st.verb {
	case "rows", "forever":
		return []pgcodec.Column{{Name: "n", Type: pgcodec.TypeOf(20), OID: 20, Len: 8, TypMod: -1}}
	}
	return nil
}

func (st *fakeStatement) Copy() *engine.Copy {
	c := &engine.Copy{In: st.verb == "copyin", Columns: []pgcodec.Column{{Name: "n", Type: pgcodec.TypeOf(20)}}}
	switch {
	case st.verb == "copyin", st.verb == "copyout":
		c.Options = pgcodec.NewCopyOptions(pgcodec.CopyText)
	case st.verb == "copybinary":
		c.Options = pgcodec.NewCopyOptions(pgcodec.CopyBinary)
	default:
		return nil
	}
	return c
}

func (st *fakeStatement) Retain() {}
func (st *fakeStatement) Close()  {}

// fakeTags are the verbs that answer at once.
var fakeTags = map[string]string{
	"begin": "BEGIN", "commit": "COMMIT", "rollback": "ROLLBACK", "insert": "INSERT 0 1", "zone": "SET", "param": "SELECT 0",
	"discard": "DISCARD ALL",
}

func (st *fakeStatement) Run(ctx context.Context, args []engine.Arg, mode engine.Mode) (result, error) {
	s := st.s
	name := "auto"
	if mode == engine.Implicit {
		name = "implicit"
		s.implicit = s.implicit || s.status == 'I'
	}
	s.lake.note("%s %s", st.verb, name)
	for _, arg := range args {
		s.lake.note("arg %q", arg.Data)
	}
	switch st.verb {
	case "hang":
		<-ctx.Done()
		s.lake.note("hang ended")
		return nil, pgerr.New(pgerrcode.QueryCanceled, "interrupted").WithCause(context.Cause(ctx))
	case "fail":
		return nil, pgerr.New(pgerrcode.DivisionByZero, "division by zero")
	case "bug":
		return nil, errors.New("no words of PostgreSQL")
	case "crash":
		return nil, pgerr.Fatal(pgerrcode.CrashShutdown, "the instance was lost")
	case "panic":
		panic("a bug")
	case "begin":
		s.status, s.implicit = 'T', false
	case "commit", "rollback":
		s.status = 'I'
	case "zone":
		s.zone = st.rest
	case "discard":
		clear(s.kept)
	case "notice":
		s.cfg.Notice(pgerr.New("00000", "be aware"))
	}
	return &fakeResult{st: st, left: st.n, tag: fakeTags[st.verb]}, nil
}

func (st *fakeStatement) CopyIn(_ context.Context, mode engine.Mode) (copyIn, error) {
	st.s.lake.note("copyin %d", mode)
	return &fakeCopy{s: st.s}, nil
}

// fakeResult counts down in chunks of 1000 rows.
type fakeResult struct {
	st   *fakeStatement
	left int64
	next int64
	tag  string
	data []int64
}

func (r *fakeResult) Columns() []pgcodec.Column { return r.st.Columns() }

func (r *fakeResult) Binary() bool { return false }

func (r *fakeResult) Next(ctx context.Context, rowsMax int64) (*pgcodec.Chunk, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	most := int64(1000)
	if rowsMax > 0 {
		most = min(most, rowsMax)
	}
	n := min(r.left, most)
	switch r.st.verb {
	case "forever":
		n = most
	case "rows", "copyout", "copybinary":
	default:
		n = 0
	}
	if n <= 0 {
		return nil, io.EOF
	}
	r.left -= n
	r.data = make([]int64, n)
	for i := range r.data {
		r.data[i] = r.next
		r.next++
	}
	v := pgcodec.Vector{Type: pgcodec.TypeOf(20), Data: unsafe.Pointer(&r.data[0])}
	return &pgcodec.Chunk{Columns: []pgcodec.Vector{v}, Rows: int(n)}, nil
}

func (r *fakeResult) Tag(rows int64) string {
	switch {
	case r.tag != "":
		return r.tag
	case strings.HasPrefix(r.st.verb, "copy"):
		return fmt.Sprintf("COPY %d", rows)
	}
	return fmt.Sprintf("SELECT %d", rows)
}

func (r *fakeResult) Close() error { return nil }

// fakeCopy keeps what is copied.
type fakeCopy struct {
	s    *fakeSession
	data []byte
}

func (c *fakeCopy) Write(_ context.Context, p []byte) error {
	c.data = append(c.data, p...)
	if strings.Contains(string(c.data), "bad") {
		return pgerr.New(pgerrcode.InvalidTextRepresentation, "invalid input syntax")
	}
	return nil
}

func (c *fakeCopy) Finish(context.Context) (string, error) {
	c.s.lake.note("copied %q", c.data)
	return fmt.Sprintf("COPY %d", strings.Count(string(c.data), "\n")), nil
}

func (c *fakeCopy) Abort(error) { c.s.lake.note("copy aborted") }
