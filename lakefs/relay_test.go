package lakefs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// faultyRelay stands between a store and PostgreSQL. It reads the protocol message by message, passes everything on, and
// does what its rules say when a message comes that they wait for. All that it does is at a known place in the
// conversation: nothing here depends on time.
type faultyRelay struct {
	dsn      string // a store's way through it
	server   pgconn.Config
	listener net.Listener
	ended    chan struct{} // closed by close: nobody is held any longer
	tasks    sync.WaitGroup

	mu      sync.Mutex // guards the rest
	links   map[*link]bool
	traps   []*trap
	refuses bool
	seen    []string       // SQL of every statement that was begun
	paces   map[party]pace // who is slowed down
}

// party is an end of a conversation.
type party int

const (
	client party = iota
	server
)

// pace is what a party may send, in bytes a second.
type pace float64

// message is one message of the protocol.
type message struct {
	from party
	kind byte   // its type byte; 0 for the packet that a connection starts with, which has none
	sql  string // of Query, Parse and Bind; of a server's message, the Query that it may answer
	raw  []byte // all of it. A rule's do may change what it says but not how long it is
}

// place is when a rule acts.
type place int

const (
	before place = iota // nothing of the message has been passed on
	within              // half of it has
	after               // all of it has
)

// rule does something when a message comes. What it does runs on the link's own goroutine, so the message waits for it.
type rule struct {
	on    func(message) bool
	nth   int  // of the messages that on accepts, from 1; 0 is 1
	times int  // how many messages in succession, from the nth on; 0 is 1
	each  bool // count on each link by itself
	place place
	do    func(*link, message)
}

// trap is a rule at work.
type trap struct {
	rule
	count   map[*link]int
	reached chan struct{} // closed when it first acts
	acting  acting
}

// link is one connection through the relay.
type link struct {
	relay      *faultyRelay
	ends       [2]net.Conn       // by party
	prepared   map[string]string // SQL by name; the client's pump alone uses it
	mu         sync.Mutex        // guards the rest
	pid        uint32            // of the backend
	query      string            // what the client's last Query said, unless it has begun something else since
	deaf       [2]bool           // what this party sends is swallowed
	kept       [2]bool           // this party's connection stays open when the other's ends
	closedEnds [2]bool
}

// newRelay listens until the test's end.
func newRelay(tb testing.TB, dsn string) *faultyRelay {
	tb.Helper()
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r := &faultyRelay{server: *config, listener: listener, ended: make(chan struct{}), links: map[*link]bool{}, paces: map[party]pace{}}
	r.dsn = fmt.Sprintf("host=127.0.0.1 port=%d user='%s' password='%s' dbname='%s' sslmode=disable",
		listener.Addr().(*net.TCPAddr).Port, config.User, config.Password, config.Database)
	r.tasks.Go(r.accept)
	tb.Cleanup(r.close)
	return r
}

// close ends everything and waits.
func (r *faultyRelay) close() {
	close(r.ended)
	r.listener.Close()
	r.heal()
	r.tasks.Wait()
}

// accept takes connections.
func (r *faultyRelay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.tasks.Go(func() { r.serve(conn) })
	}
}

// serve connects a client with the server.
func (r *faultyRelay) serve(conn net.Conn) {
	r.mu.Lock()
	refuses := r.refuses
	r.mu.Unlock()
	network, address := pgconn.NetworkAddress(r.server.Host, r.server.Port)
	backend, err := net.Dial(network, address)
	if err != nil || refuses {
		reset(conn)
		if err == nil {
			backend.Close()
		}
		return
	}
	l := &link{relay: r, ends: [2]net.Conn{conn, backend}, prepared: map[string]string{}}
	r.mu.Lock()
	r.links[l] = true
	r.mu.Unlock()
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(client) })
	pumps.Go(func() { l.pump(server) })
	pumps.Wait()
	r.mu.Lock()
	delete(r.links, l)
	r.mu.Unlock()
}

