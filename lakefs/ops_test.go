package lakefs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

const (
	opsMax  = 60 // in a sequence
	opSlots = 3  // open files, and open writers, that a sequence can come back to
)

// FuzzOps: a sequence of calls, made from bytes, has the same answers and errors from a store in PostgreSQL as from the
// one in memory. Besides the seeds, 200 sequences that only look random are always tried.
func FuzzOps(f *testing.F) {
	x := fuzzServer(f)
	model := lakefstest.NewMemory()
	for _, seed := range opsSeeds {
		f.Add([]byte(seed))
	}
	random := rand.NewChaCha8([32]byte{4})
	for i := range 200 {
		seed := make([]byte, 20+i)
		_, _ = random.Read(seed) // never fails
		f.Add(seed)
	}
	sequences := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		sequences++
		r := &opsRun{in: opsInput{data}, sides: [2]*opsSide{
			{store: model, reap: func(*testing.T) { model.Reap() }},
			{store: x.store, reap: x.reapAll},
		}}
		for _, s := range r.sides {
			s.volume, s.ids = fmt.Sprint("ops-", sequences), map[int64]int{}
		}
		r.run(t)
	})
}

// opsSeeds are sequences worth keeping: opsTable's letters, each with what its call takes.
var opsSeeds = []string{
	"",
	"p00 o00 p01 r0!! r0AA s r0AA o00 r0AA",     // read a file that was replaced, before and after a reap
	"p03 p14 o01 n01 r0AA s r0AA o01 r0AA",      // rename over another
	"p03 o00 m0 e0 o10 r0AA s r0AA r000",        // remove a file that is open
	"p05 o00 x0 e0 o00 p02 o00",                 // remove it by its prefix, make it anew
	"c00 w05 p00 k0 o00 k0 a0",                  // a writer closed after another has published
	"c00 w05 c10 w16 k1 k0 e0",                  // two writers of one path
	"c00 w0\xff w0\xff e0 k0 o00 r0AA r0QQ",     // a streaming writer
	"c00 w05 a0 w05 k0 e0",                      // everything after an abort
	"p00 p11 p22 p33 x2 l00 l01 l02 l23",        // remove by prefix, list
	"n00 n01 p00 n00 o00 n01 n10 e0 e1",         // rename of nothing, onto itself, there and back
	"p=0 p>0 p?0 p@0 l80 lI0 lJ0 l40 g> x8 l00", // the last paths there can be
	"p\xe0\x03abc0 l\xe0\x02ab0 g\xe0\x02a*",    // names of one's own
	"p00 p10 p20 p30 p40 p50 p60 p70 p80 p90 p:0 p;0 g0 g1 g2 g3 g4 g5 g6 g7 g8 g9 g: g; g< g= g> g? g@ gA",
}

// opsRun is one sequence on all sides.
type opsRun struct {
	in    opsInput
	sides [2]*opsSide
	trace []string
}

// opsSide is one store and what the sequence holds open there.
type opsSide struct {
	store   lakefs.Store
	volume  string
	reap    func(t *testing.T)
	writers [opSlots]lakefs.Writer
	files   [opSlots]*lakefs.File
	ids     map[int64]int // IDs by when they were first seen
}

// run makes the calls, compares what they answer, and in the end everything.
func (r *opsRun) run(t *testing.T) {
	defer r.clean(t)
	for n := 0; len(r.in.rest) > 0 && n < opsMax; n++ {
		text, call := r.in.op()
		if !r.both(t, text, call) {
			return
		}
	}
	r.both(t, "look at everything", everything)
}

// both makes a call on all sides.
func (r *opsRun) both(t *testing.T, text string, call opsCall) bool {
	want, got := call(t, r.sides[0]), call(t, r.sides[1])
	r.trace = append(r.trace, text+": "+got)
	if got != want {
		t.Errorf("after\n\t%s\nthe model says %s", strings.Join(r.trace, "\n\t"), want)
	}
	return got == want
}

