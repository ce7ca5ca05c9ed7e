package lakefs

import (
	"strconv"
	"testing"
	"time"
)

// TestOpenCache_Race: an answer that is older than a change is not remembered.
func TestOpenCache_Race(t *testing.T) {
	var c openCache
	name := fileName{"v", "p"}
	_, changes := c.get(name)
	c.evict(name)
	c.put(name, &File{ID: 1}, changes)
	if f, _ := c.get(name); f != nil {
		t.Error("the old file is remembered")
	}
	_, changes = c.get(name)
	c.put(name, &File{ID: 2}, changes)
	if f, _ := c.get(name); f == nil || f.ID != 2 {
		t.Errorf("%+v", f)
	}
	c.evictVolume("w")
	if f, _ := c.get(name); f == nil {
		t.Error("another volume's eviction")
	}
	c.evictVolume("v")
	if f, _ := c.get(name); f != nil {
		t.Error("still there")
	}
}

// TestOpenCache_Bounds: entries expire, and there are never more than the bound.
func TestOpenCache_Bounds(t *testing.T) {
	var c openCache
	for i := range openCacheMax + 10 {
		c.put(fileName{"v", strconv.Itoa(i)}, &File{}, 0)
	}
	if n := len(c.entries); n > openCacheMax {
		t.Errorf("%d entries", n)
	}
	name := fileName{"v", strconv.Itoa(openCacheMax + 9)}
	c.entries[name] = openEntry{&File{}, time.Now().Add(-time.Second)}
	if f, _ := c.get(name); f != nil {
		t.Error("an expired entry is believed")
	}
	if c.sweep(); len(c.entries) != 9 {
		t.Errorf("%d entries after a sweep", len(c.entries))
	}
}
