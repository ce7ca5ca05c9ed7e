package engine

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sluice/lakefs"
)

// dsn is a libpq connection string taken apart, keyword by keyword (PostgreSQL manual, 34.1.1 "Connection Strings").
type dsn map[string]string

// parseDSN reads a URL (postgres:// or postgresql://) or a keyword string (host=… dbname='…').
func parseDSN(s string) (dsn, error) {
	if strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://") {
		return parseDSNURL(s)
	}
	return parseDSNKeywords(s)
}

// parseDSNURL reads the URL form; several hosts are separated by commas, each with a port of its own.
func parseDSNURL(s string) (dsn, error) {
	_, rest, _ := strings.Cut(s, "://")
	rest, query, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	d := dsn{}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, has := strings.Cut(authority[:at], ":")
		if err := d.setEscaped("user", user); err != nil {
			return nil, err
		}
		if has {
			if err := d.setEscaped("password", password); err != nil {
				return nil, err
			}
		}
		authority = authority[at+1:]
	}
	var hosts, ports []string
	for _, h := range strings.Split(authority, ",") {
		host, port := splitHostPort(h)
		hosts, ports = append(hosts, host), append(ports, port)
	}
	if err := d.setEscaped("host", strings.Join(hosts, ",")); err != nil {
		return nil, err
	}
	if p := strings.Join(ports, ","); strings.Trim(p, ",") != "" {
		d["port"] = p
	}
	if err := d.setEscaped("dbname", database); err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("parse the connection URL's parameters: %w", err)
	}
	for key, v := range values {
		d[key] = v[len(v)-1]
	}
	return d, nil
}

// splitHostPort splits host:port, where an IPv6 address stands in brackets.
func splitHostPort(s string) (host, port string) {
	if strings.HasPrefix(s, "[") {
		if end := strings.IndexByte(s, ']'); end > 0 {
			return s[1:end], strings.TrimPrefix(s[end+1:], ":")
		}
	}
	host, port, _ = strings.Cut(s, ":")
	return host, port
}

// setEscaped sets a percent-encoded part of a URL; an empty one sets nothing.
func (d dsn) setEscaped(key, value string) error {
	text, err := url.PathUnescape(value)
	if err != nil {
		// The value itself may hold a password and stays out of the error.
		return fmt.Errorf("parse the connection URL: %s is not percent-encoded", key)
	}
	if text != "" {
		d[key] = text
	}
	return nil
}

// parseDSNKeywords reads key=value pairs; values may be quoted with ' and escaped with \.
func parseDSNKeywords(s string) (dsn, error) {
	d := dsn{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		key, rest, ok := strings.Cut(s, "=")
		if key = strings.TrimSpace(key); !ok || strings.ContainsAny(key, " \t\n'") {
			// The word may be part of a password and stays out of the error.
			return nil, errors.New("parse the connection string: a keyword is not followed by =")
		}
		value, after, err := dsnValue(strings.TrimLeft(rest, " \t\n"))
		if err != nil {
			return nil, err
		}
		d[key] = value
		s = after
	}
	return d, nil
}

// dsnValue reads one value and returns what follows it.
func dsnValue(s string) (value, rest string, err error) {
	quoted := strings.HasPrefix(s, "'")
	var b strings.Builder
	i := 0
	if quoted {
		i = 1
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quoted && c == '\'':
			return b.String(), s[i+1:], nil
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
			return b.String(), s[i:], nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", fmt.Errorf("parse the connection string: a quoted value has no end")
	}
	return b.String(), "", nil
}

// String is the keyword form with its keys in order. It holds the password if d does.
func (d dsn) String() string {
	keys := make([]string, 0, len(d))
	for k := range d {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	parts := make([]string, len(keys))
	escape := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for i, k := range keys {
		parts[i] = k + "='" + escape.Replace(d[k]) + "'"
	}
	return strings.Join(parts, " ")
}

// verify makes libpq as strict as the chunk store's connections: other machines have to show a certificate that is
// theirs, of an authority that the system or sslrootcert trusts.
func (d dsn) verify() {
	for _, host := range strings.Split(d["host"], ",") {
		if host != "" && !lakefs.IsLocal(host) {
			d["sslmode"] = "verify-full"
			if d["sslrootcert"] == "" {
				d["sslrootcert"] = "system"
			}
			return
		}
	}
}
