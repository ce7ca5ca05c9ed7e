package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"sluice/engine/pgerr"
)

// conflict is a commit's failure.
var conflict = pgerr.New(pgerrcode.SerializationFailure, "could not serialize access")

// syncMessage is a Sync message.
var syncMessage = &pgproto3.Sync{}

// TestQuery_Answers is the simple protocol, text and answer.
func TestQuery_Answers(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	for _, tc := range []struct{ sql, want string }{
		{"", "I Z(I)"},
		{";", "I Z(I)"},
		{"-- ping", "I Z(I)"},
		{"rows 2", "T(0) D(0) D(1) C(SELECT 2) Z(I)"},
		{"rows 0", "T(0) C(SELECT 0) Z(I)"},
		{"insert", "C(INSERT 0 1) Z(I)"},
		{"insert; rows 1", "C(INSERT 0 1) T(0) D(0) C(SELECT 1) Z(I)"},
		{"insert; fail; insert", "C(INSERT 0 1) E(ERROR 22012) Z(I)"},
		{"selct", "E(ERROR 42601) Z(I)"},
		{"rows \xff", "E(ERROR 22021) Z(I)"},
		{"bug", "E(ERROR XX000) Z(I)"},
		{"notice", "N(be aware) C(SELECT 0) Z(I)"},
		{"zone Asia/Tokyo", "C(SET) S(TimeZone=Asia/Tokyo) Z(I)"},
		{"zone Asia/Tokyo", "C(SET) Z(I)"},
		{"begin", "C(BEGIN) Z(T)"},
		{"fail", "E(ERROR 22012) Z(E)"},
		{"rows 1", "E(ERROR 25P02) Z(E)"},
		{"rollback", "C(ROLLBACK) Z(I)"},
		{"rows 1", "T(0) D(0) C(SELECT 1) Z(I)"},
	} {
		c.send(query(tc.sql))
		c.expect('Z', tc.want)
	}
}

// TestQuery_CommitFails takes the place of the last completion only.
func TestQuery_CommitFails(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	s.lake.commitErr = conflict
	c.send(query("insert; insert"))
	c.expect('Z', "C(INSERT 0 1) E(ERROR 40001) Z(I)")
	c.send(query("insert"))
	c.expect('Z', "C(INSERT 0 1) Z(I)")
	if want := "insert implicit, insert implicit, commit, insert auto"; s.lake.notes() != want {
		t.Errorf("ran %s", s.lake.notes())
	}
}

// TestQuery_Large crosses chunks and buffers without losing a row.
func TestQuery_Large(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	const rows = 200_123
	c.send(query("rows 200123"))
	n := 0
	for {
		msg, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := msg.(type) {
		case *pgproto3.DataRow:
			n++
		case *pgproto3.CommandComplete:
			if string(m.CommandTag) != "SELECT 200123" || n != rows {
				t.Fatalf("%d rows, tag %s", n, m.CommandTag)
			}
			return
		}
	}
}

// TestExecute_Alone runs in mode Auto when Sync is there already.
func TestExecute_Alone(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(all(pbe("insert"), syncMessage)...)
	c.expect('Z', "1 2 C(INSERT 0 1) Z(I)")
	if s.lake.notes() != "insert auto" {
		t.Errorf("ran %s", s.lake.notes())
	}
}

// TestExecute_HeldBack keeps completions until the commit, and replaces them by its failure.
func TestExecute_HeldBack(t *testing.T) {
	for name, tc := range map[string]struct {
		commit error
		want   string
	}{
		"commits":   {nil, "1 2 C(INSERT 0 1) 1 2 C(INSERT 0 1) Z(I)"},
		"conflicts": {conflict, "1 2 E(ERROR 40001) Z(I)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			c := s.login(t)
			s.lake.commitErr = tc.commit
			c.send(all(pbe("insert"), pbe("insert"), syncMessage)...)
			c.expect('Z', tc.want)
			c.send(all(pbe("insert"), syncMessage)...)
			c.expect('Z', "1 2 C(INSERT 0 1) Z(I)")
			if want := "insert implicit, insert implicit, commit, insert auto"; s.lake.notes() != want {
				t.Errorf("ran %s", s.lake.notes())
			}
		})
	}
}

