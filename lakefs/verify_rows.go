package lakefs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
)

const (
	// One query checks a range of IDs, or of the rows of a large file: enough for the order of pages on disk, in which
	// rows are read, to be worth having, and little enough for the progress to be seen.
	windowRows  = 32 << 10 // 0.25 GB
	windowFiles = 4096

	garbageRows = 1024 // a removed file is taken to have so many: they are counted only when they are checked

	// fileRowsMax is how many a row's number allows, and the constraint on size.
	fileRowsMax = 1 << 31
)

const (
	// lastIDSQL: the view has no value both before the first ID and without the right to know.
	lastIDSQL = `SELECT coalesce(last_value, 0), has_sequence_privilege('pgvfs.file_ids', 'USAGE, SELECT')
		FROM pg_sequences WHERE schemaname = 'pgvfs' AND sequencename = 'file_ids'`

	// nullsSQL counts what no other query looks at, in a table.
	nullsSQL = `SELECT count(*) FROM pgvfs.%s WHERE file_id IS NULL`

	namesSQL = `SELECT volume, path, count(*) FROM pgvfs.files GROUP BY volume, path HAVING count(*) > 1 ORDER BY volume, path`

	// ownersSQL is all that may have rows, in the windows' order.
	ownersSQL = `SELECT file_id, coalesce(size, 0) FROM pgvfs.files WHERE file_id IS NOT NULL
		UNION ALL SELECT file_id, -1 FROM pgvfs.garbage WHERE file_id IS NOT NULL
		ORDER BY 1`

	// windowSQL has for each file of a window, published or removed or neither, what its rows are together. OFFSET 0
	// has lengths taken before rows are grouped: a sort would otherwise carry the bytes.
	windowSQL = `WITH owner AS (
		SELECT file_id, 'file' AS kind, volume, path, size, coalesce(isfinite(created_at), false) AS dated
		FROM pgvfs.files WHERE file_id BETWEEN $1 AND $2
		UNION ALL SELECT file_id, 'removed', NULL, NULL, NULL, coalesce(isfinite(queued_at), false)
		FROM pgvfs.garbage WHERE file_id BETWEEN $1 AND $2
	), held AS (
		SELECT file_id, count(*) AS rows, count(no) AS numbered, %[1]s AS different, min(no) AS lowest, max(no) AS highest, sum(no) AS total,
			sum(bytes) AS bytes, min(no) FILTER (WHERE bytes IS DISTINCT FROM 8120) AS odd, count(*) FILTER (WHERE stored <= bytes) AS moved
		FROM (
			SELECT file_id, no, octet_length(data) AS bytes, pg_column_size(data) AS stored
			FROM pgvfs.chunks WHERE %[2]s OFFSET 0
		) AS c GROUP BY file_id
	)
	SELECT coalesce(o.file_id, h.file_id), coalesce(o.kind, ''), coalesce(o.volume, ''), coalesce(o.path, ''), coalesce(o.size, -1), coalesce(o.dated, false),
		coalesce(h.rows, 0), coalesce(h.numbered, 0), coalesce(h.different, 0), coalesce(h.lowest, 0), coalesce(h.highest, -1), coalesce(h.total, 0),
		coalesce(h.bytes, 0), coalesce(h.odd, -1), coalesce(h.moved, 0)
	FROM owner AS o FULL JOIN held AS h ON h.file_id = o.file_id
	ORDER BY 1, 2, 3, 4`
)

// windowSQL completed: for a range of files; for one large file, a range of whose rows the index finds; and for files
// whose numbers no index makes unique.
var (
	keyedSQL   = fmt.Sprintf(windowSQL, "count(no)", "file_id BETWEEN $1 AND $2")
	largeSQL   = fmt.Sprintf(windowSQL, "count(no)", "file_id = $1 AND no BETWEEN $3 AND $4")
	unkeyedSQL = fmt.Sprintf(windowSQL, "count(DISTINCT no)", "file_id BETWEEN $1 AND $2")
)

// byIndexSQL: each window would else be a scan of all chunks, should the planner have wrong ideas of how many there are.
// Of a single one, too, that reads what was deleted and not reused yet.
const byIndexSQL = `SET LOCAL enable_seqscan = off`

