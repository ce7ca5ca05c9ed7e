package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrMalformed is wrapped by errors about messages that break the protocol, rather than hold a wrong proof.
var ErrMalformed = errors.New("malformed SCRAM message")

// Sizes as PostgreSQL has them (src/include/common/scram-common.h).
const (
	defaultIterations = 4096
	iterationsMax     = 10_000_000 // keeps a verifier from costing the client minutes
	saltBytes         = 16
	nonceBytes        = 18
)

// verifierPrefix begins a verifier; the mechanism's name.
const verifierPrefix = mechanism

// Verifier is what a server keeps instead of a password (RFC 5803). It checks proofs and cannot make them.
type Verifier struct {
	Iterations int
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
}

// NewVerifier makes the verifier of a password, with a salt of its own.
func NewVerifier(password string) (Verifier, error) {
	if password == "" {
		return Verifier{}, errors.New("an empty password cannot be used to log in")
	}
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return Verifier{}, fmt.Errorf("make a salt: %w", err)
	}
	return derive(password, salt, defaultIterations)
}

// derive computes the keys of RFC 5802, section 3.
func derive(password string, salt []byte, iterations int) (Verifier, error) {
	salted, err := pbkdf2.Key(sha256.New, prepare(password), salt, iterations, sha256.Size)
	if err != nil {
		return Verifier{}, fmt.Errorf("derive keys: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	return Verifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: mac(salted, "Server Key")}, nil
}

// mac is HMAC-SHA-256.
func mac(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil)
}

// ParseVerifier reads SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey, the form that pg_authid holds. Errors do not
// repeat the text, as it may be a password.
func ParseVerifier(s string) (Verifier, error) {
	parts := strings.Split(s, "$")
	if len(parts) != 3 || parts[0] != verifierPrefix {
		return Verifier{}, notVerifier(s)
	}
	count, salt, ok1 := strings.Cut(parts[1], ":")
	stored, server, ok2 := strings.Cut(parts[2], ":")
	iterations, err := strconv.Atoi(count)
	if !ok1 || !ok2 || err != nil || iterations < 1 || iterations > iterationsMax {
		return Verifier{}, errors.New("not a valid SCRAM-SHA-256 verifier")
	}
	v := Verifier{Iterations: iterations}
	for _, field := range []struct {
		to   *[]byte
		text string
		size int // 0 = any
	}{{&v.Salt, salt, 0}, {&v.StoredKey, stored, sha256.Size}, {&v.ServerKey, server, sha256.Size}} {
		*field.to, err = decodeBase64(field.text)
		if err != nil || len(*field.to) == 0 || field.size > 0 && len(*field.to) != field.size {
			return Verifier{}, errors.New("not a valid SCRAM-SHA-256 verifier")
		}
	}
	return v, nil
}

// md5Length is the length of PostgreSQL's MD5 hashes, "md5" and 32 digits.
const md5Length = 35

// notVerifier says what was found in a verifier's place.
func notVerifier(s string) error {
	if strings.HasPrefix(s, "md5") && len(s) == md5Length {
		return errors.New("an MD5 hash cannot be used, only a SCRAM-SHA-256 verifier")
	}
	return errors.New("a plain password cannot be used, only a SCRAM-SHA-256 verifier")
}

// String writes the form that ParseVerifier reads.
func (v Verifier) String() string {
	return fmt.Sprintf("%s$%d:%s$%s:%s", verifierPrefix, v.Iterations, encodeBase64(v.Salt), encodeBase64(v.StoredKey), encodeBase64(v.ServerKey))
}

// encodeBase64 is the encoding of SCRAM: standard, padded.
func encodeBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decodeBase64 refuses line ends and loose bits, so that one value has one spelling.
func decodeBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}

// Exchange is the server's side of one SCRAM-SHA-256 login (RFC 5802, RFC 7677). OfferBinding if there is TLS, Select,
// First, then Final; each once.
type Exchange struct {
	verifier    Verifier
	known       bool
	endPoint    []byte // channel-binding data; nil: none is offered
	plus        bool   // the client has chosen to use it
	step        int
	header      string // gs2-header, as the client sent it
	firstBare   string
	serverFirst string
	nonce       string // both halves
}

// malformed makes an error about a message.
func malformed(detail string) error { return fmt.Errorf("%w: %s", ErrMalformed, detail) }

// OfferBinding has the exchange offer to bind the login to a TLS connection whose certificate is this end point's.
func (e *Exchange) OfferBinding(endPoint []byte) { e.endPoint = endPoint }

// Mechanisms are what is offered, the best first.
func (e *Exchange) Mechanisms() []string {
	if e.endPoint != nil {
		return []string{mechanismPlus, mechanism}
	}
	return []string{mechanism}
}

// Select takes the client's choice. ErrMalformed: it was not offered.
func (e *Exchange) Select(chosen string) error {
	if !slices.Contains(e.Mechanisms(), chosen) {
		return malformed("client selected an invalid SASL authentication mechanism")
	}
	e.plus = chosen == mechanismPlus
	return nil
}

