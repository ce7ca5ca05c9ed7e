package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/duckdb/duckdb-go-bindings"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// interruptEvery is how often a cancelled statement is interrupted again until it has ended. DuckDB clears its flag
// when a query starts, so that a single interrupt sent a moment too early would be lost.
const interruptEvery = 5 * time.Millisecond

// duckConn is one DuckDB connection. It is used by one goroutine at a time; interrupt alone may come from any.
type duckConn struct {
	conn mapping.Connection
}

// connect opens a connection of db.
func connect(db mapping.Database) (*duckConn, error) {
	c := &duckConn{}
	if mapping.Connect(db, &c.conn) == mapping.StateError {
		return nil, errors.New("connect to DuckDB: no connection could be made")
	}
	return c, nil
}

// close disconnects; DuckDB rolls back what was open.
func (c *duckConn) close() { mapping.Disconnect(&c.conn) }

// watch interrupts the connection's running query when ctx ends. The function returned stops watching, and has waited
// for the last interrupt when it returns, so that none reaches the next query.
func (c *duckConn) watch(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	unregister := context.AfterFunc(ctx, func() {
		defer close(ended)
		for {
			mapping.Interrupt(c.conn)
			select {
			case <-done:
				return
			case <-time.After(interruptEvery):
			}
		}
	})
	return func() {
		close(done)
		if !unregister() {
			<-ended
		}
	}
}

// exec runs SQL of our own that returns nothing of interest.
func (c *duckConn) exec(ctx context.Context, sql string) error {
	var res mapping.Result
	if err := c.query(ctx, sql, &res); err != nil {
		return err
	}
	mapping.DestroyResult(&res)
	return nil
}

// text runs SQL of our own that returns one VARCHAR, or "" when it returns no row or NULL.
func (c *duckConn) text(ctx context.Context, sql string) (string, error) {
	var out string
	err := c.rows(ctx, sql, func(row []string) { out = row[0] })
	return out, err
}

// prepare binds sql without running it. The statement must be destroyed with mapping.DestroyPrepare.
func (c *duckConn) prepare(ctx context.Context, sql string) (mapping.PreparedStatement, error) {
	defer c.watch(ctx)()
	var p mapping.PreparedStatement
	if mapping.Prepare(c.conn, sql, &p) == mapping.StateError {
		err := parseDuckError(mapping.PrepareError(p))
		mapping.DestroyPrepare(&p)
		return mapping.PreparedStatement{}, err
	}
	return p, nil
}

// pend gets a prepared statement whose parameters are bound ready to run, with what it will read fixed. Whoever does not
// execute it must destroy it.
func (c *duckConn) pend(p mapping.PreparedStatement) (mapping.PendingResult, error) {
	var pending mapping.PendingResult
	if duckdb_go_bindings.PendingPreparedStreaming(p, &pending) == mapping.StateError {
		defer mapping.DestroyPending(&pending)
		return mapping.PendingResult{}, parseDuckError(mapping.PendingError(pending))
	}
	return pending, nil
}

// execute runs what pend got ready, and destroys that; rows are streamed. The result must be destroyed.
func (c *duckConn) execute(ctx context.Context, pending *mapping.PendingResult, res *mapping.Result) error {
	defer mapping.DestroyPending(pending)
	defer c.watch(ctx)()
	if mapping.ExecutePending(*pending, res) == mapping.StateError {
		err := duckErrorOf(res)
		mapping.DestroyResult(res)
		return err
	}
	return nil
}

// query runs SQL that has no parameters; its rows are all in memory. The result must be destroyed.
func (c *duckConn) query(ctx context.Context, sql string, res *mapping.Result) error {
	defer c.watch(ctx)()
	if mapping.Query(c.conn, sql, res) == mapping.StateError {
		err := duckErrorOf(res)
		mapping.DestroyResult(res)
		return err
	}
	return nil
}

// fetch returns the next chunk of a streaming result, or false at its end. The chunk must be destroyed.
func (c *duckConn) fetch(ctx context.Context, res *mapping.Result) (mapping.DataChunk, bool, error) {
	defer c.watch(ctx)()
	for {
		chunk := mapping.FetchChunk(*res)
		if chunk.Ptr == nil {
			if msg := mapping.ResultError(res); msg != "" {
				return chunk, false, duckErrorOf(res)
			}
			return chunk, false, nil
		}
		if mapping.DataChunkGetSize(chunk) > 0 {
			return chunk, true, nil
		}
		mapping.DestroyDataChunk(&chunk)
	}
}

// rows runs SQL of our own and calls each with every row's VARCHAR columns.
func (c *duckConn) rows(ctx context.Context, sql string, each func(row []string)) error {
	var res mapping.Result
	if err := c.query(ctx, sql, &res); err != nil {
		return err
	}
	defer mapping.DestroyResult(&res)
	for {
		chunk, ok, err := c.fetch(ctx, &res)
		if err != nil || !ok {
			return err
		}
		for r := range uint64(mapping.DataChunkGetSize(chunk)) {
			row := make([]string, mapping.DataChunkGetColumnCount(chunk))
			for i := range row {
				row[i] = vectorString(mapping.DataChunkGetVector(chunk, mapping.IdxT(i)), r)
			}
			each(row)
		}
		mapping.DestroyDataChunk(&chunk)
	}
}

// appenderError reads the error of an appender that has failed.
func appenderError(a mapping.Appender) error {
	data := mapping.AppenderErrorData(a)
	defer mapping.DestroyErrorData(&data)
	return parseDuckError(mapping.ErrorDataMessage(data))
}

// vectorString reads one VARCHAR of a flat vector; NULL reads as "".
func vectorString(v mapping.Vector, row uint64) string {
	if mask := mapping.VectorGetValidity(v); mask != nil && !mapping.ValidityRowIsValid(mask, mapping.IdxT(row)) {
		return ""
	}
	data := mapping.VectorGetData(v)
	const stringBytes = 16 // sizeof(duckdb_string_t)
	s := (*mapping.StringT)(unsafe.Add(data, row*stringBytes))
	return mapping.StringTData(s)
}

// quoteIdent quotes a name for DuckDB's SQL.
func quoteIdent(name string) string { return quote(name, '"') }

// quoteLiteral quotes a text for DuckDB's SQL.
func quoteLiteral(text string) string { return quote(text, '\'') }

// quote wraps s in q and doubles every q inside.
func quote(s string, q byte) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, q)
	for i := range len(s) {
		if s[i] == q {
			b = append(b, q)
		}
		b = append(b, s[i])
	}
	return string(append(b, q))
}

// wrap adds what was being done to err, or keeps nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
