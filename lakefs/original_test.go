package lakefs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

// original writes as the program does that the layout comes from: with its statements, and its defaults for the times.
// It knows no store.
type original struct{ x *fixture }

// The original's statements.
const (
	originalUnpublishSQL = `WITH gone AS (DELETE FROM pgvfs.files WHERE volume = $1 AND path = $2 RETURNING file_id)
		INSERT INTO pgvfs.garbage (file_id) SELECT file_id FROM gone`
	originalPublishSQL = `INSERT INTO pgvfs.files (volume, path, file_id, size) VALUES ($1, $2, $3, $4)`
	originalRenameSQL  = `UPDATE pgvfs.files SET path = $3 WHERE volume = $1 AND path = $2`
)

// gateKey is the advisory lock that whoever is about to commit waits for while a test holds it.
const gateKey = 4711

// gateSQL makes a store wait at the gate too: its statements are done by then, and the transaction still open. The
// trigger is deferred to the commit.
const gateSQL = `
CREATE FUNCTION pgvfs.gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF current_setting('application_name') = 'sluice pgvfs' THEN PERFORM pg_advisory_xact_lock_shared(4711); END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER gate AFTER INSERT OR UPDATE OR DELETE ON pgvfs.files
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pgvfs.gate()`

// changer is a writer of either kind. Its calls fail with ErrConflict and ErrNotExist.
type changer interface {
	put(ctx context.Context, path string, data []byte) error
	remove(ctx context.Context, path string) error
	rename(ctx context.Context, from, to string) error
}

// put writes a file.
func (o original) put(ctx context.Context, path string, data []byte) error {
	return o.inTx(ctx, func(tx pgx.Tx) error {
		id, err := o.upload(ctx, tx, data)
		if err != nil {
			return err
		}
		return o.publish(ctx, tx, path, id, len(data))
	})
}

// upload stores a file's rows.
func (o original) upload(ctx context.Context, tx pgx.Tx, data []byte) (id int64, err error) {
	if err := tx.QueryRow(ctx, `SELECT nextval('pgvfs.file_ids')`).Scan(&id); err != nil {
		return 0, err
	}
	var rows [][]any
	for no := 0; no*chunkBytes < len(data); no++ {
		rows = append(rows, []any{id, int32(no), data[no*chunkBytes : min((no+1)*chunkBytes, len(data))]})
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"pgvfs", "chunks"}, []string{"file_id", "no", "data"}, pgx.CopyFromRows(rows))
	return id, err
}

// publish makes a file visible instead of what was at its path.
func (o original) publish(ctx context.Context, tx pgx.Tx, path string, id int64, size int) error {
	if _, err := tx.Exec(ctx, originalUnpublishSQL, "lake", path); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, originalPublishSQL, "lake", path, id, size)
	return err
}

// remove removes a file.
func (o original) remove(ctx context.Context, path string) error {
	return o.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, originalUnpublishSQL, "lake", path)
		if err == nil && tag.RowsAffected() == 0 {
			return lakefs.ErrNotExist
		}
		return err
	})
}

// rename moves a file.
func (o original) rename(ctx context.Context, from, to string) error {
	return o.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, originalUnpublishSQL, "lake", to); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, originalRenameSQL, "lake", from, to)
		if err == nil && tag.RowsAffected() == 0 {
			return lakefs.ErrNotExist
		}
		return err
	})
}