// add puts a rule to work.
func (r *faultyRelay) add(w rule) *trap {
	set := &trap{rule: w, count: map[*link]int{}, reached: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traps = append(r.traps, set)
	return set
}

// clear takes all rules off and forgets the statements seen.
func (r *faultyRelay) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traps, r.seen, r.refuses = nil, nil, false
	clear(r.paces)
}

// heal cuts every link there is, so that both parties know what has become of them.
func (r *faultyRelay) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.end(client)
		l.end(server)
	}
}

// refuse makes the relay reset every new connection, or no longer.
func (r *faultyRelay) refuse(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = on
}

// limit slows a party down.
func (r *faultyRelay) limit(p party, bytesPerSecond pace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paces[p] = bytesPerSecond
}

// statements counts the statements begun since clear whose SQL has a prefix.
func (r *faultyRelay) statements(prefix string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, sql := range r.seen {
		if strings.HasPrefix(sql, prefix) {
			n++
		}
	}
	return n
}

// due notes a message and finds the rule that acts on it, if any: the first of those that are due.
func (r *faultyRelay) due(l *link, m message) (found *trap, bytesPerSecond pace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.from == client && (m.kind == 'Q' || m.kind == 'B') {
		r.seen = append(r.seen, m.sql)
	}
	for _, w := range r.traps {
		if !w.on(m) {
			continue
		}
		counted := l
		if !w.each {
			counted = nil
		}
		w.count[counted]++
		first := max(w.nth, 1)
		if n := w.count[counted]; n < first || n >= first+max(w.times, 1) || found != nil {
			continue
		}
		found = w
		w.acting.begin()
		select {
		case <-w.reached:
		default:
			close(w.reached)
		}
	}
	return found, r.paces[m.from]
}

// acting counts the messages that a trap works on. Other than with a sync.WaitGroup, one may come while the test waits.
type acting struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when the count is back at 0; nil while it is
}

// begin counts a message in.
func (a *acting) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count++; a.count == 1 {
		a.idle = make(chan struct{})
	}
}

// end counts it out.
func (a *acting) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count--; a.count == 0 {
		close(a.idle)
		a.idle = nil
	}
}

// Wait returns when no message is in work.
func (a *acting) Wait() {
	a.mu.Lock()
	idle := a.idle
	a.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// pump passes on what one party sends.
func (l *link) pump(from party) {
	to := 1 - from
	in := bufio.NewReaderSize(l.ends[from], 64<<10)
	out := bufio.NewWriterSize(l.ends[to], 64<<10)
	var raw []byte
	for first := from == client; ; first = false {
		m, err := l.read(in, from, first, raw)
		if err == nil {
			raw = m.raw
			err = l.pass(out, m)
		}
		if err == nil && in.Buffered() == 0 {
			err = out.Flush()
		}
		if err != nil {
			break
		}
	}
	_ = out.Flush() // what came before the end; the other party may be gone
	l.end(from)
	if !l.isKept(to) {
		l.end(to)
	}
}

// read takes the next message off the wire, into buf if it is large enough.
func (l *link) read(in *bufio.Reader, from party, first bool, buf []byte) (message, error) {
	m := message{from: from}
	head := 5
	if first {
		head = 4
	}
	peeked, err := in.Peek(head)
	if err != nil {
		return m, err
	}
	size := int(binary.BigEndian.Uint32(peeked[head-4:])) + head - 4
	if size < head || size > 1<<30 {
		return m, fmt.Errorf("message of %d bytes", size)
	}
	if !first {
		m.kind = peeked[0]
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	m.raw = buf[:size]
	if _, err := io.ReadFull(in, m.raw); err != nil {
		return m, err
	}
	l.note(&m, m.raw[head:])
	return m, nil
}

// note learns from a message what later ones are about.
func (l *link) note(m *message, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.from == server {
		m.sql = l.query
		if m.kind == 'K' {
			l.pid = binary.BigEndian.Uint32(body)
		}
		return
	}
	first, rest, _ := bytes.Cut(body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch m.kind {
	case 'Q':
		m.sql = string(first)
		l.query = m.sql
	case 'P':
		m.sql = string(second)
		l.prepared[string(first)], l.query = m.sql, ""
	case 'B':
		m.sql, l.query = l.prepared[string(second)], ""
	}
}

// pass sends a message on and lets the rule for it act.
func (l *link) pass(out *bufio.Writer, m message) error {
	w, bytesPerSecond := l.relay.due(l, m)
	if bytesPerSecond > 0 {
		l.wait(time.Duration(float64(len(m.raw)) / float64(bytesPerSecond) * float64(time.Second)))
	}
	if w == nil {
		return l.write(out, m, m.raw)
	}
	done := map[place]int{before: 0, within: len(m.raw) / 2, after: len(m.raw)}[w.place]
	if err := errors.Join(l.write(out, m, m.raw[:done]), out.Flush()); err != nil {
		w.acting.end()
		return err
	}
	w.do(l, m)
	w.acting.end()
	return l.write(out, m, m.raw[done:])
}

// write sends bytes on, unless they are to be swallowed.
func (l *link) write(out *bufio.Writer, m message, raw []byte) error {
	l.mu.Lock()
	deaf := l.deaf[m.from]
	l.mu.Unlock()
	if deaf {
		return nil
	}
	_, err := out.Write(raw)
	return err
}

// wait sleeps, but not beyond the relay's end.
func (l *link) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.relay.ended:
	}
}

// isKept says whether a party's connection outlives the other's.
func (l *link) isKept(p party) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept[p]
}