// clean leaves nothing open, and nothing in the volume.
func (r *opsRun) clean(t *testing.T) {
	for _, s := range r.sides {
		for _, w := range s.writers {
			if w != nil {
				w.Abort()
			}
		}
		if _, err := s.store.RemovePrefix(context.WithoutCancel(t.Context()), s.volume, ""); err != nil {
			t.Error(err)
		}
	}
}

// opsCall makes a call and puts its outcome into words.
type opsCall func(t *testing.T, s *opsSide) string

// opsTable turns bytes into calls: the one of a letter, or the one at a byte modulo the table's length.
var opsTable = []struct {
	letter byte
	decode func(in *opsInput) (text string, call opsCall)
}{
	{'p', opPut},
	{'c', opCreate},
	{'w', opWrite},
	{'k', opClose},
	{'a', opAbort},
	{'m', opRemove},
	{'x', opRemovePrefix},
	{'n', opRename},
	{'l', opList},
	{'g', opGlob},
	{'e', opExists},
	{'o', opOpen},
	{'r', opRead},
	{'s', opReap},
}

// opsInput is what is left of the bytes that a sequence is made from. At the end it is zeros.
type opsInput struct{ rest []byte }

// byte takes one byte.
func (in *opsInput) byte() byte {
	if len(in.rest) == 0 {
		return 0
	}
	b := in.rest[0]
	in.rest = in.rest[1:]
	return b
}

// below takes a number below n. '0' is the first.
func (in *opsInput) below(n int) int { return int(in.byte()-'0') % n }

// text takes one of these texts, one of the first of them, or one that stands in the bytes themselves.
func (in *opsInput) text(texts []string) string {
	const (
		first = 0x80 // from here on, so that calls meet
		own   = 0xe0 // from here on, a text of one's own follows: its length, and it
	)
	b := in.byte()
	switch {
	case b < first:
		return texts[int(b-'0')%len(texts)]
	case b < own:
		return texts[int(b)%4]
	}
	n := min(int(in.byte())%16, len(in.rest))
	text := string(in.rest[:n])
	in.rest = in.rest[n:]
	return text
}

// op takes the next call. Spaces are for the eye.
func (in *opsInput) op() (text string, call opsCall) {
	b := in.byte()
	for b == ' ' {
		b = in.byte()
	}
	for _, op := range opsTable {
		if op.letter == b {
			return op.decode(in)
		}
	}
	return opsTable[int(b)%len(opsTable)].decode(in)
}

// opsPaths, opsPrefixes and opsPatterns are few, so that calls meet, and nasty. Some are none that may be.
var (
	opsPaths = []string{
		"a", "a/1", "a/2", "ab", "a0", "b", "é", "é/1", "e\u0301", "a*", "[a]", "\ufffd", "\ud7ff", "\ue000/\U0010ffff", "\U0010ffff",
		strings.Repeat("\U0010ffff", 256), strings.Repeat("p", 1024), "//", "a//b", "..", "a\n", " ",
		"", "a/", "\xff", "a\x00", strings.Repeat("p", 1025), "\xc3",
	}
	opsPrefixes = append([]string{"", "a", "a/", "é/", "p", "\ud7ff", "e", "\x7f", "\U0010ffff\U0010ffff", "\xed\xa0\x80", "z"}, opsPaths...)
	opsPatterns = append([]string{
		"*", "**", "a*", "*/*", "a/**", "**/1", "?", "??", "[!a]", "[a-é]*", "a[*]", "[[]a]", "[", "a[", "\U0010ffff*", "*\xff", "\xc3*", "[]]",
	}, opsPaths...)
)

// size takes a file's size. One that streams is rare, since it takes long.
func (in *opsInput) size() int {
	sizes := []int{0, 1, 100, chunkBytes - 1, chunkBytes, chunkBytes + 1, 2 * chunkBytes, 3*chunkBytes + 5}
	b := in.byte()
	if b == 0xff {
		return batchBytes + 5
	}
	return sizes[int(b-'0')%len(sizes)]
}

