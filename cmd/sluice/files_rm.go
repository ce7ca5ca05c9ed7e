package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sluice/lakefs"
)

// filesRemoveCommand holds the settings of `sluice files rm`.
type filesRemoveCommand struct {
	URLs        []string `arg:"" name:"url" help:"Files, pgvfs://VOLUME/PATH, or patterns as for ls."`
	Recursive   bool     `short:"r" xor:"how" help:"Each URL is a folder: remove all files below it."`
	Prefix      bool     `xor:"how" help:"Each URL is the beginning of names: remove all files whose names begin so."`
	WholeVolume bool     `help:"Allow --recursive and --prefix to remove all files of a volume."`
	storeFlags  `embed:"" group:"The store:"`
}

// Help says what removing is.
func (*filesRemoveCommand) Help() string {
	return `Removed files cannot be brought back. Their rows are deleted when they have been removed for longer than --reap-grace. DuckLake is not told: a table whose file is gone cannot be read any more.

  sluice files rm pgvfs://lake/in/a.parquet 'pgvfs://lake/in/b*'
  sluice files rm -r pgvfs://lake/in                       all below in/
  sluice files rm --prefix pgvfs://lake/in                 those, and also inner/x and in.txt
  sluice files rm -r --whole-volume pgvfs://lake           all of the volume`
}

// Run removes.
func (c *filesRemoveCommand) Run(ctx context.Context) error {
	urls, err := parseURLs(c.URLs)
	if err != nil {
		return err
	}
	for i := range urls {
		if urls[i], err = c.prepare(urls[i]); err != nil {
			return usageError{err}
		}
	}
	return c.withStore(ctx, func(store *lakefs.PG) error {
		remove := removeMatching
		if c.Recursive || c.Prefix {
			remove = removePrefix
		}
		removed, failed := int64(0), error(nil)
		for _, url := range urls {
			n, err := remove(ctx, store, url)
			removed, failed = removed+n, errors.Join(failed, err)
		}
		return errors.Join(failed, say("removed %s", countText(removed, "file")))
	})
}

// prepare makes a prefix of a folder, and refuses what would empty a volume by accident.
func (c *filesRemoveCommand) prepare(url fileURL) (fileURL, error) {
	many := c.Recursive || c.Prefix
	switch {
	case url.path == "" && !many:
		return url, fmt.Errorf("%s is a volume; --recursive --whole-volume removes all of its files", url)
	case url.path == "" && !c.WholeVolume:
		return url, fmt.Errorf("%s is a whole volume, which --whole-volume allows to remove", url)
	case !many && strings.HasSuffix(url.path, "/"):
		return url, fmt.Errorf("%s is a folder; --recursive removes all files below it", url)
	}
	if c.Recursive && url.path != "" && !strings.HasSuffix(url.path, "/") {
		url.path += "/"
	}
	return url, nil
}

// removePrefix removes all at once.
func removePrefix(ctx context.Context, store *lakefs.PG, url fileURL) (int64, error) {
	return store.RemovePrefix(ctx, url.volume, url.path)
}

// removeMatching removes one after the other. What somebody else has removed meanwhile is gone as well.
func removeMatching(ctx context.Context, store *lakefs.PG, url fileURL) (removed int64, err error) {
	for f, err := range url.files(ctx, store) {
		if err != nil {
			return removed, err
		}
		switch err := store.Remove(ctx, f.Volume, f.Path); {
		case err == nil:
			removed++
		case !errors.Is(err, lakefs.ErrNotExist):
			return removed, err
		}
	}
	return removed, nil
}
