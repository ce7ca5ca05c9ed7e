package proxy

import (
	"time"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// idleLimit is how long a client may say nothing, and what it is told when it has.
type idleLimit struct {
	after time.Duration // 0: for ever
	err   error
}

// What ends sessions that idle (manual, 19.11.1 "Statement Behavior").
var (
	errIdle = pgerr.Fatal(pgerrcode.IdleSessionTimeout, "terminating connection due to idle-session timeout")

	errIdleInTransaction = pgerr.Fatal(pgerrcode.IdleInTransactionSessionTimeout,
		"terminating connection due to idle-in-transaction timeout")
)

// limitIdle reads the limit that holds until the next message. Like PostgreSQL's, it begins with ReadyForQuery and knows
// two kinds of idling: in a transaction, also a failed one, and outside.
func limitIdle(b backend) idleLimit {
	session, inTransaction := b.IdleTimeouts()
	if b.TxStatus() == 'I' {
		return idleLimit{session, errIdle}
	}
	return idleLimit{inTransaction, errIdleInTransaction}
}
