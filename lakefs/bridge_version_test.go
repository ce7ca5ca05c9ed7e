package lakefs

import (
	"strings"
	"testing"
)

// TestBridge_Version: the bridge is to one version of DuckDB, and says which when it meets another.
func TestBridge_Version(t *testing.T) {
	if err := checkVersion("v1.5.5"); err != nil {
		t.Error(err)
	}
	for _, version := range []string{"v1.5.6", "v1.5.4", "v2.0.0-dev1", ""} {
		if err := checkVersion(version); err == nil || !strings.Contains(err.Error(), "v1.5.5") {
			t.Errorf("DuckDB %q: %v", version, err)
		}
	}
}
