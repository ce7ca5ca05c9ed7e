package lakefs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// factsSQL says of the schema what must be so, as pairs: of what, and how it is. It reads the catalogs alone, through
// the snapshot, so that it says the same as the tables and needs no right. Whatever else is in the schema is another
// program's own business, except for columns in chunks, where a row would no longer fit in a page.
const factsSQL = `
WITH relation AS (
	SELECT c.oid, c.relname::text AS name, c.relkind::text AS kind, c.relpersistence::text AS persistence, c.relrowsecurity, c.reloptions
	FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE n.nspname = 'pgvfs' AND c.relname IN ('layout', 'files', 'chunks', 'garbage', 'file_ids')
), attribute AS (
	SELECT r.name AS relation, a.*, r.name || '.' || a.attname AS name
	FROM relation AS r JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
	WHERE r.kind <> 'S'
)
SELECT 'relation ' || name, CASE kind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'S' THEN 'sequence'
	WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE kind END FROM relation
UNION ALL SELECT 'persistence of ' || name, CASE persistence WHEN 'p' THEN 'logged' ELSE 'not logged, and so empty after a crash' END FROM relation
UNION ALL SELECT 'row security of ' || name, CASE WHEN relrowsecurity THEN 'on' ELSE 'off' END FROM relation WHERE kind <> 'S'
UNION ALL SELECT 'toast_tuple_target of ' || name, split_part(o, '=', 2) FROM relation, unnest(reloptions) AS o WHERE o LIKE 'toast_tuple_target=%'
UNION ALL SELECT 'columns of ' || relation, count(*)::text FROM attribute GROUP BY relation
UNION ALL SELECT 'column ' || name, format_type(atttypid, atttypmod) FROM attribute
UNION ALL SELECT 'NULL in ' || name, CASE WHEN attnotnull THEN 'refused' ELSE 'allowed' END FROM attribute
UNION ALL SELECT 'storage of ' || name, CASE attstorage WHEN 'e' THEN 'external' WHEN 'p' THEN 'plain' WHEN 'm' THEN 'main' ELSE 'extended' END FROM attribute
UNION ALL SELECT 'collation of ' || a.name, co.collname FROM attribute AS a JOIN pg_collation AS co ON co.oid = a.attcollation
UNION ALL SELECT 'check ' || conname || ' of ' || r.name, 'there' FROM relation AS r JOIN pg_constraint ON conrelid = r.oid WHERE contype = 'c'
UNION ALL SELECT DISTINCT 'unique index of ' || r.name || ' on ' || (
		SELECT string_agg(a.attname, ', ' ORDER BY k.place) FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
		JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum = k.attnum WHERE k.place <= i.indnkeyatts), 'there'
	FROM relation AS r JOIN pg_index AS i ON i.indrelid = r.oid
	WHERE i.indisunique AND i.indimmediate AND i.indisvalid AND i.indisready AND i.indpred IS NULL AND i.indexprs IS NULL
UNION ALL SELECT 'type of ' || r.name, format_type(s.seqtypid, NULL) FROM relation AS r JOIN pg_sequence AS s ON s.seqrelid = r.oid
UNION ALL SELECT 'direction of ' || r.name, CASE WHEN s.seqcycle THEN 'in a circle' WHEN s.seqincrement > 0 THEN 'up' ELSE 'down' END
	FROM relation AS r JOIN pg_sequence AS s ON s.seqrelid = r.oid
UNION ALL SELECT 'result of reap(' || oidvectortypes(p.proargtypes) || ')', format_type(p.prorettype, NULL)
	FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'pgvfs' AND p.proname = 'reap'
UNION ALL SELECT 'marker of reap(' || oidvectortypes(p.proargtypes) || ')', coalesce(obj_description(p.oid, 'pg_proc'), '')
	FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'pgvfs' AND p.proname = 'reap'
UNION ALL SELECT 'PostgreSQL''s block size', current_setting('block_size')`

// relations are those of layout v2.
var relations = []string{"layout", "files", "chunks", "garbage", "file_ids"}

// A fact about the schema that must hold.
type fact struct{ subject, value string }

// tableFacts are those of layout v2 without which nothing else can be read. They are in the order in which what does
// not hold is reported, like the others. A missing one is a fault too.
var tableFacts = []fact{
	{"relation layout", "table"},
	{"relation files", "table"},
	{"relation chunks", "table"},
	{"relation garbage", "table"},
	{"column layout.version", "integer"},
	{"column files.volume", "text"},
	{"column files.path", "text"},
	{"column files.file_id", "bigint"},
	{"column files.size", "bigint"},
	{"column files.created_at", "timestamp with time zone"},
	{"column chunks.file_id", "bigint"},
	{"column chunks.no", "integer"},
	{"column chunks.data", "bytea"},
	{"column garbage.file_id", "bigint"},
	{"column garbage.queued_at", "timestamp with time zone"},
}

