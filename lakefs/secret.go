package lakefs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// secret is one of DuckDB's.
type secret struct {
	kind string      // DuckDB's TYPE
	keys [][2]string // keys and values, without those that are NULL
}

// secretKeys are the keys that a postgres secret may have. Others are refused rather than ignored: what a connection of
// the store cannot do, and what names a file of this machine (passfile, service, sslrootcert, sslcert, sslkey), which
// SQL does not reach here.
var secretKeys = []string{
	"host", "port", "dbname", "database", "user", "password", "connect_timeout", "application_name", "options",
	"target_session_attrs", "require_auth", "channel_binding", "sslmode", "sslnegotiation", "sslsni",
	"min_protocol_version", "max_protocol_version",
}

// secretDSN is the connection string that a secret stands for, if there is such a secret. Errors name the secret and
// its keys, never a value.
func secretDSN(c credentials, name string) (dsn string, found bool, err error) {
	s, found, err := c.secret(name)
	if err != nil || !found {
		return "", false, err
	}
	if dsn, err = s.dsn(); err != nil {
		return "", true, fmt.Errorf("%w: secret %q %w", errCredentials, name, err)
	}
	return dsn, true, nil
}

// dsn is a URI as it stands, else the keys as libpq's keyword string.
func (s secret) dsn() (string, error) {
	if s.kind != "postgres" {
		return "", fmt.Errorf("is of type %s, not postgres", s.kind)
	}
	for _, kv := range s.keys {
		if kv[0] == "uri" {
			return kv[1], checkURI(kv[1])
		}
	}
	var b strings.Builder
	b.WriteString("password=''") // unless there is one: that of Sluice's own environment is not for other servers
	for _, kv := range s.keys {
		if !slices.Contains(secretKeys, kv[0]) {
			return "", fmt.Errorf("has the key %s, which pgvfs does not support", kv[0])
		}
		fmt.Fprintf(&b, " %s='%s'", kv[0], dsnEscaper.Replace(kv[1]))
	}
	return b.String(), nil
}

// dsnEscaper quotes for libpq's keyword strings (manual, 34.1.1.1 "Keyword/Value Connection Strings").
var dsnEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// checkURI holds a URI to the same keys. Why it cannot be parsed is not told, since that may quote it.
func checkURI(uri string) error {
	options := pgconn.ParseConfigOptions{ConnStringAllowedKeys: secretKeys}
	if _, err := pgconn.ParseConfigWithOptions(uri, options); err != nil {
		return errors.New("has a uri that is malformed or has an option that pgvfs does not support")
	}
	return nil
}
