package auth

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// client is the other side of the exchange, for tests: RFC 5802 with a password.
type client struct {
	password, header, nonce  string
	data                     []byte // channel-binding data
	firstBare, withoutProof  string
	serverKey                []byte
	transcript               string
	changeProof, changeNonce bool
}

func (c *client) first(name string) []byte {
	c.firstBare = "n=" + name + ",r=" + c.nonce
	return []byte(c.header + c.firstBare)
}

func (c *client) final(serverFirst []byte) []byte {
	fields := strings.Split(string(serverFirst), ",")
	nonce := fields[0][2:]
	salt, _ := decodeBase64(fields[1][2:])
	var iterations int
	fmt.Sscanf(fields[2], "i=%d", &iterations)
	if c.changeNonce {
		nonce += "x"
	}
	c.withoutProof = "c=" + encodeBase64(append([]byte(c.header), c.data...)) + ",r=" + nonce
	c.transcript = c.firstBare + "," + string(serverFirst) + "," + c.withoutProof
	salted, _ := pbkdf2.Key(sha256.New, c.password, salt, iterations, 32)
	key := mac(salted, "Client Key")
	stored := sha256.Sum256(key)
	subtle.XORBytes(key, key, mac(stored[:], c.transcript))
	if c.changeProof {
		key[0] ^= 1
	}
	c.serverKey = mac(salted, "Server Key")
	return []byte(c.withoutProof + ",p=" + encodeBase64(key))
}

func (c *client) accepts(serverFinal []byte) bool {
	return string(serverFinal) == "v="+encodeBase64(mac(c.serverKey, c.transcript))
}

// usersWith makes a list of one user.
func usersWith(t *testing.T, name, password string) *Users {
	t.Helper()
	v, err := NewVerifier(password)
	if err != nil {
		t.Fatal(err)
	}
	return NewUsers(User{Name: name, Verifier: v})
}

func TestExchange_RightPassword(t *testing.T) {
	users := usersWith(t, "ann", "pencil")
	for _, header := range []string{"n,,", "y,,"} {
		c := client{password: "pencil", header: header, nonce: "abc+/="}
		e := users.NewExchange("ann")
		reply, err := e.First(c.first(""))
		if err != nil {
			t.Fatal(err)
		}
		reply, err = e.Final(c.final(reply))
		if err != nil {
			t.Fatal(err)
		}
		if !c.accepts(reply) {
			t.Errorf("header %s: the client refuses %s", header, reply)
		}
	}
}

