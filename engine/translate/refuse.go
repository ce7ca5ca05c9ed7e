package translate

import (
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// refusal is a statement that is not run. The words are its beginning; "|" separates alternatives, and "?" stands for
// words that modify (OR REPLACE, TEMP, IF EXISTS).
type refusal struct {
	words string
	code  string
	text  string // message; for 42501 what permission is denied for
	hint  string
}

// refusals are tried in order.
var refusals = []refusal{
	// What reaches beyond the lake.
	{"attach", pgerrcode.InsufficientPrivilege, "ATTACH", hintAdmin},
	{"detach", pgerrcode.InsufficientPrivilege, "DETACH", hintAdmin},
	{"install", pgerrcode.InsufficientPrivilege, "INSTALL", hintAdmin},
	{"force install", pgerrcode.InsufficientPrivilege, "INSTALL", hintAdmin},
	{"load", pgerrcode.InsufficientPrivilege, "LOAD", hintAdmin},
	{"export database", pgerrcode.InsufficientPrivilege, "EXPORT DATABASE", hintAdmin},
	{"import database", pgerrcode.InsufficientPrivilege, "IMPORT DATABASE", hintAdmin},
	{"copy from database", pgerrcode.InsufficientPrivilege, "COPY FROM DATABASE", hintAdmin},
	{"create ? secret", pgerrcode.InsufficientPrivilege, "CREATE SECRET", hintAdmin},
	{"drop ? secret", pgerrcode.InsufficientPrivilege, "DROP SECRET", hintAdmin},
	{"checkpoint", pgerrcode.InsufficientPrivilege, "CHECKPOINT", hintAdmin},
	{"force checkpoint", pgerrcode.InsufficientPrivilege, "CHECKPOINT", hintAdmin},
	{"create|drop|alter ? database", pgerrcode.InsufficientPrivilege, "databases", hintAdmin},
	// What neither DuckDB nor Sluice has.
	{"grant", pgerrcode.FeatureNotSupported, "GRANT is not supported", hintUsers},
	{"revoke", pgerrcode.FeatureNotSupported, "REVOKE is not supported", hintUsers},
	{"reassign owned", pgerrcode.FeatureNotSupported, "REASSIGN OWNED is not supported", hintUsers},
	{"alter default privileges", pgerrcode.FeatureNotSupported, "ALTER DEFAULT PRIVILEGES is not supported", hintUsers},
	{"create|drop|alter ? role|user|group", pgerrcode.FeatureNotSupported, "roles cannot be changed through SQL", hintUsers},
	{"alter system", pgerrcode.FeatureNotSupported, "ALTER SYSTEM is not supported", "Settings of the server are flags of its command."},
	{"create|drop|alter ? extension", pgerrcode.FeatureNotSupported, "extensions cannot be changed through SQL", ""},
	{
		"create|drop|alter ? trigger|rule|policy|publication|subscription|aggregate|operator|cast|collation|conversion|domain|server|tablespace|language|statistics",
		pgerrcode.FeatureNotSupported, "this kind of object is not supported", "The lake has schemas, tables, views and macros.",
	},
	{"listen", pgerrcode.FeatureNotSupported, "LISTEN is not supported", ""},
	{"notify", pgerrcode.FeatureNotSupported, "NOTIFY is not supported", ""},
	{"lock", pgerrcode.FeatureNotSupported, "LOCK TABLE is not supported", "Transactions of the lake see a snapshot and conflict at commit."},
	{"cluster", pgerrcode.FeatureNotSupported, "CLUSTER is not supported", ""},
	{"reindex", pgerrcode.FeatureNotSupported, "REINDEX is not supported", ""},
	{"refresh materialized view", pgerrcode.FeatureNotSupported, "materialized views are not supported", ""},
	{"do", pgerrcode.FeatureNotSupported, "DO is not supported", ""},
	{"security label", pgerrcode.FeatureNotSupported, "SECURITY LABEL is not supported", ""},
}

const (
	hintAdmin = "Only an administrator of the lake may do this."
	hintUsers = "Users are kept in the server's user file; see the command sluice user."
)

// refused answers for statements that are not run. An administrator may do what only lacks permission.
func refused(r *rewrite, s *Stmt) bool {
	for _, f := range refusalsBy[r.word(0)] {
		if !f.matches(r) {
			continue
		}
		if f.code != pgerrcode.InsufficientPrivilege {
			refuse(s, pgerr.New(f.code, f.text).WithHint(f.hint))
			return true
		}
		if r.o.Admin {
			s.Kind, s.Tag = KindDDL, strings.ToUpper(r.word(0))
			return true
		}
		deny(s, f.text)
		return true
	}
	// UPDATE EXTENSIONS is DuckDB's; a table may have that name.
	if r.words(0, "update", "extensions") && (len(r.tokens) == 2 || r.raw(2) == "(") && !r.o.Admin {
		deny(s, "UPDATE EXTENSIONS")
		return true
	}
	return false
}

// refusalsBy holds the refusals by first word, each with the alternatives of the words that follow.
var refusalsBy = map[string][]refusalForm{}

type refusalForm struct {
	*refusal
	rest [][]string
}

func init() {
	for i := range refusals {
		words := strings.Fields(refusals[i].words)
		form := refusalForm{refusal: &refusals[i]}
		for _, w := range words[1:] {
			form.rest = append(form.rest, strings.Split(w, "|"))
		}
		for _, first := range strings.Split(words[0], "|") {
			refusalsBy[first] = append(refusalsBy[first], form)
		}
	}
}

// matches reports whether the words after the first are the refusal's.
func (f *refusalForm) matches(r *rewrite) bool {
	i := 1
	for _, want := range f.rest {
		if want[0] == "?" {
			for modifiers[r.word(i)] {
				i++
			}
			continue
		}
		if !slices.Contains(want, r.word(i)) {
			return false
		}
		i++
	}
	return true
}

// refuse makes the statement one that is not run.
func refuse(s *Stmt, err *pgerr.Error) {
	s.Kind, s.Writes, s.Err = KindRefused, false, err
	s.Tx, s.Set, s.Copy, s.Prepared, s.Cursor = nil, nil, nil, nil, nil
}

// deny refuses for want of permission.
func deny(s *Stmt, what string) {
	refuse(s, pgerr.Newf(pgerrcode.InsufficientPrivilege, "permission denied for %s", what).WithHint(hintAdmin))
}

// pragmas that only tell something about the lake's objects or about DuckDB's version.
var pragmas = wordSet(`table_info show show_tables show_tables_expanded storage_info version database_size functions collations platform user_agent`)

// pragma is PRAGMA: information passes, settings and the rest are an administrator's.
func pragma(r *rewrite, s *Stmt) {
	if !pragmas[r.name(1)] && !r.o.Admin {
		deny(s, "PRAGMA "+r.name(1))
	}
}

// schema keeps the schema public, which is DuckLake's main and always there. name is the token after SCHEMA.
func schema(r *rewrite, s *Stmt, name int) {
	exists := false
	for r.word(name) == "if" || r.word(name) == "not" || r.word(name) == "exists" {
		exists = true
		name++
	}
	if r.raw(name+1) == "." { // lake.public
		name += 2
	}
	if r.name(name) != "public" {
		return
	}
	switch r.word(0) {
	case "create":
		if exists {
			s.Kind, s.Writes = KindNoop, false
			s.Notice = pgerr.Notice(pgerr.SeverityNotice, pgerrcode.DuplicateSchema, `schema "public" already exists, skipping`)
			return
		}
		refuse(s, pgerr.New(pgerrcode.DuplicateSchema, `schema "public" already exists`))
	case "drop":
		refuse(s, pgerr.New(pgerrcode.DependentObjectsStillExist, `cannot drop schema public because the lake requires it`))
	case "alter":
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, `schema "public" cannot be changed`))
	}
}