// inTx runs fn in a transaction, waits at the gate and commits.
func (o original) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, o.x.admin, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared($1)`, gateKey)
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == pgerrcode.UniqueViolation && pgErr.ConstraintName == "files_pkey" {
		return fmt.Errorf("%w: %w", lakefs.ErrConflict, err)
	}
	return err
}

// storeChanger is a store as a changer.
type storeChanger struct{ *lakefs.PG }

func (s storeChanger) put(ctx context.Context, path string, data []byte) error {
	_, err := lakefstest.TryPut(ctx, s, "lake", path, data)
	return err
}

func (s storeChanger) remove(ctx context.Context, path string) error {
	return s.Remove(ctx, "lake", path)
}

func (s storeChanger) rename(ctx context.Context, from, to string) error {
	return s.Rename(ctx, "lake", from, to)
}

// operation is one call of a changer, on the path "f".
type operation func(ctx context.Context, c changer, data []byte) error

var (
	putting  operation = func(ctx context.Context, c changer, data []byte) error { return c.put(ctx, "f", data) }
	removing operation = func(ctx context.Context, c changer, _ []byte) error { return c.remove(ctx, "f") }
	renaming operation = func(ctx context.Context, c changer, _ []byte) error { return c.rename(ctx, "other", "f") }
)

// What the path "f" holds before and after; the first and the second are who puts it.
var (
	oldBytes    = lakefstest.Content(1, 2*chunkBytes+1)
	firstBytes  = lakefstest.Content(2, 3*chunkBytes)
	secondBytes = lakefstest.Content(3, chunkBytes+5)
	otherBytes  = lakefstest.Content(4, 7)
)

// met is how a meeting ends for the second operation, and what it leaves.
type met struct {
	err     error
	after   []byte // nil: "f" is not there
	garbage int    // files queued
}

// meetings are what happens when the second operation begins while the first has done everything but commit. The rules
// are the layout's concurrency matrix.
var meetings = []struct {
	name          string
	exists        bool // "f", before
	first, second operation
	rollback      bool // the first is cancelled instead of let through
	met           met
}{
	{"PutPutNew", false, putting, putting, false, met{lakefs.ErrConflict, firstBytes, 0}},
	{"PutPut", true, putting, putting, false, met{lakefs.ErrConflict, firstBytes, 1}},
	{"PutPutNewRolledBack", false, putting, putting, true, met{nil, secondBytes, 0}},
	{"PutPutRolledBack", true, putting, putting, true, met{nil, secondBytes, 1}},
	{"PutRemove", true, putting, removing, false, met{lakefs.ErrNotExist, firstBytes, 1}},
	{"PutRemoveRolledBack", true, putting, removing, true, met{nil, nil, 1}},
	{"RemovePut", true, removing, putting, false, met{nil, secondBytes, 1}},
	{"RemovePutRolledBack", true, removing, putting, true, met{nil, secondBytes, 1}},
	{"RemoveRemove", true, removing, removing, false, met{lakefs.ErrNotExist, nil, 1}},
	{"RemoveRemoveRolledBack", true, removing, removing, true, met{nil, nil, 1}},
	{"PutRenameNew", false, putting, renaming, false, met{lakefs.ErrConflict, firstBytes, 0}},
	{"PutRename", true, putting, renaming, false, met{lakefs.ErrConflict, firstBytes, 1}},
	{"PutRenameRolledBack", true, putting, renaming, true, met{nil, otherBytes, 1}},
	{"RenamePut", true, renaming, putting, false, met{lakefs.ErrConflict, otherBytes, 1}},
	{"RenamePutNew", false, renaming, putting, false, met{lakefs.ErrConflict, otherBytes, 0}},
	{"RenameRename", true, renaming, renaming, false, met{lakefs.ErrNotExist, otherBytes, 1}},
	{"RenameRemove", true, renaming, removing, false, met{lakefs.ErrNotExist, otherBytes, 1}},
}

// storeMeetings are those that end otherwise when the second is a store. Its renames lock first what they are about to
// change, so one that had to wait for a file to be published sees that file, and replaces it like any later rename.
var storeMeetings = map[string]met{"PutRename": {nil, otherBytes, 2}}

// meet: every meeting of a store with the original, whoever comes first, and of each with its like.
func meet(t *testing.T, x *fixture) {
	p, q, reader := x.open(t, lakefs.Config{}), x.open(t, lakefs.Config{}), x.open(t, lakefs.Config{})
	ours, theirs, oursToo := storeChanger{p}, original{x}, storeChanger{q}
	pairs := map[string][2]changer{"OursTheirs": {ours, theirs}, "TheirsOurs": {theirs, ours}}
	if *long {
		pairs["OursOurs"], pairs["TheirsTheirs"] = [2]changer{ours, oursToo}, [2]changer{theirs, theirs}
	}
	lakefstest.Put(t, p, "lake", "f", nil)
	x.exec(t, gateSQL)
	for _, m := range meetings {
		for who, pair := range pairs {
			t.Run(m.name+who, func(t *testing.T) {
				x.exec(t, `TRUNCATE pgvfs.files, pgvfs.chunks, pgvfs.garbage`)
				if err := theirs.put(t.Context(), "other", otherBytes); err != nil {
					t.Fatal(err)
				}
				if m.exists {
					if err := theirs.put(t.Context(), "f", oldBytes); err != nil {
						t.Fatal(err)
					}
				}
				firstErr, secondErr := x.overlap(t, func(ctx context.Context) error { return m.first(ctx, pair[0], firstBytes) },
					func(ctx context.Context) error { return m.second(ctx, pair[1], secondBytes) }, m.rollback)
				want := m.met
				if other, found := storeMeetings[m.name]; found && pair[1] != changer(theirs) {
					want = other
				}
				if (firstErr != nil) != m.rollback || !errors.Is(secondErr, want.err) {
					t.Errorf("first: %v; second: %v", firstErr, secondErr)
				}
				reader.Forget()
				x.wantMet(t, reader, want)
			})
		}
	}
}

// overlap begins the second call when the first is about to commit, lets it run into the first, and ends the first.
func (x *fixture) overlap(t *testing.T, first, second func(context.Context) error, rollback bool) (firstErr, secondErr error) {
	t.Helper()
	gate := x.closeGate(t)
	firstDone, secondDone := x.begin(t, first), make(chan error, 1)
	x.await(t, 1, waitingSQL, "advisory")
	go func() { secondDone <- second(t.Context()) }()
	x.await(t, 1, waitingSQL, "transactionid")
	if rollback {
		x.exec(t, `SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`)
		firstErr = <-firstDone
	}
	gate()
	if !rollback {
		firstErr = <-firstDone
	}
	return firstErr, <-secondDone
}

// begin runs a call on the side.
func (x *fixture) begin(t *testing.T, call func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call(t.Context()) }()
	return done
}

// waitingSQL counts the sessions that wait for a kind of lock.
const waitingSQL = `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = $1`

// closeGate holds everybody up who is about to commit, until open.
func (x *fixture) closeGate(t *testing.T) (open func()) {
	t.Helper()
	conn, err := x.admin.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		if _, err := conn.Exec(context.WithoutCancel(t.Context()), sql, gateKey); err != nil {
			t.Error(err)
		}
	}
	run(`SELECT pg_advisory_lock($1)`)
	opened := false
	open = func() {
		if !opened {
			opened = true
			run(`SELECT pg_advisory_unlock($1)`)
			conn.Release()
		}
	}
	t.Cleanup(open)
	return open
}

// wantMet checks what a meeting has left at "f", as another store sees it, and how many files it has queued. "other" must
// be there unless it is what "f" has become.
func (x *fixture) wantMet(t *testing.T, reader lakefs.Store, want met) {
	t.Helper()
	wantMaybe(t, reader, "f", want.after)
	if bytes.Equal(want.after, otherBytes) {
		wantMaybe(t, reader, "other", nil)
	} else {
		wantMaybe(t, reader, "other", otherBytes)
	}
	x.want(t, want.garbage, `SELECT count(*) FROM pgvfs.garbage`)
	x.wantSound(t)
}

// wantMaybe fails the test unless a file has these bytes; nil: unless there is none.
func wantMaybe(t *testing.T, s lakefs.Store, path string, data []byte) {
	t.Helper()
	if data == nil {
		lakefstest.WantNone(t, s, "lake", path)
	} else {
		lakefstest.WantFile(t, s, "lake", path, data)
	}
}

// uploads: COPY never waits for COPY, and who publishes after the other has is the one that stays, without an error.
func uploads(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	theirs := original{x}
	for path, oursFirst := range map[string]bool{"ours first": true, "theirs first": false} {
		w := begin(t, p, path)
		x.await(t, 1, `SELECT count(*) FROM pg_stat_progress_copy`)
		tx, err := x.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.WithoutCancel(t.Context()))
		id, err := theirs.upload(t.Context(), tx, secondBytes)
		if err != nil {
			t.Fatal(err)
		}
		publishTheirs := func() {
			if err := errors.Join(theirs.publish(t.Context(), tx, path, id, len(secondBytes)), tx.Commit(t.Context())); err != nil {
				t.Error(err)
			}
		}
		if !oursFirst {
			publishTheirs()
		}
		if _, err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := lakefstest.Content(1, 2*batchBytes)
		if oursFirst {
			publishTheirs()
			want = secondBytes
		}
		lakefstest.WantFile(t, x.open(t, lakefs.Config{}), "lake", path, want)
	}
	x.want(t, 2, `SELECT count(*) FROM pgvfs.garbage`)
}

// queueTimes: what a long upload replaces is queued when it is replaced. The original's is queued when its upload began,
// which is what its default says.
func queueTimes(t *testing.T, x *fixture) {
	p := x.open(t, lakefs.Config{})
	old := lakefstest.Put(t, p, "lake", "f", oldBytes)
	w := begin(t, p, "f")
	x.await(t, 1, `SELECT count(*) FROM pg_stat_progress_copy`)
	var uploaded time.Time
	if err := x.admin.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&uploaded); err != nil {
		t.Fatal(err)
	}
	f, err := w.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x.want(t, true, `SELECT queued_at > $2 FROM pgvfs.garbage WHERE file_id = $1`, old.ID, uploaded)
	x.want(t, true, `SELECT created_at < $2 FROM pgvfs.files WHERE file_id = $1`, f.ID, uploaded)
	if err := (original{x}).put(t.Context(), "f", secondBytes); err != nil {
		t.Fatal(err)
	}
	x.want(t, true, `SELECT g.queued_at = f.created_at FROM pgvfs.garbage g, pgvfs.files f WHERE g.file_id = $1`, f.ID)
	if err := p.Remove(t.Context(), "lake", "f"); err != nil {
		t.Fatal(err)
	}
	x.want(t, 3, `SELECT count(DISTINCT queued_at) FROM pgvfs.garbage`)
}

// oldReapSQL is the function as it was before it had a comment and a lock: the rows to go are looked for one by one.
const oldReapSQL = `CREATE OR REPLACE FUNCTION pgvfs.reap(p_grace interval DEFAULT '10 minutes', p_max_rows int DEFAULT 65536)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE old record; gone int; total int := 0;
BEGIN
	FOR old IN SELECT file_id FROM pgvfs.garbage WHERE queued_at < now() - p_grace ORDER BY queued_at LOOP
		DELETE FROM pgvfs.chunks WHERE file_id = old.file_id AND no IN
			(SELECT no FROM pgvfs.chunks WHERE file_id = old.file_id ORDER BY no LIMIT p_max_rows - total);
		GET DIAGNOSTICS gone = ROW_COUNT;
		total := total + gone;
		EXIT WHEN total >= p_max_rows;
		DELETE FROM pgvfs.garbage WHERE file_id = old.file_id;
	END LOOP;
	RETURN total;
