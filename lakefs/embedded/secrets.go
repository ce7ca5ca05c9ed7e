package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// secrets are the passwords of both roles.
type secrets struct{ superuser, service string }

// loadSecrets reads the home's password file, or makes one for a cluster that is still to be made. It is written
// before the cluster, so that no cluster can be without it.
func loadSecrets(h home, clusterExists bool) (secrets, error) {
	text, err := os.ReadFile(h.passwords)
	switch {
	case err == nil:
		return parseSecrets(h.passwords, string(text))
	case !errors.Is(err, fs.ErrNotExist):
		return secrets{}, fmt.Errorf("read the passwords: %w", err)
	case clusterExists:
		return secrets{}, fmt.Errorf("%q is gone, and with it the passwords of the cluster beside it; "+
			"bring it back, or set new ones with `postgres --single`", h.passwords)
	}
	s := secrets{superuser: rand.Text(), service: rand.Text()}
	if err := os.WriteFile(h.passwords, []byte(s.format()), 0o600); err != nil {
		return secrets{}, fmt.Errorf("write the passwords: %w", err)
	}
	return s, nil
}

// format is libpq's password file (PostgreSQL manual, 34.16): host:port:database:user:password. The host is any, since
// a data directory may be moved. rand.Text has letters and digits only, so nothing needs escaping.
func (s secrets) format() string {
	return fmt.Sprintf("*:%s:*:%s:%s\n*:%s:*:%s:%s\n", port, superuser, s.superuser, port, serviceRole, s.service)
}

// parseSecrets reads what format wrote.
func parseSecrets(path, text string) (secrets, error) {
	found := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if fields := strings.SplitN(line, ":", 5); len(fields) == 5 {
			found[fields[3]] = fields[4]
		}
	}
	s := secrets{superuser: found[superuser], service: found[serviceRole]}
	if s.superuser == "" || s.service == "" {
		return secrets{}, fmt.Errorf("%q does not hold the passwords of %s and %s", path, superuser, serviceRole)
	}
	return s, nil
}
