// The one place where Sluice meets DuckDB's C++: a FileSystem for pgvfs://, a guard on table functions, and the
// databases of a prepared statement. DuckDB's C API has none of the three.
//
// The declarations of namespace duckdb below repeat the parts of DuckDB v1.5.5's headers that cross the boundary:
// virtual functions in their order, fields in theirs, names as they are mangled. They are tied to that version, which
// sluice_register checks; .ci/abi compiles this file's layout against the real headers and compares. A function whose
// name or parameters changed does not link.
//
// Go is called through the functions that bridge.go exports; they neither panic nor throw across the boundary. No
// exception leaves the functions of bridge.h.

#include "bridge.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "_cgo_export.h"

namespace duckdb {

using idx_t = uint64_t;
using std::string;

// --- wrappers of the standard library, by their template parameters ---

template <class T, bool SAFE = true>
class optional_ptr {
public:
	optional_ptr(T *p = nullptr) : ptr(p) {
	}
	T *get() const {
		return ptr;
	}

private:
	T *ptr;
};

template <class T, class DELETER = std::default_delete<T>, bool SAFE = true>
class unique_ptr : public std::unique_ptr<T, DELETER> {
public:
	using std::unique_ptr<T, DELETER>::unique_ptr;
};

template <class T, bool SAFE = true, class ALLOCATOR = std::allocator<T>>
class vector : public std::vector<T, ALLOCATOR> {};

template <class T, bool SAFE = true>
class shared_ptr {
public:
	T *get() const {
		return internal.get();
	}

private:
	std::shared_ptr<T> internal;
};

// --- errors ---

enum class ExceptionType : uint8_t { NOT_IMPLEMENTED = 11, IO = 28, INTERRUPT = 29, PERMISSION = 34 };

class Exception : public std::runtime_error {
public:
	Exception(ExceptionType type, const string &message);
};

// --- files ---

class ClientContext;
class DatabaseInstance;
class FileSystem;
class Logger;
class QueryContext;
class MultiFileList;
struct FileGlobInput;
struct FileMetadata;
struct LogicalType;

class FileOpener {
public:
	static optional_ptr<ClientContext> TryGetClientContext(optional_ptr<FileOpener> opener);
};

enum class FileType { FILE_TYPE_REGULAR };
enum class FileCompressionType : uint8_t {};

struct timestamp_t {
	int64_t value;
};

struct FileOpenFlags {
	static constexpr idx_t READ = 1 << 0, WRITE = 1 << 1, FILE_CREATE = 1 << 3, FILE_CREATE_NEW = 1 << 4, APPEND = 1 << 5,
	                       NULL_IF_NOT_EXISTS = 1 << 7, EXCLUSIVE_CREATE = 1 << 9, NULL_IF_EXISTS = 1 << 10;
	idx_t flags;
	uint8_t lock, caching_mode, compression;
};

struct ExtendedOpenFileInfo;

struct OpenFileInfo {
	OpenFileInfo(string p) : path(std::move(p)) {
	}
	string path;
	shared_ptr<ExtendedOpenFileInfo> extended_info;
};

struct FileHandle {
	FileHandle(FileSystem &file_system, string path, FileOpenFlags flags);
	virtual ~FileHandle();
	virtual idx_t GetProgress();
	virtual FileCompressionType GetFileCompressionType();
	virtual void Close() = 0;

