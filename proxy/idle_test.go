package proxy

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestIdle_Limits: a client that says nothing for too long is told why it is let go, and by another code in a transaction;
// while it waits for a statement or is in the middle of a pipeline it does not idle.
func TestIdle_Limits(t *testing.T) {
	s := serve(t)
	hasty := func() *client {
		c := s.dial(t)
		c.send(start("user", "hasty", "database", "lake"))
		c.until('Z')
		return c
	}
	hasty().expect(0, "E(FATAL 57P05) end")

	c := hasty()
	c.send(query("begin"))
	c.until('Z')
	c.expect(0, "E(FATAL 25P03) end")

	c = hasty()
	c.send(query("begin"), query("fail"))
	c.until('Z')
	c.until('Z')
	c.expect(0, "E(FATAL 25P03) end")

	c = hasty()
	c.send(all(pbe("rows 1"), &pgproto3.Flush{})...)
	c.until('C')
	eventually(t, "a statement runs", func() bool { return s.lake.notes() != "" })
	time.Sleep(400 * time.Millisecond) // longer than both limits
	c.send(&pgproto3.Sync{})
	c.expect('Z', "Z(I)")
	c.expect(0, "E(FATAL 57P05) end")
}
