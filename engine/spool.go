package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"sluice/engine/pgcodec"
)

const (
	// spoolTailChunks is how many of the newest chunks stay as they are: a result of up to so many (16,384 rows) needs
	// no table, which takes 0.2 ms to make, and a cursor that goes forward never reads one.
	spoolTailChunks = 8
	// spoolWindowRows are read back at once. A query on a table takes 0.4 ms before its first row, and what it returned
	// is outside of DuckDB's memory limit.
	spoolWindowRows = 8 * 2048
	// spoolTableRows is when the next table is begun. To find a row takes 25 µs for each row group (122,880 rows) of its
	// table; and a table whose rows nobody will ask for again is dropped, so that a long result gives its space back.
	spoolTableRows = 4 * 122_880
)

// piece is a chunk whose rows have numbers.
type piece struct {
	chunk mapping.DataChunk
	first int64 // number of the chunk's first row
	rows  int
}

// end is the number after the last row's.
func (p *piece) end() int64 { return p.first + int64(p.rows) }

// has reports whether row n is in the chunk.
func (p *piece) has(n int64) bool { return p.first <= n && n < p.end() }

// free destroys the chunk, if there is one.
func (p *piece) free() { mapping.DestroyDataChunk(&p.chunk) }

// spool keeps numbered rows for later in little memory: the newest as the chunks they came in, the others in temporary
// tables of a DuckDB connection of its own. DuckDB holds those within its memory limit and puts what is beyond into its
// spill directory, whose limit ends with 53100.
type spool struct {
	connect func() (*duckConn, func(), error) // makes the connection; the function returned closes it
	types   []*pgcodec.LogicalType
	first   int64 // the oldest row that is kept
	end     int64 // the number after the newest row's

	tables []spoolTable // of consecutive rows, oldest first
	tail   []piece      // the rows after those of the tables
	window []piece      // what was read back last

	conn     *duckConn // nil until there is a table
	hangUp   func()
	appender mapping.Appender // into the last table
	made     int              // tables so far, which their names count
}

// spoolTable holds the rows from first to end; a row's rowid counts from 0.
type spoolTable struct {
	name       string
	first, end int64
}

// add takes over a chunk of the rows that follow.
func (sp *spool) add(ctx context.Context, p piece) error {
	sp.tail = append(sp.tail, p)
	sp.end = p.end()
	if len(sp.tail) <= spoolTailChunks {
		return nil
	}
	return sp.store(ctx)
}

// store moves all chunks but the newest, which may be what a client reads, into tables.
func (sp *spool) store(ctx context.Context) error {
	if err := sp.open(); err != nil {
		return err
	}
	defer sp.conn.watch(ctx)()
	old := sp.tail[:len(sp.tail)-1]
	for i := range old {
		if err := sp.append(ctx, &old[i]); err != nil {
			return err
		}
	}
	if err := sp.flush(); err != nil {
		return err
	}
	for i := range old {
		old[i].free()
	}
	sp.tail = slices.Delete(sp.tail, 0, len(old))
	return nil
}

// open makes the connection, unless there is one.
func (sp *spool) open() (err error) {
	if sp.conn == nil {
		sp.conn, sp.hangUp, err = sp.connect()
	}
	return wrap(err, "keep rows for later")
}

// append writes a chunk to the last table, or to a new one when that is full.
func (sp *spool) append(ctx context.Context, p *piece) error {
	if n := len(sp.tables); n == 0 || sp.tables[n-1].end-sp.tables[n-1].first >= spoolTableRows {
		if err := sp.begin(ctx, p.first); err != nil {
			return err
		}
	}
	if mapping.AppendDataChunk(sp.appender, p.chunk) == mapping.StateError {
		return appenderError(sp.appender)
	}
	sp.tables[len(sp.tables)-1].end = p.end()
	return nil
}

// flush makes what was appended readable.
func (sp *spool) flush() error {
	if sp.appender.Ptr != nil && mapping.AppenderFlush(sp.appender) == mapping.StateError {
		return appenderError(sp.appender)
	}
	return nil
}

// begin makes the next table, whose first row has the given number.
func (sp *spool) begin(ctx context.Context, first int64) error {
	if err := sp.flush(); err != nil {
		return err
	}
	mapping.AppenderDestroy(&sp.appender)
	t := spoolTable{name: fmt.Sprintf("spool_%d", sp.made), first: first, end: first}
	columns := make([]string, len(sp.types))
	for i, lt := range sp.types {
		columns[i] = fmt.Sprintf("c%d %s", i, pgcodec.DuckName(lt))
	}
	if err := sp.conn.exec(ctx, "CREATE TEMP TABLE "+t.name+"("+strings.Join(columns, ", ")+")"); err != nil {
		return fmt.Errorf("make a table of rows kept for later: %w", err)
	}
	sp.made++
	if err := sp.checkLayout(ctx, t.name); err != nil {
		return err
	}
	if mapping.AppenderCreateExt(sp.conn.conn, "temp", "main", t.name, &sp.appender) == mapping.StateError {
		return appenderError(sp.appender)
	}
	sp.tables = append(sp.tables, t)
	return nil
}