// end closes one party's connection.
func (l *link) end(p party) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closedEnds[p] {
		l.closedEnds[p] = true
		l.ends[p].Close()
	}
}

// reset closes a TCP connection so that the other side is told at once and what is on its way is lost.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that is closed already
	}
	conn.Close()
}

// What rules do.

// cut closes both connections, politely.
func cut(l *link, _ message) {
	l.end(client)
	l.end(server)
}

// cutHard closes both, the client's with a reset.
func cutHard(l *link, m message) {
	if tcp, ok := l.ends[client].(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that is closed already
	}
	cut(l, m)
}

// cutClient closes the client's connection. The server is not told before heal.
func cutClient(l *link, _ message) {
	l.mu.Lock()
	l.kept[server] = true
	l.mu.Unlock()
	l.end(client)
}

// cutServer closes the server's connection. The client is not told before heal: to it the network is silent.
func cutServer(l *link, _ message) {
	l.mu.Lock()
	l.kept[client] = true
	l.mu.Unlock()
	l.end(server)
}

// swallow loses what a party sends from here on; the connection stays.
func swallow(p party) func(*link, message) {
	return func(l *link, _ message) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deaf[p] = true
	}
}

// hold keeps the message back until a channel is closed.
func hold(until <-chan struct{}) func(*link, message) {
	return func(l *link, _ message) {
		select {
		case <-until:
		case <-l.relay.ended:
		}
	}
}

// pause keeps the message back for a time.
func pause(d time.Duration) func(*link, message) {
	return func(l *link, _ message) { l.wait(d) }
}

// replace rewrites a message: text becomes another one of the same length.
func replace(text, by string) func(*link, message) {
	if len(text) != len(by) {
		panic("replacement of another length")
	}
	return func(_ *link, m message) { copy(m.raw, bytes.ReplaceAll(m.raw, []byte(text), []byte(by))) }
}

// terminate ends the link's backend and waits until it is gone; the connection is the backend's to close.
func (x *fixture) terminate(tb testing.TB) func(*link, message) {
	return func(l *link, _ message) {
		l.mu.Lock()
		pid := l.pid
		l.mu.Unlock()
		if err := x.endBackends(tb.Context(), `pid = $1`, int32(pid)); err != nil {
			tb.Error(err)
		}
	}
}