	FileSystem &file_system;
	string path;
	FileOpenFlags flags;
	shared_ptr<Logger> logger;
};

class FileSystem {
public:
	virtual ~FileSystem();
	virtual unique_ptr<FileHandle> OpenFile(const string &path, FileOpenFlags flags, optional_ptr<FileOpener> opener);
	virtual void Read(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location);
	virtual void Write(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location);
	virtual int64_t Read(FileHandle &handle, void *buffer, int64_t nr_bytes);
	virtual int64_t Write(FileHandle &handle, void *buffer, int64_t nr_bytes);
	virtual bool Trim(FileHandle &handle, idx_t offset_bytes, idx_t length_bytes);
	virtual int64_t GetFileSize(FileHandle &handle);
	virtual timestamp_t GetLastModifiedTime(FileHandle &handle);
	virtual string GetVersionTag(FileHandle &handle);
	virtual FileType GetFileType(FileHandle &handle);
	virtual FileMetadata Stats(FileHandle &handle);
	virtual void Truncate(FileHandle &handle, int64_t new_size);
	virtual bool DirectoryExists(const string &directory, optional_ptr<FileOpener> opener);
	virtual void CreateDirectory(const string &directory, optional_ptr<FileOpener> opener);
	virtual void CreateDirectoriesRecursive(const string &path, optional_ptr<FileOpener> opener);
	virtual void RemoveDirectory(const string &directory, optional_ptr<FileOpener> opener);
	virtual bool ListFiles(const string &directory, const std::function<void(const string &, bool)> &callback,
	                       FileOpener *opener);
	virtual void MoveFile(const string &source, const string &target, optional_ptr<FileOpener> opener);
	virtual bool FileExists(const string &filename, optional_ptr<FileOpener> opener);
	virtual bool IsPipe(const string &filename, optional_ptr<FileOpener> opener);
	virtual void RemoveFile(const string &filename, optional_ptr<FileOpener> opener);
	virtual bool TryRemoveFile(const string &filename, optional_ptr<FileOpener> opener);
	virtual void RemoveFiles(const vector<string> &filenames, optional_ptr<FileOpener> opener);
	virtual void FileSync(FileHandle &handle);
	virtual string GetHomeDirectory();
	virtual string ExpandPath(const string &path);
	virtual string PathSeparator(const string &path);
	virtual bool IsPathAbsolute(const string &path);
	virtual vector<OpenFileInfo> Glob(const string &path, FileOpener *opener);
	virtual void RegisterSubSystem(unique_ptr<FileSystem> sub_fs);
	virtual void RegisterSubSystem(FileCompressionType compression_type, unique_ptr<FileSystem> fs);
	virtual void UnregisterSubSystem(const string &name);
	virtual unique_ptr<FileSystem> ExtractSubSystem(const string &name);
	virtual vector<string> ListSubSystems();
	virtual bool CanHandleFile(const string &fpath);
	virtual void Seek(FileHandle &handle, idx_t location);
	virtual void Reset(FileHandle &handle);
	virtual idx_t SeekPosition(FileHandle &handle);
	virtual bool IsManuallySet();
	virtual bool CanSeek();
	virtual bool OnDiskFile(FileHandle &handle);
	virtual unique_ptr<FileHandle> OpenCompressedFile(QueryContext context, unique_ptr<FileHandle> handle, bool write);
	virtual bool IsLocalFileSystem() const;
	virtual string GetName() const = 0;
	virtual void SetDisabledFileSystems(const vector<string> &names);
	virtual bool SubSystemIsDisabled(const string &name);
	virtual bool IsDisabledForPath(const string &path);
	virtual string CanonicalizePath(const string &path, optional_ptr<FileOpener> opener);

protected:
	virtual unique_ptr<FileHandle> OpenFileExtended(const OpenFileInfo &path, FileOpenFlags flags,
	                                                optional_ptr<FileOpener> opener);
	virtual bool SupportsOpenFileExtended() const;
	virtual bool ListFilesExtended(const string &directory, const std::function<void(OpenFileInfo &info)> &callback,
	                               optional_ptr<FileOpener> opener);
	virtual bool SupportsListFilesExtended() const;
	virtual unique_ptr<MultiFileList> GlobFilesExtended(const string &path, const FileGlobInput &input,
	                                                    optional_ptr<FileOpener> opener);
	virtual bool SupportsGlobExtended() const;
};

// --- the database, its sessions and its catalog ---

class DuckDB {
public:
	FileSystem &GetFileSystem();
	shared_ptr<DatabaseInstance> instance;
};

class ClientContext {
public:
	void RunFunctionInTransaction(const std::function<void(void)> &fun, bool requires_valid_transaction);
};

class Connection {
public:
	explicit Connection(DuckDB &database);
	~Connection();
	shared_ptr<ClientContext> context;

private:
	unsigned char rest[256]; // more than the real one has behind its first field; .ci/abi compares
};

enum class CatalogType : uint8_t { TABLE_FUNCTION_ENTRY = 25 };
class CatalogEntry;

class Catalog {
public:
	static Catalog &GetSystemCatalog(ClientContext &context);
	CatalogEntry &GetEntry(ClientContext &context, CatalogType type, const string &schema, const string &name);
};

struct FunctionData {
	virtual ~FunctionData();
};
struct TableFunctionBindInput;

using table_function_bind_t = unique_ptr<FunctionData> (*)(ClientContext &context, TableFunctionBindInput &input,
                                                           vector<LogicalType> &return_types, vector<string> &names);

struct StatementProperties {
	struct CatalogIdentity {
		idx_t catalog_oid, catalog_version;
	};
	struct ModificationInfo {
		CatalogIdentity identity;
		idx_t modifications;
	};
	std::unordered_map<string, CatalogIdentity> read_databases;
	std::unordered_map<string, ModificationInfo> modified_databases;
	unsigned char rest[24];
};

class PreparedStatement {
public:
	StatementProperties GetStatementProperties();
};

} // namespace duckdb