// opPut: path, size.
func opPut(in *opsInput) (string, opsCall) {
	path, size := in.text(opsPaths), in.size()
	data := lakefstest.Content(uint64(len(in.rest)), size)
	return fmt.Sprintf("put %q, %d bytes", path, size), func(t *testing.T, s *opsSide) string {
		f, err := lakefstest.TryPut(t.Context(), s.store, s.volume, path, data)
		return s.file(f, err)
	}
}

// opCreate: slot, path. What was in the slot is given up.
func opCreate(in *opsInput) (string, opsCall) {
	slot, path := in.below(opSlots), in.text(opsPaths)
	return fmt.Sprintf("create %q as %d", path, slot), func(t *testing.T, s *opsSide) string {
		if old := s.writers[slot]; old != nil {
			old.Abort()
		}
		w, err := s.store.Create(t.Context(), s.volume, path)
		if err != nil {
			w = nil
		}
		s.writers[slot] = w
		return opsOutcome(err)
	}
}

// opWrite: slot, size.
func opWrite(in *opsInput) (string, opsCall) {
	slot, size := in.below(opSlots), in.size()
	data := lakefstest.Content(uint64(len(in.rest)), size)
	return fmt.Sprintf("write %d bytes to %d", size, slot), func(t *testing.T, s *opsSide) string {
		w := s.writers[slot]
		if w == nil {
			return "no writer"
		}
		err := w.Write(t.Context(), data)
		return fmt.Sprint(w.Size(), opsOutcome(err))
	}
}

// opClose: slot. The writer stays in it.
func opClose(in *opsInput) (string, opsCall) {
	slot := in.below(opSlots)
	return fmt.Sprintf("close %d", slot), func(t *testing.T, s *opsSide) string {
		if s.writers[slot] == nil {
			return "no writer"
		}
		f, err := s.writers[slot].Close(t.Context())
		return s.file(f, err)
	}
}

// opAbort: slot. The writer stays in it.
func opAbort(in *opsInput) (string, opsCall) {
	slot := in.below(opSlots)
	return fmt.Sprintf("abort %d", slot), func(_ *testing.T, s *opsSide) string {
		if s.writers[slot] != nil {
			s.writers[slot].Abort()
		}
		return ""
	}
}

// opRemove: path.
func opRemove(in *opsInput) (string, opsCall) {
	path := in.text(opsPaths)
	return fmt.Sprintf("remove %q", path), func(t *testing.T, s *opsSide) string {
		return opsOutcome(s.store.Remove(t.Context(), s.volume, path))
	}
}

// opRemovePrefix: prefix.
func opRemovePrefix(in *opsInput) (string, opsCall) {
	prefix := in.text(opsPrefixes)
	return fmt.Sprintf("remove everything under %q", prefix), func(t *testing.T, s *opsSide) string {
		n, err := s.store.RemovePrefix(t.Context(), s.volume, prefix)
		return fmt.Sprint(n, opsOutcome(err))
	}
}

// opRename: from, to.
func opRename(in *opsInput) (string, opsCall) {
	from, to := in.text(opsPaths), in.text(opsPaths)
	return fmt.Sprintf("rename %q to %q", from, to), func(t *testing.T, s *opsSide) string {
		return opsOutcome(s.store.Rename(t.Context(), s.volume, from, to))
	}
}

// opList: prefix, limit.
func opList(in *opsInput) (string, opsCall) {
	prefix, limit := in.text(opsPrefixes), in.below(4)
	return fmt.Sprintf("list %q, limit %d", prefix, limit), func(t *testing.T, s *opsSide) string {
		paths, err := s.store.List(t.Context(), s.volume, prefix, limit)
		return fmt.Sprintf("%q%s", paths, opsOutcome(err))
	}
}

