package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// copyFlushBytes is how much COPY data is gathered before it is inserted: it bounds the memory of a COPY and keeps the
// data files at a size that is good to read (spec/pgvfs-layout.md, section 21: 64 MB files scan faster cold than 512 MB).
const copyFlushBytes = 64 << 20

// Copy describes a COPY FROM STDIN or TO STDOUT.
type Copy struct {
	In      bool
	Options pgcodec.CopyOptions
	Columns []pgcodec.Column // what CopyInResponse and CopyOutResponse count
}

// Copy describes the statement's COPY; nil where it is none.
func (st *Statement) Copy() *Copy { return st.copy }

// prepareCopy binds the query of a COPY TO, or looks up the columns of the table of a COPY FROM.
func (st *Statement) prepareCopy(ctx context.Context) error {
	c := st.stmt.Copy
	st.copy = &Copy{In: c.In}
	sql := c.Query
	if sql == "" {
		sql = "SELECT " + columnList(c.Columns) + " FROM " + tableName(c)
	}
	body := *st.stmt
	body.SQL, body.ParamAt, body.Params = sql, nil, 0
	st.stmt = &body
	if err := st.prepareDuck(ctx, nil); err != nil {
		return err
	}
	st.copy.Columns = st.columns
	options, err := pgcodec.ParseCopyOptions(copyOptions(c), c.In, st.copy.Columns)
	if err != nil {
		return err
	}
	if options.HasDefault {
		return pgerr.New(pgerrcode.FeatureNotSupported, "COPY option DEFAULT is not supported")
	}
	options.Table = c.Table
	st.copy.Options = options
	st.columns = nil // what a COPY returns is no rows
	if c.In {
		st.writes = st.writesTable(c)
	}
	return nil
}

// copyOptions hands the parsed options on to the codec.
func copyOptions(c *translate.Copy) []pgcodec.CopyOption {
	out := make([]pgcodec.CopyOption, len(c.Opts))
	for i, o := range c.Opts {
		out[i] = pgcodec.CopyOption{Name: o.Name, Value: o.Value, List: o.List}
	}
	return out
}

// columnList quotes names, or is * without any.
func columnList(names []string) string {
	if len(names) == 0 {
		return "*"
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteIdent(n)
	}
	return strings.Join(quoted, ", ")
}

// tableName quotes the table of a COPY.
func tableName(c *translate.Copy) string {
	if c.Schema == "" {
		return quoteIdent(c.Table)
	}
	return quoteIdent(c.Schema) + "." + quoteIdent(c.Table)
}

// writesTable reports whether a COPY FROM changes the lake rather than a temporary table.
func (st *Statement) writesTable(c *translate.Copy) bool {
	return !strings.EqualFold(c.Schema, "temp") && !strings.EqualFold(c.Schema, "pg_temp")
}

// CopyIn takes the data of one COPY FROM STDIN. Its rows are gathered in a chunk, the chunks in DuckDB's appender, and
// inserted whenever enough are there: nothing waits inside DuckDB for the client, and nothing is written anywhere else.
type CopyIn struct {
	st       *Statement
	s        *Session
	x        *execution
	own      bool // the transaction is this COPY's own
	decoder  *pgcodec.CopyDecoder
	appender mapping.Appender
	types    []mapping.LogicalType
	chunk    mapping.DataChunk
	writers  []*pgcodec.VectorWriter
	row      int   // rows in chunk
	bytes    int64 // bytes gathered since the last flush
	rows     int64
}

// CopyIn starts a COPY FROM STDIN. In Auto mode it is a transaction of its own, which Finish commits.
func (st *Statement) CopyIn(ctx context.Context, mode Mode) (*CopyIn, error) {
	s := st.s
	if s.tx.failed {
		return nil, errAborted()
	}
	x := s.newExecution()
	c := &CopyIn{st: st, s: s, x: x, own: s.idle() && mode == Auto}
	defer x.enter(ctx)()
	if err := c.start(); err != nil {
		c.free()
		return nil, s.failed(x.ctx, err, st.position)
	}
	return c, nil
}

// start opens the transaction, the appender and the first chunk.
func (c *CopyIn) start() error {
	s, st := c.s, c.st
	if st.writes && s.mayNotWrite() {
		return pgerr.New(pgerrcode.ReadOnlySQLTransaction, "cannot execute COPY FROM in a read-only transaction")
	}
	if err := s.settleActive(c.x.ctx); err != nil {
		return err
	}
	if err := s.join(c.x.ctx); err != nil {
		return err
	}
	if err := s.startBound(c.x); err != nil {
		return err
	}
	if err := s.settleActive(c.x.ctx); err != nil {
		return err
	}
	s.tx.writes = s.tx.writes || st.writes
	s.tx.changes = true
	c.decoder = pgcodec.NewCopyDecoder(st.copy.Options, len(st.copy.Columns))
	return c.open()
}

// copySource is the name that the INSERT knows the gathered rows by.
const copySource = "sluice_copy_rows"

// open makes the appender: an INSERT that reads the rows gathered so far, run at each flush.
func (c *CopyIn) open() error {
	columns := c.st.copy.Columns
	names, exprs := make([]string, len(columns)), make([]string, len(columns))
	for i, col := range columns {
		names[i] = fmt.Sprintf("c%d", i)
		t, expr := col.Type, names[i]
		if !pgcodec.Writable(t) { // its vector takes text, which DuckDB casts
			t, expr = &pgcodec.LogicalType{ID: pgcodec.Varchar}, pgcodec.FromText(col.Type, names[i])
		}
		exprs[i] = expr
		c.types = append(c.types, duckType(t))
	}
	insert := "INSERT INTO " + tableName(c.st.stmt.Copy)
	if len(c.st.stmt.Copy.Columns) > 0 {
		insert += " (" + columnList(c.st.stmt.Copy.Columns) + ")"
	}
	query := insert + " SELECT " + strings.Join(exprs, ", ") + " FROM " + copySource
	if where := c.st.stmt.Copy.Where; where != "" {
		query = insert + " SELECT * FROM (SELECT " + aliased(exprs, columns) + " FROM " + copySource + ") WHERE " + where
	}
	if mapping.AppenderCreateQuery(c.s.conn.conn, query, c.types, copySource, names, &c.appender) == mapping.StateError {
		return appenderError(c.appender)
	}
	c.chunk = mapping.CreateDataChunk(c.types)
	for i := range columns {
		c.writers = append(c.writers, nil)
		c.pointWriter(i)
	}
	return nil
}