// otherFacts are what else must hold.
var otherFacts = []fact{
	{"relation file_ids", "sequence"},
	{"type of file_ids", "bigint"},
	{"direction of file_ids", "up"},
	{"result of reap(interval, integer)", "integer"},

	// A full row is a page.
	{"PostgreSQL's block size", "8192"},
	{"columns of chunks", "3"},
	{"storage of chunks.data", "external"},
	{"toast_tuple_target of chunks", "8160"},

	// Nothing gets lost, hidden, or listed in another order than that of its bytes.
	{"persistence of layout", "logged"},
	{"persistence of files", "logged"},
	{"persistence of chunks", "logged"},
	{"persistence of garbage", "logged"},
	{"persistence of file_ids", "logged"},
	{"row security of layout", "off"},
	{"row security of files", "off"},
	{"row security of chunks", "off"},
	{"row security of garbage", "off"},
	{"collation of files.volume", "C"},
	{"collation of files.path", "C"},

	// What publishing and reaping count on.
	{"unique index of files on volume, path", "there"},
	{"unique index of files on file_id", "there"},
	{"unique index of chunks on file_id, no", "there"},
	{"unique index of garbage on file_id", "there"},
	{"check file_shape of files", "there"},
	{"check chunk_shape of chunks", "there"},
	{nullFact + "layout.version", nullRefused},
	{nullFact + "files.volume", nullRefused},
	{nullFact + "files.path", nullRefused},
	{nullFact + "files.file_id", nullRefused},
	{nullFact + "files.size", nullRefused},
	{nullFact + "files.created_at", nullRefused},
	{nullFact + "chunks.file_id", nullRefused},
	{nullFact + "chunks.no", nullRefused},
	{nullFact + "chunks.data", nullRefused},
	{nullFact + "garbage.file_id", nullRefused},
	{nullFact + "garbage.queued_at", nullRefused},
}

const (
	nullFact    = "NULL in "
	nullRefused = "refused"

	reapMarker = "marker of reap(interval, integer)"
	chunksKey  = "unique index of chunks on file_id, no"

	// versionRowsSQL has one row with the number 2 in a store.
	versionRowsSQL = `SELECT count(*), max(version) FROM pgvfs.layout`

	// toastSQL is as true on a standby, and for whoever may not read the table.
	toastSQL = `SELECT coalesce(pg_relation_size(c.reltoastrelid), 0)
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'pgvfs' AND c.relname = 'chunks'`
)

// checkLayout reports what the schema has differently, and whether there is a store that can be read.
func (v *verifier) checkLayout(ctx context.Context) (readable bool, err error) {
	facts, err := v.readFacts(ctx)
	if err != nil {
		return false, fmt.Errorf("look at the pgvfs schema: %w", err)
	}
	v.facts = facts
	if !installedFacts(facts) {
		return false, nil
	}
	readable = v.compare(facts, tableFacts)
	v.compare(facts, otherFacts)
	if marker, there := facts[reapMarker]; there && staleMarkers[marker] {
		v.storeFault(FaultLayout, "%s: %q instead of %q; the next writer who owns the function replaces it", reapMarker, marker, functionsMarker)
	}
	_, unique := facts[chunksKey]
	v.keyed = unique && facts[nullFact+"chunks.no"] == nullRefused
	if !readable {
		return false, nil
	}
	return v.checkVersion(ctx)
}

// compare reports which facts do not hold, and whether all do.
func (v *verifier) compare(facts map[string]string, wanted []fact) bool {
	all := true
	for _, want := range wanted {
		got, there := facts[want.subject]
		if got == want.value {
			continue
		}
		all = false
		if there {
			v.storeFault(FaultLayout, "%s: %s instead of %s", want.subject, got, want.value)
		} else if concerns(want.subject, facts) {
			v.storeFault(FaultLayout, "%s: missing", want.subject)
		}
	}
	return all
}

// readFacts makes a map of factsSQL.
func (v *verifier) readFacts(ctx context.Context) (map[string]string, error) {
	rows, err := v.query(ctx, factsSQL)
	if err != nil {
		return nil, err
	}
	facts := map[string]string{}
	var subject, value string
	_, err = pgx.ForEachRow(rows, []any{&subject, &value}, func() error {
		facts[subject] = value
		return nil
	})
	return facts, err
}

// installedFacts reports whether there is anything of a store.
func installedFacts(facts map[string]string) bool {
	return slices.ContainsFunc(relations, func(name string) bool {
		_, there := facts["relation "+name]
		return there
	})
}

// concerns reports whether a missing fact is news. About a table or column that is missing itself it is not.
func concerns(subject string, facts map[string]string) bool {
	kind, of, _ := strings.Cut(subject, " ")
	if kind == "relation" {
		return true
	}
	for word := range strings.FieldsSeq(of) {
		relation, column, named := strings.Cut(word, ".")
		if _, there := facts["relation "+relation]; !there && slices.Contains(relations, relation) {
			return false
		}
		if _, there := facts["column "+relation+"."+column]; !there && named && kind != "column" {
			return false
		}
	}
	return true
}

// checkVersion reads the layout's number, and whether bytes have gone where none belong.
func (v *verifier) checkVersion(ctx context.Context) (readable bool, err error) {
	var count int64
	var version *int32
	if err := v.queryRow(ctx, versionRowsSQL, &count, &version); err != nil {
		return false, fmt.Errorf("read the pgvfs layout version: %w", err)
	}
	if version == nil || *version != layoutVersion {
		text := "none"
		if version != nil {
			text = fmt.Sprint(*version)
		}
		v.storeFault(FaultLayout, "version: %s instead of %d", text, layoutVersion)
		return false, nil
	}
	if count > 1 {
		v.storeFault(FaultLayout, "version: in %d rows instead of one", count)
	}
	var toast int64
	if err := v.queryRow(ctx, toastSQL, &toast); err != nil {
		return false, fmt.Errorf("look at the TOAST relation: %w", err)
	}
	if toast > 0 {
		v.storeFault(FaultToast, "%d bytes in the TOAST relation of chunks, which must stay empty", toast)
	}
	return true, nil
}
