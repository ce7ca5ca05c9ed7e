package lakefs

import (
	"sync"
	"time"
)

const (
	// openCacheTTL bounds how long another process's replacement goes unseen. It must stay well below any reap grace.
	openCacheTTL = 10 * time.Second

	// openCacheMax bounds memory: about 20 MB with paths of 100 bytes.
	openCacheMax = 100_000
)

// openCache remembers what Open has found. What was not found is not remembered.
type openCache struct {
	mu      sync.Mutex
	entries map[fileName]openEntry
	changes uint64 // counts evictions; see put
}

// fileName is a file's key.
type fileName struct{ volume, path string }

// openEntry is a file and how long to believe in it.
type openEntry struct {
	file    *File
	expires time.Time
}

// get finds a file. When there is none, changes is to be given to put with what the database says.
func (c *openCache) get(name fileName) (f *File, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[name]; ok && time.Now().Before(e.expires) {
		return e.file, c.changes
	}
	return nil, c.changes
}

// put remembers a file, unless this process has changed something since the look-up began: its answer may then be from
// before the change.
func (c *openCache) put(name fileName, f *File, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes {
		return
	}
	if len(c.entries) >= openCacheMax {
		c.sweep()
	}
	if c.entries == nil {
		c.entries = make(map[fileName]openEntry)
	}
	c.entries[name] = openEntry{f, time.Now().Add(openCacheTTL)}
}

// sweep drops what has expired, and everything when nothing has.
func (c *openCache) sweep() {
	now := time.Now()
	for name, e := range c.entries {
		if !now.Before(e.expires) {
			delete(c.entries, name)
		}
	}
	if len(c.entries) >= openCacheMax {
		clear(c.entries)
	}
}

// evict forgets files that this process changes. Called before the change, so that no reader is told of bytes that
// are on their way out, and after it, so that no look-up made meanwhile stays.
func (c *openCache) evict(names ...fileName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for _, name := range names {
		delete(c.entries, name)
	}
}

// evictVolume forgets all files of a volume.
func (c *openCache) evictVolume(volume string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for name := range c.entries {
		if name.volume == volume {
			delete(c.entries, name)
		}
	}
}
