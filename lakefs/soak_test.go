package lakefs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

const (
	soakWriters = 16 // of each store, like
	soakReaders = 16
	soakConns   = 8
	soakStores  = 2 // on one database, as if they were two processes

	// openCacheTTL is how long a store may not notice another's change. (Its own it must notice at once.)
	openCacheTTL = 10 * time.Second
)

// soak is a run: what its writers have done and its readers have seen.
type soak struct {
	*fixture
	stores [soakStores]*lakefs.PG
	began  time.Time
	puts   sync.Map // *soakPut by tag
	reads  [soakStores * soakReaders][]soakRead
	models [soakStores * soakWriters]model

	published, conflicts, missing, reaped, verified atomic.Int64
}

// soakPut is a file that was written, or is being.
type soakPut struct {
	deed
	store  int
	begun  time.Duration // since the run began, like
	ended  atomic.Int64  // 0: not yet
	failed atomic.Bool   // for a conflict; nobody may ever see it
}

// soakRead is what a reader found at a path.
type soakRead struct {
	store  int
	path   string
	opened time.Duration // just before
	tag    uint64
}

// TestSoak: 16 writers and 16 readers on each of two stores, with overwrites, removals and renames, while what is
// removed is reaped at once. Nothing is torn, nothing that was published is lost, nobody is told what is older than it
// may be, and pools, goroutines and memory stay bounded.
func TestSoak(t *testing.T) {
	span, seed := 5*time.Second, rand.Uint64()
	if *long {
		span = time.Minute
	}
	t.Logf("seed %d", seed)
	srv := embeddedtest.Start(t)
	s := &soak{fixture: &fixture{dsn: srv.DSN(), admin: connect(t, srv.DSN())}, began: time.Now()}
	s.exec(t, `SELECT 1`)
	goroutines, heap := runtime.NumGoroutine(), liveHeap()
	for i := range s.stores {
		s.stores[i] = s.open(t, lakefs.Config{DSN: s.dsn + fmt.Sprintf(" application_name='soak %d'", i), MaxConns: soakConns, ReapGrace: -1})
	}
	lakefstest.Put(t, s.stores[0], "lake", "first", nil) // makes the schema

	ctx, stop := context.WithTimeout(t.Context(), span)
	defer stop()
	var all sync.WaitGroup
	for i := range soakStores * soakWriters {
		all.Go(func() { s.write(ctx, t, i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	for i := range soakStores * soakReaders {
		all.Go(func() { s.read(ctx, t, i, rand.New(rand.NewPCG(seed, uint64(1000+i)))) })
	}
	all.Go(func() { s.sweep(ctx, t) })
	all.Go(func() { s.watchPools(ctx, t) })
	all.Wait()

	s.wantModels(t)
	s.wantOrder(t)
	s.wantClean(t, s.stores[0])
	for _, p := range s.stores {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	s.wantGivenBack(t, goroutines, heap)
	t.Logf("published %d, conflicts %d, read and verified %d, not there %d, reaped under a reader %d",
		s.published.Load(), s.conflicts.Load(), s.verified.Load(), s.missing.Load(), s.reaped.Load())
}

// now is the time since the run began.
func (s *soak) now() time.Duration { return time.Since(s.began) }

// write makes changes until ctx ends. Each is finished, so that its outcome is known.
func (s *soak) write(ctx context.Context, t *testing.T, worker int, random *rand.Rand) {
	store := worker % soakStores
	own := model{}
	for n := uint64(1); ctx.Err() == nil; n++ {
		d := chooseDeed(random, worker, n, soakSize(random))
		if random.IntN(10) == 0 {
			d = mixedDeed(random, d)
		}
		err := s.do(t.Context(), d, store)
		switch {
		case errors.Is(err, lakefs.ErrConflict) && !strings.HasPrefix(d.Path, "w"):
			s.conflicts.Add(1)
		case err != nil:
			t.Errorf("%+v: %v", d, err)
		case strings.HasPrefix(d.Path, "w"):
			own = own.apply(d)
			s.wantOwn(t, store, d, own)
		}
	}
	s.models[worker] = own
}

// soakSize is mostly small, sometimes some batches, rarely some pieces.
func soakSize(random *rand.Rand) int {
	switch choice := random.IntN(100); {
	case choice < 70:
		return tagBytes + random.IntN(20_000)
	case choice < 90:
		return (1+random.IntN(20))*chunkBytes - 1 + random.IntN(3)
	case choice < 98:
		return batchBytes - 1 + random.IntN(3)
	}
	return 2*pieceBytes + 17
}

// mixedDeed moves a change to paths where all writers do all things, so that there is no telling what is there.
func mixedDeed(random *rand.Rand, d deed) deed {
	d.Path = fmt.Sprintf("mixed/%d", random.IntN(4))
	if d.Op == "rename" {
		d.To = fmt.Sprintf("mixed/%d", random.IntN(4))
	}
	if d.Op == "clear" {
		d.Path = "mixed/"
	}
	return d
}

// do makes a change and keeps what is put on record.
func (s *soak) do(ctx context.Context, d deed, store int) error {
	if d.Op != "put" {
		return d.do(ctx, s.stores[store], "lake")
	}
	put := &soakPut{deed: d, store: store, begun: s.now()}
	s.puts.Store(d.Tag, put)
	err := d.do(ctx, s.stores[store], "lake")
	if err == nil {
		s.published.Add(1)
		put.ended.Store(int64(s.now()))
	}
	put.failed.Store(err != nil)
	return err
}

// wantOwn checks that a writer sees its own change at once.
func (s *soak) wantOwn(t *testing.T, store int, d deed, own model) {
	for _, path := range []string{d.Path, d.To} {
		if path == "" || d.Op == "clear" {
			continue
		}
		f, err := s.stores[store].Open(t.Context(), "lake", path)
		want, exists := own[path]
		switch {
		case exists && (err != nil || f.Size != int64(want.size)):
			t.Errorf("after %+v %s is %+v (%v), not %+v", d, path, f, err, want)
		case !exists && !errors.Is(err, lakefs.ErrNotExist):
			t.Errorf("after %+v %s is %+v (%v), not gone", d, path, f, err)
		}
	}
}

// read reads until ctx ends.
func (s *soak) read(ctx context.Context, t *testing.T, reader int, random *rand.Rand) {
	for ctx.Err() == nil {
		path := fmt.Sprintf("w%d/%c/%d", random.IntN(soakStores*soakWriters), 'a'+random.IntN(2), random.IntN(4))
		switch random.IntN(4) {
		case 0:
			path = fmt.Sprintf("shared/%d", random.IntN(sharedPaths))
		case 1:
			path = fmt.Sprintf("mixed/%d", random.IntN(4))
		}
		r := soakRead{store: reader % soakStores, path: path, opened: s.now()}
		if s.readOne(t, &r, random) {
			s.reads[reader] = append(s.reads[reader], r)
		}
	}
}

// readOne reads a file whole or in part and checks what it holds. It reports whether there was one.
func (s *soak) readOne(t *testing.T, r *soakRead, random *rand.Rand) bool {
	p := s.stores[r.store]
	f, err := p.Open(t.Context(), "lake", r.path)
	if errors.Is(err, lakefs.ErrNotExist) {
		s.missing.Add(1)
		return false
	}
	if err != nil {
		t.Error(err)
		return false
	}
	got := make([]byte, f.Size)
	if err := p.ReadAt(t.Context(), f, got, 0); err != nil {
		s.wantReaped(t, p, f, err)
		return false
	}
	var size int
	if _, err := fmt.Sscanf(string(got[:min(len(got), tagBytes)]), "%d %d\n", &r.tag, &size); err != nil {
		t.Errorf("%s holds what nobody put: %.40q", r.path, got)
		return false
	}
	want := taggedContent(r.tag, size)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is torn: %d bytes, not the %d of %.33q", r.path, len(got), size, got)
		return false
	}
	off := random.IntN(len(want))
	part := make([]byte, random.IntN(len(want)-off)+1)
	if err := p.ReadAt(t.Context(), f, part, int64(off)); err != nil {
		s.wantReaped(t, p, f, err)
	} else if !bytes.Equal(part, want[off:off+len(part)]) {
		t.Errorf("%s is torn: bytes %d to %d", r.path, off, off+len(part))
	}
	s.verified.Add(1)
	return true
}

// wantReaped checks the one way for a read to fail: its file is gone, and looking again finds another one or none.
func (s *soak) wantReaped(t *testing.T, p *lakefs.PG, f *lakefs.File, err error) {
	if !errors.Is(err, lakefs.ErrReaped) {
		t.Error(err)
		return
	}
	s.reaped.Add(1)
	again, err := p.Open(t.Context(), "lake", f.Path)
	if err == nil && again.ID == f.ID {
		t.Errorf("%s still opens as the reaped file %d", f.Path, f.ID)
	}
	if err != nil && !errors.Is(err, lakefs.ErrNotExist) {
		t.Error(err)
	}
}

// sweep reaps with no grace all the time, and now and then makes the room usable again.
func (s *soak) sweep(ctx context.Context, t *testing.T) {
	for n := 1; ctx.Err() == nil; n++ {
		sql := `SELECT pgvfs.reap('0')`
		if n%50 == 0 {
			sql = `VACUUM pgvfs.chunks`
		}
		if _, err := s.admin.Exec(t.Context(), sql); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// watchPools samples how many sessions each store has.
func (s *soak) watchPools(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		for i := range soakStores {
			var sessions int
			err := s.admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, fmt.Sprintf("soak %d", i)).Scan(&sessions)
			if err != nil || sessions > soakConns {
				t.Errorf("store %d has %d sessions: %v", i, sessions, err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// wantModels checks that in the end each writer's files are what it made of them, in the eyes of every store that has
// forgotten what it knew.
func (s *soak) wantModels(t *testing.T) {
	t.Helper()
	p := s.open(t, lakefs.Config{})
	for worker, m := range s.models {
		wantEither(t, p, fmt.Sprintf("w%d/", worker), m, m)
	}
	for n := range sharedPaths {
		path := fmt.Sprintf("shared/%d", n)
		r := soakRead{path: path, opened: math.MaxInt64}
		data, err := lakefstest.Get(t.Context(), p, "lake", path)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := fmt.Sscanf(string(data[:tagBytes]), "%d", &r.tag); err != nil {
			t.Error(err)
		}
		s.reads[0] = append(s.reads[0], r)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// wantOrder checks every read of a path that is only ever put: what it found was put there, and not replaced, for good,
// so long before the read that the reader's store must have known.
func (s *soak) wantOrder(t *testing.T) {
	t.Helper()
	orders := map[string]*soakOrder{}
	s.puts.Range(func(_, value any) bool {
		put := value.(*soakPut)
		if strings.HasPrefix(put.Path, "shared/") && !put.failed.Load() {
			if orders[put.Path] == nil {
				orders[put.Path] = &soakOrder{}
			}
			orders[put.Path].add(put)
		}
		return true
	})
	for _, o := range orders {
		o.sort()
	}
	for _, r := range slices.Concat(s.reads[:]...) {
		value, ok := s.puts.Load(r.tag)
		if !ok {
			t.Errorf("%s held tag %d, which nobody put", r.path, r.tag)
			continue
		}
		put := value.(*soakPut)
		if put.failed.Load() {
			t.Errorf("%s held what was rolled back: %+v", r.path, put.deed)
		}
		if o := orders[r.path]; o != nil && o.replaced(put, r) {
			t.Errorf("store %d still had, after %s, what had been replaced at %s: %+v", r.store, r.opened, r.path, put.deed)
		}
	}
}

// soakOrder is what was published at a path, by each store and by all, in the order in which it ended.
type soakOrder struct {
	stores [soakStores + 1]struct{ ended, begunMax []time.Duration }
}

// add takes a put in.
func (o *soakOrder) add(put *soakPut) {
	for _, of := range []int{put.store, soakStores} {
		o.stores[of].ended = append(o.stores[of].ended, time.Duration(put.ended.Load()))
		o.stores[of].begunMax = append(o.stores[of].begunMax, put.begun)
	}
}

// sort makes begunMax the latest begin of all that had ended by then.
func (o *soakOrder) sort() {
	for i := range o.stores {
		of := &o.stores[i]
		sort.Sort(byEnd{of.ended, of.begunMax})
		for n := 1; n < len(of.begunMax); n++ {
			of.begunMax[n] = max(of.begunMax[n], of.begunMax[n-1])
		}
	}
}

// byEnd sorts both together.
type byEnd struct{ ended, begun []time.Duration }

func (b byEnd) Len() int           { return len(b.ended) }
func (b byEnd) Less(i, j int) bool { return b.ended[i] < b.ended[j] }
func (b byEnd) Swap(i, j int) {
	b.ended[i], b.ended[j] = b.ended[j], b.ended[i]
	b.begun[i], b.begun[j] = b.begun[j], b.begun[i]
}

// replaced reports whether another put began after this one had ended and itself ended before the read's store could
// still be unaware of it.
func (o *soakOrder) replaced(put *soakPut, r soakRead) bool {
	ended := time.Duration(put.ended.Load())
	for of, known := range map[int]time.Duration{r.store: r.opened, soakStores: r.opened - openCacheTTL} {
		if r.opened == math.MaxInt64 {
			known = r.opened // a fresh store knows all
		}
		list := o.stores[of]
		n := sort.Search(len(list.ended), func(i int) bool { return list.ended[i] >= known })
		if n > 0 && ended > 0 && list.begunMax[n-1] > ended {
			return true
		}
	}
	return false
}

// wantGivenBack checks that goroutines and memory are what they were.
func (s *soak) wantGivenBack(t *testing.T, goroutines int, heap uint64) {
	t.Helper()
	// A write that was slow once leaves pgx a goroutine that reads until the connection's next answer. The stores' are closed.
	s.admin.Reset()
	for end := time.Now().Add(hangMax); runtime.NumGoroutine() > goroutines && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines instead of %d:\n%s", n, goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	const records = 64 << 20 // of this test: puts, reads
	if now := liveHeap(); now > heap+records {
		t.Errorf("%d MB of memory are in use, %d MB were before", now>>20, heap>>20)
	}
}

// liveHeap is what memory holds that somebody needs. Two collections empty the pools.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
