package proxy

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"math"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Lengths of a cancel key's secret: protocol 3.0 has room for four bytes, 3.2 for as many as resist
// guessing.
const (
	secretBytes   = 4
	secretBytes32 = 32
)

// backendKey is what a client presents to cancel its statement.
type backendKey struct {
	pid    uint32
	secret []byte
}

// registry knows who holds which backend key. A process id is unique among the sessions of this process,
// starts anywhere so that two Sluices behind one balancer seldom share one, and is not reused until the
// counter has come round.
type registry struct {
	mu      sync.Mutex
	last    uint32
	holders map[uint32]holder
}

// holder is the session behind a process id and the secret that proves the right to cancel it.
type holder struct {
	secret []byte
	cancel func()
}

// newRegistry returns a registry without holders.
func newRegistry() *registry {
	var start [4]byte
	rand.Read(start[:])
	return &registry{last: binary.BigEndian.Uint32(start[:]) % (math.MaxInt32 / 2), holders: map[uint32]holder{}}
}

// add issues a key whose holder is cancelled by cancel.
func (r *registry) add(secretBytes int, cancel func()) backendKey {
	key := backendKey{secret: make([]byte, secretBytes)}
	rand.Read(key.secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	for taken := true; taken; _, taken = r.holders[r.last] {
		r.last = r.last%math.MaxInt32 + 1 // clients read it as a signed number, and 0 means none
	}
	key.pid = r.last
	r.holders[key.pid] = holder{secret: key.secret, cancel: cancel}
	return key
}

// remove forgets a key.
func (r *registry) remove(pid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holders, pid)
}

// cancel interrupts the holder of a key. A wrong secret does nothing, and takes as long as the right one.
func (r *registry) cancel(m *pgproto3.CancelRequest) bool {
	r.mu.Lock()
	h, ok := r.holders[m.ProcessID]
	r.mu.Unlock()
	if !ok || subtle.ConstantTimeCompare(h.secret, m.SecretKey) != 1 {
		return false
	}
	h.cancel()
	return true
}
