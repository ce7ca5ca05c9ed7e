package lakefs

// Forget empties the open cache, as waiting for its entries to expire would. For tests of what another process has done.
func (p *PG) Forget() {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	p.cache.changes++
	clear(p.cache.entries)
}
