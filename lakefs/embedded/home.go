package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

const (
	// rootHomes is where root's clusters are when PostgreSQL's user cannot reach the data directory.
	rootHomes = "/var/lib/sluice"

	// passMode lets PostgreSQL's user pass through a folder of root's without reading what is in it.
	passMode = 0o711

	clusterMode = 0o700 // PostgreSQL refuses a data directory that others may enter

	lockPatience = 2 * time.Second
	lockPoll     = 20 * time.Millisecond
)

// socketPathMax is the longest path of a Unix socket: 107 bytes on Linux, 103 on macOS, a zero byte after it.
const socketPathMax = len(syscall.RawSockaddrUnix{}.Path) - 1

// home is the folder of one server, and the names in it.
type home struct {
	dir, cluster, sockets, passwords, log, lock string
	socketsAway                                 bool // sockets is in the system's temporary folder
}

// makeHome makes the home of a data directory, where PostgreSQL's user can reach it.
func makeHome(dataDir string, who *account, log zerolog.Logger) (home, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return home{}, err
	}
	if err := os.MkdirAll(dataDir, passMode); err != nil {
		return home{}, fmt.Errorf("make the data directory: %w", err)
	}
	dir, away := homeDir(dataDir, who)
	if away {
		log.Info().Str("data_dir", dataDir).Str("home", dir).Str("user", who.name).
			Msg("postgresql's user cannot reach the data directory, so the cluster is kept elsewhere")
	}
	if err := os.MkdirAll(dir, passMode); err != nil {
		return home{}, fmt.Errorf("make the cluster's folder: %w", err)
	}
	if !who.canReach(dir) {
		return home{}, fmt.Errorf("%v cannot reach %q, where its cluster would be; run sluice as an ordinary user, or with another --data-dir", who, dir)
	}
	return homeIn(dir), nil
}

// homeDir is where the home of a data directory is, which must be an absolute path.
func homeDir(dataDir string, who *account) (dir string, away bool) {
	if who.canReach(dataDir) {
		return filepath.Join(dataDir, "postgres"), false
	}
	return filepath.Join(rootHomes, shortHash(dataDir)), true
}

// homeIn names what is in a home.
func homeIn(dir string) home {
	h := home{
		dir:       dir,
		cluster:   filepath.Join(dir, "cluster"),
		sockets:   filepath.Join(dir, "sockets"),
		passwords: filepath.Join(dir, "pgpass"),
		log:       filepath.Join(dir, "postgresql.log"),
		lock:      filepath.Join(dir, "lock"),
	}
	if len(h.socket()) > socketPathMax {
		// Too long for a socket: a private folder with a short name, the same one each time so that killed servers
		// leave no trail of them.
		h.sockets, h.socketsAway = filepath.Join(os.TempDir(), "sluice-"+shortHash(dir)), true
	}
	return h
}

// socket is the path of the socket itself.
func (h home) socket() string { return filepath.Join(h.sockets, ".s.PGSQL."+port) }

// major is the major version of the cluster, 0 when there is none yet.
func (h home) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(h.cluster, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the cluster's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || major < majorMin {
		return 0, fmt.Errorf("the cluster in %q is of PostgreSQL %q; sluice works with %d and later", h.cluster, strings.TrimSpace(string(text)), majorMin)
	}
	return major, nil
}

// makeSockets makes the socket's folder, which nobody but PostgreSQL's user may enter. The system's temporary folder
// is everybody's: what stands there under our name must be ours.
func (h home) makeSockets(who *account) error {
	err := os.Mkdir(h.sockets, clusterMode)
	if err == nil {
		return who.own(h.sockets)
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the socket's folder: %w", err)
	}
	info, err := os.Lstat(h.sockets)
	if err != nil {
		return fmt.Errorf("make the socket's folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != who.uidOf() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%q, the socket's folder, must belong to %v and nobody else may enter it", h.sockets, who)
	}
	return nil
}

// removeSockets takes away the folder in the system's temporary folder; the one in the home stays.
func (h home) removeSockets() {
	if h.socketsAway {
		_ = os.Remove(h.sockets) // not empty: a server still uses it
	}
}

// lockHome takes the lock of a home for this process. The kernel gives it back however the process ends; a killed one
// with much memory takes a moment to end, while its supervisor may already have started this one.
func lockHome(ctx context.Context, h home, dataDir string) (*os.File, error) {
	f, err := os.OpenFile(h.lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPoll) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(lockedError(f, dataDir), f.Close())
		}
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockedError names the process that has the lock.
func lockedError(f *os.File, dataDir string) error {
	holder := make([]byte, 20)
	n, _ := f.ReadAt(holder, 0) // the id only helps the reader of the error
	return fmt.Errorf("another sluice (process %s) uses the data directory %q; stop it, or give this one a --data-dir or a --dsn of its own",
		strings.TrimSpace(string(holder[:n])), dataDir)
}

// shortHash names a folder after a path: 16 hexadecimal digits, so that equal ones do not occur by chance.
func shortHash(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}
