package lakefs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// fileRowsSQL takes lengths, and numbers those without a number last. The sort gets no bytes.
const fileRowsSQL = `SELECT no::int8, coalesce(octet_length(data), -1)::int8, coalesce(pg_column_size(data), 0)::int8
	FROM pgvfs.chunks WHERE file_id = $1 ORDER BY no`

// examine says what is wrong with a file's rows. Adjacent rows with the same fault are one fault.
func (v *verifier) examine(ctx context.Context, o *owner) error {
	rows, err := v.query(ctx, fileRowsSQL, o.id)
	if err != nil {
		return fmt.Errorf("look at the rows of file %d: %w", o.id, err)
	}
	x := examination{owner: o, faults: v.found.Faults, fault: v.fault, limit: o.wanted()}
	if !o.published() {
		x.next, x.limit = o.lowest, o.highest+1
	}
	var no *int64
	var bytes, stored int64
	_, err = pgx.ForEachRow(rows, []any{&no, &bytes, &stored}, func() error {
		x.row(no, bytes, stored)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at the rows of file %d: %w", o.id, err)
	}
	x.end()
	if v.found.Faults == x.faults {
		v.fault(o.fault(FaultSize, wholeFile, "size is %d, but the rows have %d bytes", o.size, o.bytes))
	}
	return nil
}

// examination is a walk through a file's rows in the order of their numbers.
type examination struct {
	owner    *owner
	fault    func(Fault)
	faults   int64 // there were before
	next     int64 // the number that should come
	limit    int64 // the first number that should not
	unnumber int64 // rows without a number
	runs     [4]run
}

// run is adjacent rows that have the same fault: a row's length is a part of it.
type run struct {
	kind        FaultKind // empty: no run
	first, last int64
	bytes       int64
	stored      int64
}

// Places in examination.runs: a row can be wrong in several ways.
const (
	runSurplus = iota
	runDuplicate
	runLength
	runStorage
)

// row takes the next row.
func (x *examination) row(no *int64, bytes, stored int64) {
	if no == nil {
		x.unnumber++
		return
	}
	n := *no
	switch {
	case n < 0 || n >= x.limit:
		x.extend(runSurplus, run{FaultRowSurplus, n, n, 0, 0})
		return
	case n < x.next:
		x.extend(runDuplicate, run{FaultRowDuplicate, n, n, 0, 0})
	case n > x.next:
		x.missing(x.next, n-1)
	}
	x.next = n + 1
	if !x.owner.published() {
		return
	}
	if bytes < 1 || bytes > chunkBytes || (bytes < chunkBytes && n < x.limit-1) {
		x.extend(runLength, run{FaultRowLength, n, n, bytes, 0})
	}
	switch {
	case bytes >= 0 && stored < bytes:
		x.extend(runStorage, run{FaultPageShared, n, n, bytes, stored})
	case stored == bytes:
		x.extend(runStorage, run{FaultToast, n, n, bytes, stored})
	}
}

// missing reports rows that are not there.
func (x *examination) missing(first, last int64) {
	x.fault(x.owner.fault(FaultRowMissing, first, "%s", rowRange(first, last)))
}

// extend adds a row to the run of its kind, or ends that and begins another.
func (x *examination) extend(place int, r run) {
	now := &x.runs[place]
	joins := now.kind == r.kind && now.bytes == r.bytes && now.stored == r.stored
	if joins && (r.first == now.last+1 || r.first == now.last) {
		now.last = r.last
		return
	}
	x.flush(place)
	*now = r
}

// flush reports a run.
func (x *examination) flush(place int) {
	r := x.runs[place]
	x.runs[place] = run{}
	if r.kind == "" {
		return
	}
	x.fault(x.owner.fault(r.kind, r.first, "%s", x.describe(r)))
}

// describe puts a run into words.
func (x *examination) describe(r run) string {
	rows := rowRange(r.first, r.last)
	switch r.kind {
	case FaultRowSurplus:
		return fmt.Sprintf("%s, of a file that has %d", rows, x.limit)
	case FaultRowDuplicate:
		return rows + ", more than once"
	case FaultRowLength:
		if r.bytes < 0 {
			return rows + ", without data"
		}
		return fmt.Sprintf("%s, of %d bytes", rows, r.bytes)
	case FaultToast:
		return fmt.Sprintf("%s, whose %d bytes are in the TOAST relation", rows, r.bytes)
	}
	return fmt.Sprintf("%s, whose %d bytes are compressed to %d", rows, r.bytes, r.stored)
}

// end reports what the end of the rows shows.
func (x *examination) end() {
	for place := range x.runs {
		x.flush(place)
	}
	if x.next < x.limit {
		x.missing(x.next, x.limit-1)
	}
	if x.unnumber > 0 {
		x.fault(x.owner.fault(FaultRowSurplus, wholeFile, "%s without a number", counted(x.unnumber, "row")))
	}
}

// rowRange is one row, or several.
func rowRange(first, last int64) string {
	if first == last {
		return fmt.Sprintf("row %d", first)
	}
	return fmt.Sprintf("rows %d to %d", first, last)
}

// counted is a number of things in words.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
