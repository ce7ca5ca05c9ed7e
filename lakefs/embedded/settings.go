package embedded

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	mib = 1 << 20

	sharedBuffersMax = 1024 * mib // more helps little: what is read often is cached in Sluice and DuckDB
	sharedBuffersMin = 32 * mib
)

// settings are PostgreSQL's for its one job: few rows of metadata read often, file chunks written in bulk.
var settings = map[string]string{
	"max_connections":      "200",
	"fsync":                "on",
	"wal_level":            "replica",
	"hot_standby_feedback": "on", // on a standby: long reads there keep their rows here
	"wal_compression":      "on",

	// A load writes Parquet twice over, into WAL and tables: checkpoints by time rather than by volume, spread out.
	"max_wal_size":                 "4GB",
	"min_wal_size":                 "256MB",
	"checkpoint_timeout":           "15min",
	"checkpoint_completion_target": "0.9",

	"jit":              "off", // compiles for longer than any catalog query runs
	"random_page_cost": "1.1",

	"timezone":        "UTC",
	"log_timezone":    "UTC",
	"log_line_prefix": "%m [%p] %q%u@%d ",
	"log_checkpoints": "off",
	"log_lock_waits":  "on",
	"log_destination": "stderr", // which Sluice has opened as postgresql.log
	"lc_messages":     "C",
}

// settingsText is the settings file: the settings above, sized for a machine, and what the caller sets over them.
func settingsText(memory int64, params map[string]string) string {
	all := maps.Clone(settings)
	buffers := min(max(memory/4, sharedBuffersMin), sharedBuffersMax)
	all["shared_buffers"] = strconv.FormatInt(buffers/mib, 10) + "MB"
	all["effective_cache_size"] = strconv.FormatInt(max(memory/2, buffers)/mib, 10) + "MB"
	maps.Copy(all, params)
	var b strings.Builder
	b.WriteString("# written by sluice at each start\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = %s\n", name, quoteText(all[name]))
	}
	return b.String()
}

// memoryUnknown is assumed where neither the kernel nor a container says how much memory there is.
const memoryUnknown = 1024 * mib

// memoryBytes is the memory that this process may use: the machine's, or less if a control group says so.
func memoryBytes() int64 {
	memory := int64(memoryUnknown)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			memory = kib << 10
		}
	}
	if limit := controlGroupLimit(); limit > 0 && limit < memory {
		memory = limit
	}
	return memory
}

// controlGroupLimit is the lowest memory limit of this process's control group and those above it, 0 when there is
// none. In a container the group is usually the root of what can be seen.
func controlGroupLimit() int64 {
	lowest := int64(0)
	note := func(file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			return
		}
		// "max", version 2's word for no limit, is no number.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	note("/sys/fs/cgroup/memory/memory.limit_in_bytes") // version 1, as a container sees it
	for group := ownControlGroup(); ; group = path.Dir(group) {
		note(path.Join("/sys/fs/cgroup", group, "memory.max"))
		if group == "/" || group == "." {
			return lowest
		}
	}
}

// ownControlGroup is this process's group in version 2's one hierarchy.
func ownControlGroup() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "/"
	}
	for _, line := range strings.Split(string(text), "\n") {
		if group, ok := strings.CutPrefix(line, "0::"); ok {
			return path.Clean("/" + group)
		}
	}
	return "/"
}