// TestExecute_Flush releases what is held back.
func TestExecute_Flush(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(all(pbe("insert"), &pgproto3.Flush{})...)
	c.expect('C', "1 2 C(INSERT 0 1)")
	s.lake.mu.Lock()
	s.lake.commitErr = conflict
	s.lake.mu.Unlock()
	c.send(syncMessage)
	c.expect('Z', "E(ERROR 40001) Z(I)")
}

// TestExecute_ErrorInPipeline answers what came before, then skips to Sync.
func TestExecute_ErrorInPipeline(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(all(pbe("insert"), pbe("fail"), pbe("insert"), query("insert"), syncMessage)...)
	c.expect('Z', "1 2 C(INSERT 0 1) 1 2 E(ERROR 22012) Z(I)")
	if want := "insert implicit, fail implicit, abort"; s.lake.notes() != want {
		t.Errorf("ran %s", s.lake.notes())
	}
}

// TestExecute_LongPipeline is answered before its Sync once the answers are many.
func TestExecute_LongPipeline(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	const inserts = 20_000
	go func() {
		for range inserts {
			for _, m := range pbe("insert") {
				c.Send(m)
			}
		}
		c.Flush()
	}()
	for n := 0; n < inserts/2; {
		msg, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := msg.(*pgproto3.CommandComplete); ok {
			n++
		}
	}
}

// TestExecute_RowLimit suspends at the limit, also where it is the last row (cases B1, B4).
func TestExecute_RowLimit(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	two := &pgproto3.Execute{MaxRows: 2}
	c.send(&pgproto3.Parse{Query: "rows 4"}, &pgproto3.Bind{}, two, two, two, syncMessage)
	c.expect('Z', "1 2 D(0) D(1) s D(2) D(3) s C(SELECT 0) Z(I)")
	c.send(&pgproto3.Parse{Query: "rows 3"}, &pgproto3.Bind{}, two, two, syncMessage)
	c.expect('Z', "1 2 D(0) D(1) s D(2) C(SELECT 1) Z(I)")
	c.send(&pgproto3.Parse{Query: "rows 1"}, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 0xffffffff}, syncMessage)
	c.expect('Z', "1 2 D(0) C(SELECT 1) Z(I)")
}

