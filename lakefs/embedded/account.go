package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// accounts that PostgreSQL may run as when Sluice is root, in this order.
var accounts = []string{"postgres", "nobody"}

// account is the unprivileged user that PostgreSQL runs as. A nil account stands for this process's own user.
type account struct {
	name     string
	uid, gid int
}

// unprivileged chooses an account, nil when this process is not root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range accounts {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return &account{name: name, uid: uid, gid: gid}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as; " +
		"run sluice as an ordinary user, or give it a PostgreSQL with --dsn")
}

// attr starts a process as the account, in a process group of its own so that a terminal's Ctrl-C does not reach it.
func (a *account) attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// own gives a file or folder to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// uidOf is the id of the user that PostgreSQL runs as.
func (a *account) uidOf() int {
	if a == nil {
		return os.Geteuid()
	}
	return a.uid
}

// canReach reports whether the account may pass through path and every folder above it, by their permission bits.
// Folders that do not exist yet are no obstacle. One's own user is taken to reach what it asks for.
func (a *account) canReach(path string) bool {
	if a == nil {
		return true
	}
	for ; ; path = filepath.Dir(path) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return a.canPassAll(real)
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

// canPassAll is canReach for a path without symbolic links that exists.
func (a *account) canPassAll(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || !a.canPass(info) {
			return false
		}
		if path == filepath.Dir(path) {
			return true
		}
		path = filepath.Dir(path)
	}
}

// canPass reads the execute bit that concerns the account.
func (a *account) canPass(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	bit := os.FileMode(0o001)
	switch {
	case int(stat.Uid) == a.uid:
		bit = 0o100
	case int(stat.Gid) == a.gid:
		bit = 0o010
	}
	return info.Mode().Perm()&bit != 0
}

// String names the account for errors.
func (a *account) String() string {
	if a == nil {
		return "this user"
	}
	return fmt.Sprintf("user %s", a.name)
}
