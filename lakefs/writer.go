package lakefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	nextIDSQL = `SELECT nextval('pgvfs.file_ids')`

	// publishSQL has no ON CONFLICT: replacing a row here would lose the ID of the file it named.
	publishSQL = `INSERT INTO pgvfs.files (volume, path, file_id, size) VALUES ($1, $2, $3, $4) RETURNING created_at`

	// abortMax is how long an aborted COPY may take to end properly before its connection is cut.
	abortMax = 5 * time.Second
)

// errAborted ends the COPY of an aborted file.
var errAborted = errors.New("the file was given up")

// slots share the pool's connections out. A writer that streams keeps one until its file is closed, perhaps for long,
// and one caller may hold many writers (DuckDB keeps a file open for each partition). So none may wait for such a
// connection: what finds none writes to disk and is sent when it is closed. That needs a connection for a time that
// depends on nobody else, which is worth waiting for. Two connections are kept for readers.
type slots struct {
	conns     int           // all
	streaming chan struct{} // one element for each connection that streams
	closing   chan struct{} // one for each that sends a whole file
}

// newSlots shares a number of connections out, 4 at least.
func newSlots(conns int) slots {
	const forReaders = 2
	forWriters := conns - forReaders
	closing := max(1, forWriters/3)
	return slots{conns, make(chan struct{}, forWriters-closing), make(chan struct{}, closing)}
}

// pgWriter is a file being written: in memory until a batch is full, then to the database or, if no connection can be
// had, to disk.
type pgWriter struct {
	store *PG
	name  fileName
	size  int64

	ctx    context.Context // ends with Create's, with that of a call that waits, and with the store
	cancel context.CancelCauseFunc
	unhook func() bool

	batch   batch    // what has been neither sent nor spilled
	spilled *os.File // batches that wait for a connection; already removed from its directory
	slot    chan struct{}
	stream  *stream // nil before a connection has been taken
	err     error   // the first failure, or errAborted, or the end
}