namespace {

using namespace duckdb;

// Offsets and sizes that no declaration above states; .ci/abi compares them with the real headers.
namespace layout {
constexpr size_t entry_functions = 368;   // TableFunctionCatalogEntry::functions
constexpr size_t set_functions = 32;      // FunctionSet<TableFunction>::functions, behind its name
constexpr size_t function_size = 552;     // sizeof(TableFunction)
constexpr size_t function_name = 8;       // Function::name
constexpr size_t function_bind = 264;     // TableFunction::bind
constexpr size_t function_replace = 272;  // TableFunction::bind_replace
constexpr size_t function_operator = 280; // TableFunction::bind_operator
constexpr size_t prepared_statement = 56; // PreparedStatementWrapper::statement
} // namespace layout

char *copy_text(const string &text) {
	auto *p = static_cast<char *>(malloc(text.size() + 1));
	memcpy(p, text.c_str(), text.size() + 1);
	return p;
}

// Throws what a call to Go ended with.
void check(sluice_error &err) {
	if (err.kind == SLUICE_OK) {
		return;
	}
	string text = err.text ? err.text : "unknown error";
	free(err.text);
	throw Exception(static_cast<ExceptionType>(err.kind), text);
}

// --- client sessions ---

std::shared_mutex clients_mutex;
std::unordered_set<const void *> clients; // ClientContexts of client sessions; guarded by clients_mutex

bool is_client(const void *context) {
	std::shared_lock<std::shared_mutex> lock(clients_mutex);
	return clients.count(context) > 0;
}

// The session that a file is opened for, as a key that is never dereferenced; 0 for DuckDB's own.
uintptr_t client_of(FileOpener *opener) {
	if (!opener) {
		return 0;
	}
	return reinterpret_cast<uintptr_t>(FileOpener::TryGetClientContext(optional_ptr<FileOpener>(opener)).get());
}

// --- pgvfs:// ---

constexpr const char *scheme = "pgvfs://";

struct PgvfsHandle : FileHandle {
	PgvfsHandle(FileSystem &fs, const string &path, FileOpenFlags flags, const sluice_file &opened)
	    : FileHandle(fs, path, flags), file(opened) {
	}
	~PgvfsHandle() override {
		if (file.handle) {
			sluiceDestroy(file.handle); // an unfinished write leaves nothing
		}
	}
	bool Writing() const {
		return (flags.flags & FileOpenFlags::WRITE) != 0;
	}
	// Publishes a file that was written.
	void Close() override {
		if (closed || !file.handle) {
			return;
		}
		closed = true;
		sluice_error err = {SLUICE_OK, nullptr};
		sluiceClose(file.handle, &err);
		check(err);
	}

	sluice_file file;
	idx_t position = 0;
	bool closed = false;
};

class PgvfsFileSystem : public FileSystem {
public:
	explicit PgvfsFileSystem(uintptr_t store_p) : store(store_p) {
	}
	~PgvfsFileSystem() override {
		sluiceReleaseStore(store);
	}

	unique_ptr<FileHandle> OpenFile(const string &path, FileOpenFlags flags, optional_ptr<FileOpener> opener) override {
		sluice_file file = {0, 0, 0, 0};
		sluice_error err = {SLUICE_OK, nullptr};
		sluiceOpen(store, client_of(opener.get()), Text(path), path.size(), flags.flags, &file, &err);
		check(err);
		if (!file.handle) {
			return unique_ptr<FileHandle>();
		}
		return unique_ptr<FileHandle>(new PgvfsHandle(*this, path, flags, file));
	}

