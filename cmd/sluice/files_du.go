package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sluice/lakefs"
)

// usageObject is what files take, as JSON.
type usageObject struct {
	URL   string `json:"url"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"rows"`
}

// usageJSON makes one of a volume's.
func usageJSON(u lakefs.Usage) usageObject {
	return usageObject{volumeURL(u.Volume), u.Files, u.Bytes, u.Rows}
}

// filesUsageCommand holds the settings of `sluice files du`.
type filesUsageCommand struct {
	URL        string `arg:"" optional:"" help:"The beginning of the names to sum up, pgvfs://VOLUME/PREFIX. Without it, each volume is summed up, and what was removed and waits to be reaped."`
	JSON       bool   `help:"Write a JSON object a line."`
	storeFlags `embed:"" group:"The store:"`
}

// Help says what the numbers are.
func (*filesUsageCommand) Help() string {
	return `A row has up to 8120 bytes; a full one takes a page of 8192 on disk. What PostgreSQL has deleted and not vacuumed yet comes on top. Removed files belong to no volume any more; those that were removed longer than --reap-grace ago may be reaped.`
}

// removedObject is what removed files still take, as JSON.
type removedObject struct {
	Removed  bool       `json:"removed"`
	Files    int64      `json:"files"`
	Rows     int64      `json:"rows"`
	DueFiles int64      `json:"due_files"`
	DueRows  int64      `json:"due_rows"`
	Since    *time.Time `json:"since,omitempty"`
}

// Run sums up.
func (c *filesUsageCommand) Run(ctx context.Context) error {
	url, all := fileURL{}, c.URL == "" || c.URL == lakefs.Scheme
	if !all {
		var err error
		if url, err = parseURL(c.URL); err != nil {
			return err
		}
	}
	return c.withStore(ctx, func(store *lakefs.PG) error {
		usage, err := store.Usage(ctx, url.volume, url.path)
		if err != nil {
			return err
		}
		objects := make([]usageObject, len(usage))
		for i, u := range usage {
			objects[i] = usageJSON(u)
			objects[i].URL += url.path
		}
		if !all {
			if len(objects) == 0 {
				objects = []usageObject{{URL: url.String()}}
			}
			return c.print(objects, nil)
		}
		removed, err := store.Garbage(ctx)
		if err != nil {
			return err
		}
		return c.print(objects, &removed)
	})
}

// print writes a table, or lines of JSON.
func (c *filesUsageCommand) print(usage []usageObject, removed *lakefs.Garbage) error {
	return output(func(w io.Writer) error {
		if c.JSON {
			return printUsageJSON(w, usage, removed)
		}
		row := func(files, bytes, rows any, of string) {
			fmt.Fprintf(w, "%10v %15v %12v  %s\n", files, bytes, rows, of) // an error stays until output's flush
		}
		row("files", "bytes", "rows", "of")
		for _, u := range usage {
			row(u.Files, u.Bytes, u.Rows, legible(u.URL))
		}
		if removed != nil {
			row(removed.Files, "", removed.Rows, fmt.Sprintf("what was removed; %s (%s) may be reaped",
				countText(removed.DueFiles, "file"), countText(removed.DueRows, "row")))
		}
		return nil
	})
}

// printUsageJSON writes a line a volume, and one for what was removed.
func printUsageJSON(w io.Writer, usage []usageObject, removed *lakefs.Garbage) error {
	for _, u := range usage {
		if err := printJSON(w, u); err != nil {
			return err
		}
	}
	if removed == nil {
		return nil
	}
	object := removedObject{true, removed.Files, removed.Rows, removed.DueFiles, removed.DueRows, nil}
	if !removed.Since.IsZero() {
		since := removed.Since.UTC()
		object.Since = &since
	}
	return printJSON(w, object)
}
