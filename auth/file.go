package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fileMode is the mode that AddUser gives the user file; worldBits must not be set in the one that LoadUsers reads.
const (
	fileMode  fs.FileMode = 0o600
	worldBits fs.FileMode = 0o007
)

// adminWord marks an administrator.
const adminWord = "admin"

// LoadUsers reads a user file. A file that does not exist gives an error for which errors.Is(err, fs.ErrNotExist) holds;
// one that everyone may read, write or run is refused. Errors name the line and repeat nothing of it.
func LoadUsers(path string) (*Users, error) {
	raw, err := readFile(path)
	if err != nil {
		return nil, err
	}
	u := NewUsers()
	for i, line := range strings.Split(string(raw), "\n") {
		user, ok, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("read users: %s, line %d: %w", path, i+1, err)
		}
		if !ok {
			continue
		}
		if _, twice := u.byName[user.Name]; twice {
			return nil, fmt.Errorf("read users: %s, line %d: user %q is listed twice", path, i+1, user.Name)
		}
		u.byName[user.Name] = user
	}
	return u, nil
}

// readFile reads a file after a look at its mode.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	if info.Mode().Perm()&worldBits != 0 {
		return nil, fmt.Errorf("read users: %s has mode %04o, which lets everyone at it; set it to 0600", path, info.Mode().Perm())
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	return raw, nil
}

// parseLine reads one line; ok is false for one without a user.
func parseLine(line string) (user User, ok bool, err error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == ';' {
		return user, false, nil
	}
	words, err := quotedWords(line)
	switch {
	case err != nil:
		return user, false, err
	case len(words) < 2:
		return user, false, errors.New("a name and a verifier in double quotes are expected")
	case len(words) > 3 || len(words) == 3 && words[2] != adminWord:
		return user, false, errors.New(`only "admin" may follow the verifier`)
	}
	if err := checkName(words[0]); err != nil {
		return user, false, err
	}
	user.Name, user.Admin = words[0], len(words) == 3
	user.Verifier, err = ParseVerifier(words[1])
	return user, err == nil, err
}

// quotedWords cuts a line into its words. A doubled quote stands for one.
func quotedWords(line string) (words []string, err error) {
	for line != "" {
		if line[0] != '"' {
			return nil, errors.New("words have to be in double quotes")
		}
		var word strings.Builder
		rest := line[1:]
		for {
			end := strings.IndexByte(rest, '"')
			if end < 0 {
				return nil, errors.New("a double quote is missing")
			}
			word.WriteString(rest[:end])
			rest = rest[end+1:]
			if !strings.HasPrefix(rest, `"`) {
				break
			}
			word.WriteByte('"')
			rest = rest[1:]
		}
		words = append(words, word.String())
		line = strings.TrimLeft(rest, " \t")
		if line == rest && line != "" {
			return nil, errors.New("words have to be apart")
		}
	}
	return words, nil
}

// checkName refuses names that the file or the protocol cannot hold.
func checkName(name string) error {
	if name == "" {
		return errors.New("a user name cannot be empty")
	}
	if strings.ContainsAny(name, "\x00\r\n") {
		return errors.New("a user name cannot hold a line end or a zero byte")
	}
	return nil
}

// AddUser writes a user with the verifier of a password, in the place of one with the same name. Other lines stay as they
// are. The file is created with mode 0600, or replaced in one step; two calls at once may lose one of the users.
func AddUser(path, name, password string, admin bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	v, err := NewVerifier(password)
	if err != nil {
		return err
	}
	raw, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line := quoteWord(name) + " " + quoteWord(v.String())
	if admin {
		line += " " + quoteWord(adminWord)
	}
	return replaceFile(path, putLine(string(raw), name, line))
}

// quoteWord puts a word in quotes.
func quoteWord(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// putLine replaces the line of a user, or adds one at the end.
func putLine(text, name, line string) string {
	var out strings.Builder
	done := false
	for old := range strings.Lines(text) {
		words, err := quotedWords(strings.TrimSpace(old))
		if err != nil || len(words) == 0 || words[0] != name {
			out.WriteString(strings.TrimSuffix(old, "\n") + "\n")
			continue
		}
		if !done {
			out.WriteString(line + "\n")
		}
		done = true
	}
	if !done {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// replaceFile writes a file beside the old one and renames it, so that a reader sees one or the other.
func replaceFile(path, content string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".users-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write users: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write users: %w", err)
		}
	}()
	_, err = f.WriteString(content)
	err = errors.Join(err, f.Chmod(fileMode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