END $$;
COMMENT ON FUNCTION pgvfs.reap(interval, int) IS NULL`

// writerGrants are what a writer needs that owns nothing.
func writerGrants(role string) []string {
	return []string{
		`GRANT USAGE ON SCHEMA pgvfs TO ` + role,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pgvfs TO ` + role,
		`GRANT USAGE ON ALL SEQUENCES IN SCHEMA pgvfs TO ` + role,
	}
}

// oldFunctions: a writer replaces an old reap if it may; one that may not works with it.
func oldFunctions(t *testing.T, x *fixture) {
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", nil)
	owner, super := x.admin.Config().ConnConfig.User, x.server.SuperDSN("lake")
	for name, c := range map[string]struct {
		dsn      string
		replaced bool
	}{
		"owner":     {x.dsn, true},
		"superuser": {super, true},
		"writer":    {x.role(t, "writer", writerGrants("writer")...), false},
		"member":    {x.role(t, "member", `GRANT `+owner+` TO member`), true},
		"outsider":  {x.role(t, "outsider", append(writerGrants("outsider"), `ALTER ROLE outsider NOINHERIT`, `GRANT `+owner+` TO outsider`)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			x.exec(t, oldReapSQL)
			p := x.open(t, lakefs.Config{DSN: c.dsn, ReapGrace: -1})
			lakefstest.Put(t, p, "lake", "f", oldBytes)
			if err := p.Remove(t.Context(), "lake", "f"); err != nil {
				t.Error(err)
			}
			x.want(t, c.replaced, `SELECT obj_description(oid, 'pg_proc') IS NOT NULL AND prosrc LIKE '%pg_try_advisory_xact_lock%'
				FROM pg_proc WHERE pronamespace = 'pgvfs'::regnamespace`)
			x.want(t, owner, `SELECT proowner::regrole FROM pg_proc WHERE pronamespace = 'pgvfs'::regnamespace`)
			if _, err := p.Reap(t.Context(), nil); err != nil {
				t.Error(err)
			}
			x.await(t, 0, `SELECT count(*) FROM pgvfs.garbage`)
		})
	}
}