// owner is what a file_id leads to, and what its rows are together.
type owner struct {
	identity
	sums
}

// identity is a row of files or garbage.
type identity struct {
	id     int64
	kind   string // file or removed; empty: it is in neither
	volume string
	path   string
	size   int64 // of a published file; negative: none, or nonsense
	dated  bool  // created_at, or queued_at, is a point in time
}

// compare is windowSQL's order.
func (i identity) compare(j identity) int {
	return cmp.Or(cmp.Compare(i.id, j.id), cmp.Compare(i.kind, j.kind), cmp.Compare(i.volume, j.volume), cmp.Compare(i.path, j.path))
}

// sums are what rows are together.
type sums struct {
	rows      int64 // how many
	numbered  int64 // those that have a number
	different int64 // numbers
	lowest    int64 // number
	highest   int64 // number
	total     int64 // of all numbers: tells rows that are there twice from those that are not, should the index be wrong
	bytes     int64
	odd       int64 // the first row that is not of 8120 bytes; negative: none
	moved     int64 // rows whose bytes are compressed or elsewhere
}

// plus adds rows with higher numbers.
func (s sums) plus(t sums) sums {
	switch {
	case s.rows == 0:
		return t
	case t.rows == 0:
		return s
	case s.odd < 0:
		s.odd = t.odd
	}
	return sums{
		s.rows + t.rows, s.numbered + t.numbered, s.different + t.different, s.lowest, t.highest, s.total + t.total,
		s.bytes + t.bytes, s.odd, s.moved + t.moved,
	}
}

// fields are where windowSQL's columns go.
func (o *owner) fields() []any {
	return []any{
		&o.id, &o.kind, &o.volume, &o.path, &o.size, &o.dated,
		&o.rows, &o.numbered, &o.different, &o.lowest, &o.highest, &o.total, &o.bytes, &o.odd, &o.moved,
	}
}

// published reports whether the owner is a file that can be opened.
func (o *owner) published() bool { return o.kind == "file" }

// wanted is how many rows a published file must have.
func (o *owner) wanted() int64 { return rowsOf(o.size) }

// rowsOf is how many rows so many bytes make.
func rowsOf(size int64) int64 { return max(0, size/chunkBytes+min(1, size%chunkBytes)) }

// sound reports whether the rows are what they must be. A published file's are those that its size asks for, all but
// the last of them full, which leaves no choice for the last. A removed file's may already be fewer, from the first on,
// but must be dense: reaping counts on that.
func (o *owner) sound() bool {
	dense := o.numbered == o.rows && o.different == o.rows &&
		o.highest-o.lowest == o.rows-1 && o.total == (o.lowest+o.highest)*o.rows/2
	if !o.published() {
		return o.rows == 0 || dense
	}
	last := o.wanted() - 1
	return dense && o.lowest == 0 && o.highest == last && o.bytes == o.size && (o.odd < 0 || o.odd == last) && o.moved == 0
}

// fault is one about the owner.
func (o *owner) fault(kind FaultKind, row int64, format string, args ...any) Fault {
	return Fault{Kind: kind, FileID: o.id, Volume: o.volume, Path: o.path, Row: row, Detail: fmt.Sprintf(format, args...)}
}