// endBackends terminates the sessions that a condition on pg_stat_activity chooses and waits until they are gone:
// pg_terminate_backend's own wait looks only every 100 ms.
func (x *fixture) endBackends(ctx context.Context, where string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangMax)
	defer cancel()
	sql := `SELECT count(*), count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ` + where
	for {
		var left, told int
		if err := x.admin.QueryRow(ctx, sql, args...).Scan(&left, &told); err != nil {
			return fmt.Errorf("terminate backends: %w", err)
		}
		if left == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// What rules wait for.

// sends is any message of a type from a party.
func sends(p party, kind byte) func(message) bool {
	return func(m message) bool { return m.from == p && m.kind == kind }
}

// statement is the begin of a statement of either protocol whose SQL has a prefix.
func statement(prefix string) func(message) bool {
	return func(m message) bool {
		return (m.kind == 'Q' || m.kind == 'B') && m.from == client && strings.HasPrefix(m.sql, prefix)
	}
}

// query is a statement of the simple protocol that has a prefix. A change commits by it, a look-up does not.
func query(prefix string) func(message) bool {
	return func(m message) bool { return m.kind == 'Q' && m.from == client && strings.HasPrefix(m.sql, prefix) }
}

// answers is the CommandComplete of such a statement.
func answers(prefix string) func(message) bool {
	return func(m message) bool { return m.kind == 'C' && m.from == server && strings.HasPrefix(m.sql, prefix) }
}

// tagged is any CommandComplete whose tag has a prefix.
func tagged(prefix string) func(message) bool {
	return func(m message) bool {
		return m.kind == 'C' && m.from == server && bytes.HasPrefix(m.raw[5:], []byte(prefix))
	}
}

// startup is the first packet of a session; a request to cancel is none.
func startup(m message) bool {
	const cancelRequest = 80877102
	return m.kind == 0 && m.from == client && binary.BigEndian.Uint32(m.raw[4:]) != cancelRequest
}

// beyond is the message in which a party's bytes since the rule was made become more than n.
func beyond(p party, n int) func(message) bool {
	sent := 0
	return func(m message) bool {
		if m.from != p {
			return false
		}
		sent += len(m.raw)
		return sent > n
	}
}

// relayFaithful: a relay without rules changes nothing, and each thing that a rule can do happens where it should.
func relayFaithful(t *testing.T, x *fixture) {
	r := newRelay(t, x.dsn)
	p := x.open(t, lakefs.Config{DSN: r.dsn, MaxConns: 4})
	data := lakefstest.Content(1, 2*batchBytes+17)
	lakefstest.Put(t, p, "lake", "f", data)
	lakefstest.WantFile(t, p, "lake", "f", data)
	if n := r.statements("COPY pgvfs.chunks"); n != 1 {
		t.Errorf("%d COPYs were seen", n)
	}
	for name, c := range map[string]struct {
		rule  rule
		limit pace
		fails bool
	}{
		"beyond": {rule: rule{on: beyond(server, 1<<20), place: within, do: cut, times: 1000}, fails: true},
		"pause":  {rule: rule{on: sends(server, 'D'), nth: 100, do: pause(time.Millisecond)}},
		"limit":  {rule: rule{on: beyond(server, 0), do: pause(0)}, limit: 1 << 30},
	} {
		r.clear()
		r.limit(server, c.limit)
		w := r.add(c.rule)
		got, err := lakefstest.Get(t.Context(), p, "lake", "f")
		if (err != nil) != c.fails || (err == nil && !bytes.Equal(got, data)) {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-w.reached:
		default:
			t.Errorf("%s: the rule has not acted", name)
		}
	}
	r.clear()
	r.refuse(true)
	r.heal()
	if _, err := p.List(t.Context(), "lake", "", 0); err == nil {
		t.Error("listed through a relay that refuses")
	}
	r.refuse(false)
	lakefstest.WantFile(t, p, "lake", "f", data)
}
