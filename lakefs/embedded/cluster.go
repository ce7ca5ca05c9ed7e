package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	hbaFile      = "sluice_hba.conf"
	settingsFile = "sluice.conf"
)

// hba asks everybody for a password. There is no line for TCP.
const hba = `# written by sluice at each start
# type  database     user      method
local   all          all       scram-sha-256
local   replication  postgres  scram-sha-256
`

// include ends postgresql.conf, once: what a person writes below it counts, and Sluice never touches it again.
const include = "\n# Sluice's settings, written anew at each start. Settings below this line go over them.\ninclude '" + settingsFile + "'\n"

// initCluster makes a cluster beside its final place and moves it there when it is complete.
func (s *Server) initCluster(ctx context.Context, p programs) error {
	s.log.Info().Str("cluster", s.home.cluster).Str("programs", p.dir).Int("version", p.major).Msg("making a postgresql cluster")
	fresh := s.home.cluster + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := makePrivate(fresh, s.who); err != nil {
		return err
	}
	passwordFile := s.home.cluster + ".password"
	defer os.Remove(passwordFile)
	if err := writeFor(s.who, passwordFile, s.secrets.superuser+"\n"); err != nil {
		return err
	}
	if err := s.runInitdb(ctx, p, fresh, passwordFile); err != nil {
		return err
	}
	conf := filepath.Join(fresh, "postgresql.conf")
	if err := appendTo(conf, include); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.home.cluster); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return nil
}

// runInitdb runs initdb with the first locale that this machine has. All of them sort by code point, as DuckDB does.
func (s *Server) runInitdb(ctx context.Context, p programs, dir, passwordFile string) error {
	var failures error
	for _, locale := range p.locales() {
		args := append([]string{
			"-D", dir, "-U", superuser, "--pwfile", passwordFile, "-E", "UTF8",
			"--auth-local=scram-sha-256", "--auth-host=reject", "--data-checksums", "--no-instructions",
		}, locale...)
		cmd := p.commandContext(ctx, "initdb", s.who, args...)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, fmt.Errorf("initdb %s: %w\n%s", strings.Join(locale, " "), err, strings.TrimSpace(string(out))))
		if ctx.Err() != nil {
			break
		}
	}
	return failures
}

// writeSettings writes the files that are Sluice's own in the cluster.
func writeSettings(h home, params map[string]string, who *account) error {
	memory := memoryBytes()
	for name, text := range map[string]string{hbaFile: hba, settingsFile: settingsText(memory, params)} {
		if err := writeFor(who, filepath.Join(h.cluster, name), text); err != nil {
			return fmt.Errorf("write PostgreSQL's settings: %w", err)
		}
	}
	return nil
}

// connectSuperuser connects to the maintenance database. Statements with passwords in them stay out of the log.
func (s *Server) connectSuperuser(ctx context.Context) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig(s.dsn(superuser, s.secrets.superuser, "postgres"))
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["log_min_error_statement"] = "panic"
	config.RuntimeParams["log_statement"] = "none"
	config.RuntimeParams["application_name"] = "sluice set-up"
	return pgconn.ConnectConfig(ctx, config)
}

// makeRole makes the service role or gives it its rights and password again.
func makeRole(ctx context.Context, conn *pgconn.PgConn, password string) error {
	exists, err := hasRow(ctx, conn, "SELECT 1 FROM pg_roles WHERE rolname = $1", serviceRole)
	if err != nil {
		return err
	}
	verb := "CREATE"
	if exists {
		verb = "ALTER"
	}
	return execAll(ctx, conn,
		verb+" ROLE "+serviceRole+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD "+quoteText(password),
		"REVOKE CONNECT, TEMPORARY ON DATABASE postgres FROM PUBLIC",
		"REVOKE CONNECT, TEMPORARY ON DATABASE template1 FROM PUBLIC",
	)
}

// makeDatabase makes the lake's database, the service role's own, unless it must be there already.
func makeDatabase(ctx context.Context, conn *pgconn.PgConn, name string, existing bool) error {
	exists, err := hasRow(ctx, conn, "SELECT 1 FROM pg_database WHERE datname = $1", name)
	if err != nil || exists {
		return err
	}
	if existing {
		return fmt.Errorf("there is no database %q in the cluster", name)
	}
	return execAll(ctx, conn,
		"CREATE DATABASE "+quoteName(name)+" OWNER "+serviceRole,
		"REVOKE ALL ON DATABASE "+quoteName(name)+" FROM PUBLIC",
	)
}

// hasRow reports whether a query with one text parameter finds anything.
func hasRow(ctx context.Context, conn *pgconn.PgConn, query, param string) (bool, error) {
	result := conn.ExecParams(ctx, query, [][]byte{[]byte(param)}, nil, nil, nil).Read()
	if result.Err != nil {
		return false, fmt.Errorf("set up the database: %w", result.Err)
	}
	return len(result.Rows) > 0, nil
}

// execAll runs statements, each on its own: CREATE DATABASE allows no transaction around it.
func execAll(ctx context.Context, conn *pgconn.PgConn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("set up the database: %w", err)
		}
	}
	return nil
}

// quoteName quotes an identifier, quoteText a string constant, quoteList a member of a list in a setting.
func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
func quoteList(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// makePrivate makes a folder for an account alone.
func makePrivate(path string, who *account) error {
	if err := os.Mkdir(path, clusterMode); err != nil {
		return err
	}
	return who.own(path)
}

// writeFor writes a file that only an account may read.
func writeFor(who *account, path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return who.own(path)
}

// appendTo adds to the end of a file.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
