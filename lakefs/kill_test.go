package lakefs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
	"sluice/lakefs/lakefstest"
)

const (
	killVariable = "SLUICE_TEST_KILL" // holds a victim, for the process that is one
	killWorkers  = 4
	killDelayMax = 300 * time.Millisecond // from the first change on
)

// victim is a process that works on a store until it is killed.
type victim struct {
	DSN, Spill, Volume string
	Seed               uint64
}

// deed is what a victim says about a change before it begins and after it has ended, as a line of JSON.
type deed struct {
	Worker int    `json:"worker"`
	Op     string `json:"op"` // put, remove, rename or clear
	Path   string `json:"path"`
	To     string `json:"to,omitempty"`   // of rename
	Tag    uint64 `json:"tag,omitempty"`  // of put: see tagged content
	Size   int    `json:"size,omitempty"` // of put
	Ended  bool   `json:"ended,omitempty"`
	Failed string `json:"failed,omitempty"` // why nothing was changed
}

// TestKill_Victim is not a test: it is what runs in the process that TestKill kills.
func TestKill_Victim(t *testing.T) {
	text := os.Getenv(killVariable)
	if text == "" {
		t.Skip("only for TestKill")
	}
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	p, err := lakefs.OpenPG(t.Context(), lakefs.Config{DSN: v.DSN, SpillDir: v.Spill, MaxConns: 4, ReapGrace: -1})
	if err != nil {
		t.Fatal(err)
	}
	report := os.NewFile(3, "report")
	var workers sync.WaitGroup
	for worker := range killWorkers {
		workers.Go(func() { v.work(t.Context(), p, worker, report) })
	}
	workers.Wait()
}

// work changes files until nobody listens any more.
func (v victim) work(ctx context.Context, p *lakefs.PG, worker int, report io.Writer) {
	random := rand.New(rand.NewPCG(v.Seed, uint64(worker)))
	for n := uint64(1); ; n++ {
		size := killSizes[min(random.IntN(len(killSizes)), random.IntN(len(killSizes)))]
		d := chooseDeed(random, worker, n, size)
		if say(report, d) != nil {
			return
		}
		if err := d.do(ctx, p, v.Volume); err != nil {
			d.Failed = err.Error()
		}
		d.Ended = true
		if say(report, d) != nil {
			return
		}
	}
}

// say writes a line. It is shorter than a pipe's atomic write.
func say(report io.Writer, d deed) error {
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = report.Write(append(line, '\n'))
	return err
}

// killSizes are around the bounds of rows, batches and pieces. Later ones are rarer.
var killSizes = []int{
	0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes, batchBytes - 1, batchBytes, batchBytes + 1,
	pieceBytes, pieceBytes + 1, 3*batchBytes + chunkBytes + 7, 20_000_000,
}

// chooseDeed invents the next change of a worker; if it is a put, of so many bytes. Each worker has paths of its own, and
// some that all put.
func chooseDeed(random *rand.Rand, worker int, n uint64, size int) deed {
	own := func() string { return fmt.Sprintf("w%d/%c/%d", worker, 'a'+random.IntN(2), random.IntN(4)) }
	switch choice := random.IntN(20); {
	case choice < 2:
		size = max(size, tagBytes) // so that it is known whose it is
		return deed{Worker: worker, Op: "put", Path: fmt.Sprintf("shared/%d", random.IntN(sharedPaths)), Tag: tagOf(worker, n), Size: size}
	case choice < 5:
		return deed{Worker: worker, Op: "remove", Path: own()}
	case choice < 8:
		return deed{Worker: worker, Op: "rename", Path: own(), To: own()}
	case choice < 9:
		return deed{Worker: worker, Op: "clear", Path: fmt.Sprintf("w%d/%c/", worker, 'a'+random.IntN(2))}
	}
	return deed{Worker: worker, Op: "put", Path: own(), Tag: tagOf(worker, n), Size: size}
}

const (
	sharedPaths = 2
	tagBytes    = 20 + 1 + 12 + 1 // what tells tagged contents apart
)

// tagOf is a worker's nth put's tag.
func tagOf(worker int, n uint64) uint64 { return uint64(worker)<<32 | n }

