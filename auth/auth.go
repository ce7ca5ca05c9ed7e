package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
)

// ErrAuth says that the proof was wrong or that there is no such user; it does not say which.
var ErrAuth = errors.New("authentication failed")

// User is one who may log in.
type User struct {
	Name     string
	Admin    bool // may reach what is not the lake's: files, settings, the metadata
	Verifier Verifier
}

// Users is a list of users that never changes; a changed file is loaded into a new one. A nil Users is empty.
type Users struct {
	byName map[string]User
}

// NewUsers makes a list. Of two users with one name the last counts.
func NewUsers(list ...User) *Users {
	u := &Users{byName: make(map[string]User, len(list))}
	for _, user := range list {
		u.byName[user.Name] = user
	}
	return u
}

// Lookup finds a user by name; names are case-sensitive.
func (u *Users) Lookup(name string) (User, bool) {
	if u == nil {
		return User{}, false
	}
	user, ok := u.byName[name]
	return user, ok
}

// Len is the count of users.
func (u *Users) Len() int {
	if u == nil {
		return 0
	}
	return len(u.byName)
}

// mockKey makes the salts of users that do not exist. It differs in each process, so that nobody can tell a salt of ours
// from a real one by computing it.
var mockKey = func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
}()

// mockVerifier is what a user who does not exist has: made of the name, so that asking twice shows the same salt.
// Nobody knows a password for it.
func mockVerifier(name string) Verifier {
	derive := func(part string) []byte {
		h := hmac.New(sha256.New, mockKey)
		h.Write([]byte(part + name))
		return h.Sum(nil)
	}
	return Verifier{
		Iterations: defaultIterations, Salt: derive("salt\x00")[:saltBytes],
		StoredKey: derive("stored\x00"), ServerKey: derive("server\x00"),
	}
}

// NewExchange begins a login as the user that the start-up packet named.
func (u *Users) NewExchange(name string) *Exchange {
	user, known := u.Lookup(name)
	mock := mockVerifier(name) // made in either case: the same work
	if !known {
		user.Verifier = mock
	}
	return &Exchange{verifier: user.Verifier, known: known}
}
