package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"sluice/lakefs"
)

// blockBytes is read from a local file at a time, one block while another is sent.
const blockBytes = 4 << 20

// filesPutCommand holds the settings of `sluice files put`.
type filesPutCommand struct {
	Args       []string `arg:"" name:"file" help:"Local files, or - for standard input; then the URL to copy to, pgvfs://VOLUME/PATH. If that ends in a slash, or is a volume, the files keep their names below it."`
	storeFlags `embed:"" group:"The store:"`
}

// Help says what is sure.
func (*filesPutCommand) Help() string {
	return `A file that has the name already is replaced when the new one is complete. If the command fails or is interrupted before, nothing of the new one is there. DuckLake is not told: the file belongs to no table.

  sluice files put a.parquet pgvfs://lake/in/b.parquet     under another name
  sluice files put *.parquet pgvfs://lake/in/              several
  ... | sluice files put - pgvfs://lake/in/c.parquet       from a pipe`
}

// Run copies files in.
func (c *filesPutCommand) Run(ctx context.Context) error {
	last := len(c.Args) - 1
	url, err := parseURL(c.Args[last])
	if err != nil {
		return err
	}
	sources := c.Args[:last]
	if len(sources) == 0 {
		return usageError{errors.New("no file to put: a local name, or -, goes before the URL")}
	}
	targets, err := putTargets(sources, url)
	if err != nil {
		return usageError{err}
	}
	return c.withStore(ctx, func(store *lakefs.PG) error {
		for i, source := range sources {
			if err := putFile(ctx, store, source, targets[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// putTargets are the names that files get.
func putTargets(sources []string, url fileURL) ([]fileURL, error) {
	folder := url.path == "" || strings.HasSuffix(url.path, "/")
	if !folder && len(sources) > 1 {
		return nil, fmt.Errorf("%s does not end in a slash, as is needed for %d files", url, len(sources))
	}
	targets := make([]fileURL, len(sources))
	taken := map[fileURL]string{}
	for i, source := range sources {
		targets[i] = url
		if folder && source == "-" {
			return nil, fmt.Errorf("standard input has no name to be given below %s", url)
		}
		if folder {
			targets[i].path += filepath.Base(source)
		}
		if err := lakefs.CheckPath(targets[i].path); err != nil {
			return nil, err
		}
		if other, ok := taken[targets[i]]; ok {
			return nil, fmt.Errorf("%q and %q would both be %s", other, source, targets[i])
		}
		taken[targets[i]] = source
	}
	return targets, nil
}

// putFile copies one file in.
func putFile(ctx context.Context, store lakefs.Store, source string, target fileURL) error {
	file := os.Stdin
	if source != "-" {
		var err error
		if file, err = os.Open(source); err != nil {
			return err
		}
		defer file.Close()
	}
	before, err := file.Stat()
	if err != nil {
		return fmt.Errorf("put %s: %w", target, err)
	}
	if before.IsDir() {
		return fmt.Errorf("%q is a directory", source)
	}
	w, err := store.Create(ctx, target.volume, target.path)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := copyIn(ctx, w, file, before, filepath.Base(target.path)); err != nil {
		return fmt.Errorf("put %s: %w", target, err)
	}
	_, err = w.Close(ctx)
	return err
}

// copyIn writes what a file has. Of a regular one, that must be what it had when it was opened.
func copyIn(ctx context.Context, w lakefs.Writer, file *os.File, before fs.FileInfo, name string) error {
	total := int64(-1)
	if before.Mode().IsRegular() {
		total = before.Size()
	}
	b := newBar(name, total, true)
	defer b.clear()
	for block, err := range blocks(ctx, file) {
		if err != nil {
			return err
		}
		if err := w.Write(ctx, block); err != nil {
			return err
		}
		b.set(w.Size(), total)
	}
	if total < 0 {
		return nil
	}
	after, err := file.Stat()
	if err != nil {
		return err
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return fmt.Errorf("%q has changed while it was read", file.Name())
	}
	return nil
}

// blocks goes through what a reader has, and reads one block ahead. A block is good until the next is asked for. Nobody
// can interrupt a read of standard input, so the goroutine that reads may stay behind, until the command ends.
func blocks(ctx context.Context, r io.Reader) iter.Seq2[[]byte, error] {
	type block struct {
		bytes []byte
		err   error
	}
	return func(yield func([]byte, error) bool) {
		full, empty, gone := make(chan block), make(chan []byte, 2), make(chan struct{})
		defer close(gone)
		empty <- make([]byte, blockBytes)
		empty <- make([]byte, blockBytes)
		go func() {
			for {
				select {
				case buf := <-empty:
					n, err := io.ReadFull(r, buf[:blockBytes])
					select {
					case full <- block{buf[:n], err}:
					case <-gone:
						return
					}
					if err != nil {
						return
					}
				case <-gone:
					return
				}
			}
		}()
		for {
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case b := <-full:
				ended := errors.Is(b.err, io.EOF) || errors.Is(b.err, io.ErrUnexpectedEOF)
				if b.err != nil && !ended {
					yield(nil, b.err)
					return
				}
				if !yield(b.bytes, nil) || ended {
					return
				}
				empty <- b.bytes
			}
		}
	}
}