// TestPortal_Life ends portals with their transaction (cases B5, B20).
func TestPortal_Life(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	p := &pgproto3.Execute{Portal: "p", MaxRows: 1}
	q := &pgproto3.Execute{Portal: "q", MaxRows: 1}
	c.send(query("begin"))
	c.until('Z')
	c.send(&pgproto3.Parse{Name: "s", Query: "rows 9"}, &pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s"}, p, syncMessage)
	c.expect('Z', "1 2 D(0) s Z(T)")
	c.send(&pgproto3.Bind{DestinationPortal: "q", PreparedStatement: "s"}, q, p, q, syncMessage)
	c.expect('Z', "2 D(0) s D(1) s D(1) s Z(T)")
	c.send(&pgproto3.Bind{DestinationPortal: "q", PreparedStatement: "s"}, syncMessage)
	c.expect('Z', "E(ERROR 42P03) Z(E)")
	c.send(p, syncMessage)
	c.expect('Z', "E(ERROR 25P02) Z(E)")
	c.send(query("rollback"))
	c.until('Z')
	c.send(p, syncMessage)
	c.expect('Z', "E(ERROR 34000) Z(I)")
	c.send(&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s"}, p, syncMessage)
	c.expect('Z', "2 D(0) s Z(I)")
	c.send(p, syncMessage)
	c.expect('Z', "E(ERROR 34000) Z(I)")
}

// TestExtended_Names is 26000, 42P05, 34000 and what Close does.
func TestExtended_Names(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	for _, tc := range []struct {
		send []pgproto3.FrontendMessage
		want string
	}{
		{all(&pgproto3.Bind{PreparedStatement: "nosuch"}), "E(ERROR 26000) Z(I)"},
		{all(&pgproto3.Bind{}), "E(ERROR 26000) Z(I)"},
		{all(&pgproto3.Describe{ObjectType: 'S', Name: "nosuch"}), "E(ERROR 26000) Z(I)"},
		{all(&pgproto3.Describe{ObjectType: 'P', Name: "nosuch"}), "E(ERROR 34000) Z(I)"},
		{all(&pgproto3.Describe{ObjectType: 'X'}), "E(ERROR 08P01) Z(I)"},
		{all(&pgproto3.Execute{Portal: "nosuch"}), "E(ERROR 34000) Z(I)"},
		{all(&pgproto3.Close{ObjectType: 'S', Name: "nosuch"}), "3 Z(I)"},
		{all(&pgproto3.Parse{Name: "a", Query: "rows 1"}), "1 Z(I)"},
		{all(&pgproto3.Parse{Name: "a", Query: "rows 1"}), "E(ERROR 42P05) Z(I)"},
		{all(&pgproto3.Close{ObjectType: 'S', Name: "a"}, &pgproto3.Parse{Name: "a", Query: "rows 2"}), "3 1 Z(I)"},
		{all(&pgproto3.Describe{ObjectType: 'S', Name: "a"}), "t T(0) Z(I)"},
		{all(&pgproto3.Bind{PreparedStatement: "a", ResultFormatCodes: []int16{1}}, &pgproto3.Describe{ObjectType: 'P'}), "2 T(1) Z(I)"},
		{all(pbe("discard")), "1 2 C(DISCARD ALL) Z(I)"},
		{all(), "Z(I)"},
		{all(&pgproto3.Describe{ObjectType: 'S', Name: "a"}), "E(ERROR 26000) Z(I)"},
		{all(&pgproto3.Parse{Query: "rows 1; rows 2"}), "E(ERROR 42601) Z(I)"},
		{all(pbe("")), "1 2 I Z(I)"},
		{all(&pgproto3.Parse{Query: "insert"}, &pgproto3.Describe{ObjectType: 'S'}), "1 t n Z(I)"},
		{all(pbe("insert"), &pgproto3.Execute{}), "1 2 C(INSERT 0 1) E(ERROR 55000) Z(I)"},
	} {
		c.send(all(tc.send, syncMessage)...)
		c.expect('Z', tc.want)
	}
}

// rawMessage is a message as bytes.
func rawMessage(kind byte, body ...byte) []byte {
	m := binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body)))
	return append(m, body...)
}

// TestBind_Hostile is case B17: 08P01, and the session goes on at Sync.
func TestBind_Hostile(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(&pgproto3.Parse{Name: "one", Query: "param"}, syncMessage)
	c.until('Z')
	head := []byte("\x00one\x00")
	for name, body := range map[string][]byte{
		"parameter count -1":        append(head, 0, 0, 0xff, 0xff),
		"format count -1":           append(head, 0xff, 0xff),
		"parameter of 2 GiB":        append(head, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xf0, 'x'),
		"parameter of -2":           append(head, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0),
		"3 formats for 1 parameter": append(head, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'x', 0, 0),
		"no parameter":              append(head, 0, 0, 0, 0, 0, 0),
		"result format count -1":    append(head, 0, 0, 0, 1, 0, 0, 0, 1, 'x', 0xff, 0xff),
		"nothing":                   nil,
		"no NUL":                    []byte("abc"),
	} {
		t.Run(name, func(t *testing.T) {
			c.conn.Write(rawMessage('B', body...))
			c.send(&pgproto3.Execute{}, syncMessage)
			c.expect('Z', "E(ERROR 08P01) Z(I)")
			c.send(&pgproto3.Bind{PreparedStatement: "one", Parameters: [][]byte{[]byte("7")}}, &pgproto3.Execute{}, syncMessage)
			c.expect('Z', "2 C(SELECT 0) Z(I)")
		})
	}
	c.send(&pgproto3.Bind{PreparedStatement: "one", Parameters: [][]byte{nil}, ParameterFormatCodes: []int16{2}}, syncMessage)
	c.expect('Z', "E(ERROR 22023) Z(I)")
}

