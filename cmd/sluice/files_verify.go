package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sluice/lakefs"
)

// filesReapCommand holds the settings of `sluice files reap`.
type filesReapCommand struct {
	storeFlags `embed:"" group:"The store:"`
}

// Help says when that is of use.
func (*filesReapCommand) Help() string {
	return `A Sluice that writes does so by itself, half a gigabyte a minute. What reads a removed file at this moment fails if its rows go, so --reap-grace should not be less than any query takes.`
}

// Run reaps until nothing is left that may be.
func (c *filesReapCommand) Run(ctx context.Context) error {
	return c.withStore(ctx, func(store *lakefs.PG) error {
		removed, err := store.Garbage(ctx)
		if err != nil {
			return err
		}
		b := newBar("reaping", removed.DueRows, false)
		defer b.clear()
		rows, err := store.Reap(ctx, func(rows int64) { b.set(min(rows, removed.DueRows), removed.DueRows) })
		b.clear()
		return errors.Join(err, say("deleted %s", countText(rows, "row")))
	})
}

// filesVerifyCommand holds the settings of `sluice files verify`.
type filesVerifyCommand struct {
	storeFlags `embed:"" group:"The store:"`
}

// Help says what comes out.
func (*filesVerifyCommand) Help() string {
	return `Each fault is a line on standard output, a JSON object:

  kind     what is wrong, one of the words below
  file_id  the file concerned; missing if it is the store as a whole
  url      its name, if it is published
  row      the first of the chunk rows concerned; missing if it is the file as a whole
  detail   the same for people

  layout             a table, column, constraint or function is not layout v2's
  toast              bytes are in the TOAST relation instead of their row
  file-shape         a files row that no program can open or would write
  name-shared        a name of several files
  id-shared          an ID of several files
  id-unissued        an ID that the sequence will give out once more
  garbage-shape      a removed file that will never be reaped
  garbage-published  a published file that waits to be reaped
  row-missing        rows that should be there
  row-surplus        rows behind a file's end, or without a number
  row-duplicate      a row number that is there more than once
  row-length         a row that is too long, too short, or empty
  size               rows that are not as many bytes as the file's size
  page-shared        compressed rows, several to a page
  orphan-rows        rows of no file

The exit status is 0 without faults, 3 with, and 1 if the store could not be checked, or not to the end. One snapshot is checked, so others may write meanwhile; the right to SELECT is enough, also on a standby.`
}

// faultsError is how many faults a store has.
type faultsError int64

func (e faultsError) Error() string { return countText(int64(e), "fault") + " found" }

// faultObject is a fault as JSON.
type faultObject struct {
	Kind   lakefs.FaultKind `json:"kind"`
	FileID int64            `json:"file_id,omitempty"`
	URL    string           `json:"url,omitempty"`
	Row    *int64           `json:"row,omitempty"`
	Detail string           `json:"detail"`
}

// faultJSON makes one.
func faultJSON(f lakefs.Fault) faultObject {
	object := faultObject{Kind: f.Kind, FileID: f.FileID, Detail: f.Detail}
	if f.Volume != "" {
		object.URL = fileURL{f.Volume, f.Path}.String()
	}
	if f.Row >= 0 {
		object.Row = &f.Row
	}
	return object
}

// Run checks the store.
func (c *filesVerifyCommand) Run(ctx context.Context) error {
	return c.withStore(ctx, func(store *lakefs.PG) error {
		begin := time.Now()
		b := newBar("verifying", 0, true)
		defer b.clear()
		var writeErr error
		report := func(f lakefs.Fault) {
			b.clear()
			writeErr = errors.Join(writeErr, printJSON(os.Stdout, faultJSON(f)))
		}
		found, err := store.VerifyProgress(ctx, report, b.set)
		b.clear()
		if err := errors.Join(err, writeErr); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "checked %s, %s, %s in %s\n", countText(found.Files, "file"), countText(found.Rows, "row"),
			bytesText(found.Bytes), time.Since(begin).Round(time.Millisecond))
		for _, skipped := range found.Skipped {
			fmt.Fprintf(os.Stderr, "not checked: %s\n", skipped)
		}
		if found.Faults > 0 {
			return faultsError(found.Faults)
		}
		return nil
	})
}
