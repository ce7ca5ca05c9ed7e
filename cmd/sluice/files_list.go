package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sluice/lakefs"
)

// filesListCommand holds the settings of `sluice files ls`.
type filesListCommand struct {
	URL        string `arg:"" optional:"" help:"The beginning of the names to list, pgvfs://VOLUME/PREFIX, or a pattern with * ? [a-z] within a folder and ** for any number of folders. Without it, the volumes are listed."`
	Long       bool   `short:"l" help:"Show size, time of creation and ID; of volumes, how many files and bytes."`
	JSON       bool   `help:"Write a JSON object a line. Names are as they are then; else those with control characters are in quotes."`
	storeFlags `embed:"" group:"The store:"`
}

// Help says what a URL is.
func (*filesListCommand) Help() string {
	return `Folders are but parts of names, so an empty one is nowhere. If a file is called just like a pattern, the pattern stands for that file alone.

  sluice files ls                                   the volumes
  sluice files ls -l pgvfs://lake/data/             all files below data/
  sluice files ls 'pgvfs://lake/**/*.parquet'       those with such names, anywhere`
}

// Run lists.
func (c *filesListCommand) Run(ctx context.Context) error {
	if c.URL == "" || c.URL == lakefs.Scheme {
		return c.withStore(ctx, func(store *lakefs.PG) error {
			return output(func(w io.Writer) error { return c.listVolumes(ctx, store, w) })
		})
	}
	url, err := parseURL(c.URL)
	if err != nil {
		return err
	}
	return c.withStore(ctx, func(store *lakefs.PG) error {
		return output(func(w io.Writer) error { return c.listFiles(ctx, store, url, w) })
	})
}

// listVolumes sums volumes up only if that is wanted: it takes a look at each file.
func (c *filesListCommand) listVolumes(ctx context.Context, store *lakefs.PG, w io.Writer) error {
	if c.Long || c.JSON {
		usage, err := store.Usage(ctx, "", "")
		if err != nil {
			return err
		}
		for _, u := range usage {
			if err := c.print(w, usageJSON(u), fmt.Sprintf("%15d %10d  %s", u.Bytes, u.Files, volumeURL(u.Volume))); err != nil {
				return err
			}
		}
		return nil
	}
	volumes, err := store.Volumes(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if _, err := fmt.Fprintln(w, volumeURL(v)); err != nil {
			return err
		}
	}
	return nil
}

// volumeURL is a volume's own.
func volumeURL(volume string) string { return fileURL{volume, ""}.String() }

// listFiles writes a line a file.
func (c *filesListCommand) listFiles(ctx context.Context, store *lakefs.PG, url fileURL, w io.Writer) error {
	files := url.files(ctx, store)
	if prefix, pattern := url.literal(); !pattern {
		files = store.ListFiles(ctx, url.volume, prefix)
	}
	for f, err := range files {
		if err != nil {
			return err
		}
		text := legible(f.URL())
		if c.Long {
			text = fmt.Sprintf("%15d  %s %10d  %s", f.Size, f.CreatedAt.UTC().Format(time.RFC3339), f.ID, text)
		}
		if err := c.print(w, fileJSON(f), text); err != nil {
			return err
		}
	}
	return nil
}

// print writes one of both forms.
func (c *filesListCommand) print(w io.Writer, object any, text string) error {
	if c.JSON {
		return printJSON(w, object)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// fileObject is a file as JSON.
type fileObject struct {
	URL       string    `json:"url"`
	Size      int64     `json:"size"`
	CreatedAt time.Time `json:"created_at"`
	ID        int64     `json:"id"`
	Rows      int64     `json:"rows"`
}

// fileJSON makes one.
func fileJSON(f *lakefs.File) fileObject {
	return fileObject{f.URL(), f.Size, f.CreatedAt.UTC(), f.ID, f.Rows()}
}

// filesStatCommand holds the settings of `sluice files stat`.
type filesStatCommand struct {
	URLs       []string `arg:"" name:"url" help:"Files, pgvfs://VOLUME/PATH, or patterns as for ls."`
	JSON       bool     `help:"Write a JSON object a line."`
	storeFlags `embed:"" group:"The store:"`
}

// Run shows files.
func (c *filesStatCommand) Run(ctx context.Context) error {
	urls, err := parseURLs(c.URLs)
	if err != nil {
		return err
	}
	return c.withStore(ctx, func(store *lakefs.PG) error {
		return output(func(w io.Writer) error {
			for _, url := range urls {
				for f, err := range url.files(ctx, store) {
					if err != nil {
						return err
					}
					if err := c.print(w, f); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// print writes a file.
func (c *filesStatCommand) print(w io.Writer, f *lakefs.File) error {
	if c.JSON {
		return printJSON(w, fileJSON(f))
	}
	_, err := fmt.Fprintf(w, "url      %s\nid       %d\nsize     %d (%s)\nrows     %d\ncreated  %s\n",
		legible(f.URL()), f.ID, f.Size, bytesText(f.Size), f.Rows(), f.CreatedAt.UTC().Format(time.RFC3339Nano))
	return err
}
