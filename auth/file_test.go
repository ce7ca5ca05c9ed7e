package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a verifier that is well formed.
const sample = "SCRAM-SHA-256$4096:CJL2vCRDt44B8FXPVDbgpA==$ObQfqXuNeWt5WJEtoLrtZhRGEF3LxtdY6zZsn8sYTqY=:Qvcr7S8nNLTk3Qi0IQZfpESkBdfpunqPFvcv8Sqta8I="

// writeUsers makes a user file.
func writeUsers(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.txt")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadUsers_Format(t *testing.T) {
	path := writeUsers(t, "; a comment\n\n\"ann\" \""+sample+"\"\r\n  \"o\"\"neil\"\t\""+sample+"\" \"admin\"")
	users, err := LoadUsers(path)
	if err != nil {
		t.Fatal(err)
	}
	ann, ok := users.Lookup("ann")
	if !ok || ann.Admin || ann.Verifier.String() != sample {
		t.Errorf("ann: %v %+v", ok, ann)
	}
	if neil, ok := users.Lookup(`o"neil`); !ok || !neil.Admin {
		t.Errorf("o\"neil: %v %+v", ok, neil)
	}
	if _, ok := users.Lookup("Ann"); ok || users.Len() != 2 {
		t.Errorf("%d users, Ann is one: %v", users.Len(), ok)
	}
}

func TestLoadUsers_Refused(t *testing.T) {
	cases := map[string]string{
		`"ann" "secret-of-ann"`:                      "plain password",
		`"ann" "md5` + strings.Repeat("a", 32) + `"`: "MD5",
		`"ann"`:                         "expected",
		`ann "` + sample + `"`:          "in double quotes",
		`"ann" "` + sample:              "missing",
		`"ann""` + sample + `"`:         "expected",
		`"ann" "` + sample + `""x"`:     "valid",
		`"ann" "` + sample + `" "root"`: "admin",
		`"" "` + sample + `"`:           "empty",
		"\"a\" \"" + sample + "\"\n\"a\" \"" + sample + "\"": "twice",
	}
	for content, want := range cases {
		_, err := LoadUsers(writeUsers(t, content))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret-of-ann") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestLoadUsers_Mode(t *testing.T) {
	path := writeUsers(t, "")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadUsers(path); err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("a file that everyone may read: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadUsers(path); err != nil {
		t.Errorf("a file that the group may read: %v", err)
	}
	if _, err := LoadUsers(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestAddUser_CreatesAndReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.txt")
	for _, step := range []struct {
		name, password string
		admin          bool
	}{{"ann", "one", false}, {`o"neil`, "two", true}, {"ann", "three", true}} {
		if err := AddUser(path, step.name, step.password, step.admin); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	users, err := LoadUsers(path)
	if err != nil || users.Len() != 2 {
		t.Fatalf("%d users, %v", users.Len(), err)
	}
	ann, _ := users.Lookup("ann")
	again, err := derive("three", ann.Verifier.Salt, ann.Verifier.Iterations)
	if err != nil || !again.Equal(ann.Verifier) || !ann.Admin {
		t.Errorf("ann was not replaced: %+v", ann)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

func TestAddUser_KeepsOtherLines(t *testing.T) {
	path := writeUsers(t, "; kept\n\"bob\" \""+sample+"\"\n\"eve\" \""+sample+"\" \"admin\"")
	if err := AddUser(path, "bob", "x", false); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(path)
	lines := strings.Split(string(raw), "\n")
	if len(lines) != 4 || lines[0] != "; kept" || lines[2] != "\"eve\" \""+sample+"\" \"admin\"" || strings.Contains(lines[1], sample) {
		t.Errorf("got %s", raw)
	}
	for _, bad := range []string{"", "a\nb", "a\x00"} {
		if err := AddUser(path, bad, "x", false); err == nil {
			t.Errorf("name %q is taken", bad)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add(`"a""b" "` + sample + `" "admin"`)
	f.Add(`"a" "b`)
	f.Fuzz(func(t *testing.T, line string) {
		user, ok, err := parseLine(line)
		if !ok || err != nil {
			return
		}
		again, ok, err := parseLine(quoteWord(user.Name) + " " + quoteWord(user.Verifier.String()))
		if err != nil || !ok || again.Name != user.Name || !again.Verifier.Equal(user.Verifier) {
			t.Errorf("%q reads back as %+v, %v", line, again, err)
		}
	})
}
