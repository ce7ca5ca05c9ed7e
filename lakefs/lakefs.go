package lakefs

import (
	"context"
	"errors"
	"time"
)

// Store keeps immutable files under (volume, path). Every method may be called from any goroutine. Errors say which
// file and what was being done; the sentinels below are wrapped in them. A context that ends, ends the call.
type Store interface {
	// Open looks a file up. Repeatable. ErrNotExist: no such file. An answer may be as old as the open cache allows,
	// but never older than this process's own changes.
	Open(ctx context.Context, volume, path string) (*File, error)

	// ReadAt fills p with the bytes from off on, or fails and leaves p undefined. Repeatable. The range must lie within
	// the file. ErrReaped: the file has been replaced or removed so long ago that its rows are gone.
	ReadAt(ctx context.Context, f *File, p []byte, off int64) error

	// Create starts a file that nobody sees before its Writer is closed; what was at the path stays until then.
	// ErrReadOnly: the server is a standby. The end of ctx ends the writer as well, also between its calls.
	Create(ctx context.Context, volume, path string) (Writer, error)

	// Remove removes a file. ErrNotExist: nothing was there, perhaps because an earlier try succeeded.
	Remove(ctx context.Context, volume, path string) error

	// RemovePrefix removes every file whose path begins with prefix, all or none, and counts them. Repeatable. An empty
	// prefix stands for the whole volume; one that is not UTF-8 begins no path, not even with half of a character.
	RemovePrefix(ctx context.Context, volume, prefix string) (int64, error)

	// Rename moves a file within its volume, replacing what is at the target. ErrNotExist: no such file; the target is
	// untouched. ErrConflict: the target was published at the same time. Not repeatable.
	Rename(ctx context.Context, volume, from, to string) error

	// List returns the paths that begin with prefix, as RemovePrefix has it, in byte order, at most limit of them (0: all).
	// Repeatable.
	List(ctx context.Context, volume, prefix string, limit int) ([]string, error)

	// Exists reports whether Open would succeed. Repeatable.
	Exists(ctx context.Context, volume, path string) (bool, error)

	// Glob returns the paths that match a pattern, in byte order (see MatchPath). Repeatable.
	Glob(ctx context.Context, volume, pattern string) ([]string, error)
}

// Writer takes the bytes of one file in order. It belongs to one goroutine at a time. Whoever has one must call Close
// or Abort; calling Abort in any case, deferred, is the simplest way to.
type Writer interface {
	// Write appends a copy of p. After an error the file is lost and only Abort helps.
	Write(ctx context.Context, p []byte) error

	// Close publishes the file: when it returns without error, the file is there for everyone and survives a crash.
	// ErrConflict: somebody else published the same path at the same time and won. After an error nothing of the file
	// remains, except that a connection lost during the commit leaves open which of both it is. Not repeatable.
	Close(ctx context.Context) (*File, error)

	// Abort gives the file up; nothing of it remains. It may be called at any time and again, also after Close.
	Abort()

	// Size is the number of bytes written so far.
	Size() int64
}

// File is a published file. Its bytes never change; a replaced file has another ID.
type File struct {
	ID        int64     // unique within the store; names the bytes for as long as they exist
	Size      int64     // bytes
	CreatedAt time.Time // when its writing began; another one for each ID of a path
	Volume    string    // where Open found it or Close put it
	Path      string
}

// URL is how DuckDB names the file.
func (f *File) URL() string { return fileURL(f.Volume, f.Path) }

// What callers ask errors about, with errors.Is.
var (
	ErrNotExist = errors.New("no such file")
	ErrReadOnly = errors.New("read-only standby: pgvfs writes must go to the primary")
	ErrConflict = errors.New("published by another writer at the same time; this write was rolled back")
	ErrReaped   = errors.New("the file was replaced or removed and its rows were reaped while it was being read; " +
		"a longer SLUICE_REAP_GRACE keeps them for longer")
	ErrRecovery = errors.New("the standby cancelled the read to get on with its recovery; " +
		"hot_standby_feedback = on at the standby keeps the primary from removing what it reads")
)
