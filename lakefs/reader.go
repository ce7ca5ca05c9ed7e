package lakefs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
)

const (
	chunkBytes = 8120 // in each row but a file's last
	pieceRows  = 1032 // rows of one query, 8.4 MB; larger pieces gain nothing, smaller ones cost round trips
)

const (
	openSQL = `SELECT file_id, size, created_at FROM pgvfs.files WHERE volume = $1 AND path = $2`

	// chunksSQL has no order: rows are placed by their number.
	chunksSQL = `SELECT no, data FROM pgvfs.chunks WHERE file_id = $1 AND no >= $2 AND no <= $3`

	listSQL = `SELECT path FROM pgvfs.files
		WHERE volume = $1 AND path >= $2 AND path < $3 ORDER BY path LIMIT $4`
)

// chunksName is chunksSQL's as a prepared statement.
const chunksName = "pgvfs_chunks"

// allBinary has all parameters, or columns, as they are in memory.
var allBinary = []int16{pgx.BinaryFormatCode}

// Open implements Store.
func (p *PG) Open(ctx context.Context, volume, path string) (f *File, err error) {
	err = p.act("open", fileURL(volume, path), func() error {
		if err := checkVolume(volume); err != nil {
			return err
		}
		f, err = p.open(ctx, fileName{volume, path})
		return err
	})
	return f, err
}

// open is Open without its name in front of the errors.
func (p *PG) open(ctx context.Context, name fileName) (*File, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the cache would not notice
	}
	if CheckPath(name.path) != nil {
		return nil, ErrNotExist
	}
	begin := time.Now()
	f, changes := p.cache.get(name)
	defer func(hit bool) { countOpen(begin, hit) }(f != nil)
	if f != nil {
		return f, nil
	}
	f = &File{Volume: name.volume, Path: name.path}
	err := p.onConn(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, openSQL, name.volume, name.path).Scan(&f.ID, &f.Size, &f.CreatedAt)
	})
	if errors.Is(err, pgx.ErrNoRows) || undefined(err) {
		return nil, ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	p.cache.put(name, f, changes)
	return f, nil
}

// Exists implements Store.
func (p *PG) Exists(ctx context.Context, volume, path string) (bool, error) {
	_, err := p.Open(ctx, volume, path)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// List implements Store.
func (p *PG) List(ctx context.Context, volume, prefix string, limit int) (paths []string, err error) {
	err = p.act("list", fileURL(volume, prefix), func() error {
		if err := checkVolume(volume); err != nil {
			return err
		}
		if !storable(prefix) {
			return nil
		}
		return p.onConn(ctx, func(conn *pgx.Conn) error {
			paths, err = list(ctx, conn, volume, prefix, limit)
			return err
		})
	})
	return paths, err
}

// list reads the paths with one index-only scan. No schema means no files.
func list(ctx context.Context, conn *pgx.Conn, volume, prefix string, limit int) (paths []string, err error) {
	var atMost *int64 // LIMIT NULL is no limit
	if limit > 0 {
		n := int64(limit)
		atMost = &n
	}
	args := []any{volume, prefix, prefixEndArg(prefix), atMost}
	err = withIndexScans(ctx, conn, listSQL, args, func(rows pgx.Rows) error {
		paths, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if undefined(err) {
		return nil, nil
	}
	return paths, err
}

// Glob implements Store.
func (p *PG) Glob(ctx context.Context, volume, pattern string) ([]string, error) {
	return globStore(ctx, p, volume, pattern)
}

// ReadAt implements Store. Each piece is a query on a connection of its own; all run at the same time. No snapshot
// holds them together, which takes nothing away: the rows of an ID never change, they only go.
func (p *PG) ReadAt(ctx context.Context, f *File, dst []byte, off int64) error {
	if off < 0 || off > f.Size-int64(len(dst)) {
		return fmt.Errorf("read %s: bytes %d to %d are not all within its %d", f.URL(), off, off+int64(len(dst)), f.Size)
	}
	if len(dst) == 0 {
		return nil
	}
	begin := time.Now()
	err := p.readPieces(ctx, f, dst, off)
	countRead(begin, len(dst))
	if errors.Is(err, ErrReaped) {
		p.cache.evict(fileName{f.Volume, f.Path})
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.URL(), err)
	}
	return nil
}

// readPieces cuts a read up. The usual read is one piece and needs no goroutine.
func (p *PG) readPieces(ctx context.Context, f *File, dst []byte, off int64) error {
	r := piece{file: f, dst: dst, off: off, first: off / chunkBytes, last: (off + int64(len(dst)) - 1) / chunkBytes}
	if r.last-r.first < pieceRows {
		return p.readPiece(ctx, r)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.slots.conns)
	for first := r.first; first <= r.last; first += pieceRows {
		next := r
		next.first, next.last = first, min(first+pieceRows-1, r.last)
		group.Go(func() error { return p.readPiece(ctx, next) })
	}
	return group.Wait()
}

// piece is some rows of a read.
type piece struct {
	file        *File
	dst         []byte // of the whole read
	off         int64  // where dst begins in the file
	first, last int64  // row numbers
}

// readPiece runs a piece's query. It goes below pgx, to pgconn, since a read is to cost little more than a round trip.
func (p *PG) readPiece(ctx context.Context, r piece) error {
	counters.pieces.Add(1)
	var args [16]byte
	binary.BigEndian.PutUint64(args[:], uint64(r.file.ID))
	binary.BigEndian.PutUint32(args[8:], uint32(r.first))
	binary.BigEndian.PutUint32(args[12:], uint32(r.last))
	return p.onConn(ctx, func(conn *pgx.Conn) error {
		return interruptible(ctx, conn, func(ctx context.Context) error {
			statement, err := conn.Prepare(ctx, chunksName, chunksSQL) // once a connection
			if err != nil {
				return err
			}
			rows := conn.PgConn().ExecStatement(ctx, statement, [][]byte{args[:8], args[8:12], args[12:]}, allBinary, allBinary)
			found, err := r.fill(rows)
			if _, closeErr := rows.Close(); closeErr != nil {
				return closeErr
			}
			if wanted := r.last - r.first + 1; err == nil && found != wanted {
				err = fmt.Errorf("%d of the rows %d to %d of file %d are missing: %w", wanted-found, r.first, r.last, r.file.ID, ErrReaped)
			}
			return err
		})
	})
}

// fill puts the rows of an answer in their places and counts them.
func (r piece) fill(rows *pgconn.ResultReader) (found int64, err error) {
	for rows.NextRow() {
		row := rows.Values()
		if err := r.place(int64(binary.BigEndian.Uint32(row[0])), row[1]); err != nil {
			return found, err
		}
		found++
	}
	return found, nil
}

// place copies what a row has of the wanted bytes to where they belong: the only copy between socket and reader.
func (r piece) place(no int64, data []byte) error {
	if wanted := min(chunkBytes, r.file.Size-no*chunkBytes); int64(len(data)) != wanted {
		return fmt.Errorf("row %d of file %d has %d bytes instead of %d", no, r.file.ID, len(data), wanted)
	}
	at := no*chunkBytes - r.off
	if at < 0 {
		data, at = data[-at:], 0
	}
	copy(r.dst[at:], data)
	return nil
}
