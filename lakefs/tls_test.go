package lakefs_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
)

// remoteNames are names of this machine that are not taken for it: spelled like this they might be another's.
var remoteNames = []string{"LOCALHOST", "localhost.", "ip6-loopback"}

// remoteName is one that gets to the loopback address here.
func remoteName(t *testing.T) string {
	t.Helper()
	for _, name := range remoteNames {
		found, err := net.DefaultResolver.LookupHost(t.Context(), name)
		if err == nil && strings.Contains(strings.Join(found, " "), "127.0.0.1") && !lakefs.IsLocal(name) {
			return name
		}
	}
	t.Skip("NOT TESTED: connections to other machines; no name of this one can stand for another's")
	return ""
}

// What comes of a try to open a store.
const (
	encrypted   = "encrypted"
	plain       = "plain"
	unknownCA   = "signed by unknown authority"
	wrongName   = "failed to verify certificate" // the name is looked at before who has signed it
	unprotected = "would not be encrypted"       // and nothing was sent
	noTLS       = "refused TLS"
)

// wrongPassword is nobody's.
const wrongPassword = "guessed-wrong"

// TestTLS: whom a store talks to, and how. To other machines it is encrypted, to a server that has been verified, or not
// at all, whatever the DSN asks for; to this one it is as the DSN says.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := embeddedtest.Cluster(t, embeddedtest.ClusterOptions{TLS: true, Params: map[string]string{"log_connections": "on"}})
	x := newFixture(t, server, bySocket)
	remote := remoteName(t)
	t.Run("Modes", func(t *testing.T) { tlsModes(t, x, remote) })
	t.Run("Others", func(t *testing.T) { tlsOthers(t, x, remote) })
	t.Run("Environment", func(t *testing.T) { tlsEnvironment(t, x, remote) })
	t.Run("ClientCertificate", func(t *testing.T) { tlsClient(t, x, remote) })
	t.Run("NoServerSide", func(t *testing.T) { noServerSide(t, x, remote) })
}

// tlsModes: every sslmode, with the right authority, another and none.
func tlsModes(t *testing.T, x *fixture, remote string) {
	s := x.server
	ca, otherCA := " sslrootcert='"+s.CA()+"'", " sslrootcert='"+s.OtherCA(t)+"'"
	hosts := map[string]string{"remote": remote, "here": "127.0.0.1"}
	for _, c := range []struct {
		host, more   string
		right, wrong string // what comes of it when the certificate is for the host, and when it is for another
	}{
		{"remote", "sslmode=verify-full" + ca, encrypted, wrongName},
		{"remote", "sslmode=verify-ca" + ca, encrypted, wrongName},
		{"remote", "sslmode=require" + ca, encrypted, wrongName},
		{"remote", "sslmode=prefer" + ca, encrypted, wrongName},
		{"remote", "sslmode=allow" + ca, encrypted, wrongName},
		{"remote", strings.TrimSpace(ca), encrypted, wrongName},
		{"remote", "sslmode=verify-full sslsni=0" + ca, encrypted, wrongName},
		{"remote", "sslmode=verify-full", unknownCA, wrongName},
		{"remote", "sslmode=require", unknownCA, wrongName},
		{"remote", "sslmode=prefer", unknownCA, wrongName},
		{"remote", "sslmode=require sslrootcert=system", unknownCA, wrongName},
		{"remote", "sslmode=verify-full" + otherCA, unknownCA, wrongName},
		{"remote", "sslmode=verify-ca" + otherCA, unknownCA, wrongName},
		{"remote", "sslmode=require" + otherCA, unknownCA, wrongName},
		{"remote", "sslmode=disable", unprotected, unprotected},
		{"remote", "sslmode=disable" + ca, unprotected, unprotected},
		{"here", "sslmode=disable", plain, plain},
		{"here", "sslmode=prefer", encrypted, encrypted},
		{"here", "sslmode=require", encrypted, encrypted},
		{"here", "sslmode=verify-ca" + ca, encrypted, encrypted},
		{"here", "sslmode=verify-full" + ca, encrypted, wrongName},
		{"here", "sslmode=verify-full", unknownCA, wrongName},
	} {
		t.Run(c.host+" "+strings.ReplaceAll(c.more, s.CA(), "CA"), func(t *testing.T) {
			config := lakefs.Config{DSN: s.TCP(hosts[c.host], c.more)}
			s.Certify(t, hosts[c.host])
			x.wantOutcome(t, config, c.right)
			s.Certify(t, "elsewhere.example")
			x.wantOutcome(t, config, c.wrong)
		})
	}
}

// tlsOthers: plaintext where it is allowed, several hosts, and what fails for other reasons.
func tlsOthers(t *testing.T, x *fixture, remote string) {
	s := x.server
	s.Certify(t, remote)
	ca := " sslrootcert='" + s.CA() + "'"
	for more, want := range map[string]string{"sslmode=disable": plain, "sslmode=prefer": encrypted, "sslmode=require": encrypted} {
		x.wantOutcome(t, lakefs.Config{DSN: s.TCP(remote, more), AllowPlaintext: true}, want)
	}
	for dsn, want := range map[string]string{
		s.DSN(): plain, // the Unix socket
		s.TCP(remote+",127.0.0.1", "sslmode=disable"):               plain, // the first is left out
		s.TCP(remote, "sslmode=require password="+wrongPassword+ca): "28P01",
		s.TCP("none.invalid", "sslmode=require"+ca):                 "none.invalid",
		s.TCP(remote, "sslmode=verify-full sslrootcert=/none"):      "/none",
		s.TCP(remote, "sslmode=some"):                               "sslmode",
	} {
		x.wantOutcome(t, lakefs.Config{DSN: dsn}, want)
	}
}

