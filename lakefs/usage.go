package lakefs

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
)

// listPage is how many files are fetched by one query: what a listing holds at a time, whatever its length.
const listPage = 1000

const (
	// volumesSQL steps from volume to volume in the primary key, past all files in between.
	volumesSQL = `WITH RECURSIVE found (volume) AS (
		(SELECT volume FROM pgvfs.files ORDER BY volume LIMIT 1)
		UNION ALL SELECT (SELECT f.volume FROM pgvfs.files AS f WHERE f.volume > found.volume ORDER BY f.volume LIMIT 1)
		FROM found WHERE found.volume IS NOT NULL
	) SELECT volume FROM found WHERE volume IS NOT NULL`

	filesSQL = `SELECT path, file_id, size, created_at FROM pgvfs.files
		WHERE volume = $1 AND path >= $2 AND ($3::text IS NULL OR path < $3) ORDER BY path LIMIT $4`

	// usageSQL counts rows by what the sizes ask for.
	usageSQL = `SELECT volume, count(*), sum(size)::int8, sum((size + 8119) / 8120)::int8 FROM pgvfs.files
		WHERE ($1 = '' OR volume = $1) AND path >= $2 AND ($3::text IS NULL OR path < $3) GROUP BY volume ORDER BY volume`

	// garbageSQL takes a removed file's first and last row from the primary key: what is left of it is dense.
	garbageSQL = `SELECT count(*), coalesce(sum(rows), 0)::int8,
			count(*) FILTER (WHERE due), coalesce(sum(rows) FILTER (WHERE due), 0)::int8, min(queued_at) FILTER (WHERE isfinite(queued_at))
		FROM (SELECT queued_at, queued_at < now() - make_interval(secs => $1) AS due,
			coalesce((SELECT max(no) FROM pgvfs.chunks AS c WHERE c.file_id = g.file_id)
				- (SELECT min(no) FROM pgvfs.chunks AS c WHERE c.file_id = g.file_id) + 1, 0) AS rows
			FROM pgvfs.garbage AS g) AS queued`
)

// Usage is what published files take.
type Usage struct {
	Volume string
	Files  int64
	Bytes  int64
	Rows   int64 // of chunks; a full one is a page of 8 KB on disk
}

// Garbage is what removed files still take.
type Garbage struct {
	Files, Rows       int64
	DueFiles, DueRows int64     // of them, what has been there for longer than this store's grace
	Since             time.Time // when the oldest was removed; zero: there are none
}

// Volumes lists the volumes that have files, in byte order. Repeatable.
func (p *PG) Volumes(ctx context.Context) (volumes []string, err error) {
	err = p.act("list", "volumes", func() error {
		return p.look(ctx, volumesSQL, nil, func(rows pgx.Rows) error {
			volumes, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
	})
	return volumes, err
}

// ListFiles goes through the files whose path begins with prefix, in byte order. It holds a page of them at a time, and
// a connection only while it fetches one; so what is published or removed meanwhile may be among them or not. After an
// error, which comes with a nil file, it ends. Repeatable.
func (p *PG) ListFiles(ctx context.Context, volume, prefix string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		for from := prefix; ; {
			page, err := p.listPage(ctx, volume, prefix, from)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, f := range page {
				if !yield(f, nil) {
					return
				}
			}
			if len(page) < listPage {
				return
			}
			from = page[len(page)-1].Path + "\x01" // the least text that comes after it
		}
	}
}

// listPage fetches the first files under a prefix from a path on.
func (p *PG) listPage(ctx context.Context, volume, prefix, from string) (page []*File, err error) {
	err = p.act("list", fileURL(volume, prefix), func() error {
		if err := checkVolume(volume); err != nil {
			return err
		}
		if !storable(prefix) {
			return nil
		}
		args := []any{volume, from, prefixEndArg(prefix), listPage}
		return p.look(ctx, filesSQL, args, func(rows pgx.Rows) error {
			page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*File, error) {
				f := &File{Volume: volume}
				return f, row.Scan(&f.Path, &f.ID, &f.Size, &f.CreatedAt)
			})
			return err
		})
	})
	return page, err
}

// Usage sums up the files whose path begins with prefix, of one volume or, if that is empty, of each. What has no files
// is left out. Repeatable.
func (p *PG) Usage(ctx context.Context, volume, prefix string) (usage []Usage, err error) {
	err = p.act("sum up", fileURL(volume, prefix), func() error {
		if volume != "" {
			if err := checkVolume(volume); err != nil {
				return err
			}
		}
		if !storable(prefix) {
			return nil
		}
		return p.look(ctx, usageSQL, []any{volume, prefix, prefixEndArg(prefix)}, func(rows pgx.Rows) error {
			usage, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Usage])
			return err
		})
	})
	return usage, err
}

// Garbage sums up what waits to be reaped. Repeatable.
func (p *PG) Garbage(ctx context.Context) (g Garbage, err error) {
	err = p.act("sum up", "what waits to be reaped", func() error {
		return p.look(ctx, garbageSQL, []any{p.grace.Seconds()}, func(rows pgx.Rows) error {
			var since *time.Time
			_, err := pgx.ForEachRow(rows, []any{&g.Files, &g.Rows, &g.DueFiles, &g.DueRows, &since}, func() error {
				if since != nil {
					g.Since = *since
				}
				return nil
			})
			return err
		})
	})
	return g, err
}

// look runs a query that finds its rows by index. Without the schema there are none.
func (p *PG) look(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	err := p.onConn(ctx, func(conn *pgx.Conn) error { return withIndexScans(ctx, conn, sql, args, read) })
	if undefined(err) {
		return nil
	}
	return err
}

// Rows is how many rows of chunks the file has.
func (f *File) Rows() int64 { return rowsOf(f.Size) }
