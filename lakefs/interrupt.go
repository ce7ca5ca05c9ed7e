package lakefs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// interruptible runs a query that ends with ctx. pgx would do the same with a goroutine for each query, which takes a
// fifth of a small read's time to start and to stop; this way one is started only when ctx ends. fn must use the
// context that it is given, which never ends.
func interruptible(ctx context.Context, conn *pgx.Conn, fn func(ctx context.Context) error) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = conn.PgConn().Conn().SetDeadline(time.Unix(1, 0)) // fails for a closed connection, which needs none
	})
	err := fn(context.WithoutCancel(ctx))
	if stop() {
		return err
	}
	<-ended
	if err != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return conn.PgConn().Conn().SetDeadline(time.Time{}) // the answer was there first
}
