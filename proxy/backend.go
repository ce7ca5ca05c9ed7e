package proxy

import (
	"context"
	"time"

	"sluice/engine"
	"sluice/engine/pgcodec"
)

// The interfaces below are what a session needs of the engine. Package engine is their one
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
	Keep(name string, st statement) error
	Kept(ctx context.Context, name string) (statement, error)
	Forget(name string)
	Bind(name string, st statement, args []engine.Arg) (bound, error)
	Cursor(name string) bound
	Sync(context.Context) error
	Fail()
	TxStatus() byte
	Settings() *pgcodec.Settings
	ParameterStatus() []engine.Param
	IdleTimeouts() (session, inTransaction time.Duration)
	Close()
}

// statement is a prepared statement. Where one may be nil, that is an empty query.
type statement interface {
	Params() []uint32
	Columns() []pgcodec.Column
	Copy() *engine.Copy
	Run(context.Context, []engine.Arg, engine.Mode) (result, error)
	CopyIn(context.Context, engine.Mode) (copyIn, error)
	Retain()
	Close()
}

// bound is the engine's side of a portal.
type bound interface {
	Columns() []pgcodec.Column
	Run(context.Context, engine.Mode) (result, error)
	Closed() bool
	Close()
}

// result hands out chunks of rows.
type result interface {
	Columns() []pgcodec.Column
	Binary() bool
	Next(ctx context.Context, rowsMax int64) (*pgcodec.Chunk, error)
	Tag(rows int64) string
	Close() error
}

// copyIn takes the bytes of COPY FROM STDIN.
type copyIn interface {
	Write(context.Context, []byte) error
	Finish(context.Context) (string, error)
	Abort(error)
}

// engineLake and its like are the engine's own types; Go needs them because a method that returns
// *engine.Session is not one that returns a backend.
type (
	engineLake      struct{ *engine.Engine }
	engineBackend   struct{ *engine.Session }
	engineStatement struct{ *engine.Statement }
	engineBound     struct{ *engine.Portal }
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

// Keep gives a statement a name in the engine.
func (s engineBackend) Keep(name string, st statement) error {
	own, _ := st.(engineStatement) // an empty query has none
	return s.Session.Keep(name, own.Statement)
}

// Kept finds a statement of the engine by name.
func (s engineBackend) Kept(ctx context.Context, name string) (statement, error) {
	st, err := s.Session.Kept(ctx, name)
	if err != nil || st == nil {
		return nil, err
	}
	return engineStatement{st}, nil
}

// Bind makes a portal in the engine.
func (s engineBackend) Bind(name string, st statement, args []engine.Arg) (bound, error) {
	own, _ := st.(engineStatement)
	p, err := s.Session.Bind(name, own.Statement, args)
	if err != nil {
		return nil, err
	}
	return engineBound{p}, nil
}

// Cursor finds a cursor of SQL in the engine; nil if there is none.
func (s engineBackend) Cursor(name string) bound {
	if p := s.Session.Cursor(name); p != nil {
		return engineBound{p}
	}
	return nil
}

// Run runs a portal in the engine.
func (p engineBound) Run(ctx context.Context, mode engine.Mode) (result, error) {
	r, err := p.Portal.Run(ctx, mode)
	if err != nil {
		return nil, err
	}
	return r, nil
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
