package embeddedtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// certificateLife is how long a test's certificates are valid, from an hour ago.
const certificateLife = 24 * time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one that nobody else trusts.
func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{key: newKey(tb)}
	template := newTemplate(tb, "a test's authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = a.sign(tb, template, template, &a.key.PublicKey)
	return a
}

// issue makes a certificate and its key, as PEM. Names that look like addresses are those.
func (a *authority) issue(tb testing.TB, subject string, names ...string) (cert, key string) {
	tb.Helper()
	template := newTemplate(tb, subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	private := newKey(tb)
	signed := a.sign(tb, template, a.cert, &private.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	return pemText("CERTIFICATE", signed.Raw), pemText("PRIVATE KEY", der)
}

// sign is x509.CreateCertificate with the authority's key.
func (a *authority) sign(tb testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return cert
}

// newTemplate is what all certificates have.
func newTemplate(tb testing.TB, subject string) *x509.Certificate {
	tb.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	from := time.Now().Add(-time.Hour)
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: subject},
		NotBefore:    from,
		NotAfter:     from.Add(certificateLife),
	}
}

// newKey makes a private key.
func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// pemText is PEM of one block.
func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// CA is a file for sslrootcert: whoever trusts it trusts the server.
func (s *ClusterServer) CA() string { return s.path("ca.crt") }

// OtherCA makes a file for sslrootcert that has nothing to do with the server.
func (s *ClusterServer) OtherCA(tb testing.TB) string {
	tb.Helper()
	s.write(tb, "other-ca.crt", pemText("CERTIFICATE", newAuthority(tb).cert.Raw))
	return s.path("other-ca.crt")
}

// Certify has the server show a certificate for other names from now on.
func (s *ClusterServer) Certify(tb testing.TB, names ...string) {
	tb.Helper()
	s.writeCertificate(tb, names...)
	s.reload(tb)
}

// ClientCertificate makes files for sslcert and sslkey, and has the server ask the service role for them when it comes
// by TCP.
func (s *ClusterServer) ClientCertificate(tb testing.TB) (cert, key string) {
	tb.Helper()
	certText, keyText := s.tls.issue(tb, serviceRole)
	cert, key = s.path("client.crt"), s.path("client.key")
	for path, text := range map[string]string{cert: certText, key: keyText} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	const rule = "hostssl all " + serviceRole + " 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n"
	s.write(tb, "data/pg_hba.conf", rule+clusterHBA)
	s.reload(tb)
	return cert, key
}

// NoClientCertificate undoes ClientCertificate.
func (s *ClusterServer) NoClientCertificate(tb testing.TB) {
	tb.Helper()
	s.write(tb, "data/pg_hba.conf", clusterHBA)
	s.reload(tb)
}

// writeCertificate writes the server's certificate and key, and its authority's.
func (s *ClusterServer) writeCertificate(tb testing.TB, names ...string) {
	tb.Helper()
	cert, key := s.tls.issue(tb, "a test's server", names...)
	s.write(tb, "server.crt", cert)
	s.write(tb, "server.key", key)
	s.write(tb, "ca.crt", pemText("CERTIFICATE", s.tls.cert.Raw))
}
