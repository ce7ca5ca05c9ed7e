package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// dieWithParent has the kernel ask the process for a fast shutdown when the thread that forked it ends, as it does
// when Sluice is killed. Go sets this after the change of user, which would have cleared it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr.Pdeathsig = interrupt
}

// serversIn lists the live processes of PostgreSQL that work in a cluster, as each of its processes does. A person's
// shell in that folder is none.
func serversIn(cluster string, _ int) []int {
	real, err := filepath.EvalSymlinks(cluster)
	if err != nil {
		return nil
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // fails only for a malformed pattern
	var pids []int
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || cwd != real {
			continue
		}
		process := filepath.Dir(link)
		pid, err := strconv.Atoi(filepath.Base(process))
		exe, _ := os.Readlink(filepath.Join(process, "exe")) // "… (deleted)" after an upgrade
		if err == nil && strings.HasPrefix(filepath.Base(exe), "postgres") && !zombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// zombie reports whether a process has ended and only waits for its parent to notice.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// The name, in parentheses, may hold anything; the state is the letter after the last one (proc(5)).
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			return i+2 < len(stat) && stat[i+2] == 'Z'
		}
	}
	return false
}