// noServerSide: a server without TLS is refused from afar, whatever the DSN would put up with.
func noServerSide(t *testing.T, x *fixture, remote string) {
	s := x.server
	s.Set(t, map[string]string{"ssl": "off"})
	for _, mode := range []string{"allow", "prefer", "require", "verify-full"} {
		x.wantOutcome(t, lakefs.Config{DSN: s.TCP(remote, "sslmode="+mode)}, noTLS)
	}
	x.wantOutcome(t, lakefs.Config{DSN: s.TCP(remote, "sslmode=prefer"), AllowPlaintext: true}, plain)
	x.wantOutcome(t, lakefs.Config{DSN: s.TCP("127.0.0.1", "sslmode=prefer")}, plain)
	x.wantOutcome(t, lakefs.Config{DSN: s.TCP("127.0.0.1", "sslmode=require")}, noTLS)
}

// tlsClient: a server that asks for a client's certificate is shown it, near or far.
func tlsClient(t *testing.T, x *fixture, remote string) {
	s := x.server
	cert, key := s.ClientCertificate(t)
	for _, host := range []string{"127.0.0.1", remote} {
		s.Certify(t, host)
		more := "sslmode=verify-full sslrootcert='" + s.CA() + "'"
		x.wantOutcome(t, lakefs.Config{DSN: s.TCP(host, more)}, "requires a valid client certificate")
		x.wantOutcome(t, lakefs.Config{DSN: s.TCP(host, fmt.Sprintf("%s sslcert='%s' sslkey='%s'", more, cert, key))}, encrypted)
	}
	s.NoClientCertificate(t)
}

// tryAlone is the environment variable that has TestTLS_Alone try a DSN; the session is looked at by a second.
const tryAlone = "SLUICE_TEST_TRY"

// tlsEnvironment: what the environment says about TLS counts like the DSN. Each try is a process of its own: Go reads the
// system's certificates once.
func tlsEnvironment(t *testing.T, x *fixture, remote string) {
	s := x.server
	s.Certify(t, remote)
	for _, c := range []struct{ env, more, want string }{
		{"", "sslmode=verify-full", unknownCA},
		{"PGSSLROOTCERT=" + s.CA(), "sslmode=verify-full", encrypted},
		{"PGSSLROOTCERT=" + s.CA(), "sslmode=require", encrypted},
		{"PGSSLROOTCERT=" + s.OtherCA(t), "sslmode=require", unknownCA},
		{"PGSSLROOTCERT=" + s.OtherCA(t), "sslmode=require sslrootcert='" + s.CA() + "'", encrypted},
		{"PGSSLMODE=disable", "", unprotected},
		{"PGSSLMODE=require", "", unknownCA},
		{"SSL_CERT_FILE=" + s.CA(), "sslmode=verify-full", encrypted},
		{"SSL_CERT_FILE=" + s.CA(), "sslrootcert=system", encrypted},
		{"SSL_CERT_FILE=" + s.CA(), "sslmode=require sslrootcert=system", encrypted},
	} {
		if strings.HasPrefix(c.env, "SSL_CERT_FILE") && runtime.GOOS != "linux" {
			t.Log("NOT TESTED: certificates of the system, which are elsewhere on this one")
			continue
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTLS_Alone$", "-test.v")
		cmd.Env = append(os.Environ(), c.env, tryAlone+"="+s.TCP(remote, c.more)+"\n"+s.DSN())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "outcome: "+c.want) && (c.want == encrypted || !strings.Contains(string(out), c.want)) {
			t.Errorf("%s %s: not %s: %v\n%s", c.env, c.more, c.want, err, out)
		}
		if strings.Contains(string(out), s.Password()) {
			t.Errorf("%s %s: the error has the password in it", c.env, c.more)
		}
	}
}

// TestTLS_Alone is tlsEnvironment's process.
func TestTLS_Alone(t *testing.T) {
	if dsn, adminDSN, found := strings.Cut(os.Getenv(tryAlone), "\n"); found {
		x := &fixture{admin: connect(t, adminDSN)}
		t.Log("outcome: " + x.try(t, lakefs.Config{DSN: dsn}))
	}
}

// wantOutcome opens a store. No error may quote the password, and what is refused for what it is must not have reached
// the server.
func (x *fixture) wantOutcome(t *testing.T, config lakefs.Config, want string) {
	t.Helper()
	const received = "connection received"
	before := strings.Count(x.server.Log(t), received)
	got := x.try(t, config)
	for _, secret := range []string{x.server.Password(), wrongPassword} {
		if strings.Contains(got, secret) {
			t.Errorf("the error has the password in it: %s", got)
		}
	}
	if got != want && (want == plain || want == encrypted || !strings.Contains(got, want)) {
		t.Errorf("%s, not %s", got, want)
	}
	if after := strings.Count(x.server.Log(t), received); want == unprotected && after != before {
		t.Errorf("%d connections have been made", after-before)
	}
}

// tries counts, to name sessions.
var tries atomic.Int64

// try says what comes of opening a store: an error, or what its session is.
func (x *fixture) try(t *testing.T, config lakefs.Config) string {
	t.Helper()
	name := fmt.Sprint("try ", os.Getpid(), " ", tries.Add(1))
	config.DSN += " application_name='" + name + "'"
	p, err := lakefs.OpenPG(t.Context(), config)
	var certificate *tls.CertificateVerificationError
	if err != nil && strings.Contains(err.Error(), unknownCA) && !errors.As(err, &certificate) {
		return "an error of the wrong type: " + err.Error()
	}
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	secure := false
	err = x.admin.QueryRow(t.Context(), `SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
		WHERE application_name = $1`, name).Scan(&secure)
	switch {
	case err != nil:
		return err.Error()
	case secure:
		return encrypted
	}
	return plain
}