// writerRole: a role that owns nothing writes, replaces, renames, removes and reaps.
func writerRole(t *testing.T, x *fixture) {
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", oldBytes)
	p := x.open(t, lakefs.Config{DSN: x.role(t, "writer", writerGrants("writer")...)})
	lakefstest.Put(t, p, "lake", "f", firstBytes)
	if err := p.Rename(t.Context(), "lake", "f", "g"); err != nil {
		t.Error(err)
	}
	lakefstest.WantFile(t, p, "lake", "g", firstBytes)
	if n, err := p.RemovePrefix(t.Context(), "lake", ""); err != nil || n != 1 {
		t.Errorf("%d %v", n, err)
	}
	x.await(t, 3+3, `SELECT pgvfs.reap('0')`)
}

// grantedBefore: a role that is to read whatever there will be has a store before there is one, and one that may read
// nothing is told so, and not that there is nothing.
func grantedBefore(t *testing.T, x *fixture) {
	reader := x.role(t, "reader")
	stranger := x.role(t, "stranger")
	x.exec(t, `ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO reader`)
	x.exec(t, `ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader`)
	early := x.open(t, lakefs.Config{DSN: reader})
	lakefstest.WantNone(t, early, "lake", "f")
	lakefstest.Put(t, x.open(t, lakefs.Config{}), "lake", "f", oldBytes)
	lakefstest.WantFile(t, early, "lake", "f", oldBytes)
	lakefstest.WantFile(t, x.open(t, lakefs.Config{DSN: reader}), "lake", "f", oldBytes)
	if err := early.Remove(t.Context(), "lake", "f"); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Error(err)
	}
	if _, err := lakefs.OpenPG(t.Context(), lakefs.Config{DSN: stranger}); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Error(err)
	}
}
