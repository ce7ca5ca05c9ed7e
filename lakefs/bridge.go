package lakefs

/*
#cgo CXXFLAGS: -std=c++17 -O2
#include <stdlib.h>
#include "bridge.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime/cgo"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings" // brings DuckDB's library, which bridge.cpp is linked with
)

// Bridge makes a Store a DuckDB file system: pgvfs:// in one DuckDB instance. DuckDB's own threads call the exported
// functions below; what is done there on behalf of a client ends with the statement that the client runs.
type Bridge struct {
	db    unsafe.Pointer
	store Store

	mu      sync.RWMutex // guards clients
	clients map[C.uintptr_t]*Client
}

// Register makes pgvfs:// known to the DuckDB instance of a duckdb_database. The instance owns the registration and
// gives it back when it closes; the store must live longer. A DuckDB of another version is refused, since duckdb.hpp
// repeats the declarations of one. Not repeatable for an instance.
func Register(db unsafe.Pointer, store Store) (*Bridge, error) {
	if err := checkVersion(duckdb.LibraryVersion()); err != nil {
		return nil, err
	}
	b := &Bridge{db: db, store: store, clients: map[C.uintptr_t]*Client{}}
	if err := goError(C.sluice_register(db, C.uintptr_t(cgo.NewHandle(b)))); err != nil {
		return nil, err
	}
	return b, nil
}

// checkVersion fails for a DuckDB that duckdb.hpp does not describe: what it says of another could be wrong anywhere.
func checkVersion(version string) error {
	if version != C.SLUICE_DUCKDB_VERSION {
		return fmt.Errorf("this is DuckDB %s, but Sluice's bridge to it is made for %s alone: "+
			"build with the version of duckdb-go that go.mod names", version, C.SLUICE_DUCKDB_VERSION)
	}
	return nil
}

// InternalFunctions are the table functions of DuckDB, of its postgres extension and of its json extension that a
// client must not reach: they go round what Sluice checks of a statement. Give them to GuardFunctions once the
// extensions are loaded.
var InternalFunctions = []string{
	// SQL in the backing database, or any other, with the service's rights. DuckLake itself uses the first two.
	"postgres_query", "postgres_execute", "postgres_scan", "postgres_scan_pushdown", "postgres_attach",
	// The catalog's connections, which all clients share.
	"postgres_configure_pool", "pg_clear_cache",
	// Runs SQL on a new connection of its own, which is nobody's client: neither guarded nor in StatementDatabases.
	"json_execute_serialized_sql",
	// Their arguments are addresses in memory. SQL has no such values today.
	"arrow_scan", "arrow_scan_dumb",
}

// GuardFunctions makes table functions of DuckDB's system catalog refuse to bind for a client, with a permission error,
// whatever view, macro, prepared statement or query('…') the call stands in. DuckDB's and DuckLake's own connections
// keep them. Fails if one of the names is not a table function; those before it are guarded then. Repeatable. To be
// called before there are clients.
func (b *Bridge) GuardFunctions(names ...string) error {
	text := C.CString(strings.Join(names, "\n"))
	defer C.free(unsafe.Pointer(text))
	return goError(C.sluice_guard_functions(b.db, text))
}

// DuckLakeUnpinned is the build of DuckLake (extension_version in duckdb_extensions()) that lets a transaction use schemas
// which it has freed, and whose state KeepSchemas knows. It is the one of DuckDB v1.5.5.
const DuckLakeUnpinned = "d8a1881e"

// KeepSchemas makes DuckLake keep the schemas that a duckdb_connection uses until its next transaction, where the build
// is DuckLakeUnpinned; bridge.cpp says why. To be called once the connection has read the lake and runs no query.
func KeepSchemas(conn unsafe.Pointer) error { return goError(C.sluice_keep_schemas(conn)) }

// StatementDatabases lists the attached databases that a duckdb_prepared_statement reads and modifies, as DuckDB bound
// it. Databases that DuckLake reads on its own connections are not the statement's and not listed.
func StatementDatabases(prepared unsafe.Pointer) (reads, writes []string, err error) {
	var n C.size_t
	p := C.sluice_statement_databases(prepared, &n)
	defer C.free(unsafe.Pointer(p))
	for _, s := range strings.Split(C.GoStringN(p, C.int(n)), "\x00") {
		switch {
		case strings.HasPrefix(s, "R"):
			reads = append(reads, s[1:])
		case strings.HasPrefix(s, "W"):
			writes = append(writes, s[1:])
		case strings.HasPrefix(s, "E"):
			return nil, nil, errors.New(s[1:])
		}
	}
	return reads, writes, nil
}

// goError turns a text made by malloc into an error; nil is none.
func goError(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return errors.New(C.GoString(text))
}

// Client is one client's session as the bridge knows it.
type Client struct {
	bridge *Bridge
	conn   unsafe.Pointer // the duckdb_connection
	key    C.uintptr_t    // the session's ClientContext: a key, never dereferenced
	ctx    atomic.Pointer[context.Context]
}

// BindClient marks a duckdb_connection as a client's: guarded functions refuse it, and what it reads and writes ends
// with the context that SetContext says. Release must be called before the connection is closed.
func (b *Bridge) BindClient(conn unsafe.Pointer) *Client {
	c := &Client{bridge: b, conn: conn, key: C.sluice_client_key(conn)}
	C.sluice_client_guard(c.key, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients[c.key] = c
	return c
}

// AllowGuarded lets the client use guarded functions: it is an administrator's.
func (c *Client) AllowGuarded() { C.sluice_client_guard(c.key, 0) }

// AllowDatabases refuses every later statement of the connection that reads or modifies other attached databases than
// these, with a permission error, whatever it is wrapped in and also where only a parameter's value names the database.
// Internal work of DuckDB on the connection is held to it too, so system and temp are to be among them.
func (c *Client) AllowDatabases(reads, writes []string) error {
	var list strings.Builder
	for _, db := range reads {
		list.WriteString("R" + db + "\n")
	}
	for _, db := range writes {
		list.WriteString("W" + db + "\n")
	}
	text := C.CString(list.String())
	defer C.free(unsafe.Pointer(text))
	return goError(C.sluice_client_databases(c.conn, text))
}

// SetContext says which statement the client runs now: reads and writes of the store on its behalf end with ctx. A read
// belongs to the statement that reads, whichever has opened the file; a file being written, to the one that began it.
func (c *Client) SetContext(ctx context.Context) { c.ctx.Store(&ctx) }

// Release forgets the client. Files that DuckDB still has open for it are no longer bound to any statement.
func (c *Client) Release() {
	C.sluice_client_guard(c.key, 0)
	c.SetContext(context.Background())
	c.bridge.mu.Lock()
	defer c.bridge.mu.Unlock()
	if c.bridge.clients[c.key] == c {
		delete(c.bridge.clients, c.key)
	}
}

// client finds a client by its key; nil for DuckDB's own connections.
func (b *Bridge) client(key C.uintptr_t) *Client {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.clients[key]
}

// context is that of the statement that the client runs. What no client has asked for is DuckDB's own business.
func (c *Client) context() context.Context {
	if c == nil {
		return context.Background()
	}
	if ctx := c.ctx.Load(); ctx != nil {
		return *ctx
	}
	return context.Background()
}

// openFile is a file that DuckDB has open: one of file and writer is set.
type openFile struct {
	store  Store
	client *Client // for whom it was opened; may be nil
	path   string
	file   *File
	writer Writer
}

// DuckDB's flags for opening a file (FileOpenFlags).
const (
	flagRead            = 1 << 0
	flagWrite           = 1 << 1
	flagFileCreate      = 1 << 3
	flagFileCreateNew   = 1 << 4
	flagAppend          = 1 << 5
	flagNullIfNotExists = 1 << 7
	flagExclusiveCreate = 1 << 9
	flagNullIfExists    = 1 << 10
)

// errUnsupported is an operation that files of the store do not have.
var errUnsupported = errors.New("not supported for pgvfs files")

// report gives an error to C++ in out.
func report(ctx context.Context, out *C.sluice_error, err error) {
	if err == nil {
		return
	}
	out.kind = C.SLUICE_IO
	switch {
	case errors.Is(err, errUnsupported):
		out.kind = C.SLUICE_NOT_IMPLEMENTED
	case ctx.Err() != nil:
		out.kind = C.SLUICE_INTERRUPT
	}
	out.text = C.CString(err.Error())
}

// guardPanic runs work and reports how it ended. A panic is an error too: it must not cross C++ frames.
func guardPanic(ctx context.Context, out *C.sluice_error, work func() error) {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in pgvfs: %v", p)
		}
		report(ctx, out, err)
	}()
	err = work()
}

// call runs one operation on a path of the store.
func call(store, client C.uintptr_t, path *C.char, n C.size_t, out *C.sluice_error, work func(ctx context.Context, b *Bridge, volume, path string) error) {
	b := cgo.Handle(store).Value().(*Bridge)
	ctx := b.client(client).context()
	guardPanic(ctx, out, func() error {
		volume, name, err := SplitURL(C.GoStringN(path, C.int(n)))
		if err != nil {
			return err
		}
		return work(ctx, b, volume, name)
	})
}

//export sluiceReleaseStore
func sluiceReleaseStore(store C.uintptr_t) { cgo.Handle(store).Delete() }

//export sluiceOpen
func sluiceOpen(store, client C.uintptr_t, path *C.char, n C.size_t, flags C.uint64_t, out *C.sluice_file, outErr *C.sluice_error) {
	call(store, client, path, n, outErr, func(ctx context.Context, b *Bridge, volume, name string) error {
		f := &openFile{store: b.store, client: b.client(client), path: C.GoStringN(path, C.int(n))}
		var err error
		if flags&flagWrite != 0 {
			err = f.create(ctx, volume, name, uint64(flags))
		} else {
			err = f.open(ctx, volume, name, uint64(flags), out)
		}
		if err != nil || f.file == nil && f.writer == nil {
			return err
		}
		out.handle = C.uintptr_t(cgo.NewHandle(f))
		return nil
	})
}

// open opens for reading. Where DuckDB asked for it, a missing file is nothing rather than an error.
func (f *openFile) open(ctx context.Context, volume, name string, flags uint64, out *C.sluice_file) error {
	file, err := f.store.Open(ctx, volume, name)
	if errors.Is(err, ErrNotExist) && flags&flagNullIfNotExists != 0 {
		return nil
	}
	if err != nil {
		return err
	}
	f.file = file
	out.size, out.file_id, out.created_at = C.int64_t(file.Size), C.int64_t(file.ID), C.int64_t(file.CreatedAt.UnixMicro())
	return nil
}

// create opens for writing. Files are written whole, from the beginning, by one writer.
func (f *openFile) create(ctx context.Context, volume, name string, flags uint64) error {
	if flags&(flagAppend|flagRead) != 0 {
		return fmt.Errorf("open %s: appending to a file and writing while reading are %w", f.path, errUnsupported)
	}
	if flags&(flagFileCreate|flagFileCreateNew|flagExclusiveCreate) == 0 {
		return fmt.Errorf("open %s: writing into an existing file is %w", f.path, errUnsupported)
	}
	if flags&(flagExclusiveCreate|flagNullIfExists) != 0 {
		found, err := f.store.Exists(ctx, volume, name)
		if err != nil {
			return err
		}
		if found && flags&flagNullIfExists != 0 {
			return nil
		}
		if found {
			return fmt.Errorf("open %s: the file exists", f.path)
		}
	}
	var err error
	f.writer, err = f.store.Create(ctx, volume, name)
	return err
}

//export sluiceRead
func sluiceRead(handle C.uintptr_t, buffer unsafe.Pointer, n, offset C.int64_t, outErr *C.sluice_error) {
	f := cgo.Handle(handle).Value().(*openFile)
	ctx := f.client.context()
	guardPanic(ctx, outErr, func() error {
		if f.file == nil {
			return fmt.Errorf("read %s: reading while writing is %w", f.path, errUnsupported)
		}
		return f.store.ReadAt(ctx, f.file, unsafe.Slice((*byte)(buffer), int(n)), int64(offset))
	})
}

//export sluiceWrite
func sluiceWrite(handle C.uintptr_t, buffer unsafe.Pointer, n C.int64_t, outErr *C.sluice_error) {
	f := cgo.Handle(handle).Value().(*openFile)
	ctx := f.client.context()
	guardPanic(ctx, outErr, func() error {
		if f.writer == nil {
			return fmt.Errorf("write %s: the file is open for reading", f.path)
		}
		return f.writer.Write(ctx, unsafe.Slice((*byte)(buffer), int(n)))
	})
}

// sluiceClose publishes a file that was written.
//
//export sluiceClose
func sluiceClose(handle C.uintptr_t, outErr *C.sluice_error) {
	f := cgo.Handle(handle).Value().(*openFile)
	if f.writer == nil {
		return
	}
	ctx := f.client.context()
	guardPanic(ctx, outErr, func() error {
		_, err := f.writer.Close(ctx)
		return err
	})
}

// sluiceDestroy frees the handle; a write that was not closed leaves nothing.
//
//export sluiceDestroy
func sluiceDestroy(handle C.uintptr_t) {
	h := cgo.Handle(handle)
	if f := h.Value().(*openFile); f.writer != nil {
		f.writer.Abort()
	}
	h.Delete()
}

//export sluiceExists
func sluiceExists(store, client C.uintptr_t, path *C.char, n C.size_t, outErr *C.sluice_error) C.int {
	found := false
	call(store, client, path, n, outErr, func(ctx context.Context, b *Bridge, volume, name string) (err error) {
		if name != "" && !strings.HasSuffix(name, "/") {
			found, err = b.store.Exists(ctx, volume, name)
		}
		return err
	})
	return cBool(found)
}

//export sluiceRemove
func sluiceRemove(store, client C.uintptr_t, path *C.char, n C.size_t, outErr *C.sluice_error) C.int {
	removed := false
	call(store, client, path, n, outErr, func(ctx context.Context, b *Bridge, volume, name string) error {
		err := b.store.Remove(ctx, volume, name)
		if errors.Is(err, ErrNotExist) {
			return nil
		}
		removed = err == nil
		return err
	})
	return cBool(removed)
}

//export sluiceRemovePrefix
func sluiceRemovePrefix(store, client C.uintptr_t, path *C.char, n C.size_t, outErr *C.sluice_error) {
	call(store, client, path, n, outErr, func(ctx context.Context, b *Bridge, volume, prefix string) error {
		_, err := b.store.RemovePrefix(ctx, volume, prefix)
		return err
	})
}

//export sluiceMove
func sluiceMove(store, client C.uintptr_t, from *C.char, fromLen C.size_t, to *C.char, toLen C.size_t, outErr *C.sluice_error) {
	call(store, client, from, fromLen, outErr, func(ctx context.Context, b *Bridge, volume, name string) error {
		toVolume, toName, err := SplitURL(C.GoStringN(to, C.int(toLen)))
		if err != nil {
			return err
		}
		if toVolume != volume {
			return fmt.Errorf("move to %s: cannot move files between volumes", C.GoStringN(to, C.int(toLen)))
		}
		return b.store.Rename(ctx, volume, name, toName)
	})
}

//export sluiceList
func sluiceList(store, client C.uintptr_t, prefix *C.char, n C.size_t, limit C.int64_t, length *C.size_t, outErr *C.sluice_error) *C.char {
	return urls(store, client, prefix, n, length, outErr, func(ctx context.Context, b *Bridge, volume, name string) ([]string, error) {
		return b.store.List(ctx, volume, name, int(limit))
	})
}

//export sluiceGlob
func sluiceGlob(store, client C.uintptr_t, pattern *C.char, n C.size_t, length *C.size_t, outErr *C.sluice_error) *C.char {
	return urls(store, client, pattern, n, length, outErr, func(ctx context.Context, b *Bridge, volume, name string) ([]string, error) {
		return b.store.Glob(ctx, volume, name)
	})
}

// urls finds paths of one volume and hands them to C++ as URLs that each end in a NUL, which no path can hold.
func urls(store, client C.uintptr_t, path *C.char, n C.size_t, length *C.size_t, outErr *C.sluice_error,
	find func(ctx context.Context, b *Bridge, volume, name string) ([]string, error),
) *C.char {
	var text strings.Builder
	call(store, client, path, n, outErr, func(ctx context.Context, b *Bridge, volume, name string) error {
		found, err := find(ctx, b, volume, name)
		for _, p := range found {
			text.WriteString(fileURL(volume, p) + "\x00")
		}
		return err
	})
	*length = C.size_t(text.Len())
	if text.Len() == 0 {
		return nil
	}
	return (*C.char)(C.CBytes([]byte(text.String())))
}

// cBool is a Boolean for C.
func cBool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