// TestMessage_Hostile ends sessions whose stream makes no sense.
func TestMessage_Hostile(t *testing.T) {
	s := serve(t)
	for name, raw := range map[string][]byte{
		"unknown type":    rawMessage('?'),
		"negative length": {'Q', 0xff, 0xff, 0xff, 0xff},
		"length 3":        {'Q', 0, 0, 0, 3},
		"length 2 GiB":    {'Q', 0x7f, 0xff, 0xff, 0xff},
		"huge Sync":       {'S', 0, 1, 0, 0},
		"password":        rawMessage('p', 'x', 0),
	} {
		t.Run(name, func(t *testing.T) {
			c := s.login(t)
			c.conn.Write(raw)
			c.expect(0, "E(FATAL 08P01) end")
		})
	}
	c := s.login(t)
	c.conn.Write(rawMessage('Q', 'x')) // no NUL
	c.expect('Z', "E(ERROR 08P01) Z(I)")
	c.send(&pgproto3.FunctionCall{})
	c.expect('Z', "E(ERROR 0A000) Z(I)")
	c.send(query("rows 1"))
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
}

// TestSession_Ends with FATAL errors and with panics, which cost one session.
func TestSession_Ends(t *testing.T) {
	s := serve(t, func(c *Config) { c.Logger = zerolog.Nop() })
	other := s.login(t)
	c := s.login(t)
	c.send(query("crash"))
	c.expect(0, "E(FATAL 57P02) end")
	c = s.login(t)
	c.send(query("panic"))
	c.expect(0, "end")
	other.send(query("rows 1"))
	other.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
}

// TestCopyIn_Orders is COPY FROM STDIN as different drivers order their messages.
func TestCopyIn_Orders(t *testing.T) {
	data := func(s string) *pgproto3.CopyData { return &pgproto3.CopyData{Data: []byte(s)} }
	done := &pgproto3.CopyDone{}
	for name, tc := range map[string]struct {
		send []pgproto3.FrontendMessage
		want string
		ran  string
	}{
		"data before CopyInResponse": {all(query("copyin"), data("1\n2"), data("\n"), done), "G C(COPY 2) Z(I)", `copyin 0, copied "1\n2\n"`},
		"Sync before the data":       {all(pbe("copyin"), syncMessage, data("1\n"), &pgproto3.Flush{}, done, syncMessage), "1 2 G C(COPY 1) Z(I)", `copyin 0, copied "1\n"`},
		"Sync after the data":        {all(pbe("copyin"), data("1\n"), done, syncMessage), "1 2 G C(COPY 1) Z(I)", `copyin 1, copied "1\n"`},
		"client fails":               {all(query("copyin"), data("1\n"), &pgproto3.CopyFail{Message: "no"}), "G E(ERROR 57014) Z(I)", "copyin 0, copy aborted"},
		"data is bad":                {all(query("copyin"), data("bad"), data("more"), done), "G E(ERROR 22P02) Z(I)", "copyin 0"},
		"data is bad, extended":      {all(pbe("copyin"), data("bad"), data("more"), done, syncMessage), "1 2 G E(ERROR 22P02) Z(I)", "copyin 1"},
		"query inside":               {all(query("copyin"), query("rows 1")), "G E(ERROR 08P01) Z(I)", "copyin 0, copy aborted"},
		"two in one message":         {all(query("copyin; copyin"), data("1\n"), done, data("2\n"), done), "G C(COPY 1) G C(COPY 1) Z(I)", `copyin 1, copied "1\n", copyin 1, copied "2\n", commit`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			c := s.login(t)
			c.send(tc.send...)
			c.expect('Z', tc.want)
			if got := strings.TrimSuffix(s.lake.notes(), ", commit"); got != strings.TrimSuffix(tc.ran, ", commit") {
				t.Errorf("ran %s, want %s", got, tc.ran)
			}
			c.send(query("rows 1"))
			c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
		})
	}
}

// TestCopyIn_AfterHeldCompletion: the client is told to send data although a completion is held back.
func TestCopyIn_AfterHeldCompletion(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(all(pbe("insert"), pbe("copyin"))...)
	c.expect('G', "1 2 C(INSERT 0 1) 1 2 G")
	c.send(&pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{}, syncMessage)
	c.expect('Z', "C(COPY 1) Z(I)")
}

