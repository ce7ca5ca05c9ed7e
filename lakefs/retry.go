package lakefs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A standby cancels a query whose rows the primary has removed for good, even when the query does not want those rows:
// a page or a lock that they share is enough. Its next try usually gets through, so reads are repeated for about two
// seconds.
const (
	recoveryTries   = 9
	recoveryWait    = 10 * time.Millisecond // before the second repeat; doubles each time
	recoveryWaitMax = time.Second
)

// outcome is what an error of a query says about trying it again.
type outcome uint8

const (
	final     outcome = iota // success, or what would fail again
	lost                     // the connection is dead
	cancelled                // by a standby's recovery
)

// onConn runs fn on a connection of the pool. If that turns out to be dead, as all may be after a restart of the
// server, fn is run once more on a new one; what a standby cancels to get on with its recovery is run some more times.
// So fn must be repeatable, and must not have handed anything on when it fails. ErrRecovery: the standby has cancelled
// each try.
func (p *PG) onConn(ctx context.Context, fn func(*pgx.Conn) error) error {
	what, err := p.onLiveConn(ctx, fn)
	if what != cancelled {
		return err
	}
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		if what, err = p.onLiveConn(ctx, fn); what != cancelled && err != nil {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxTries(recoveryTries), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval:     recoveryWait,
		MaxInterval:         recoveryWaitMax,
		Multiplier:          2,
		RandomizationFactor: backoff.DefaultRandomizationFactor,
	}))
	if what == cancelled && ctx.Err() == nil {
		return fmt.Errorf("%w (%w)", ErrRecovery, err)
	}
	return err
}

// onLiveConn is onConn for what no standby cancels.
func (p *PG) onLiveConn(ctx context.Context, fn func(*pgx.Conn) error) (outcome, error) {
	what, err := p.tryConn(ctx, fn)
	if what != lost {
		return what, err
	}
	p.pool.Reset()
	return p.tryConn(ctx, fn)
}

// tryConn is one try of onConn.
func (p *PG) tryConn(ctx context.Context, fn func(*pgx.Conn) error) (outcome, error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return final, err
	}
	defer release(conn)
	err = fn(conn.Conn())
	return judge(ctx, conn, err), err
}

// judge says what an error that a connection ended with means, unless it means that the caller gave up. pgx closes a
// connection on any error that is more than an answer.
func judge(ctx context.Context, conn *pgxpool.Conn, err error) outcome {
	switch {
	case err == nil || ctx.Err() != nil:
		return final
	case byRecovery(conn, err):
		return cancelled
	case conn.Conn().IsClosed():
		return lost
	}
	return final
}

// byRecovery reports that a standby's recovery has ended a query, or its connection. The code is that of any failure to
// serialize, of which a standby knows no other; its text is in the server's language.
func byRecovery(conn *pgxpool.Conn, err error) bool {
	switch sqlstate(err) {
	case pgerrcode.SerializationFailure:
		return conn.Conn().PgConn().ParameterStatus("in_hot_standby") == "on" // reported since PostgreSQL 14
	case pgerrcode.QueryCanceled:
		return strings.Contains(err.Error(), "conflict with recovery")
	}
	return false
}
