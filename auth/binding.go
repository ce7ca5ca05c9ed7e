package auth

import (
	"crypto"
	"crypto/x509"
	"fmt"

	_ "crypto/sha256" // the hashes that certificates are signed with
	_ "crypto/sha512"
)

// bindingType is the kind of channel binding offered: the login is bound to the certificate that the client sees.
const bindingType = "tls-server-end-point"

// The mechanisms, strongest first, by their names in RFC 7677.
const (
	mechanismPlus = "SCRAM-SHA-256-PLUS"
	mechanism     = "SCRAM-SHA-256"
)

// signatureHashes are the hashes in the algorithms that sign certificates. RFC 5929, section 4.1, puts SHA-256 in the
// place of those that are broken.
var signatureHashes = map[x509.SignatureAlgorithm]crypto.Hash{
	x509.MD5WithRSA:       crypto.SHA256,
	x509.SHA1WithRSA:      crypto.SHA256,
	x509.ECDSAWithSHA1:    crypto.SHA256,
	x509.SHA256WithRSA:    crypto.SHA256,
	x509.SHA256WithRSAPSS: crypto.SHA256,
	x509.ECDSAWithSHA256:  crypto.SHA256,
	x509.SHA384WithRSA:    crypto.SHA384,
	x509.SHA384WithRSAPSS: crypto.SHA384,
	x509.ECDSAWithSHA384:  crypto.SHA384,
	x509.SHA512WithRSA:    crypto.SHA512,
	x509.SHA512WithRSAPSS: crypto.SHA512,
	x509.ECDSAWithSHA512:  crypto.SHA512,
}

// EndPoint is the channel-binding data tls-server-end-point of a server's certificate: its hash, by the algorithm that it
// is signed with (RFC 5929, section 4.1). Fails for a signature without one hash (Ed25519), for which no binding is
// defined: the mechanism without it is then all there is to offer.
func EndPoint(cert *x509.Certificate) ([]byte, error) {
	hash, ok := signatureHashes[cert.SignatureAlgorithm]
	if !ok {
		return nil, fmt.Errorf("no channel binding is defined for certificates signed by %v", cert.SignatureAlgorithm)
	}
	h := hash.New()
	h.Write(cert.Raw)
	return h.Sum(nil), nil
}