// opGlob: pattern.
func opGlob(in *opsInput) (string, opsCall) {
	pattern := in.text(opsPatterns)
	return fmt.Sprintf("glob %q", pattern), func(t *testing.T, s *opsSide) string {
		paths, err := s.store.Glob(t.Context(), s.volume, pattern)
		return fmt.Sprintf("%q%s", paths, opsOutcome(err))
	}
}

// opExists: path.
func opExists(in *opsInput) (string, opsCall) {
	path := in.text(opsPaths)
	return fmt.Sprintf("exists %q", path), func(t *testing.T, s *opsSide) string {
		found, err := s.store.Exists(t.Context(), s.volume, path)
		return fmt.Sprint(found, opsOutcome(err))
	}
}

// opOpen: slot, path. What was in the slot is forgotten.
func opOpen(in *opsInput) (string, opsCall) {
	slot, path := in.below(opSlots), in.text(opsPaths)
	return fmt.Sprintf("open %q as %d", path, slot), func(t *testing.T, s *opsSide) string {
		f, err := s.store.Open(t.Context(), s.volume, path)
		s.files[slot] = f
		return s.file(f, err)
	}
}

// opRead: slot; where to begin, in 32nds of the file, or one byte before it; how much, in 32nds of the rest, or one byte too
// much.
func opRead(in *opsInput) (string, opsCall) {
	slot, from, part := in.below(opSlots), in.below(34), in.below(34)
	return fmt.Sprintf("read %d, %d, %d", slot, from, part), func(t *testing.T, s *opsSide) string {
		f := s.files[slot]
		if f == nil {
			return "no file"
		}
		off := int64(from) * f.Size / 32
		length := (f.Size - off) * int64(part) / 32
		if from == 33 {
			off = -1
		}
		if part == 33 {
			length = f.Size - off + 1
		}
		p := make([]byte, length)
		if err := s.store.ReadAt(t.Context(), f, p, off); err != nil {
			return opsOutcome(err)
		}
		return fmt.Sprintf("%d+%d: %08x", off, length, crc32.ChecksumIEEE(p))
	}
}

// opReap: nothing.
func opReap(*opsInput) (string, opsCall) {
	return "reap", func(t *testing.T, s *opsSide) string {
		s.reap(t)
		return ""
	}
}

// everything puts a whole volume into words.
func everything(t *testing.T, s *opsSide) string {
	paths, err := s.store.List(t.Context(), s.volume, "", 0)
	if err != nil {
		return opsOutcome(err)
	}
	var text bytes.Buffer
	for _, path := range paths {
		f, err := s.store.Open(t.Context(), s.volume, path)
		text.WriteString("\n\t\t" + s.file(f, err))
		data, err := lakefstest.Get(t.Context(), s.store, s.volume, path)
		fmt.Fprintf(&text, " %08x%s", crc32.ChecksumIEEE(data), opsOutcome(err))
	}
	for _, path := range opsPaths[:8] {
		found, err := s.store.Exists(t.Context(), s.volume, path)
		fmt.Fprint(&text, " ", found, opsOutcome(err))
	}
	return text.String()
}

// file puts a file into words, or why there is none. IDs differ between stores, but not in which files have which.
func (s *opsSide) file(f *lakefs.File, err error) string {
	if err != nil {
		return opsOutcome(err)
	}
	if _, known := s.ids[f.ID]; !known {
		s.ids[f.ID] = len(s.ids)
	}
	return fmt.Sprintf("%q, file %d, %d bytes", f.Path, s.ids[f.ID], f.Size)
}

// opsOutcome is which of the errors that callers ask for an error is, if it is one.
func opsOutcome(err error) string {
	if err == nil {
		return ""
	}
	for _, known := range []error{lakefs.ErrNotExist, lakefs.ErrReadOnly, lakefs.ErrConflict, lakefs.ErrReaped, context.Canceled} {
		if errors.Is(err, known) {
			return " error: " + known.Error()
		}
	}
	return " error"
}
