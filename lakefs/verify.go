package lakefs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// FaultKind says what is wrong, in a word that stays the same from release to release.
type FaultKind string

// What can be wrong with a store. The first group concerns the database as a whole, the second the names, the third
// the bytes.
const (
	FaultLayout FaultKind = "layout" // a table, column, constraint or function is not layout v2's
	FaultToast  FaultKind = "toast"  // bytes were moved out of their rows, into the TOAST relation

	FaultFileShape        FaultKind = "file-shape"        // a files row holds what no program can open or would write
	FaultNameShared       FaultKind = "name-shared"       // one path names several files
	FaultIDShared         FaultKind = "id-shared"         // several files have one ID, or one is queued twice
	FaultIDUnissued       FaultKind = "id-unissued"       // an ID that the sequence has still to give out, to another file
	FaultGarbageShape     FaultKind = "garbage-shape"     // a queued file that will never be old enough to be reaped
	FaultGarbagePublished FaultKind = "garbage-published" // a published file waits to be reaped: it is about to be lost

	FaultRowMissing   FaultKind = "row-missing"   // rows that the file's size counts, or that lie between others, are not there
	FaultRowSurplus   FaultKind = "row-surplus"   // rows behind the file's size, or without a proper number
	FaultRowDuplicate FaultKind = "row-duplicate" // a row number occurs more than once
	FaultRowLength    FaultKind = "row-length"    // a row other than the last is not of 8120 bytes, or one is too long or empty
	FaultSize         FaultKind = "size"          // the rows are all well, but are not as many bytes as the file's size
	FaultPageShared   FaultKind = "page-shared"   // rows are compressed, so that several are in one page
	FaultOrphanRows   FaultKind = "orphan-rows"   // rows of no file, which nothing will ever delete
)

// wholeFile is a fault's row when it is about no row in particular.
const wholeFile = -1

// Fault is one thing that is wrong.
type Fault struct {
	Kind   FaultKind
	FileID int64  // 0: the store as a whole
	Volume string // empty, like Path, unless a published file is concerned
	Path   string
	Row    int64  // the first of the rows concerned; -1: the file as a whole
	Detail string // for people
}

// String is for logs and tests.
func (f Fault) String() string {
	where := ""
	if f.Volume != "" {
		where = fmt.Sprintf(" %q", fileURL(f.Volume, f.Path))
	}
	return fmt.Sprintf("%s: file %d%s row %d: %s", f.Kind, f.FileID, where, f.Row, f.Detail)
}

// Verified says how much has been checked.
type Verified struct {
	Files  int64 // published
	Rows   int64 // of chunks, those of removed files and orphans included
	Bytes  int64 // in those rows
	Faults int64

	// Skipped says, for people, what could not be checked for want of a right; nil: nothing.
	Skipped []string
}

// Verify checks everything that must hold in a store, in one snapshot, and reports each fault once, from the calling
// goroutine. It needs SELECT on the tables only, takes no locks that writers or readers would notice, works on a
// standby, and reads every page of the chunks once, in the order in which they lie on disk; PostgreSQL checks the
// pages' checksums meanwhile if the cluster has them. Memory does not grow with the store. A database without the
// schema is an empty store. The error says why the store could not be checked, or not to the end.
func (p *PG) Verify(ctx context.Context, report func(Fault)) (Verified, error) {
	return p.VerifyProgress(ctx, report, func(int64, int64) {})
}

// VerifyProgress is Verify that tells how far it is: bytes of published files checked, of how many.
func (p *PG) VerifyProgress(ctx context.Context, report func(Fault), progress func(bytes, total int64)) (Verified, error) {
	v := &verifier{report: report, progress: progress}
	err := p.act("verify", "the store", func() error {
		conn, err := p.snapshot(ctx)
		if err != nil {
			return err
		}
		defer release(conn)
		v.conn = conn.Conn()
		err = v.run(ctx)
		if judge(ctx, conn, err) == cancelled {
			err = fmt.Errorf("%w (%w)", ErrRecovery, err) // no repeat: faults have been reported
		}
		return err
	})
	return v.found, err
}

// snapshotSettings are those of one long look at everything. It is not the session that a role's time limits are for,
// and what reads the report may pause for long. A page of a verification is needed once, so there is nothing to
// compile for.
const snapshotSettings = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL jit = off`

// snapshot opens a transaction that sees one state of the database and changes nothing. The caller releases it.
func (p *PG) snapshot(ctx context.Context) (*pgxpool.Conn, error) {
	for retried := false; ; retried = true {
		conn, err := p.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		_, err = conn.Exec(ctx, snapshotSettings)
		if err == nil {
			return conn, nil
		}
		what := judge(ctx, conn, err)
		release(conn)
		if what != lost || retried {
			return nil, err
		}
		p.pool.Reset()
	}
}

// verifier is one verification.
type verifier struct {
	conn     *pgx.Conn
	report   func(Fault)
	progress func(bytes, total int64)
	found    Verified

	facts  map[string]string // of the schema
	keyed  bool              // rows of chunks are unique by (file_id, no), and can be found by it
	lastID *int64            // the last that the sequence has given out; nil: not known
	total  int64             // bytes of published files, by their sizes
	done   int64             // of those, checked
}

// run checks the layout first: what is not layout v2 cannot be read as such.
func (v *verifier) run(ctx context.Context) error {
	readable, err := v.checkLayout(ctx)
	if err != nil || !readable {
		return err
	}
	for _, check := range []func(context.Context) error{v.readLastID, v.checkNulls, v.checkNames, v.checkRows} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// query runs a query that nobody has prepared: what the schema was before is of no interest.
func (v *verifier) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return v.conn.Query(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
}

// queryRow runs one that has a single row.
func (v *verifier) queryRow(ctx context.Context, sql string, fields ...any) error {
	return v.conn.QueryRow(ctx, sql, pgx.QueryExecModeDescribeExec).Scan(fields...)
}

// fault reports and counts.
func (v *verifier) fault(f Fault) {
	v.found.Faults++
	v.report(f)
}

// storeFault reports what concerns no file.
func (v *verifier) storeFault(kind FaultKind, format string, args ...any) {
	v.fault(Fault{Kind: kind, Row: wholeFile, Detail: fmt.Sprintf(format, args...)})
}