// Create implements Store.
func (p *PG) Create(ctx context.Context, volume, path string) (Writer, error) {
	var w *pgWriter
	err := p.act("create", fileURL(volume, path), func() error {
		if err := errors.Join(checkVolume(volume), CheckPath(path)); err != nil {
			return err
		}
		if err := p.ensureWritable(ctx); err != nil {
			return err
		}
		w = &pgWriter{store: p, name: fileName{volume, path}}
		w.ctx, w.cancel = context.WithCancelCause(ctx)
		w.unhook = context.AfterFunc(p.ctx, func() { w.cancel(errClosed) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Size implements Writer.
func (w *pgWriter) Size() int64 { return w.size }

// Write implements Writer.
func (w *pgWriter) Write(ctx context.Context, p []byte) error {
	if err := w.usable(ctx); err != nil {
		return err
	}
	for len(p) > 0 {
		if w.batch.full() {
			if err := w.flush(ctx); err != nil {
				return w.fail(err)
			}
		}
		n, err := w.batch.append(p)
		if err != nil {
			return w.fail(err)
		}
		p = p[n:]
		w.size += int64(n)
	}
	return nil
}

// usable fails when the writer has ended, or must since a context has.
func (w *pgWriter) usable(ctx context.Context) error {
	if w.err == nil && (ctx.Err() != nil || w.ctx.Err() != nil) {
		return w.fail(context.Cause(ctx)) // of its own context's end, fail knows the cause
	}
	return w.err
}

// flush makes room: it sends a full batch off, or spills it.
func (w *pgWriter) flush(ctx context.Context) (err error) {
	defer w.endWith(ctx)()
	if w.stream == nil && w.spilled == nil {
		select {
		case w.store.slots.streaming <- struct{}{}:
			w.slot = w.store.slots.streaming
			if err := w.connect(); err != nil {
				return err
			}
		default:
		}
	}
	if w.stream == nil {
		return w.spill()
	}
	if err := w.send(); err != nil {
		return err
	}
	w.batch.buf, err = w.stream.take()
	return err
}

// endWith lets the end of ctx end the writer for the time of one call.
func (w *pgWriter) endWith(ctx context.Context) (done func() bool) {
	return context.AfterFunc(ctx, func() { w.cancel(context.Cause(ctx)) })
}

// connect opens the file's transaction, on a connection that the slot stands for. Nothing has been sent yet, so a
// schema that has been dropped is made anew here as for any change.
func (w *pgWriter) connect() error {
	return w.store.onSchema(w.ctx, func() error {
		conn, err := w.store.begin(w.ctx)
		if err != nil {
			return err
		}
		var id int64
		if err := conn.QueryRow(w.ctx, nextIDSQL).Scan(&id); err != nil {
			release(conn)
			return err
		}
		w.stream = newStream(id, conn)
		return nil
	})
}

// send hands the batch over to the COPY, which it starts if this is the first.
func (w *pgWriter) send() error {
	if !w.stream.started && !w.store.start(func() { w.stream.copy(w.ctx) }) {
		return errClosed
	}
	w.stream.started = true
	w.batch.seal(w.stream.id)
	full := w.batch.buf
	w.batch.buf = nil
	return w.stream.put(full)
}

// Close implements Writer.
func (w *pgWriter) Close(ctx context.Context) (f *File, err error) {
	if err := w.usable(ctx); err != nil {
		return nil, err
	}
	defer w.endWith(ctx)()
	defer w.store.reapSoon()
	defer w.store.cache.evict(w.name)
	if f, err = w.finish(); err != nil {
		return nil, w.fail(err)
	}
	w.end(fmt.Errorf("%s has been closed", f.URL()))
	return f, nil
}

// finish sends what is left and publishes.
func (w *pgWriter) finish() (*File, error) {
	if w.stream == nil {
		if err := w.unspill(); err != nil {
			return nil, err
		}
	}
	if len(w.batch.buf) > 0 {
		if err := w.send(); err != nil {
			return nil, err
		}
	}
	if err := w.stream.finish(int64(w.batch.rows)); err != nil {
		return nil, err
	}
	return w.publish()
}

// unspill waits for a connection and sends what is on disk.
func (w *pgWriter) unspill() error {
	select {
	case w.store.slots.closing <- struct{}{}:
		w.slot = w.store.slots.closing
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
	if err := w.connect(); err != nil || w.spilled == nil {
		return err
	}
	return w.replay()
}

// publish makes the file visible instead of what was at its path.
func (w *pgWriter) publish() (*File, error) {
	f := &File{ID: w.stream.id, Size: w.size, Volume: w.name.volume, Path: w.name.path}
	w.store.cache.evict(w.name)
	batch := &pgx.Batch{}
	batch.Queue(unpublishSQL, f.Volume, f.Path)
	batch.Queue(publishSQL, f.Volume, f.Path, f.ID, f.Size).QueryRow(func(row pgx.Row) error { return row.Scan(&f.CreatedAt) })
	if err := w.stream.conn.SendBatch(w.ctx, batch).Close(); err != nil {
		return nil, err
	}
	return f, commit(w.ctx, w.stream.conn)
}

// Abort implements Writer.
func (w *pgWriter) Abort() {
	if w.err == nil {
		w.end(fmt.Errorf("write %s: %w", fileURL(w.name.volume, w.name.path), errAborted))
	}
}

// fail ends the writer with what went wrong. If a context ended, that is what went wrong: what the connection says
// about it is of no interest.
func (w *pgWriter) fail(err error) error {
	if w.ctx.Err() != nil {
		err = context.Cause(w.ctx)
	}
	err = w.store.act("write", fileURL(w.name.volume, w.name.path), func() error { return err })
	w.end(err)
	return err
}

// end gives everything back; err is what later calls return.
func (w *pgWriter) end(err error) {
	w.err = err
	if w.stream != nil {
		w.stream.abort(w.cancel)
	}
	if w.slot != nil {
		<-w.slot
	}
	w.unhook()
	w.cancel(errAborted)
	if w.spilled != nil {
		_ = w.spilled.Close() // nothing of it is needed
	}
	w.batch.free()
}

// spill appends the batch to the file on disk, without the file's ID, which it does not have yet.
func (w *pgWriter) spill() (err error) {
	if w.spilled == nil {
		if w.spilled, err = os.CreateTemp(w.store.spill, "sluice-write-*"); err != nil {
			return fmt.Errorf("spill: %w", err)
		}
		if err := os.Remove(w.spilled.Name()); err != nil {
			return fmt.Errorf("spill: %w", err)
		}
	}
	if _, err := w.spilled.Write(w.batch.buf); err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	w.batch.buf = w.batch.buf[:0]
	return nil
}

// replay sends the batches that are on disk, then has the last one, which never went there, in hand again.
func (w *pgWriter) replay() error {
	if _, err := w.spilled.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read what was spilled: %w", err)
	}
	last := w.batch.buf
	w.stream.made++ // last; the other is taken here
	buf := newBatchBuf()
	for {
		buf = buf[:batchBytes]
		_, err := io.ReadFull(w.spilled, buf)
		if errors.Is(err, io.EOF) {
			recycle(buf)
			w.batch.buf = last
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what was spilled: %w", err)
		}
		w.batch.buf = buf
		if err := w.send(); err != nil {
			return err
		}
		if buf, err = w.stream.take(); err != nil {
			return err
		}
	}
}

// stream is a file's connection and the COPY that runs on it.
type stream struct {
	id      int64
	conn    *pgxpool.Conn
	started bool // whether copy runs or has run; without rows it never does

	full    chan []byte   // batches for the COPY; closed after the last
	empty   chan []byte   // batches that it is done with
	made    int           // batches that exist
	aborted chan struct{} // closed to fail the COPY

	done chan struct{} // closed when the COPY has ended
	rows int64         // what it has stored; read after done, like
	err  error         // why it failed. The connection is then released already.
}

// newStream takes a connection over, in whose transaction the file gets written.
func newStream(id int64, conn *pgxpool.Conn) *stream {
	return &stream{
		id:      id,
		conn:    conn,
		full:    make(chan []byte, 1),
		empty:   make(chan []byte, batchesMax),
		made:    1,
		aborted: make(chan struct{}),
		done:    make(chan struct{}),
	}
}

// copy runs the COPY. When it fails it gives the connection back at once, so that a writer nobody closes holds none.
//
// The end of ctx fails the COPY as the client's word, to which the server answers: pgx's way, which is to send a cancel
// request and hang up, takes it 15 seconds now and then, since a server that waits for a client's bytes does not hear
// cancel requests. It is what remains for a server that does not react.
func (s *stream) copy(ctx context.Context) {
	defer close(s.done)
	running, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { s.cutAfter(cut) })()
	source := newCopySource(ctx, s)
	tag, err := s.conn.Conn().PgConn().CopyFrom(running, source, copySQL)
	source.stop()
	s.rows, s.err = tag.RowsAffected(), err
	if err == nil {
		return
	}
	if running.Err() != nil {
		_ = s.conn.Conn().PgConn().Conn().Close() // pgx would wait for the server
	}
	release(s.conn)
}

// cutAfter cuts a COPY that has not ended after abortMax.
func (s *stream) cutAfter(cut context.CancelFunc) {
	timer := time.NewTimer(abortMax)
	defer timer.Stop()
	select {
	case <-timer.C:
		cut()
	case <-s.done:
	}
}

// put gives a batch to the COPY.
func (s *stream) put(full []byte) error {
	select {
	case s.full <- full:
		return nil
	case <-s.done:
		return s.failure()
	}
}

// take gets an empty batch: one that the COPY is done with, or a new one as long as there may be more.
func (s *stream) take() ([]byte, error) {
	select {
	case empty := <-s.empty:
		return empty[:0], nil
	default:
	}
	if s.made < batchesMax {
		s.made++
		return newBatchBuf(), nil
	}
	select {
	case empty := <-s.empty:
		return empty[:0], nil
	case <-s.done:
		return nil, s.failure()
	}
}

// failure is why a COPY ended before its last batch.
func (s *stream) failure() error {
	if s.err == nil {
		return errors.New("the COPY ended early")
	}
	return s.err
}

// finish ends the COPY and checks that it stored every row.
func (s *stream) finish(rows int64) error {
	if s.started {
		close(s.full)
		<-s.done
	}
	if s.err != nil {
		return s.err
	}
	if s.rows != rows {
		return fmt.Errorf("the server has stored %d rows instead of %d", s.rows, rows)
	}
	return nil
}

// abort ends the COPY if it still runs, with the writer's context, and rolls back what has not been committed.
func (s *stream) abort(cancel context.CancelCauseFunc) {
	close(s.aborted)
	if s.started {
		cancel(errAborted)
		<-s.done
	}
	if s.err != nil {
		return // copy has released the connection; pgx may still be reading from a batch
	}
	release(s.conn)
	for len(s.empty) > 0 {
		recycle(<-s.empty)
	}
}