	void Read(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location) override {
		auto &h = static_cast<PgvfsHandle &>(handle);
		if (nr_bytes == 0) {
			return;
		}
		sluice_error err = {SLUICE_OK, nullptr};
		sluiceRead(h.file.handle, buffer, nr_bytes, static_cast<int64_t>(location), &err);
		check(err);
	}

	int64_t Read(FileHandle &handle, void *buffer, int64_t nr_bytes) override {
		auto &h = static_cast<PgvfsHandle &>(handle);
		int64_t left = h.file.size - static_cast<int64_t>(h.position);
		int64_t n = left < nr_bytes ? left : nr_bytes;
		if (n <= 0) {
			return 0;
		}
		Read(handle, buffer, n, h.position);
		h.position += static_cast<idx_t>(n);
		return n;
	}

	void Write(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location) override {
		auto &h = static_cast<PgvfsHandle &>(handle);
		if (location != h.position) {
			throw Exception(ExceptionType::NOT_IMPLEMENTED, "pgvfs files are written from their beginning to their end: " + h.path);
		}
		Write(handle, buffer, nr_bytes);
	}

	int64_t Write(FileHandle &handle, void *buffer, int64_t nr_bytes) override {
		auto &h = static_cast<PgvfsHandle &>(handle);
		sluice_error err = {SLUICE_OK, nullptr};
		sluiceWrite(h.file.handle, buffer, nr_bytes, &err);
		check(err);
		h.position += static_cast<idx_t>(nr_bytes);
		h.file.size = static_cast<int64_t>(h.position);
		return nr_bytes;
	}

	int64_t GetFileSize(FileHandle &handle) override {
		return static_cast<PgvfsHandle &>(handle).file.size;
	}
	timestamp_t GetLastModifiedTime(FileHandle &handle) override {
		return timestamp_t {static_cast<PgvfsHandle &>(handle).file.created_at};
	}
	// A file's bytes never change under its id, so the id says whether cached bytes are still the file's.
	string GetVersionTag(FileHandle &handle) override {
		return std::to_string(static_cast<PgvfsHandle &>(handle).file.file_id);
	}
	FileType GetFileType(FileHandle &) override {
		return FileType::FILE_TYPE_REGULAR;
	}
	void FileSync(FileHandle &) override {
		// The commit that Close makes is the only point of durability.
	}

	bool DirectoryExists(const string &directory, optional_ptr<FileOpener> opener) override {
		return !List(Prefix(directory), opener.get(), 1).empty();
	}
	void CreateDirectory(const string &, optional_ptr<FileOpener>) override {
		// Directories are implied by the paths of files.
	}
	void CreateDirectoriesRecursive(const string &, optional_ptr<FileOpener>) override {
	}
	void RemoveDirectory(const string &directory, optional_ptr<FileOpener> opener) override {
		sluice_error err = {SLUICE_OK, nullptr};
		string prefix = Prefix(directory);
		sluiceRemovePrefix(store, client_of(opener.get()), Text(prefix), prefix.size(), &err);
		check(err);
	}

	// Names what is directly in the directory: files, and the first segment of deeper paths once each.
	bool ListFiles(const string &directory, const std::function<void(const string &, bool)> &callback,
	               FileOpener *opener) override {
		string prefix = Prefix(directory), last;
		auto paths = List(prefix, opener, 0);
		for (auto &path : paths) {
			string name = path.substr(prefix.size());
			auto slash = name.find('/');
			if (slash == string::npos) {
				callback(name, false);
				continue;
			}
			name.resize(slash);
			if (name != last) { // paths come in order, so one directory's stand together
				callback(name, true);
				last = name;
			}
		}
		return !paths.empty();
	}

