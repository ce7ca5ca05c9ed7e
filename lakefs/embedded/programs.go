package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// majorMin is the oldest PostgreSQL that Sluice works with.
const majorMin = 14

// folders where distributions keep PostgreSQL's programs, one folder a version.
var folders = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PGDG's packages for RPM systems
	"/usr/libexec/postgresql*",           // Alpine
	"/usr/local/pgsql/bin",               // from source
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
}

// programs is a folder with a version's initdb and postgres.
type programs struct {
	dir   string
	major int
}

// findPrograms finds programs of a major version, 0 for the newest. What is installed goes before what is fetched.
func findPrograms(ctx context.Context, major int, who *account, o Options) (programs, error) {
	var found []programs
	for _, dir := range programFolders() {
		if p, err := inspect(ctx, dir, who); err == nil && p.major >= majorMin {
			found = append(found, p)
		}
	}
	if p, ok := choose(found, major); ok {
		return p, nil
	}
	p, err := fetchPrograms(ctx, major, who, o)
	if err != nil {
		return programs{}, missing(major, found, err)
	}
	return p, nil
}

// choose takes the version asked for, or the newest. The first of equals stays: the PATH comes first.
func choose(found []programs, major int) (programs, bool) {
	var best programs
	for _, p := range found {
		if (major == 0 && p.major > best.major) || (p.major == major && best.major == 0) {
			best = p
		}
	}
	return best, best.major != 0
}

// missing says what was looked for and what to do.
func missing(major int, found []programs, cause error) error {
	wanted, have := fmt.Sprintf("PostgreSQL %d or later", majorMin), "none"
	if major != 0 {
		wanted = fmt.Sprintf("PostgreSQL %d, which made this data directory's cluster,", major)
	}
	var names []string
	for _, p := range found {
		names = append(names, fmt.Sprintf("%d in %q", p.major, p.dir))
	}
	if len(names) > 0 {
		have = strings.Join(names, ", ")
	}
	return fmt.Errorf("%s is needed; found: %s. Install it, or give sluice a server with --dsn. Fetching its programs failed too: %w", wanted, have, cause)
}

// programFolders lists folders that have a program postgres, the PATH's first.
func programFolders() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range folders {
		matches, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		dirs = append(dirs, matches...)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "postgres"))
		return err != nil
	})
}

// versionWords is how `postgres --version` begins.
var versionWords = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect asks a folder's postgres for its version, as the account that is to run it.
func inspect(ctx context.Context, dir string, who *account) (programs, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return programs{}, err
	}
	if !who.canReach(dir) {
		return programs{}, fmt.Errorf("%v cannot reach %q", who, dir)
	}
	p := programs{dir: dir}
	out, err := p.commandContext(ctx, "postgres", who, "--version").Output()
	if err != nil {
		return programs{}, fmt.Errorf("run %q: %w", filepath.Join(dir, "postgres"), err)
	}
	match := versionWords.FindSubmatch(out)
	if match == nil {
		return programs{}, errors.New("postgres does not say its version")
	}
	p.major, err = strconv.Atoi(string(match[1]))
	return p, err
}

// command prepares one of the programs to run as the account. Its working directory must be one that the account may
// enter, and its environment holds nothing that would change what a server does or where a client connects.
func (p programs) command(name string, who *account, args ...string) *exec.Cmd {
	return p.commandContext(context.Background(), name, who, args...)
}

// commandContext is command for a program that ends with a context.
func (p programs) commandContext(ctx context.Context, name string, who *account, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.dir, name), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = who.attr()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "LC_") || strings.HasPrefix(v, "LANG") || strings.HasPrefix(v, "SLUICE_")
	}), "LC_ALL=C")
	return cmd
}

// locales are initdb's arguments for UTF-8 text sorted by code point, best first. PostgreSQL 17 brings that locale
// along; before, it is the system's, which not every system has.
func (p programs) locales() [][]string {
	if p.major >= 17 {
		return [][]string{{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}}
	}
	return [][]string{{"--locale=C.UTF-8"}, {"--locale=C"}}
}
