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
	"time"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings" // brings DuckDB's library, which bridge.cpp is linked with
)

// Bridge makes stores a DuckDB file system: pgvfs:// in one DuckDB instance, with pgvfs_stats(), pgvfs_drop_volume() and
// the setting pgvfs_secret. DuckDB's own threads call the exported functions below; what is done there on behalf of a
// client ends with the statement that the client runs.
type Bridge struct {
	db      unsafe.Pointer
	router  router
	reading readings

	mu      sync.RWMutex // guards clients
	clients map[C.uintptr_t]*Client
}

// RegisterLake makes pgvfs:// known to the DuckDB instance of a duckdb_database: the lake's files to everybody, all
// others to administrators (see Stores). The instance owns the registration and gives it back when it closes; the stores
// must live longer. A DuckDB of another version is refused, since duckdb.hpp repeats the declarations of one. Not
// repeatable for an instance.
func RegisterLake(db unsafe.Pointer, stores *Stores) (*Bridge, error) { return register(db, stores) }

// Register is RegisterLake for an instance without a lake: one store has all volumes, for everybody.
func Register(db unsafe.Pointer, store Store) (*Bridge, error) {
	return register(db, newEverywhere(store))
}

// register is what both have in common.
func register(db unsafe.Pointer, r router) (*Bridge, error) {
	if err := checkVersion(duckdb.LibraryVersion()); err != nil {
		return nil, err
	}
	b := &Bridge{db: db, router: r, clients: map[C.uintptr_t]*Client{}}
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
	// Where an administrator's secrets point to: servers, users, paths.
	"duckdb_secrets", "which_secret",
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
	key    C.uintptr_t    // the session's ClientContext; a key, but for credentials while DuckDB waits
	admin  atomic.Bool
	ctx    atomic.Pointer[context.Context]
	pins   pins
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

// AllowGuarded lets the client use guarded functions, reach pgvfs paths besides the lake's and drop volumes: it is an
// administrator's.
func (c *Client) AllowGuarded() {
	C.sluice_client_guard(c.key, 0)
	c.admin.Store(true)
}

// AllowDatabases refuses every later statement of the connection that reads or modifies other attached databases than
// these, or creates or drops a secret, with a permission error, whatever it is wrapped in and also where only a
// parameter's value names the database. Internal work of DuckDB on the connection is held to it too, so system and temp
// are to be among them.
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
// Contexts are told apart as statements are; saying context.Background() between calls about one changes nothing.
func (c *Client) SetContext(ctx context.Context) {
	c.ctx.Store(&ctx)
	if ctx != context.Background() {
		c.pins.next(ctx)
	}
}

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

// access says for whom DuckDB asks.
func (c *Client) access() access {
	switch {
	case c == nil:
		return accessInternal
	case c.admin.Load():
		return accessAdmin
	}
	return accessClient
}

// secret implements credentials. Called only while DuckDB waits for an answer on behalf of the client.
func (c *Client) secret(name string) (s secret, found bool, err error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var n C.size_t
	var failed C.sluice_error
	p := C.sluice_secret(c.key, text, &n, &failed)
	defer C.free(unsafe.Pointer(p))
	if err := goError(failed.text); err != nil {
		return s, false, fmt.Errorf("%w: secret %q: %w", errCredentials, name, err)
	}
	if p == nil {
		return s, false, nil
	}
	parts := strings.Split(strings.TrimSuffix(C.GoStringN(p, C.int(n)), "\x00"), "\x00")
	s.kind = parts[0]
	for i := 1; i+1 < len(parts); i += 2 {
		s.keys = append(s.keys, [2]string{strings.ToLower(parts[i]), parts[i+1]})
	}
	return s, true, nil
}

// setting implements credentials, under the same condition.
func (c *Client) setting(name string) string {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	p := C.sluice_setting(c.key, text)
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}

// openFile is a file that DuckDB has open: one of file and writer is set.
type openFile struct {
	place
	bridge *Bridge
	file   *File
	kept   bool // file is among the bridge's readings
	pin    *pin // of file; nil without a client
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

// cleanUpMax bounds what goes on after a statement that was cancelled.
const cleanUpMax = 5 * time.Second

var (
	errUnsupported = errors.New("not supported for pgvfs files") // an operation that files of the store do not have
	errVolume      = errors.New("no volume can be called so")    // an argument of pgvfs_drop_volume
)

// report gives an error to C++ in out.
func report(ctx context.Context, out *C.sluice_error, err error) {
	if err == nil {
		return
	}
	out.kind = C.SLUICE_IO
	switch {
	case errors.Is(err, errUnsupported):
		out.kind = C.SLUICE_NOT_IMPLEMENTED
	case errors.Is(err, errDenied):
		out.kind = C.SLUICE_PERMISSION
	case ctx.Err() != nil:
		out.kind = C.SLUICE_INTERRUPT
	case errors.Is(err, errCredentials), errors.Is(err, errVolume):
		out.kind = C.SLUICE_INVALID_INPUT
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

// place is a path in its store, as a client asks for it.
type place struct {
	lease
	client       *Client // nil for nobody's connection
	url          string
	volume, name string
}

// changed says that a file of the place is now another one, or none.
func (at *place) changed() {
	if at.client != nil {
		at.client.pins.forget()
	}
}

// call runs one operation on a path. If work keeps the lease, it takes the place's release away.
func call(bridge, client C.uintptr_t, url *C.char, n C.size_t, out *C.sluice_error, work func(ctx context.Context, b *Bridge, at *place) error) {
	b := cgo.Handle(bridge).Value().(*Bridge)
	c := b.client(client)
	ctx := c.context()
	guardPanic(ctx, out, func() error {
		at := &place{client: c, url: C.GoStringN(url, C.int(n))}
		var err error
		if at.volume, at.name, err = SplitURL(at.url); err != nil {
			return err
		}
		if at.lease, err = b.router.route(ctx, c.access(), c, at.volume, at.name); err != nil {
			return err
		}
		defer func() { at.release() }()
		return work(ctx, b, at)
	})
}

//export sluiceReleaseBridge
func sluiceReleaseBridge(bridge C.uintptr_t) { cgo.Handle(bridge).Delete() }

// sluiceAdmit does nothing with a path but see whether it may be reached.
//
//export sluiceAdmit
func sluiceAdmit(bridge, client C.uintptr_t, url *C.char, n C.size_t, outErr *C.sluice_error) {
	call(bridge, client, url, n, outErr, func(context.Context, *Bridge, *place) error { return nil })
}

//export sluiceOpen
func sluiceOpen(bridge, client C.uintptr_t, url *C.char, n C.size_t, flags C.uint64_t, out *C.sluice_file, outErr *C.sluice_error) {
	call(bridge, client, url, n, outErr, func(ctx context.Context, b *Bridge, at *place) error {
		f := &openFile{place: *at, bridge: b}
		var err error
		if flags&flagWrite != 0 {
			err = f.create(ctx, uint64(flags))
		} else {
			err = f.open(ctx, uint64(flags), out)
		}
		if err != nil || f.file == nil && f.writer == nil {
			return err
		}
		at.release = keep
		out.store = C.int64_t(f.number)
		out.handle = C.uintptr_t(cgo.NewHandle(f))
		return nil
	})
}

// open opens for reading. Where DuckDB asked for it, a missing file is nothing rather than an error.
func (f *openFile) open(ctx context.Context, flags uint64, out *C.sluice_file) error {
	file, err := f.find(ctx)
	if errors.Is(err, ErrNotExist) && flags&flagNullIfNotExists != 0 {
		return nil
	}
	if err != nil {
		return err
	}
	f.file = file
	f.kept = f.bridge.reading.begin(f.url, version{f.number, file.ID})
	out.size, out.file_id, out.created_at = C.int64_t(file.Size), C.int64_t(file.ID), C.int64_t(file.CreatedAt.UnixMicro())
	out.uncached = cBool(!f.kept)
	return nil
}

// find looks a file up, unless its client has it open already.
func (f *openFile) find(ctx context.Context) (file *File, err error) {
	if f.client == nil {
		return f.store.Open(ctx, f.volume, f.name)
	}
	if file = f.client.pins.find(f.url, f.number); file == nil {
		if file, err = f.store.Open(ctx, f.volume, f.name); err != nil {
			return nil, err
		}
	}
	f.pin = f.client.pins.add(f.url, f.number, file)
	return file, nil
}

// close gives up what the file holds; a write that was not closed leaves nothing.
func (f *openFile) close() {
	if f.kept {
		f.bridge.reading.end(f.url)
	}
	if f.pin != nil {
		f.client.pins.remove(f.url, f.pin)
	}
	if f.writer != nil {
		f.writer.Abort()
	}
	f.release()
}

// create opens for writing. Files are written whole, from the beginning, by one writer.
func (f *openFile) create(ctx context.Context, flags uint64) error {
	if flags&(flagAppend|flagRead) != 0 {
		return fmt.Errorf("open %s: appending to a file and writing while reading are %w", f.url, errUnsupported)
	}
	if flags&(flagFileCreate|flagFileCreateNew|flagExclusiveCreate) == 0 {
		return fmt.Errorf("open %s: writing into an existing file is %w", f.url, errUnsupported)
	}
	if flags&(flagExclusiveCreate|flagNullIfExists) != 0 {
		found, err := f.store.Exists(ctx, f.volume, f.name)
		if err != nil {
			return err
		}
		if found && flags&flagNullIfExists != 0 {
			return nil
		}
		if found {
			return fmt.Errorf("open %s: the file exists", f.url)
		}
	}
	var err error
	f.writer, err = f.store.Create(ctx, f.volume, f.name)
	return err
}

//export sluiceRead
func sluiceRead(handle C.uintptr_t, buffer unsafe.Pointer, n, offset C.int64_t, outErr *C.sluice_error) {
	f := cgo.Handle(handle).Value().(*openFile)
	ctx := f.client.context()
	guardPanic(ctx, outErr, func() error {
		if f.file == nil {
			return fmt.Errorf("read %s: reading while writing is %w", f.url, errUnsupported)
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
			return fmt.Errorf("write %s: the file is open for reading", f.url)
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
		defer f.changed()
		_, err := f.writer.Close(ctx)
		if err == nil && f.client != nil {
			f.client.pins.publish(f.url)
		}
		return err
	})
}

// sluiceDestroy frees the handle.
//
//export sluiceDestroy
func sluiceDestroy(handle C.uintptr_t) {
	h := cgo.Handle(handle)
	h.Value().(*openFile).close()
	h.Delete()
}

//export sluiceExists
func sluiceExists(bridge, client C.uintptr_t, url *C.char, n C.size_t, outErr *C.sluice_error) C.int {
	found := false
	call(bridge, client, url, n, outErr, func(ctx context.Context, _ *Bridge, at *place) (err error) {
		if at.name != "" && !strings.HasSuffix(at.name, "/") {
			found, err = at.store.Exists(ctx, at.volume, at.name)
		}
		return err
	})
	return cBool(found)
}

// sluiceRemove removes a file. DuckDB also cleans up so after a statement that was cancelled: what the statement has made
// itself, under the name of a temporary file, may go although its time is over.
//
//export sluiceRemove
func sluiceRemove(bridge, client C.uintptr_t, url *C.char, n C.size_t, outErr *C.sluice_error) C.int {
	removed := false
	call(bridge, client, url, n, outErr, func(ctx context.Context, _ *Bridge, at *place) error {
		defer at.changed()
		if ctx.Err() != nil && at.client.pins.isOwn(at.url) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanUpMax)
			defer cancel()
		}
		err := at.store.Remove(ctx, at.volume, at.name)
		if errors.Is(err, ErrNotExist) {
			return nil
		}
		removed = err == nil
		return err
	})
	return cBool(removed)
}

//export sluiceRemovePrefix
func sluiceRemovePrefix(bridge, client C.uintptr_t, url *C.char, n C.size_t, outErr *C.sluice_error) {
	call(bridge, client, url, n, outErr, func(ctx context.Context, _ *Bridge, at *place) error {
		defer at.changed()
		_, err := at.store.RemovePrefix(ctx, at.volume, at.name)
		return err
	})
}

// sluiceMove renames. The target is asked for as well: whoever may take a file away from a place need not be allowed to
// put one where it goes.
//
//export sluiceMove
func sluiceMove(bridge, client C.uintptr_t, from *C.char, fromLen C.size_t, to *C.char, toLen C.size_t, outErr *C.sluice_error) {
	call(bridge, client, from, fromLen, outErr, func(ctx context.Context, b *Bridge, at *place) error {
		url := C.GoStringN(to, C.int(toLen))
		volume, name, err := SplitURL(url)
		if err != nil {
			return err
		}
		if volume != at.volume {
			return fmt.Errorf("move to %s: cannot move files between volumes", url)
		}
		target, err := b.router.route(ctx, at.client.access(), at.client, volume, name)
		if err != nil {
			return err
		}
		defer target.release()
		defer at.changed()
		return at.store.Rename(ctx, at.volume, at.name, name)
	})
}

//export sluiceList
func sluiceList(bridge, client C.uintptr_t, prefix *C.char, n C.size_t, limit C.int64_t, length *C.size_t, outErr *C.sluice_error) *C.char {
	return urls(bridge, client, prefix, n, length, outErr, func(ctx context.Context, at *place) ([]string, error) {
		return at.store.List(ctx, at.volume, at.name, int(limit))
	})
}

//export sluiceGlob
func sluiceGlob(bridge, client C.uintptr_t, pattern *C.char, n C.size_t, length *C.size_t, outErr *C.sluice_error) *C.char {
	return urls(bridge, client, pattern, n, length, outErr, func(ctx context.Context, at *place) ([]string, error) {
		return at.store.Glob(ctx, at.volume, at.name)
	})
}

// urls finds paths of one volume and hands them to C++ as URLs that each end in a NUL, which no path can hold.
func urls(bridge, client C.uintptr_t, url *C.char, n C.size_t, length *C.size_t, outErr *C.sluice_error,
	find func(ctx context.Context, at *place) ([]string, error),
) *C.char {
	var text strings.Builder
	call(bridge, client, url, n, outErr, func(ctx context.Context, _ *Bridge, at *place) error {
		found, err := find(ctx, at)
		for _, p := range found {
			text.WriteString(fileURL(at.volume, p) + "\x00")
		}
		return err
	})
	*length = C.size_t(text.Len())
	if text.Len() == 0 {
		return nil
	}
	return (*C.char)(C.CBytes([]byte(text.String())))
}

//export sluiceStats
func sluiceStats(length *C.size_t) *C.char {
	text := Stats()
	*length = C.size_t(len(text))
	return C.CString(text)
}

// mayDropVolumes refuses who is no administrator.
func mayDropVolumes(c *Client) error {
	if c.access() != accessAdmin {
		return fmt.Errorf("%w for function pgvfs_drop_volume", errDenied)
	}
	return nil
}

//export sluiceMayDropVolumes
func sluiceMayDropVolumes(bridge, client C.uintptr_t, outErr *C.sluice_error) {
	b := cgo.Handle(bridge).Value().(*Bridge)
	guardPanic(context.Background(), outErr, func() error { return mayDropVolumes(b.client(client)) })
}

// sluiceDropVolume removes all files of exactly one volume and counts them. What knows of them in this process forgets
// them; their rows wait for the reap.
//
//export sluiceDropVolume
func sluiceDropVolume(bridge, client C.uintptr_t, volume *C.char, n C.size_t, outErr *C.sluice_error) C.int64_t {
	b := cgo.Handle(bridge).Value().(*Bridge)
	c := b.client(client)
	ctx := c.context()
	var count int64
	guardPanic(ctx, outErr, func() error {
		if err := mayDropVolumes(c); err != nil {
			return err
		}
		name := C.GoStringN(volume, C.int(n))
		if err := checkVolume(name); err != nil {
			return fmt.Errorf("%w: %w", errVolume, err)
		}
		l, err := b.router.route(ctx, accessAdmin, c, name, "")
		if err != nil {
			return err
		}
		defer l.release()
		defer c.pins.forget()
		count, err = l.store.RemovePrefix(ctx, name, "")
		return err
	})
	return C.int64_t(count)
}

// cBool is a Boolean for C.
func cBool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