func TestExchange_Refused(t *testing.T) {
	users := usersWith(t, "ann", "pencil")
	cases := []struct {
		name, user string
		c          client
		want       error
	}{
		{"wrong password", "ann", client{password: "pen"}, ErrAuth},
		{"unknown user", "bob", client{password: "pencil"}, ErrAuth},
		{"wrong proof", "ann", client{password: "pencil", changeProof: true}, ErrAuth},
		{"wrong nonce", "ann", client{password: "pencil", changeNonce: true}, ErrMalformed},
	}
	for _, c := range cases {
		c.c.header, c.c.nonce = "n,,", "abc"
		e := users.NewExchange(c.user)
		reply, err := e.First(c.c.first(c.user))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, err = e.Final(c.c.final(reply)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if _, err = e.Final(c.c.final(reply)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: a second try gives %v", c.name, err)
		}
	}
}

// TestExchange_Binding: what clients may say about channel binding, with and without one being offered.
func TestExchange_Binding(t *testing.T) {
	users := usersWith(t, "ann", "pencil")
	ours, others := []byte("our certificate"), []byte("another certificate")
	for _, c := range []struct {
		name              string
		offered           []byte
		mechanism, header string
		data              []byte // that the client binds to
		works             bool
	}{
		{"bound", ours, mechanismPlus, "p=tls-server-end-point,,", ours, true},
		{"somebody in between", ours, mechanismPlus, "p=tls-server-end-point,,", others, false},
		{"bound to nothing", ours, mechanismPlus, "p=tls-server-end-point,,", nil, false},
		{"another type", ours, mechanismPlus, "p=tls-unique,,", ours, false},
		{"selected and not used", ours, mechanismPlus, "n,,", nil, false},
		{"selected and thought absent", ours, mechanismPlus, "y,,", nil, false},
		{"cannot", ours, mechanism, "n,,", nil, true},
		{"downgraded", ours, mechanism, "y,,", nil, false},
		{"used and not selected", ours, mechanism, "p=tls-server-end-point,,", ours, false},
		{"not offered", nil, mechanismPlus, "p=tls-server-end-point,,", ours, false},
		{"could", nil, mechanism, "y,,", nil, true},
	} {
		e := users.NewExchange("ann")
		e.OfferBinding(c.offered)
		err := e.Select(c.mechanism)
		who := client{password: "pencil", header: c.header, data: c.data, nonce: "abc"}
		var reply []byte
		if err == nil {
			reply, err = e.First(who.first(""))
		}
		if err == nil {
			reply, err = e.Final(who.final(reply))
		}
		if c.works && (err != nil || !who.accepts(reply)) || !c.works && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The example of RFC 7677, section 3.
func TestExchange_KnownVector(t *testing.T) {
	salt, _ := decodeBase64("W22ZaJ0SNY7soEsUEjb6gQ==")
	v, err := derive("pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	nonce := "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	e := Exchange{
		verifier: v, known: true, step: 1, header: "n,,", firstBare: "n=user,r=rOprNGfwEbeRWgbNEkqO", nonce: nonce,
		serverFirst: "r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
	}
	got, err := e.Final([]byte("c=biws,r=" + nonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
	if err != nil || string(got) != "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestExchange_UnknownUserLooksKnown(t *testing.T) {
	users := usersWith(t, "ann", "pencil")
	salt := func(name string) string {
		e := users.NewExchange(name)
		reply, err := e.First([]byte("n,,n=,r=x"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(reply), ",")
		return rest
	}
	if first, second := salt("bob"), salt("bob"); first != second || first == salt("eve") {
		t.Error("the salt of an unknown user is not stable, or not its own")
	}
	if len(salt("bob")) != len(salt("ann")) {
		t.Errorf("%s and %s can be told apart", salt("bob"), salt("ann"))
	}
}

func TestExchange_MalformedMessages(t *testing.T) {
	firsts := []string{
		"", "n", "n,", "n,,", "x,,n=,r=a", "p=tls-server-end-point,,n=,r=a", "n,a=bob,n=,r=a", "n,,m=ext,n=,r=a", "n,,n=", "n,,n=,r=",
		"n,,n=,r=a b", "n,,n=,r=a\x01", "n,,r=a,n=", "n,,n=,r=a,??", "n,,n=,r=ä",
	}
	for _, m := range firsts {
		if _, err := new(Users).NewExchange("a").First([]byte(m)); !errors.Is(err, ErrMalformed) {
			t.Errorf("first %q: %v", m, err)
		}
	}
	if _, err := new(Users).NewExchange("a").First([]byte("n,,n=,r=a,x=optional")); err != nil {
		t.Errorf("an optional extension: %v", err)
	}
	for _, m := range []string{"", "c=biws", "c=biws,r=%", "c=biws,r=%,p=", "c=biws,r=%,p=AAAA", "c=eSws,r=%,p=" + encodeBase64(make([]byte, 32)), "r=%,c=biws,p=AAAA", "c=biws,r=%,p=!"} {
		e := new(Users).NewExchange("a")
		if _, err := e.First([]byte("n,,n=,r=a")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Final([]byte(strings.ReplaceAll(m, "%", e.nonce))); !errors.Is(err, ErrMalformed) {
			t.Errorf("final %q: %v", m, err)
		}
	}
	if _, err := new(Users).NewExchange("a").Final([]byte("c=biws,r=a,p=AAAA")); !errors.Is(err, ErrMalformed) {
		t.Errorf("final before first: %v", err)
	}
}

// Verifiers that PostgreSQL 15 made: its SASLprep and ours agree.
func TestVerifier_LikePostgreSQL(t *testing.T) {
	cases := map[string]string{
		"pencil":       "SCRAM-SHA-256$4096:CJL2vCRDt44B8FXPVDbgpA==$ObQfqXuNeWt5WJEtoLrtZhRGEF3LxtdY6zZsn8sYTqY=:Qvcr7S8nNLTk3Qi0IQZfpESkBdfpunqPFvcv8Sqta8I=",
		"pässwörd":     "SCRAM-SHA-256$4096:QkzKZb90KbmkHwE1kblXrA==$+0DMVmebfeJvTtR6rEXKb42agI00uCcIE/qGJpKivFg=:QZdhnKRb1ZkS+cRAO37ZB3WrG/yH8aeApRafkn/4pmU=",
		"\u2168\uFDFC": "SCRAM-SHA-256$4096:7o2vubJAmzFAiUjfhbIrTA==$5z2CtZEbtAI+wdFKdFYXtJWOrKRWsL5oHXR1tyM3YI4=:bFZkyFrVOQgGoAED3YX7WXMvvSZ4PH3KgR8/02wkJaU=",
		"a b":          "SCRAM-SHA-256$4096:qAs+RKDwusVRGqip3QxJ4g==$Lwfp8ODrLXY49d00g8iVaAT1To0RwPwf4UaGnVthjAc=:j/E8hP17knJJ7qTUki2OuLv1VaXBsU94iLw+KzhL8uo=",
		"x\u00ADy":     "SCRAM-SHA-256$4096:1vqgT0KuJnRE5ycdlXy4gA==$n/gp5ZFyaia7LIqEMzSXn0doWMLGKRXv/XNiokOnQRc=:Y3zFCQ25b5tyKykYfEWqb3IUDRE9OdyileBdqxHLoTk=",
		"\u05D0\u0062": "SCRAM-SHA-256$4096:6+Jfe43zOGUP5LQsOtfUaw==$YPtGYWiSrMezJSRvrLPuY/fqsAceWpGbqNdlLfF9NQ8=:XngZqJ/u2TA1RsZbruQ8fYZjW06C3q/95YkxF9GDAyU=",
	}
	for password, text := range cases {
		want, err := ParseVerifier(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := derive(password, want.Salt, want.Iterations)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Errorf("password %+q: other keys than PostgreSQL's", password)
		}
		if want.String() != text {
			t.Errorf("%s is written as %s", text, want)
		}
	}
}

func TestVerifier_Refused(t *testing.T) {
	good, err := NewVerifier("x")
	if err != nil {
		t.Fatal(err)
	}
	s := good.String()
	for _, bad := range []string{
		"", "secret-of-long-text", "md5" + strings.Repeat("0", 32), "SCRAM-SHA-256", s + "$", strings.Replace(s, "4096", "0", 1), strings.Replace(s, "4096", "x", 1),
		strings.Replace(s, "4096", "99999999999", 1), strings.Replace(s, ":", "", 1), s[:len(s)-4], s[:len(s)-1] + "\n", strings.Replace(s, "SHA-256", "SHA-1", 1),
	} {
		if _, err := ParseVerifier(bad); err == nil || len(bad) > len("SCRAM-SHA-256") && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := NewVerifier(""); err == nil {
		t.Error("an empty password is taken")
	}
}

func FuzzExchange_NeverPanics(f *testing.F) {
	f.Add([]byte("n,,n=,r=a"), []byte("c=biws,r=a,p=AAAA"))
	f.Add([]byte("y,,n=u,r=a,x=y"), []byte(",p="))
	users := NewUsers()
	f.Fuzz(func(t *testing.T, first, final []byte) {
		e := users.NewExchange("x")
		_, _ = e.First(first)
		if _, err := e.Final(final); err == nil {
			t.Error("let in")
		}
	})
}

func FuzzVerifier_RoundTrip(f *testing.F) {
	f.Add("SCRAM-SHA-256$4096:CJL2vCRDt44B8FXPVDbgpA==$ObQfqXuNeWt5WJEtoLrtZhRGEF3LxtdY6zZsn8sYTqY=:Qvcr7S8nNLTk3Qi0IQZfpESkBdfpunqPFvcv8Sqta8I=")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVerifier(s)
		if err != nil {
			return
		}
		again, err := ParseVerifier(v.String())
		if err != nil || !again.Equal(v) {
			t.Errorf("%q: %v", s, err)
		}
	})
}

func BenchmarkExchange(b *testing.B) {
	v, _ := NewVerifier("pencil")
	users := NewUsers(User{Name: "ann", Verifier: v})
	for b.Loop() {
		e := users.NewExchange("ann")
		_, _ = e.First([]byte("n,,n=,r=abc"))
		_, _ = e.Final([]byte("c=biws,r=" + e.nonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
	}
}
