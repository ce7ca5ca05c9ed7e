package lakefs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
)

const (
	layoutVersion   = 2
	functionsMarker = "pgvfs functions 3" // functions.sql's comment on reap
)

// Scripts that make the schema.
var (
	//go:embed schema.sql
	schemaSQL string
	//go:embed functions.sql
	functionsSQL string
)

const (
	installLockSQL = `SELECT pg_advisory_xact_lock(hashtext('pgvfs.install')::int8)`
	recoverySQL    = `SELECT pg_is_in_recovery()`
	presentSQL     = `SELECT to_regclass('s3p.chunks') IS NOT NULL, to_regclass('pgvfs.layout') IS NOT NULL`
	versionSQL     = `SELECT max(version) FROM pgvfs.layout`

	// functionsStateSQL finds reap, its marker, and whether this role may replace it: as it is, without SET ROLE.
	functionsStateSQL = `SELECT obj_description(p.oid, 'pg_proc'),
		pg_has_role(p.proowner, 'USAGE') AND has_schema_privilege('pgvfs', 'CREATE')
	FROM pg_proc AS p WHERE p.oid = to_regprocedure('pgvfs.reap(interval,integer)')`
)

// staleMarkers are comments of older functions that take the same arguments; the first kind had none. A marker that is
// not known is a newer program's, which would put its own function back: it stays.
var staleMarkers = map[string]bool{"": true, "pgvfs functions 1": true, "pgvfs functions 2": true}

// checkLayout says whether the schema is there. Fails for a database that is another program's or another version's.
func checkLayout(ctx context.Context, conn *pgx.Conn) (installed bool, err error) {
	var gateway bool
	if err := conn.QueryRow(ctx, presentSQL).Scan(&gateway, &installed); err != nil {
		return false, fmt.Errorf("look for the pgvfs schema: %w", err)
	}
	if gateway {
		return false, errors.New("this database belongs to a pgvs3 S3 gateway (schema s3p); use another one")
	}
	if !installed {
		return false, nil
	}
	var version *int32
	if err := conn.QueryRow(ctx, versionSQL).Scan(&version); err != nil {
		return false, fmt.Errorf("read the pgvfs layout version: %w", err)
	}
	if version == nil || *version != layoutVersion {
		return false, fmt.Errorf("pgvfs layout version in this database is not %d; use a fresh database", layoutVersion)
	}
	return true, nil
}

// ensureWritable installs what is missing, once per store: readers never write, not even on their first connection.
// ErrReadOnly: the server is a standby.
func (p *PG) ensureWritable(ctx context.Context) error {
	if p.writable.Load() {
		return nil
	}
	select {
	case p.installing <- struct{}{}:
		defer func() { <-p.installing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.writable.Load() {
		return nil
	}
	if err := p.inTx(ctx, func(conn *pgx.Conn) error { return install(ctx, conn) }); err != nil {
		return fmt.Errorf("prepare the database for writing: %w", err)
	}
	p.writable.Store(true)
	p.reapSoon()
	return nil
}

// install is ensureWritable's transaction. The lock is shared with every program that uses the layout.
func install(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, installLockSQL); err != nil {
		return err
	}
	standby := false
	if err := conn.QueryRow(ctx, recoverySQL).Scan(&standby); err != nil {
		return err
	}
	if standby {
		return ErrReadOnly
	}
	installed, err := checkLayout(ctx, conn)
	if err != nil {
		return err
	}
	if !installed {
		if _, err := conn.Exec(ctx, schemaSQL); err != nil {
			return fmt.Errorf("create schema pgvfs: %w", err)
		}
	}
	return refreshFunctions(ctx, conn)
}

// refreshFunctions installs reap where it is missing, or stale and ours to replace.
func refreshFunctions(ctx context.Context, conn *pgx.Conn) error {
	var marker *string
	replaceable := false
	err := conn.QueryRow(ctx, functionsStateSQL).Scan(&marker, &replaceable)
	missing := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !missing {
		return fmt.Errorf("look for function pgvfs.reap: %w", err)
	}
	stale := marker == nil || staleMarkers[*marker]
	if missing || (stale && replaceable) {
		if _, err := conn.Exec(ctx, functionsSQL); err != nil {
			return fmt.Errorf("create function pgvfs.reap: %w", err)
		}
	}
	return nil
}

// undefined reports that a table or the sequence is not there (yet, or no longer).
func undefined(err error) bool {
	code := sqlstate(err)
	return code == pgerrcode.UndefinedTable || code == pgerrcode.InvalidSchemaName
}