// TestCopyOut sends a row a message, and binary's header with the first.
func TestCopyOut(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(query("copyout 2"))
	c.expect('Z', `H d("0\n") d("1\n") c C(COPY 2) Z(I)`)
	c.send(query("copyout 0"))
	c.expect('Z', "H c C(COPY 0) Z(I)")
	const header = `PGCOPY\n\xff\r\n\x00` + `\x00\x00\x00\x00\x00\x00\x00\x00` // as strconv.Quote has it
	row := `\x00\x01\x00\x00\x00\b\x00\x00\x00\x00\x00\x00\x00`
	c.send(query("copybinary 2"))
	c.expect('Z', `H d("`+header+row+`\x00") d("`+row+`\x01") d("\xff\xff") c C(COPY 2) Z(I)`)
	c.send(query("copybinary 0"))
	c.expect('Z', `H d("`+header+`\xff\xff") c C(COPY 0) Z(I)`)
}

// TestCancel_OnlyItsHolder is case A5: pids differ, a wrong secret does nothing, and only the session whose
// key it is loses its statement.
func TestCancel_OnlyItsHolder(t *testing.T) {
	s := serve(t)
	a, b := s.login(t), s.login(t)
	if a.key.ProcessID == b.key.ProcessID {
		t.Fatal("one process id for two sessions")
	}
	a.send(query("hang"))
	b.send(query("hang"))
	eventually(t, "both run", func() bool { return strings.Count(s.lake.notes(), "hang") == 2 })
	cancel := func(pid uint32, secret []byte) {
		c := s.dial(t)
		c.send(&pgproto3.CancelRequest{ProcessID: pid, SecretKey: secret})
		c.expect(0, "end")
	}
	cancel(a.key.ProcessID, []byte{1, 2, 3, 4})
	cancel(a.key.ProcessID, b.key.SecretKey)
	cancel(a.key.ProcessID+99, a.key.SecretKey)
	time.Sleep(20 * time.Millisecond)
	if strings.Contains(s.lake.notes(), "ended") {
		t.Fatal("a wrong key cancelled a statement")
	}
	cancel(a.key.ProcessID, a.key.SecretKey)
	a.expect('Z', "E(ERROR 57014) Z(I)")
	cancel(a.key.ProcessID, a.key.SecretKey) // nothing runs: it must not hit what comes next
	a.send(query("rows 1"))
	a.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
	if strings.Count(s.lake.notes(), "ended") != 1 {
		t.Error("the other session's statement ended too")
	}
	cancel(b.key.ProcessID, b.key.SecretKey)
	b.expect('Z', "E(ERROR 57014) Z(I)")
}

// TestCancel_WhileCopying ends COPY FROM STDIN that waits for its client.
func TestCancel_WhileCopying(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(query("copyin"))
	c.until('G')
	s.dial(t).send(&pgproto3.CancelRequest{ProcessID: c.key.ProcessID, SecretKey: c.key.SecretKey})
	c.expect('Z', "E(ERROR 57014) Z(I)")
	time.Sleep(10 * time.Millisecond)
	c.send(query("rows 1"))
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
}

// TestCancel_SlowReader ends a result whose client does not read.
func TestCancel_SlowReader(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(query("forever"))
	time.Sleep(300 * time.Millisecond)
	s.dial(t).send(&pgproto3.CancelRequest{ProcessID: c.key.ProcessID, SecretKey: c.key.SecretKey})
	time.Sleep(100 * time.Millisecond)
	if got := c.until('Z'); !strings.HasSuffix(got, "E(ERROR 57014) Z(I)") {
		t.Errorf("ended with %s", got[max(0, len(got)-40):])
	}
}

