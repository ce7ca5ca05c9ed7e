package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"sluice/lakefs"
)

// pieceBytes is read at a time, in one query of the store; the next piece is under way meanwhile.
const pieceBytes = 1032 * 8120

// filesGetCommand holds the settings of `sluice files get`.
type filesGetCommand struct {
	Args       []string `arg:"" name:"url" help:"Files, pgvfs://VOLUME/PATH, or patterns as for ls; then the local file to write, - for standard output, or the directory for several. Without it, the current directory."`
	Force      bool     `short:"f" help:"Replace local files."`
	storeFlags `embed:"" group:"The store:"`
}

// Help says what is sure.
func (*filesGetCommand) Help() string {
	return `A local file appears under its name when it is complete and on disk, and never in part. What has been written to standard output counts only if the command succeeds.

  sluice files get pgvfs://lake/data/a.parquet             to ./a.parquet
  sluice files get pgvfs://lake/data/a.parquet copy        to ./copy
  sluice files get 'pgvfs://lake/data/*' backup/           all in data/, into a directory that exists
  sluice files get pgvfs://lake/data/a.parquet - | ...     to a pipe`
}

// Run copies files out.
func (c *filesGetCommand) Run(ctx context.Context) error {
	sources, target := c.Args, "."
	if last := len(c.Args) - 1; !strings.HasPrefix(c.Args[last], lakefs.Scheme) {
		sources, target = c.Args[:last], c.Args[last]
	}
	if len(sources) == 0 {
		return usageError{errors.New("no file to get: a " + lakefs.Scheme + " URL goes before the local name")}
	}
	urls, err := parseURLs(sources)
	if err != nil {
		return err
	}
	return c.withStore(ctx, func(store *lakefs.PG) error {
		files, err := collect(ctx, store, urls)
		if err != nil {
			return err
		}
		return c.get(ctx, store, files, target)
	})
}

// collect finds all files before the first is copied, so that a wrong name is noticed early.
func collect(ctx context.Context, store *lakefs.PG, urls []fileURL) (files []*lakefs.File, err error) {
	for _, url := range urls {
		for f, err := range url.files(ctx, store) {
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// get copies files to standard output, to a file, or into a directory.
func (c *filesGetCommand) get(ctx context.Context, store *lakefs.PG, files []*lakefs.File, target string) error {
	if target == "-" {
		for _, f := range files {
			if err := copyOut(ctx, store, f, os.Stdout); err != nil {
				return err
			}
		}
		return nil
	}
	names, err := c.names(files, target)
	if err != nil {
		return err
	}
	for i, f := range files {
		if err := c.getFile(ctx, store, f, names[i]); err != nil {
			return err
		}
	}
	return nil
}

// names are the local names of files. None may be taken yet, nor be another one's.
func (c *filesGetCommand) names(files []*lakefs.File, target string) ([]string, error) {
	info, err := os.Stat(target)
	directory := err == nil && info.IsDir()
	if !directory && (len(files) > 1 || strings.HasSuffix(target, "/")) {
		return nil, fmt.Errorf("%q is no directory, as is needed for %s", target, countText(int64(len(files)), "file"))
	}
	names := make([]string, len(files))
	taken := map[string]*lakefs.File{}
	for i, f := range files {
		names[i] = target
		if directory {
			base := path.Base(f.Path)
			if base == "." || base == ".." {
				return nil, fmt.Errorf("%s needs a local name that is a file's", f.URL())
			}
			names[i] = filepath.Join(target, base)
		}
		if other := taken[names[i]]; other != nil {
			return nil, fmt.Errorf("%s and %s would both be %q", other.URL(), f.URL(), names[i])
		}
		taken[names[i]] = f
		if err := c.checkFree(names[i]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// checkFree refuses to replace what was not to be replaced.
func (c *filesGetCommand) checkFree(name string) error {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !c.Force:
		return fmt.Errorf("%q exists; --force replaces it", name)
	case info.IsDir():
		return fmt.Errorf("%q is a directory", name)
	}
	return nil
}

// getFile writes a file beside its name and moves it there when it is complete.
func (c *filesGetCommand) getFile(ctx context.Context, store *lakefs.PG, f *lakefs.File, name string) (err error) {
	part := filepath.Join(filepath.Dir(name), ".sluice-get-"+rand.Text())
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("get %s: %w", f.URL(), err)
	}
	defer func() {
		if removeErr := os.Remove(part); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}()
	err = copyOut(ctx, store, f, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := c.place(part, name); err != nil {
		return fmt.Errorf("get %s: %w", f.URL(), err)
	}
	return nil
}

// place gives a complete file its name. A link, unlike a rename, replaces nothing that has come there meanwhile; where
// the file system has none, a last look must do.
func (c *filesGetCommand) place(part, name string) error {
	if !c.Force {
		err := os.Link(part, name)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := c.checkFree(name); err != nil {
			return err
		}
	}
	return os.Rename(part, name)
}

// copyOut writes a file's bytes in order.
func copyOut(ctx context.Context, store lakefs.Store, f *lakefs.File, w io.Writer) error {
	b := newBar(path.Base(f.Path), f.Size, true)
	defer b.clear()
	done := int64(0)
	for piece, err := range pieces(ctx, store, f) {
		if err != nil {
			return err
		}
		n, err := w.Write(piece)
		if err != nil {
			return fmt.Errorf("get %s: %w", f.URL(), err)
		}
		done += int64(n)
		b.set(done, f.Size)
	}
	if done != f.Size {
		return fmt.Errorf("get %s: %d of %d bytes: %w", f.URL(), done, f.Size, io.ErrUnexpectedEOF)
	}
	return nil
}

// pieces goes through a file's bytes, and reads one piece ahead. A piece is good until the next is asked for.
func pieces(ctx context.Context, store lakefs.Store, f *lakefs.File) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reads sync.WaitGroup
		defer reads.Wait()
		defer cancel()
		var slots [2]struct {
			piece []byte
			read  chan error
		}
		begin := func(no int64) {
			if no*pieceBytes >= f.Size {
				return
			}
			s := &slots[no%2]
			size := min(pieceBytes, f.Size-no*pieceBytes)
			if s.piece == nil {
				s.piece, s.read = make([]byte, size), make(chan error, 1)
			}
			s.piece = s.piece[:size]
			reads.Go(func() { s.read <- store.ReadAt(ctx, f, s.piece, no*pieceBytes) })
		}
		begin(0)
		for no := int64(0); no*pieceBytes < f.Size; no++ {
			begin(no + 1)
			s := &slots[no%2]
			if err := <-s.read; err != nil {
				yield(nil, err)
				return
			}
			if !yield(s.piece, nil) {
				return
			}
		}
	}
}
