package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

const (
	leftoverPoll  = 20 * time.Millisecond
	leftoverGrace = 30 * time.Second // a fast shutdown's checkpoint may have much to write; then the server must quit
)

// endLeftover clears what a killed Sluice left: a server that still runs on this cluster is shut down and waited for,
// and so are processes of one whose postmaster was killed: PostgreSQL would not start beside them. A postmaster.pid
// whose process is not this cluster's is removed: in a container the same number soon belongs to somebody else, and
// PostgreSQL would refuse to start for that. The caller holds the lock, so no other Sluice is concerned.
func endLeftover(ctx context.Context, h home, log zerolog.Logger) error {
	pidFile := filepath.Join(h.cluster, "postmaster.pid")
	postmaster, err := readPID(pidFile)
	if err != nil {
		return err
	}
	if pids := serversIn(h.cluster, postmaster); len(pids) > 0 {
		log.Warn().Ints("pids", pids).Msg("an earlier embedded postgresql still runs; ending it")
		if err := endServers(ctx, h.cluster, postmaster); err != nil {
			return err
		}
	}
	for _, stale := range []string{pidFile, h.socket(), h.socket() + ".lock"} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what an earlier server left: %w", err)
		}
	}
	return nil
}

// readPID reads the process id that PostgreSQL puts in the first line of postmaster.pid. 0: no file, or not a whole one.
func readPID(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid < 1 {
		return 0, nil
	}
	return pid, nil
}

// endServers shuts a cluster's processes down, fast and then at once, and waits until all have ended. A live
// postmaster sees to its children; those of a dead one are told themselves.
func endServers(ctx context.Context, cluster string, postmaster int) error {
	for _, signal := range []syscall.Signal{interrupt, quit} {
		deadline := time.Now().Add(leftoverGrace)
		for told := false; time.Now().Before(deadline); told = true {
			pids := serversIn(cluster, postmaster)
			if len(pids) == 0 {
				return nil
			}
			if slices.Contains(pids, postmaster) {
				pids = []int{postmaster}
			} else {
				signal = quit
			}
			if !told {
				if err := signalAll(pids, signal); err != nil {
					return fmt.Errorf("end an earlier server on this cluster: %w", err)
				}
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for the end of an earlier server on this cluster: %w", context.Cause(ctx))
			case <-time.After(leftoverPoll):
			}
		}
	}
	return fmt.Errorf("processes %v of an earlier server on this cluster do not end; end them by hand", serversIn(cluster, postmaster))
}

// signalAll signals processes; one that has just ended is no error.
func signalAll(pids []int, signal syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}