// readLastID asks the sequence how far it is. That is later than the snapshot, so all of its IDs must be below.
func (v *verifier) readLastID(ctx context.Context) error {
	rows, err := v.query(ctx, lastIDSQL)
	if err != nil {
		return fmt.Errorf("read sequence pgvfs.file_ids: %w", err)
	}
	var last int64
	var permitted bool
	_, err = pgx.ForEachRow(rows, []any{&last, &permitted}, func() error {
		if permitted {
			v.lastID = &last
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read sequence pgvfs.file_ids: %w", err)
	}
	if v.lastID == nil {
		v.found.Skipped = append(v.found.Skipped, "IDs against sequence pgvfs.file_ids, which this role may not read")
	}
	return nil
}

// checkNulls reports rows without an ID, where the table permits them.
func (v *verifier) checkNulls(ctx context.Context) error {
	for _, in := range []struct {
		table   string
		kind    FaultKind
		what    string
		checked *int64
	}{
		{"files", FaultFileShape, "published file", &v.found.Files},
		{"garbage", FaultGarbageShape, "removed file", new(int64)},
		{"chunks", FaultOrphanRows, "chunk row", &v.found.Rows},
	} {
		if v.facts[nullFact+in.table+".file_id"] == nullRefused {
			continue
		}
		var count int64
		if err := v.queryRow(ctx, fmt.Sprintf(nullsSQL, in.table), &count); err != nil {
			return fmt.Errorf("look for rows without an ID: %w", err)
		}
		if count > 0 {
			v.storeFault(in.kind, "%s without file_id", counted(count, in.what))
		}
		*in.checked += count
	}
	return nil
}

// checkNames reports paths that name more than one file. What has no name at all is found by its ID.
func (v *verifier) checkNames(ctx context.Context) error {
	rows, err := v.query(ctx, namesSQL)
	if err != nil {
		return fmt.Errorf("compare names: %w", err)
	}
	var volume, path *string
	var count int64
	_, err = pgx.ForEachRow(rows, []any{&volume, &path, &count}, func() error {
		if volume != nil && path != nil {
			v.fault(Fault{Kind: FaultNameShared, Volume: *volume, Path: *path, Row: wholeFile, Detail: "the name of " + counted(count, "file")})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare names: %w", err)
	}
	return nil
}

// window is a range of IDs.
type window struct {
	first, last int64
	rows        int64 // of the one large file, which is looked at in steps; 0: files that are not
}

// checkRows checks window after window.
func (v *verifier) checkRows(ctx context.Context) error {
	windows, err := v.windows(ctx)
	if err != nil {
		return fmt.Errorf("look through the files: %w", err)
	}
	if v.keyed {
		if _, err := v.conn.Exec(ctx, byIndexSQL); err != nil {
			return err
		}
	}
	for _, w := range windows {
		if err := v.checkWindow(ctx, w); err != nil {
			return fmt.Errorf("check files %d to %d: %w", w.first, w.last, err)
		}
	}
	return nil
}

// windows cuts all IDs into ranges; a large file is one alone. Without an index on chunks each range would be a scan of
// all of them, so then there is but one.
func (v *verifier) windows(ctx context.Context) ([]window, error) {
	rows, err := v.query(ctx, ownersSQL)
	if err != nil {
		return nil, err
	}
	c := cutter{next: window{first: math.MinInt64}}
	var id, size int64
	_, err = pgx.ForEachRow(rows, []any{&id, &size}, func() error {
		v.total += max(size, 0)
		switch {
		case !v.keyed:
		case size < 0:
			c.add(id, garbageRows)
		default:
			c.add(id, min(rowsOf(size), fileRowsMax))
		}
		return nil
	})
	c.cut(math.MaxInt64)
	return c.windows, err
}

// cutter makes windows of files in the order of their IDs.
type cutter struct {
	windows []window
	next    window
	files   int   // in next
	rows    int64 // of those
	done    bool
}

// add takes the next file. It may have the ID of the last.
func (c *cutter) add(id, rows int64) {
	if c.done || id < c.next.first {
		return
	}
	large := rows > windowRows
	if id > c.next.first && (large || c.files >= windowFiles || c.rows+rows > windowRows) {
		c.cut(id - 1)
	}
	c.files++
	c.rows += rows
	if large {
		c.next.rows = rows
		c.cut(id)
	}
}

// cut ends a window with an ID.
func (c *cutter) cut(last int64) {
	if c.done {
		return
	}
	c.next.last = last
	c.windows = append(c.windows, c.next)
	c.done = last == math.MaxInt64
	c.next, c.files, c.rows = window{first: last + 1}, 0, 0
}

// checkWindow checks what has an ID in a range. Files whose rows are not sound as a whole are looked at row by row
// afterwards: there should be none.
func (v *verifier) checkWindow(ctx context.Context, w window) error {
	var unsound []owner
	before := owner{}
	err := v.readOwners(ctx, w, func(o owner) {
		if v.checkOwner(&o, &before) {
			unsound = append(unsound, o)
		}
		before = o
	})
	if err != nil {
		return err
	}
	for i := range unsound {
		if err := v.examine(ctx, &unsound[i]); err != nil {
			return err
		}
	}
	v.progress(v.done, v.total)
	return nil
}

// readOwners reads a window at once or, if it is a large file, in steps whose sums are added up.
func (v *verifier) readOwners(ctx context.Context, w window, take func(owner)) error {
	switch {
	case !v.keyed:
		return v.readRows(ctx, take, unkeyedSQL, w.first, w.last)
	case w.rows == 0:
		return v.readRows(ctx, take, keyedSQL, w.first, w.last)
	}
	found := map[identity]sums{}
	add := func(o owner) { found[o.identity] = found[o.identity].plus(o.sums) }
	for no := int64(0); no < w.rows; no += windowRows {
		first, last := no, no+windowRows-1
		if no == 0 {
			first = math.MinInt32
		}
		if last >= w.rows-1 {
			last = math.MaxInt32
		}
		if err := v.readRows(ctx, add, largeSQL, w.first, w.last, first, last); err != nil {
			return err
		}
		v.progress(min(v.done+(no+windowRows)*chunkBytes, v.total), v.total)
	}
	for _, id := range slices.SortedFunc(maps.Keys(found), identity.compare) {
		take(owner{id, found[id]})
	}
	return nil
}

// readRows reads what rows are together, file by file.
func (v *verifier) readRows(ctx context.Context, take func(owner), sql string, args ...any) error {
	rows, err := v.query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var o owner
	_, err = pgx.ForEachRow(rows, o.fields(), func() error {
		take(o)
		return nil
	})
	return err
}

// checkOwner checks an owner, beside the one before it in the order of IDs, and reports whether its rows have to be
// looked at.
func (v *verifier) checkOwner(o, before *owner) (examine bool) {
	again := before.kind != "" && before.id == o.id
	if !again {
		v.found.Rows += o.rows
		v.found.Bytes += o.bytes
	}
	if o.kind == "" {
		v.fault(o.fault(FaultOrphanRows, wholeFile, "%s with %d bytes, of no file", counted(o.rows, "row"), o.bytes))
		return false
	}
	if o.published() {
		v.found.Files++
		v.done += max(o.size, 0)
	}
	if again {
		v.checkTwice(o, before)
	} else if v.lastID != nil && (o.id < 1 || o.id > *v.lastID) {
		v.fault(o.fault(FaultIDUnissued, wholeFile, "the last ID that the sequence has given out is %d", *v.lastID))
	}
	shaped := v.checkShape(o)
	switch {
	case !shaped || (again && !o.published()) || o.sound():
		return false
	case o.rows == 0:
		v.fault(o.fault(FaultRowMissing, 0, "%s", rowRange(0, o.wanted()-1)))
		return false
	}
	return true
}

// checkTwice reports an ID's second owner.
func (v *verifier) checkTwice(o, before *owner) {
	switch {
	case o.published():
		v.fault(o.fault(FaultIDShared, wholeFile, "%q has the same ID", fileURL(before.volume, before.path)))
	case before.published():
		v.fault(before.fault(FaultGarbagePublished, wholeFile, "its rows are to be reaped although it is published"))
	default:
		v.fault(o.fault(FaultIDShared, wholeFile, "queued more than once"))
	}
}

// checkShape reports what an owner's own row has wrong, and whether its size can be compared with its rows.
func (v *verifier) checkShape(o *owner) bool {
	if !o.published() {
		if !o.dated {
			v.fault(o.fault(FaultGarbageShape, wholeFile, "queued_at is no point in time"))
		}
		return true
	}
	for _, err := range []error{checkVolume(o.volume), CheckPath(o.path)} {
		if err != nil {
			v.fault(o.fault(FaultFileShape, wholeFile, "%v", err))
		}
	}
	if !o.dated {
		v.fault(o.fault(FaultFileShape, wholeFile, "created_at is no point in time"))
	}
	if o.size < 0 || o.wanted() > fileRowsMax {
		v.fault(o.fault(FaultFileShape, wholeFile, "size %d is not 0 to %d", o.size, int64(fileRowsMax)*chunkBytes))
		return false
	}
	return true
}