	void MoveFile(const string &source, const string &target, optional_ptr<FileOpener> opener) override {
		sluice_error err = {SLUICE_OK, nullptr};
		sluiceMove(store, client_of(opener.get()), Text(source), source.size(), Text(target), target.size(), &err);
		check(err);
	}
	bool FileExists(const string &filename, optional_ptr<FileOpener> opener) override {
		sluice_error err = {SLUICE_OK, nullptr};
		bool found = sluiceExists(store, client_of(opener.get()), Text(filename), filename.size(), &err) != 0;
		check(err);
		return found;
	}
	void RemoveFile(const string &filename, optional_ptr<FileOpener> opener) override {
		if (!TryRemoveFile(filename, opener)) {
			throw Exception(ExceptionType::IO, "no such file: " + filename);
		}
	}
	bool TryRemoveFile(const string &filename, optional_ptr<FileOpener> opener) override {
		sluice_error err = {SLUICE_OK, nullptr};
		bool removed = sluiceRemove(store, client_of(opener.get()), Text(filename), filename.size(), &err) != 0;
		check(err);
		return removed;
	}
	void RemoveFiles(const vector<string> &filenames, optional_ptr<FileOpener> opener) override {
		for (auto &filename : filenames) {
			TryRemoveFile(filename, opener);
		}
	}

	vector<OpenFileInfo> Glob(const string &path, FileOpener *opener) override {
		sluice_error err = {SLUICE_OK, nullptr};
		size_t length = 0;
		char *found = sluiceGlob(store, client_of(opener), Text(path), path.size(), &length, &err);
		check(err);
		vector<OpenFileInfo> result;
		for (auto &p : Split(found, length)) {
			result.push_back(OpenFileInfo(p));
		}
		return result;
	}

	bool CanHandleFile(const string &path) override {
		return path.compare(0, strlen(scheme), scheme) == 0;
	}
	void Seek(FileHandle &handle, idx_t location) override {
		static_cast<PgvfsHandle &>(handle).position = location;
	}
	void Reset(FileHandle &handle) override {
		static_cast<PgvfsHandle &>(handle).position = 0;
	}
	idx_t SeekPosition(FileHandle &handle) override {
		return static_cast<PgvfsHandle &>(handle).position;
	}
	bool CanSeek() override {
		return true;
	}
	// False lets DuckDB cache ranges and read whole column chunks at once.
	bool OnDiskFile(FileHandle &) override {
		return false;
	}
	string PathSeparator(const string &) override {
		return "/";
	}
	bool IsPathAbsolute(const string &) override {
		return true;
	}
	string ExpandPath(const string &path) override {
		return path;
	}
	string CanonicalizePath(const string &path, optional_ptr<FileOpener>) override {
		return path; // a//b and ../b are names like any other
	}
	string GetName() const override {
		return "pgvfs";
	}

private:
	static char *Text(const string &s) {
		return const_cast<char *>(s.data());
	}
	static string Prefix(const string &directory) {
		return !directory.empty() && directory.back() == '/' ? directory : directory + "/";
	}
	// Takes a text of NUL-ended paths apart and frees it.
	static std::vector<string> Split(char *text, size_t length) {
		std::vector<string> out;
		for (size_t at = 0; at < length; at += out.back().size() + 1) {
			out.emplace_back(text + at);
		}
		free(text);
		return out;
	}
	std::vector<string> List(const string &prefix, FileOpener *opener, int64_t limit) {
		sluice_error err = {SLUICE_OK, nullptr};
		size_t length = 0;
		char *found = sluiceList(store, client_of(opener), Text(prefix), prefix.size(), limit, &length, &err);
		check(err);
		return Split(found, length);
	}

