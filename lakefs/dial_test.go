package lakefs

import (
	"strings"
	"testing"
	"time"
)

// TestConfig_TLS: what reaches another machine is encrypted and verified; what stays here need not be.
func TestConfig_TLS(t *testing.T) {
	for dsn, want := range map[string]string{
		"host=/tmp":                                     "plain",
		"host=localhost sslmode=disable":                "plain",
		"postgres://u@[::1]/d?sslmode=disable":          "plain",
		"host=127.0.0.5 sslmode=disable":                "plain",
		"host=db.example sslmode=require":               "verified",
		"host=db.example":                               "verified", // prefer, without its plain fallback
		"host=db.example sslmode=allow":                 "verified",
		"host=db.example sslmode=verify-full":           "verified",
		"host=db.example sslmode=disable":               "refused",
		"host=10.0.0.1 sslmode=disable":                 "refused",
		"host=localhost.evil.example sslmode=disable":   "refused",
		"host=a.example,b.example sslmode=require":      "verified",
		"host=/tmp,b.example sslmode=disable":           "plain",
		"postgres://u@127.0.0.1.evil/d?sslmode=disable": "refused",
	} {
		if got := security(t, Config{DSN: dsn}); got != want {
			t.Errorf("%s: %s, not %s", dsn, got, want)
		}
	}
	if got := security(t, Config{DSN: "host=db.example sslmode=disable", AllowPlaintext: true}); got != "plain" {
		t.Errorf("plaintext is allowed: %s", got)
	}
}

// security sums up what may happen on the way to any of a configuration's servers.
func security(t *testing.T, c Config) string {
	pc, err := c.poolConfig()
	if err != nil {
		if !strings.Contains(err.Error(), "encrypted") {
			t.Error(err)
		}
		return "refused"
	}
	worst := "verified"
	if pc.ConnConfig.TLSConfig == nil || pc.ConnConfig.TLSConfig.InsecureSkipVerify {
		worst = "plain"
	}
	for _, s := range pc.ConnConfig.Fallbacks {
		if s.TLSConfig == nil || s.TLSConfig.InsecureSkipVerify || s.TLSConfig.ServerName != s.Host {
			worst = "plain"
		}
	}
	return worst
}

// TestConfig_Defaults: what is not said, and what is too little.
func TestConfig_Defaults(t *testing.T) {
	pc, err := Config{DSN: "host=/tmp pool_max_conns=3 pool_min_conns=100", MaxConns: 1}.poolConfig()
	if err != nil {
		t.Fatal(err)
	}
	if pc.MaxConns != connsMin || pc.MinConns != connsMin || pc.ConnConfig.ConnectTimeout != connectMax || pc.ConnConfig.RuntimeParams["application_name"] != applicationName {
		t.Errorf("%d connections at most, %d at least, %s to connect, %v", pc.MaxConns, pc.MinConns, pc.ConnConfig.ConnectTimeout, pc.ConnConfig.RuntimeParams)
	}
	for set, want := range map[time.Duration]time.Duration{0: 600 * time.Second, -1: 0, time.Hour: time.Hour} {
		if got := (Config{ReapGrace: set}).grace(); got != want {
			t.Errorf("grace %s becomes %s", set, got)
		}
	}
}

// TestConfig_MalformedDSN: a DSN that cannot be read is not quoted, as it may hold a password.
func TestConfig_MalformedDSN(t *testing.T) {
	for _, dsn := range []string{"postgres://u:secret@host:port/d", "host=/tmp password='secret", "host=/tmp password=secret connect_timeout=x", "postgres://u:sec%ret@h/secret"} {
		_, err := Config{DSN: dsn}.poolConfig()
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
