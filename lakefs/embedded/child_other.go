//go:build !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
)

// dieWithParent has nothing to do here: only Linux has a signal for it. The next start ends what was left.
func dieWithParent(*exec.Cmd) {}

// serversIn is the process that postmaster.pid names, if it is alive and was started on the cluster, which is then in
// its command line.
func serversIn(cluster string, postmaster int) []int {
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(postmaster)).Output()
	if err != nil || !strings.Contains(string(out), cluster) {
		return nil
	}
	return []int{postmaster}
}
