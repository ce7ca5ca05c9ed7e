package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"unicode"

	"sluice/lakefs"
	"sluice/lakefs/embedded"
)

// withStore runs fn on the store of a lake's files. Without a DSN that is in the embedded PostgreSQL of the data
// directory, which runs for as long as the command does if no `sluice serve` runs it.
func (f storeFlags) withStore(ctx context.Context, fn func(*lakefs.PG) error) (err error) {
	dsn, log := f.DSN, f.logger()
	if dsn == "" {
		server, err := embedded.Attach(ctx, embedded.Options{Dir: f.DataDir, Database: f.Lake, Logger: log})
		if errors.Is(err, embedded.ErrNoCluster) {
			return fmt.Errorf("%w; `sluice serve` makes it, or --dsn names another PostgreSQL", err)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close(ctx)) }()
		dsn = server.DSN()
	}
	store, err := lakefs.OpenPG(ctx, lakefs.Config{
		DSN:            dsn,
		ReapGrace:      f.storeGrace(),
		AllowPlaintext: f.DSNPlaintext,
		Logger:         log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return fn(store)
}

// fileURL is a URL of the command line, taken apart.
type fileURL struct{ volume, path string }

// parseURL wants the URL of a file, of several by a pattern, or of a prefix. What is none is the command line's fault.
func parseURL(url string) (fileURL, error) {
	volume, path, err := lakefs.SplitURL(url)
	if err != nil {
		return fileURL{}, usageError{err}
	}
	return fileURL{volume, path}, nil
}

// parseURLs is parseURL for many: a command does nothing at all when it does not understand one of them.
func parseURLs(urls []string) ([]fileURL, error) {
	parsed := make([]fileURL, len(urls))
	for i, url := range urls {
		var err error
		if parsed[i], err = parseURL(url); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// String is the URL again.
func (u fileURL) String() string { return lakefs.Scheme + u.volume + "/" + u.path }

// literal is the path up to its first wildcard, and whether it has one.
func (u fileURL) literal() (prefix string, pattern bool) {
	if i := strings.IndexAny(u.path, "*?["); i >= 0 {
		return u.path[:i], true
	}
	return u.path, false
}

// files goes through what a URL stands for: the file of exactly this name, or else those that match it. lakefs.ErrNotExist:
// there are none.
func (u fileURL) files(ctx context.Context, store *lakefs.PG) iter.Seq2[*lakefs.File, error] {
	return func(yield func(*lakefs.File, error) bool) {
		exact, err := store.Open(ctx, u.volume, u.path)
		prefix, pattern := u.literal()
		if !errors.Is(err, lakefs.ErrNotExist) || !pattern {
			yield(exact, err)
			return
		}
		found := false
		for f, listErr := range store.ListFiles(ctx, u.volume, prefix) {
			if listErr == nil && !lakefs.MatchPath(u.path, f.Path) {
				continue
			}
			found = true
			if !yield(f, listErr) {
				return
			}
		}
		if !found {
			yield(nil, err)
		}
	}
}

// legible is a name as it is, unless a terminal or a reader of lines would misunderstand it: then it is in quotes.
func legible(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// output collects what goes to standard output, which counts only if all of it could be written.
func output(fn func(w io.Writer) error) error {
	w := bufio.NewWriter(os.Stdout)
	err := fn(w)
	if flushErr := w.Flush(); flushErr != nil && err == nil {
		err = fmt.Errorf("write the output: %w", flushErr)
	}
	return err
}

// say writes a line to standard output.
func say(format string, args ...any) error {
	return output(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	})
}

// printJSON writes a line.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// countText is a number of things for people.
func countText(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
