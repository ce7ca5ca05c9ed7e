package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/lakefs/embedded"
)

const (
	backingStopMax = time.Minute // its last checkpoint may have some gigabytes to write

	// restartPause keeps a server that crashes again and again from taking the machine with it.
	restartPause = time.Second
)

// backing is the PostgreSQL that holds the lake: one that was named, or an embedded one.
type backing struct {
	dsn     string
	options embedded.Options
	server  *embedded.Server // nil: somebody else's. Only keep touches it while it runs.
	keeping sync.WaitGroup
	log     zerolog.Logger
}

// startBacking starts the embedded PostgreSQL, if it is to be one, while the extensions are fetched.
func (c *serveCommand) startBacking(ctx context.Context, log zerolog.Logger) (*backing, error) {
	b := &backing{dsn: c.DSN, log: log, options: embedded.Options{Dir: c.DataDir, Database: c.Lake, Logger: log}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	var serverErr, fetchErr error
	if c.DSN == "" {
		wait.Go(func() {
			if b.server, serverErr = embedded.Start(ctx, b.options); serverErr != nil {
				cancel()
				return
			}
			b.dsn = b.server.DSN()
		})
	}
	if fetchErr = engine.FetchExtensions(ctx, c.DataDir, log); fetchErr != nil {
		cancel()
	}
	wait.Wait()
	if fetchErr == nil && serverErr == nil {
		return b, nil
	}
	return nil, errors.Join(realCause(serverErr, fetchErr), b.stop())
}

// realCause leaves out an error that is only the other one's cancellation.
func realCause(errs ...error) error {
	var real []error
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			real = append(real, err)
		}
	}
	if len(real) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(real...)
}

// keep restarts an embedded server that crashes, until ctx ends. If that does not help, lost gets the reason.
func (b *backing) keep(ctx context.Context, lost context.CancelCauseFunc) {
	if b.server == nil {
		return
	}
	b.keeping.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.server.Done():
			}
			if err := b.restart(ctx); err != nil {
				lost(fmt.Errorf("the embedded PostgreSQL crashed and cannot be started again: %w", err))
				return
			}
		}
	})
}

// restart starts a crashed server again. It recovers by itself, and its connection string stays.
func (b *backing) restart(ctx context.Context) error {
	b.log.Error().Err(b.server.Err()).Msg("embedded postgresql crashed; starting it again")
	if err := b.stopServer(); err != nil {
		b.log.Debug().Err(err).Msg("after the crash")
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(restartPause):
	}
	server, err := embedded.Start(ctx, b.options)
	if err != nil {
		return err
	}
	b.server = server
	return nil
}

// stop ends an embedded server. keep must have been told to end.
func (b *backing) stop() error {
	b.keeping.Wait()
	if b.server == nil {
		return nil
	}
	return b.stopServer()
}

// stopServer gives the server its time.
func (b *backing) stopServer() error {
	ctx, cancel := context.WithTimeout(context.Background(), backingStopMax)
	defer cancel()
	return b.server.Stop(ctx)
}