// aliased names each expression as the table's column.
func aliased(exprs []string, columns []pgcodec.Column) string {
	out := make([]string, len(exprs))
	for i := range exprs {
		out[i] = exprs[i] + " AS " + quoteIdent(columns[i].Name)
	}
	return strings.Join(out, ", ")
}

// pointWriter points column i's writer at the chunk's vector.
func (c *CopyIn) pointWriter(i int) {
	vec := mapping.DataChunkGetVector(c.chunk, mapping.IdxT(i))
	mapping.VectorEnsureValidityWritable(vec)
	v := newVector(c.st.copy.Columns[i].Type) // also where the vector takes text: the writer knows what to make of it
	v.Data, v.Validity = mapping.VectorGetData(vec), mapping.VectorGetValidity(vec)
	c.writers[i] = pgcodec.NewVectorWriter(&v, &c.s.codec, func(row int, b []byte) {
		mapping.VectorAssignStringElementLen(vec, mapping.IdxT(row), b)
	})
}

// Write takes data of any length, cut anywhere.
func (c *CopyIn) Write(ctx context.Context, p []byte) error {
	defer c.x.enter(ctx)()
	err := c.decoder.Write(p)
	if err == nil {
		err = c.take()
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// take moves every row that the decoder has into chunks.
func (c *CopyIn) take() error {
	for {
		fields, ok, err := c.decoder.Next()
		if err != nil || !ok {
			return err
		}
		if err := c.setRow(fields); err != nil {
			return err
		}
		if c.row++; c.row == int(mapping.VectorSize()) {
			if err := c.append(); err != nil {
				return err
			}
		}
	}
}

// setRow writes one row's fields into the chunk.
func (c *CopyIn) setRow(fields [][]byte) error {
	binary := c.st.copy.Options.Format == pgcodec.CopyBinary
	for i, f := range fields {
		w := c.writers[i]
		var err error
		switch {
		case f == nil:
			w.SetNull(c.row)
			continue
		case !binary:
			err = w.SetText(c.row, f)
		default:
			err = w.SetBinary(c.row, f)
		}
		if err != nil {
			return c.inRow(err, i, f)
		}
		c.bytes += int64(len(f)) + 8
	}
	return nil
}

// inRow says where in the data an error was found, as PostgreSQL does.
func (c *CopyIn) inRow(err error, column int, field []byte) error {
	return c.s.pgError(c.x.ctx, err, nil).WithWhere(c.decoder.Where(column, field))
}

// append hands the chunk to the appender and inserts when enough was gathered.
func (c *CopyIn) append() error {
	if c.row == 0 {
		return nil
	}
	defer c.s.conn.watch(c.x.ctx)()
	mapping.DataChunkSetSize(c.chunk, mapping.IdxT(c.row))
	if mapping.AppendDataChunk(c.appender, c.chunk) == mapping.StateError {
		return appenderError(c.appender)
	}
	c.rows += int64(c.row)
	c.row = 0
	if c.bytes >= copyFlushBytes {
		c.bytes = 0
		if mapping.AppenderFlush(c.appender) == mapping.StateError {
			return appenderError(c.appender)
		}
	}
	mapping.DataChunkReset(c.chunk)
	for i := range c.writers {
		c.pointWriter(i)
	}
	return nil
}

// Finish inserts the rest and returns the command tag.
func (c *CopyIn) Finish(ctx context.Context) (tag string, err error) {
	defer c.free()
	defer c.x.enter(ctx)()
	if err = c.finish(); err != nil {
		return "", c.fail(err)
	}
	return fmt.Sprintf("COPY %d", c.rows), nil
}

// finish ends the data, flushes and commits what is this COPY's own.
func (c *CopyIn) finish() error {
	if err := c.decoder.Finish(); err != nil {
		return err
	}
	if err := c.take(); err != nil {
		return err
	}
	if err := c.append(); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	if c.own {
		return c.s.commit(c.x.ctx)
	}
	return nil
}

// flush inserts what the appender holds.
func (c *CopyIn) flush() error {
	defer c.s.conn.watch(c.x.ctx)()
	if mapping.AppenderFlush(c.appender) == mapping.StateError {
		return appenderError(c.appender)
	}
	return nil
}

// Abort ends the COPY without its rows; the transaction has failed.
func (c *CopyIn) Abort(error) {
	c.free()
	c.s.Fail()
}

// fail turns err into the client's error; nothing of the COPY stays.
func (c *CopyIn) fail(err error) error {
	out := c.s.failed(c.x.ctx, err, nil)
	c.free()
	return out
}

// free gives back what DuckDB holds. The appender's rows are dropped first: destroying it would insert them.
func (c *CopyIn) free() {
	if c.appender.Ptr != nil {
		mapping.AppenderClear(c.appender)
		mapping.AppenderDestroy(&c.appender)
	}
	mapping.DestroyDataChunk(&c.chunk)
	for i := range c.types {
		mapping.DestroyLogicalType(&c.types[i])
	}
	c.types = nil
	c.x.end()
}
