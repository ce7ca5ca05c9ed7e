package proxy

import (
	"context"
	"time"

	"sluice/engine"
	"sluice/engine/pgcodec"
)

// The four interfaces below are what a session needs of the engine. Package engine is their one
// implementation; tests put a second one in place for what DuckDB will not do on demand: a commit that
// fails, a statement that runs until it is interrupted, rows without end.

// lake opens sessions on one database.
type lake interface {
	Lake() string
	NewSession(context.Context, engine.SessionConfig) (backend, error)
}

// backend is one session's side of the engine.
type backend interface {
	Parse(sql string) ([]engine.Query, error)
	Prepare(context.Context, engine.Query, []uint32) (statement, error)
	Sync(context.Context) error
	Fail()
	TxStatus() byte
	Settings() *pgcodec.Settings
	ParameterStatus() []engine.Param
	IdleTimeouts() (session, inTransaction time.Duration)
	Close()
}

// statement is a prepared statement.
type statement interface {
	Params() []uint32
	Columns() []pgcodec.Column
	Copy() *engine.Copy
	Run(context.Context, []engine.Arg, engine.Mode) (result, error)
	CopyIn(context.Context, engine.Mode) (copyIn, error)
	Close()
}

// result hands out chunks of rows.
type result interface {
	Columns() []pgcodec.Column
	Next(context.Context) (*pgcodec.Chunk, error)
	Tag(rows int64) string
	Close() error
}

// copyIn takes the bytes of COPY FROM STDIN.
type copyIn interface {
	Write(context.Context, []byte) error
	Finish(context.Context) (string, error)
	Abort(error)
}

// engineLake, engineBackend and engineStatement are the engine's own types; Go needs them because a method
// that returns *engine.Session is not one that returns a backend.
type (
	engineLake      struct{ *engine.Engine }
	engineBackend   struct{ *engine.Session }
	engineStatement struct{ *engine.Statement }
)

// NewSession opens a session of the engine.
func (e engineLake) NewSession(ctx context.Context, cfg engine.SessionConfig) (backend, error) {
	s, err := e.Engine.NewSession(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return engineBackend{s}, nil
}

// Prepare prepares a statement in the engine.
func (s engineBackend) Prepare(ctx context.Context, q engine.Query, oids []uint32) (statement, error) {
	st, err := s.Session.Prepare(ctx, q, oids)
	if err != nil {
		return nil, err
	}
	return engineStatement{st}, nil
}

// Run runs a statement in the engine.
func (st engineStatement) Run(ctx context.Context, args []engine.Arg, mode engine.Mode) (result, error) {
	r, err := st.Statement.Run(ctx, args, mode)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// CopyIn begins COPY FROM STDIN in the engine.
func (st engineStatement) CopyIn(ctx context.Context, mode engine.Mode) (copyIn, error) {
	c, err := st.Statement.CopyIn(ctx, mode)
	if err != nil {
		return nil, err
	}
	return c, nil
}