// checkLayout makes sure that the table's vectors are laid out as those of the rows, since encoders read raw memory.
func (sp *spool) checkLayout(ctx context.Context, table string) error {
	p, err := sp.conn.prepare(ctx, "FROM temp.main."+table)
	if err != nil {
		return err
	}
	defer mapping.DestroyPrepare(&p)
	for i, want := range sp.types {
		if got := ownedType(mapping.PreparedStatementColumnLogicalType(p, mapping.IdxT(i))); !sameLayout(got, want) {
			return fmt.Errorf("rows kept for later: type %d came back as %s", want.ID, pgcodec.DuckName(got))
		}
	}
	return nil
}

// errNotKept means that a row was asked for that is not kept, which is a bug of ours.
var errNotKept = errors.New("row is not kept")

// at finds the chunk with row n, which must be kept. It is valid until the next call of at, add or forget.
func (sp *spool) at(ctx context.Context, n int64) (*piece, error) {
	if p := find(sp.tail, n); p != nil {
		return p, nil
	}
	if p := find(sp.window, n); p != nil {
		return p, nil
	}
	if err := sp.read(ctx, n); err != nil {
		return nil, err
	}
	if p := find(sp.window, n); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: %d of %d to %d", errNotKept, n, sp.first, sp.end)
}

// find returns the piece with row n, nil if none has it.
func find(pieces []piece, n int64) *piece {
	if i := slices.IndexFunc(pieces, func(p piece) bool { return p.has(n) }); i >= 0 {
		return &pieces[i]
	}
	return nil
}

// read makes the window the rows of a table around row n. Windows lie side by side, so that going backward reads no row
// twice either.
func (sp *spool) read(ctx context.Context, n int64) error {
	sp.freeWindow()
	for _, t := range sp.tables {
		if n < t.first || n >= t.end {
			continue
		}
		low := (n - t.first) / spoolWindowRows * spoolWindowRows
		var res mapping.Result
		err := sp.conn.query(ctx, fmt.Sprintf("FROM temp.main.%s WHERE rowid >= %d AND rowid < %d", t.name, low, low+spoolWindowRows), &res)
		if err != nil {
			return fmt.Errorf("read rows kept for later: %w", err)
		}
		defer mapping.DestroyResult(&res)
		return sp.fill(ctx, &res, t.first+low)
	}
	return nil
}

// fill takes the window's chunks out of res; the first row has the given number.
func (sp *spool) fill(ctx context.Context, res *mapping.Result, first int64) error {
	for {
		chunk, ok, err := sp.conn.fetch(ctx, res)
		if err != nil || !ok {
			return err
		}
		p := piece{chunk, first, int(mapping.DataChunkGetSize(chunk))}
		sp.window = append(sp.window, p)
		first = p.end()
	}
}

// forget gives up what only rows before n need.
func (sp *spool) forget(ctx context.Context, n int64) error {
	sp.first = max(sp.first, min(n, sp.end))
	for len(sp.tail) > 0 && sp.tail[0].end() <= n {
		sp.tail[0].free()
		sp.tail = slices.Delete(sp.tail, 0, 1)
	}
	for len(sp.tables) > 1 && sp.tables[0].end <= n { // the last one is open for more
		if err := sp.conn.exec(ctx, "DROP TABLE temp.main."+sp.tables[0].name); err != nil {
			return fmt.Errorf("give up rows kept for later: %w", err)
		}
		sp.tables = slices.Delete(sp.tables, 0, 1)
	}
	return nil
}

// freeWindow gives up what was read back.
func (sp *spool) freeWindow() {
	for i := range sp.window {
		sp.window[i].free()
	}
	sp.window = sp.window[:0]
}

// close gives everything up. The tables go with their connection.
func (sp *spool) close() {
	sp.freeWindow()
	for i := range sp.tail {
		sp.tail[i].free()
	}
	sp.tail, sp.tables = nil, nil
	if sp.appender.Ptr != nil {
		mapping.AppenderClear(sp.appender)
		mapping.AppenderDestroy(&sp.appender)
	}
	if sp.conn != nil {
		sp.hangUp()
		sp.conn = nil
	}
}