// do makes the change. Nothing to remove or rename is no error.
func (d deed) do(ctx context.Context, s lakefs.Store, volume string) error {
	var err error
	switch d.Op {
	case "put":
		_, err = lakefstest.TryPut(ctx, s, volume, d.Path, taggedContent(d.Tag, d.Size))
	case "remove":
		err = s.Remove(ctx, volume, d.Path)
	case "rename":
		err = s.Rename(ctx, volume, d.Path, d.To)
	case "clear":
		_, err = s.RemovePrefix(ctx, volume, d.Path)
	}
	if errors.Is(err, lakefs.ErrNotExist) {
		return nil
	}
	return err
}

// taggedContent is bytes that begin with what they are, as far as there is room, and are made from it.
func taggedContent(tag uint64, size int) []byte {
	data := lakefstest.Content(tag^tag>>29, size)
	copy(data, fmt.Sprintf("%020d %012d\n", tag, size))
	return data
}

// made is a file by what was put.
type made struct {
	tag  uint64
	size int
}

// model is what a worker's files are.
type model map[string]made

// apply is the deed on the model; a new one, so that both can be compared.
func (m model) apply(d deed) model {
	next := maps.Clone(m)
	switch d.Op {
	case "put":
		next[d.Path] = made{d.Tag, d.Size}
	case "remove":
		delete(next, d.Path)
	case "rename":
		if f, ok := next[d.Path]; ok {
			delete(next, d.Path)
			next[d.To] = f
		}
	case "clear":
		maps.DeleteFunc(next, func(path string, _ made) bool { return strings.HasPrefix(path, d.Path) })
	}
	return next
}

// TestKill kills a process that works on a store, in 200 random moments with -long. After each, what was acknowledged
// is there, what was not is there whole or not at all, and nothing else is left behind.
func TestKill(t *testing.T) {
	srv := embeddedtest.Start(t)
	x := &fixture{dsn: srv.DSN(), admin: connect(t, srv.DSN())}
	rounds, seed := 12, rand.Uint64()
	if *long {
		rounds = 200
	}
	t.Logf("%d kills, seed %d", rounds, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	spill := t.TempDir()
	acknowledged, open := 0, 0
	for round := range rounds {
		if round%6 == 0 { // so that the making of the schema is interrupted too
			x.exec(t, `DROP SCHEMA IF EXISTS pgvfs CASCADE`)
		}
		v := victim{DSN: x.dsn + " application_name='sluice victim'", Spill: spill, Volume: "lake", Seed: random.Uint64()}
		deeds := v.run(t, time.Duration(random.Int64N(int64(killDelayMax))))
		x.await(t, 0, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice victim'`)
		if left, err := os.ReadDir(spill); err != nil || len(left) != 0 {
			t.Errorf("left in the spill directory: %v %v", left, err)
		}
		a, o := x.wantDeeds(t, deeds)
		acknowledged, open = acknowledged+a, open+o
		if t.Failed() {
			t.Fatalf("round %d, seed %d", round, v.Seed)
		}
	}
	t.Logf("%d changes were acknowledged, %d were under way", acknowledged, open)
}

// run starts the process and kills it so long after its first change began. It returns what the process has said.
func (v victim) run(t *testing.T, delay time.Duration) []deed {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill_Victim$")
	cmd.Env = append(os.Environ(), killVariable+"="+string(text))
	cmd.ExtraFiles = []*os.File{writer}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	timer := time.AfterFunc(hangMax, func() { _ = cmd.Process.Kill() }) // fails only if it has ended
	var deeds []deed
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		var d deed
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Error(err)
		}
		if len(deeds) == 0 {
			timer.Reset(delay)
		}
		deeds = append(deeds, d)
	}
	timer.Stop()
	_ = cmd.Process.Kill() // fails only if it has ended
	if err := cmd.Wait(); len(deeds) == 0 {
		t.Fatalf("the victim did nothing: %v\n%s", err, output.String())
	}
	return deeds
}

// wantDeeds compares what a volume holds with what was done to it, empties it, and counts the deeds.
func (x *fixture) wantDeeds(t *testing.T, deeds []deed) (acknowledged, open int) {
	t.Helper()
	p := x.open(t, lakefs.Config{})
	x.wantClean(t, p)
	for worker := range killWorkers {
		before, after := model{}, model{}
		for _, d := range deeds {
			if d.Worker != worker || strings.HasPrefix(d.Path, "shared/") {
				continue
			}
			switch {
			case !d.Ended:
				after = before.apply(d)
			case d.Failed != "":
				t.Errorf("%+v", d)
			default:
				before = before.apply(d)
				after = before
				acknowledged++
			}
		}
		if !maps.Equal(before, after) {
			open++
		}
		wantEither(t, p, fmt.Sprintf("w%d/", worker), before, after)
	}
	wantShared(t, p, deeds)
	if _, err := p.RemovePrefix(t.Context(), "lake", ""); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return acknowledged, open
}