	uintptr_t store;
};

// --- the guard ---

// One overload of a guarded function. Slots are filled before any session exists and never change.
struct GuardSlot {
	table_function_bind_t original;
	const char *name;
};
constexpr size_t guard_slots_max = 64;
GuardSlot guard_slots[guard_slots_max];
size_t guard_slots_used = 0;
std::mutex guard_mutex; // one instance fills slots at a time

template <size_t N>
unique_ptr<FunctionData> guarded_bind(ClientContext &context, TableFunctionBindInput &input,
                                      vector<LogicalType> &return_types, vector<string> &names) {
	if (is_client(&context)) {
		throw Exception(ExceptionType::PERMISSION, string("permission denied for function ") + guard_slots[N].name);
	}
	return guard_slots[N].original(context, input, return_types, names);
}

template <size_t... N>
table_function_bind_t guard_bind_at(size_t slot, std::index_sequence<N...>) {
	static const table_function_bind_t binds[] = {guarded_bind<N>...};
	return binds[slot];
}

// The slot for an original, a new one or the one that an earlier instance of this process filled.
size_t guard_slot(table_function_bind_t original, const string &name) {
	for (size_t i = 0; i < guard_slots_used; i++) {
		if (guard_slots[i].original == original && name == guard_slots[i].name) {
			return i;
		}
	}
	if (guard_slots_used == guard_slots_max) {
		throw std::runtime_error("more than " + std::to_string(guard_slots_max) + " guarded functions");
	}
	guard_slots[guard_slots_used] = GuardSlot {original, copy_text(name)};
	return guard_slots_used++;
}

template <class T>
T &field(void *object, size_t offset) {
	return *reinterpret_cast<T *>(static_cast<char *>(object) + offset);
}

// Guards every overload of one function. The names found at the assumed places must be the function's own: a layout
// that is not the assumed one is found out here rather than written over.
void guard_function(ClientContext &context, const string &name) {
	auto &entry = Catalog::GetSystemCatalog(context).GetEntry(context, CatalogType::TABLE_FUNCTION_ENTRY, "main", name);
	char *set = &field<char>(&entry, layout::entry_functions);
	if (field<string>(set, 0) != name) {
		throw std::runtime_error("the layout of table functions is not the expected one");
	}
	auto &overloads = field<std::vector<char>>(set, layout::set_functions);
	if (overloads.size() % layout::function_size != 0) {
		throw std::runtime_error("the size of a table function is not the expected one");
	}
	for (size_t at = 0; at < overloads.size(); at += layout::function_size) {
		char *function = overloads.data() + at;
		if (field<string>(function, layout::function_name) != name) {
			throw std::runtime_error("the layout of a table function is not the expected one");
		}
		auto &bind = field<table_function_bind_t>(function, layout::function_bind);
		if (!bind || field<void *>(function, layout::function_replace) || field<void *>(function, layout::function_operator)) {
			throw std::runtime_error("function " + name + " is not bound by a bind function alone");
		}
		size_t slot = guard_slot(bind, name);
		bind = guard_bind_at(slot, std::make_index_sequence<guard_slots_max>());
	}
}

// duckdb_database points at a wrapper whose first word is the DuckDB.
DuckDB &database_of(void *duckdb_database) {
	return **static_cast<DuckDB **>(duckdb_database);
}

} // namespace

extern "C" {

char *sluice_register(void *duckdb_database, uintptr_t store) {
	try {
		unique_ptr<FileSystem> fs(new PgvfsFileSystem(store));
		database_of(duckdb_database).GetFileSystem().RegisterSubSystem(std::move(fs));
		return nullptr;
	} catch (std::exception &e) {
		return copy_text(e.what());
	}
}

uintptr_t sluice_client_bind(void *duckdb_connection) {
	auto *context = static_cast<Connection *>(duckdb_connection)->context.get();
	std::unique_lock<std::shared_mutex> lock(clients_mutex);
	clients.insert(context);
	return reinterpret_cast<uintptr_t>(context);
}

void sluice_client_release(uintptr_t client) {
	std::unique_lock<std::shared_mutex> lock(clients_mutex);
	clients.erase(reinterpret_cast<const void *>(client));
}

char *sluice_guard_functions(void *duckdb_database, const char *names) {
	try {
		std::lock_guard<std::mutex> lock(guard_mutex);
		Connection connection(database_of(duckdb_database));
		auto &context = *connection.context.get();
		string text = names, failed;
		context.RunFunctionInTransaction([&] {
			for (size_t at = 0; at < text.size();) {
				size_t end = text.find('\n', at);
				end = end == string::npos ? text.size() : end;
				guard_function(context, text.substr(at, end - at));
				at = end + 1;
			}
		}, true);
		return nullptr;
	} catch (std::exception &e) {
		return copy_text(e.what());
	}
}

char *sluice_statement_databases(void *duckdb_prepared_statement, size_t *length) {
	string out;
	try {
		auto *statement = field<PreparedStatement *>(duckdb_prepared_statement, layout::prepared_statement);
		auto properties = statement->GetStatementProperties();
		for (auto &db : properties.read_databases) {
			out += "R" + db.first + string(1, '\0');
		}
		for (auto &db : properties.modified_databases) {
			out += "W" + db.first + string(1, '\0');
		}
	} catch (std::exception &e) {
		out = string("E") + e.what() + string(1, '\0');
	}
	*length = out.size();
	auto *p = static_cast<char *>(malloc(out.size() + 1));
	memcpy(p, out.data(), out.size());
	return p;
}

} // extern "C"