// First takes client-first-message and gives server-first-message. The name in the message is ignored, as in PostgreSQL:
// the start-up packet has named the user.
func (e *Exchange) First(clientFirst []byte) ([]byte, error) {
	if e.step != 0 {
		return nil, malformed("client-first-message came twice")
	}
	e.step = 1
	header, bare, err := e.splitHeader(string(clientFirst))
	if err != nil {
		return nil, err
	}
	nonce, err := clientNonce(bare)
	if err != nil {
		return nil, err
	}
	random := make([]byte, nonceBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	e.header, e.firstBare, e.nonce = header, bare, nonce+encodeBase64(random)
	e.serverFirst = fmt.Sprintf("r=%s,s=%s,i=%d", e.nonce, encodeBase64(e.verifier.Salt), e.verifier.Iterations)
	return []byte(e.serverFirst), nil
}

// splitHeader takes gs2-header off: the client's word on channel binding, and an empty authorization identity.
func (e *Exchange) splitHeader(message string) (header, bare string, err error) {
	flag, rest, ok := strings.Cut(message, ",")
	identity, bare, ok2 := strings.Cut(rest, ",")
	if !ok || !ok2 {
		return "", "", malformed("no GS2 header")
	}
	if err := e.checkFlag(flag); err != nil {
		return "", "", err
	}
	if identity != "" {
		return "", "", malformed("client uses an authorization identity, which is not supported")
	}
	return message[:len(message)-len(bare)], bare, nil
}

// checkFlag checks the client's word on channel binding: p=TYPE it binds, n it cannot, y it could but believes that the
// server cannot. The last is a lie of somebody in between if the server has offered it.
func (e *Exchange) checkFlag(flag string) error {
	kind, binds := strings.CutPrefix(flag, "p=")
	switch {
	case binds && !e.plus:
		return malformed("client requires channel binding, which it has not selected")
	case binds && kind != bindingType:
		return malformed("unsupported SCRAM channel-binding type")
	case binds:
		return nil
	case flag != "n" && flag != "y":
		return malformed("unknown channel-binding flag")
	case e.plus:
		return malformed("client selected " + mechanismPlus + " without channel binding")
	case flag == "y" && e.endPoint != nil:
		return malformed("SCRAM channel binding negotiation error: the client believes that the server does not support it")
	}
	return nil
}

// clientNonce checks client-first-message-bare and takes the nonce from it.
func clientNonce(bare string) (string, error) {
	fields := strings.Split(bare, ",")
	switch {
	case strings.HasPrefix(fields[0], "m="):
		return "", malformed("client requires an unsupported SCRAM extension")
	case len(fields) < 2 || !strings.HasPrefix(fields[0], "n=") || !strings.HasPrefix(fields[1], "r="):
		return "", malformed("name and nonce expected")
	case !validExtensions(fields[2:]):
		return "", malformed("attribute expected")
	}
	nonce := fields[1][2:]
	if nonce == "" || !printable(nonce) {
		return "", malformed("non-printable characters in SCRAM nonce")
	}
	return nonce, nil
}

// validExtensions says whether these are attributes, which RFC 5802 has a server ignore when it does not know them.
func validExtensions(fields []string) bool {
	for _, f := range fields {
		if len(f) < 2 || f[1] != '=' || (f[0]|0x20) < 'a' || (f[0]|0x20) > 'z' {
			return false
		}
	}
	return true
}

// printable says ASCII without space and comma.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e || s[i] == ',' {
			return false
		}
	}
	return true
}

// Final takes client-final-message and gives server-final-message, or ErrAuth when the proof is wrong or there is no
// such user.
func (e *Exchange) Final(clientFinal []byte) ([]byte, error) {
	if e.step != 1 {
		return nil, malformed("client-final-message came out of order")
	}
	e.step = 2
	message := string(clientFinal)
	at := strings.LastIndex(message, ",p=")
	if at < 0 {
		return nil, malformed("no proof")
	}
	withoutProof := message[:at]
	if err := e.checkFinal(withoutProof); err != nil {
		return nil, err
	}
	proof, err := decodeBase64(message[at+len(",p="):])
	if err != nil || len(proof) != sha256.Size {
		return nil, malformed("malformed proof")
	}
	transcript := e.firstBare + "," + e.serverFirst + "," + withoutProof
	if !e.proven(proof, transcript) {
		return nil, ErrAuth
	}
	return []byte("v=" + encodeBase64(mac(e.verifier.ServerKey, transcript))), nil
}

// checkFinal compares what the client repeats: the header of its first message, with the certificate's hash if the login
// is bound to that, and the nonce. Another hash is somebody in between.
func (e *Exchange) checkFinal(withoutProof string) error {
	fields := strings.Split(withoutProof, ",")
	binding := []byte(e.header)
	if e.plus {
		binding = append(binding, e.endPoint...)
	}
	switch {
	case len(fields) < 2 || !strings.HasPrefix(fields[0], "c=") || !strings.HasPrefix(fields[1], "r="):
		return malformed("channel binding and nonce expected")
	case subtle.ConstantTimeCompare([]byte(fields[0][2:]), []byte(encodeBase64(binding))) != 1:
		return malformed("SCRAM channel binding check failed")
	case subtle.ConstantTimeCompare([]byte(fields[1][2:]), []byte(e.nonce)) != 1:
		return malformed("nonce does not match")
	case !validExtensions(fields[2:]):
		return malformed("attribute expected")
	}
	return nil
}

// proven recovers the client's key from the proof and compares its hash with the stored one. Users that do not exist
// fail after the same work.
func (e *Exchange) proven(proof []byte, transcript string) bool {
	signature := mac(e.verifier.StoredKey, transcript)
	key := make([]byte, sha256.Size)
	subtle.XORBytes(key, proof, signature)
	hash := sha256.Sum256(key)
	equal := subtle.ConstantTimeCompare(hash[:], e.verifier.StoredKey) == 1
	return equal && e.known
}

// Equal says whether two verifiers are the same.
func (v Verifier) Equal(w Verifier) bool {
	return v.Iterations == w.Iterations && bytes.Equal(v.Salt, w.Salt) && hmac.Equal(v.StoredKey, w.StoredKey) && hmac.Equal(v.ServerKey, w.ServerKey)
}
