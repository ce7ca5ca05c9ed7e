package lakefs

import (
	"context"
	"sync"
	"time"
)

// version names bytes in this process: an ID and the store that it is of.
type version struct{ store, id int64 }

// readings are the files that DuckDB has open for reading, by URL. DuckDB keeps what it reads under the URL and drops it
// when an open finds another version. It does not see a handle that is still open on the version before: what that one
// reads next would be kept as bytes of the new one, and what is kept would be given to it. So as long as there is such a
// handle, files of other versions are opened as ones that DuckDB keeps nothing of.
type readings struct {
	mu   sync.Mutex
	open map[string]*reading
}

// reading is the version of a URL that DuckDB keeps, and by how many handles.
type reading struct {
	version
	handles int
}

// begin counts a handle in if DuckDB may keep what it reads.
func (r *readings) begin(url string, v version) (kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.open[url]
	switch {
	case now == nil:
		if r.open == nil {
			r.open = make(map[string]*reading)
		}
		r.open[url] = &reading{v, 1}
	case now.version == v:
		now.handles++
	default:
		return false
	}
	return true
}

// end counts a handle out that begin has counted in.
func (r *readings) end(url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.open[url]; now.handles > 1 {
		now.handles--
	} else {
		delete(r.open, url)
	}
}

// pins keep a statement to one version of a path. DuckDB opens a Parquet file to bind and again in each thread that
// reads, and would take the pages of a file for those of the one whose footer it has read. So a client that still has a
// path open finds the same file there: for as long as a statement runs, and from its binding to its run for as long as
// the open cache lasts.
type pins struct {
	mu        sync.Mutex
	statement context.Context // the one that runs
	open      map[string]*pin
	made      map[string]bool // URLs of the files that it has published
}

// pin is a file that a client has open.
type pin struct {
	file      *File
	store     int64
	handles   int
	statement context.Context // that opened it last
	opened    time.Time
}

// next begins a statement, unless it is the one that runs.
func (p *pins) next(statement context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.statement != statement {
		p.statement = statement
		clear(p.made)
	}
}

// find returns the file that the client has open there, nil if it is to look.
func (p *pins) find(url string, store int64) *File {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.open[url]
	if at == nil || at.store != store || (at.statement != p.statement && time.Since(at.opened) > openCacheTTL) {
		return nil
	}
	return at.file
}

// add counts a handle in, and returns what remove counts it out of.
func (p *pins) add(url string, store int64, f *File) *pin {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.open[url]
	if at == nil || at.store != store || at.file.ID != f.ID {
		if p.open == nil {
			p.open = make(map[string]*pin)
		}
		at = &pin{file: f, store: store, opened: time.Now()}
		p.open[url] = at
	}
	at.handles++
	at.statement = p.statement
	return at
}

// forget has the client look again for every path: it has changed one itself. Statements that run know their files by now.
func (p *pins) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.open)
}

// publish remembers a file that the statement has made.
func (p *pins) publish(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = make(map[string]bool)
	}
	p.made[url] = true
}

// isOwn reports whether the statement that runs has made the file.
func (p *pins) isOwn(url string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[url]
}

// remove counts a handle out.
func (p *pins) remove(url string, at *pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.handles--; at.handles == 0 && p.open[url] == at {
		delete(p.open, url)
	}
}