// wantEither checks that the files under a prefix are those of one model or of the other.
func wantEither(t *testing.T, s lakefs.Store, prefix string, before, after model) {
	t.Helper()
	paths, err := s.List(t.Context(), "lake", prefix, 0)
	if err != nil {
		t.Fatal(err)
	}
	is := map[string][]byte{}
	for _, path := range paths {
		if is[path], err = lakefstest.Get(t.Context(), s, "lake", path); err != nil {
			t.Error(err)
		}
	}
	if !before.same(is) && !after.same(is) {
		sizes := map[string]string{}
		for path, data := range is {
			sizes[path] = fmt.Sprintf("%d bytes: %.20q", len(data), data)
		}
		t.Errorf("the files are neither\n%v nor\n%v, but\n%v", before, after, sizes)
	}
}

// same compares byte by byte.
func (m model) same(is map[string][]byte) bool {
	if len(m) != len(is) {
		return false
	}
	for path, f := range m {
		if data, ok := is[path]; !ok || len(data) != f.size || !bytes.Equal(data, taggedContent(f.tag, f.size)) {
			return false
		}
	}
	return true
}

// wantShared checks the paths that all workers put: what is there was put, and no later put was acknowledged, where
// later means begun after the other had ended.
func wantShared(t *testing.T, s lakefs.Store, deeds []deed) {
	t.Helper()
	for n := range sharedPaths {
		path := fmt.Sprintf("shared/%d", n)
		data, err := lakefstest.Get(t.Context(), s, "lake", path)
		if err != nil && !errors.Is(err, lakefs.ErrNotExist) {
			t.Error(err)
		}
		h := newHistory(t, path, deeds)
		switch f := h.find(data); {
		case err != nil && h.latestBegun >= 0:
			t.Errorf("%s has been put, and is not there", path)
		case err == nil && f == nil:
			t.Errorf("%s holds %d bytes that nobody put: %.40q", path, len(data), data)
		case err == nil && f.ended >= 0 && f.ended < h.latestBegun:
			t.Errorf("%s holds put %+v, though a later one was acknowledged", path, *f)
		}
	}
}

// history is the puts of one path. Times are line numbers.
type history struct {
	puts        []*putDeed
	latestBegun int // the latest begin of an acknowledged one; -1 for none
}

// putDeed is one of them.
type putDeed struct {
	made
	begun, ended int // -1: it was under way at the end
}

// newHistory reads it off what was said. Only a conflict is an excuse.
func newHistory(t *testing.T, path string, deeds []deed) history {
	t.Helper()
	h := history{latestBegun: -1}
	byTag := map[uint64]*putDeed{}
	for line, d := range deeds {
		switch {
		case d.Path != path:
		case !d.Ended:
			byTag[d.Tag] = &putDeed{made{d.Tag, d.Size}, line, -1}
		case d.Failed == "":
			byTag[d.Tag].ended = line
			h.latestBegun = max(h.latestBegun, byTag[d.Tag].begun)
		case strings.Contains(d.Failed, lakefs.ErrConflict.Error()):
			delete(byTag, d.Tag)
		default:
			t.Errorf("%+v", d)
		}
	}
	for _, f := range byTag {
		h.puts = append(h.puts, f)
	}
	return h
}

// find is the put whose bytes these are.
func (h history) find(data []byte) *putDeed {
	for _, f := range h.puts {
		if len(data) == f.size && bytes.Equal(data, taggedContent(f.tag, f.size)) {
			return f
		}
	}
	return nil
}

// wantClean checks everything that must hold after anything, twice: by SQL of the test's own and by the store's check.
func (x *fixture) wantClean(t *testing.T, p *lakefs.PG) {
	t.Helper()
	x.wantSound(t)
	if _, err := p.Verify(t.Context(), func(f lakefs.Fault) { t.Error(f) }); err != nil {
		t.Errorf("verify: %v", err)
	}
}