// TestHangUp_StopsStatement is case B19: a client that goes away stops what it asked for, silent or
// streaming, with messages waiting behind or not, and in the middle of COPY.
func TestHangUp_StopsStatement(t *testing.T) {
	for name, send := range map[string][]pgproto3.FrontendMessage{
		"silent":    all(query("hang")),
		"streaming": all(query("forever")),
		"pipelined": all(pbe("hang"), pbe("rows 1"), &pgproto3.Query{String: strings.Repeat(" ", 100_000)}),
		"copying":   all(query("copyin"), &pgproto3.CopyData{Data: []byte("1\n")}),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			c := s.login(t)
			c.send(send...)
			eventually(t, "the statement runs", func() bool { return s.lake.notes() != "" })
			began := time.Now()
			c.conn.Close()
			eventually(t, "the session's end", func() bool { return s.lake.open() == 0 })
			if d := time.Since(began); d > time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

// TestWatch_KeepsWhatItRead: messages that come while a statement runs are handled after it.
func TestWatch_KeepsWhatItRead(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(query("hang"))
	time.Sleep(2 * watchDelay)
	long := "rows 1 " + strings.Repeat("x", 3*readBytes)
	c.send(query("rows 2"), query(long))
	time.Sleep(50 * time.Millisecond)
	s.dial(t).send(&pgproto3.CancelRequest{ProcessID: c.key.ProcessID, SecretKey: c.key.SecretKey})
	c.expect('Z', "E(ERROR 57014) Z(I)")
	c.expect('Z', "T(0) D(0) D(1) C(SELECT 2) Z(I)")
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
	c.send(query("rows 1"))
	c.expect('Z', "T(0) D(0) C(SELECT 1) Z(I)")
}

// TestShutdown_Drains: idle sessions get 57P01 at once, in a transaction too, a running statement
// finishes first, one that takes longer than the grace period is interrupted.
func TestShutdown_Drains(t *testing.T) {
	s := serve(t, func(c *Config) { c.DrainTimeout = 500 * time.Millisecond })
	idle, inTx, running, hanging, starting := s.login(t), s.login(t), s.login(t), s.login(t), s.dial(t)
	inTx.send(query("begin"))
	inTx.until('Z')
	running.send(all(pbe("insert"))...)
	hanging.send(query("hang"))
	eventually(t, "both run", func() bool {
		return strings.Contains(s.lake.notes(), "hang") && strings.Contains(s.lake.notes(), "insert")
	})
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.expect(0, "E(FATAL 57P01) end")
	inTx.expect(0, "E(FATAL 57P01) end")
	starting.expect(0, "end")
	if d := time.Since(began); d > 400*time.Millisecond {
		t.Errorf("idle sessions ended after %s", d)
	}
	running.send(syncMessage)
	running.expect(0, "1 2 C(INSERT 0 1) Z(I) E(FATAL 57P01) end")
	hanging.expect(0, "E(FATAL 57P01) end")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d < 450*time.Millisecond || d > 3*time.Second {
		t.Errorf("shutdown took %s", d)
	}
}

// TestShutdown_Stuck does not wait for ever for clients that do not read.
func TestShutdown_Stuck(t *testing.T) {
	s := serve(t)
	c := s.login(t)
	c.send(query("forever"))
	cp := s.login(t)
	cp.send(query("copyin"))
	cp.until('G')
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("shutdown took %s", d)
	}
	cp.expect(0, "E(FATAL 57P01) end")
}

// TestServer_Goroutines: every goroutine ends with its session.
func TestServer_Goroutines(t *testing.T) {
	s := serve(t)
	time.Sleep(20 * time.Millisecond)
	before := runtime.NumGoroutine()
	for range 20 {
		c := s.login(t)
		c.send(query("rows 50000"))
		c.until('Z')
		c.send(query("hang"))
		c.conn.Close()
	}
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// TestReport_NoSecrets: neither texts, nor values, nor keys are logged at any level.
func TestReport_NoSecrets(t *testing.T) {
	var log strings.Builder
	s := serve(t, func(c *Config) { c.Logger = zerolog.New(zerolog.SyncWriter(&log)) })
	c := s.login(t)
	c.send(query("rows 1 hush"), query("selct hush"))
	c.until('Z')
	c.until('Z')
	c.send(&pgproto3.Parse{Query: "param"}, &pgproto3.Bind{Parameters: [][]byte{[]byte("hush")}}, &pgproto3.Execute{}, syncMessage)
	c.until('Z')
	c.send(&pgproto3.Terminate{})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "hush") {
		t.Error(log.String())
	}
}

// TestClientError_Table maps what is no PostgreSQL error yet.
func TestClientError_Table(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code string
	}{
		{errors.New("x"), pgerrcode.InternalError},
		{context.Canceled, pgerrcode.QueryCanceled},
		{context.DeadlineExceeded, pgerrcode.QueryCanceled},
		{errors.Join(conflict, nil), pgerrcode.SerializationFailure},
		{&badMessage{kind: 'B', cause: errors.New("x")}, pgerrcode.ProtocolViolation},
	} {
		if got := clientError(tc.err).Code; got != tc.code {
			t.Errorf("%v is %s, want %s", tc.err, got, tc.code)
		}
	}
}
