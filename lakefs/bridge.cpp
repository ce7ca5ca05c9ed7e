// The one place where Sluice meets DuckDB's C++: a file system for pgvfs://, secrets, a guard on table functions, the
// databases of a prepared statement, and pins on DuckLake's schemas. DuckDB's C API has none of them. The functions
// pgvfs_… and the setting are here for the exceptions that the C API cannot raise. What is known of DuckDB is in duckdb.hpp.
//
// Go is called through the functions that bridge.go exports, which do not panic. What they fail with is thrown here as
// DuckDB's own exception; no exception leaves the functions of bridge.h.

#include "duckdb.hpp"

#include "bridge.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <typeinfo>

#include "_cgo_export.h"

namespace {

using namespace duckdb;

// Copies a text for C and Go to free.
char *copy_text(const string &text) {
	auto *p = static_cast<char *>(malloc(text.size() + 1));
	if (p) {
		memcpy(p, text.c_str(), text.size() + 1);
	}
	return p;
}

// An error that a call to Go fills in.
struct Outcome : sluice_error {
	Outcome() : sluice_error {SLUICE_OK, nullptr} {
	}
	~Outcome() {
		free(text);
	}
	// Throws what the call ended with.
	void Check() const {
		if (kind != SLUICE_OK) {
			throw Exception(static_cast<ExceptionType>(kind), text ? text : "pgvfs: unknown error");
		}
	}
};

// Go's functions take texts as a pointer and a length, and read only.
char *bytes(const string &s) {
	return const_cast<char *>(s.data());
}

// ---- clients ----

std::shared_mutex clients_mutex;
std::unordered_set<uintptr_t> guarded_clients; // guarded by clients_mutex

uintptr_t key_of(const ClientContext *context) {
	return reinterpret_cast<uintptr_t>(context);
}

bool is_guarded(const ClientContext &context) {
	std::shared_lock<std::shared_mutex> lock(clients_mutex);
	return guarded_clients.count(key_of(&context)) > 0;
}

// The client that a file is touched for; 0 for none.
uintptr_t client_of(optional_ptr<FileOpener> opener) {
	return opener.get() ? key_of(FileOpener::TryGetClientContext(opener).get()) : 0;
}

// ---- pgvfs:// ----

constexpr const char *scheme = "pgvfs://";

// A file that DuckDB has open. One thread at a time uses its position, as with any FileHandle.
struct PgvfsHandle : FileHandle {
	PgvfsHandle(FileSystem &fs, const string &path, FileOpenFlags flags, const sluice_file &opened)
	    : FileHandle(fs, path, flags), file(opened) {
	}
	// A file whose writing was not closed leaves nothing: DuckDB destroys handles unclosed when a statement fails.
	~PgvfsHandle() override {
		sluiceDestroy(file.handle);
	}
	// Publishes a file that was written.
	void Close() override {
		if (!closed) {
			closed = true;
			Outcome outcome;
			sluiceClose(file.handle, &outcome);
			outcome.Check();
		}
	}

	sluice_file file;
	idx_t position = 0;
	bool closed = false;
};

PgvfsHandle &cast(FileHandle &handle) {
	return static_cast<PgvfsHandle &>(handle);
}

// Directories are implied by the paths of files: making one is nothing, and one exists if a path lies under it.
class PgvfsFileSystem : public FileSystem {
public:
	explicit PgvfsFileSystem(uintptr_t bridge) : bridge(bridge) {
	}
	~PgvfsFileSystem() override {
		sluiceReleaseBridge(bridge);
	}

	string GetName() const override {
		return "pgvfs";
	}
	bool CanHandleFile(const string &path) override {
		return path.compare(0, strlen(scheme), scheme) == 0;
	}

	// -- open files --

	unique_ptr<FileHandle> OpenFile(const string &path, FileOpenFlags flags, optional_ptr<FileOpener> opener) override {
		sluice_file file = {};
		Outcome outcome;
		sluiceOpen(bridge, client_of(opener), bytes(path), path.size(), flags.flags, &file, &outcome);
		outcome.Check();
		if (!file.handle) {
			return unique_ptr<FileHandle>();
		}
		return unique_ptr<FileHandle>(new PgvfsHandle(*this, path, flags, file));
	}

	void Read(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location) override {
		Outcome outcome;
		sluiceRead(cast(handle).file.handle, buffer, nr_bytes, static_cast<int64_t>(location), &outcome);
		outcome.Check();
	}

	int64_t Read(FileHandle &handle, void *buffer, int64_t nr_bytes) override {
		auto &h = cast(handle);
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
		Seek(handle, location);
		Write(handle, buffer, nr_bytes);
	}

	int64_t Write(FileHandle &handle, void *buffer, int64_t nr_bytes) override {
		auto &h = cast(handle);
		if (h.position != static_cast<idx_t>(h.file.size)) {
			throw Exception(ExceptionType::NOT_IMPLEMENTED, "pgvfs files are written from beginning to end: " + h.path);
		}
		Outcome outcome;
		sluiceWrite(h.file.handle, buffer, nr_bytes, &outcome);
		outcome.Check();
		h.file.size += nr_bytes;
		h.position = static_cast<idx_t>(h.file.size);
		return nr_bytes;
	}

	void Seek(FileHandle &handle, idx_t location) override {
		cast(handle).position = location;
	}
	void Reset(FileHandle &handle) override {
		cast(handle).position = 0;
	}
	idx_t SeekPosition(FileHandle &handle) override {
		return cast(handle).position;
	}
	bool CanSeek() override {
		return true;
	}
	// The commit that Close makes is the only point of durability.
	void FileSync(FileHandle &) override {
	}
	// False lets DuckDB cache ranges of the file and fetch whole column chunks at once.
	bool OnDiskFile(FileHandle &) override {
		return false;
	}
	int64_t GetFileSize(FileHandle &handle) override {
		return cast(handle).file.size;
	}
	// DuckDB's caches go by the tag. Only a file without one has its time looked at: then nothing is kept of a file of an
	// infinite time, and what is kept is not the file's.
	timestamp_t GetLastModifiedTime(FileHandle &handle) override {
		auto &file = cast(handle).file;
		return timestamp_t(file.uncached ? INT64_MAX : file.created_at);
	}
	// Bytes never change under an id, so the id says whether cached ones are still the file's. Two databases have the same
	// ids, so the store is part of it.
	string GetVersionTag(FileHandle &handle) override {
		auto &file = cast(handle).file;
		return file.uncached ? string() : std::to_string(file.store) + ":" + std::to_string(file.file_id);
	}
	FileType GetFileType(FileHandle &) override {
		return FileType::FILE_TYPE_REGULAR;
	}
	FileMetadata Stats(FileHandle &handle) override {
		FileMetadata stats;
		stats.file_size = GetFileSize(handle);
		stats.last_modification_time = GetLastModifiedTime(handle);
		stats.file_type = FileType::FILE_TYPE_REGULAR;
		return stats;
	}

	// -- paths --

	bool FileExists(const string &path, optional_ptr<FileOpener> opener) override {
		Outcome outcome;
		bool found = sluiceExists(bridge, client_of(opener), bytes(path), path.size(), &outcome) != 0;
		outcome.Check();
		return found;
	}
	void RemoveFile(const string &path, optional_ptr<FileOpener> opener) override {
		if (!TryRemoveFile(path, opener)) {
			throw Exception(ExceptionType::IO, "remove " + path + ": no such file");
		}
	}
	bool TryRemoveFile(const string &path, optional_ptr<FileOpener> opener) override {
		Outcome outcome;
		bool removed = sluiceRemove(bridge, client_of(opener), bytes(path), path.size(), &outcome) != 0;
		outcome.Check();
		return removed;
	}
	void MoveFile(const string &source, const string &target, optional_ptr<FileOpener> opener) override {
		Outcome outcome;
		sluiceMove(bridge, client_of(opener), bytes(source), source.size(), bytes(target), target.size(), &outcome);
		outcome.Check();
	}

	bool DirectoryExists(const string &directory, optional_ptr<FileOpener> opener) override {
		return !List(Prefix(directory), opener, 1).empty();
	}
	void CreateDirectory(const string &directory, optional_ptr<FileOpener> opener) override {
		Outcome outcome;
		sluiceAdmit(bridge, client_of(opener), bytes(directory), directory.size(), &outcome);
		outcome.Check();
	}
	void CreateDirectoriesRecursive(const string &directory, optional_ptr<FileOpener> opener) override {
		CreateDirectory(directory, opener);
	}
	void RemoveDirectory(const string &directory, optional_ptr<FileOpener> opener) override {
		Outcome outcome;
		string prefix = Prefix(directory);
		sluiceRemovePrefix(bridge, client_of(opener), bytes(prefix), prefix.size(), &outcome);
		outcome.Check();
	}
	// Names what is directly in the directory: files, and the first segment of deeper paths once each.
	bool ListFiles(const string &directory, const std::function<void(const string &, bool)> &callback,
	               FileOpener *opener) override {
		string prefix = Prefix(directory);
		auto paths = List(prefix, opener, 0);
		std::unordered_set<string> directories; // a/b, a-1 and a/c can come in this order, so remember all
		for (auto &path : paths) {
			string name = path.substr(prefix.size());
			auto slash = name.find('/');
			if (slash == string::npos) {
				callback(name, false);
				continue;
			}
			name.resize(slash);
			if (directories.insert(name).second) {
				callback(name, true);
			}
		}
		return !paths.empty();
	}
	vector<OpenFileInfo> Glob(const string &pattern, FileOpener *opener) override {
		Outcome outcome;
		size_t length = 0;
		char *found = sluiceGlob(bridge, client_of(opener), bytes(pattern), pattern.size(), &length, &outcome);
		outcome.Check();
		vector<OpenFileInfo> result;
		for (auto &path : Split(found, length)) {
			result.emplace_back(path);
		}
		return result;
	}

	// Paths are names as they are: a//b and ../b are keys like any other.
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
		return path;
	}

private:
	static string Prefix(const string &directory) {
		return !directory.empty() && directory.back() == '/' ? directory : directory + "/";
	}

	// Takes a text of NUL-ended paths apart and frees it.
	static std::vector<string> Split(char *text, size_t length) {
		std::unique_ptr<char, void (*)(void *)> owned(text, free);
		std::vector<string> out;
		for (size_t at = 0; at < length; at += out.back().size() + 1) {
			out.emplace_back(text + at);
		}
		return out;
	}

	// The URLs that begin with prefix, at most limit of them; 0 for all.
	std::vector<string> List(const string &prefix, optional_ptr<FileOpener> opener, int64_t limit) {
		Outcome outcome;
		size_t length = 0;
		char *found = sluiceList(bridge, client_of(opener), bytes(prefix), prefix.size(), limit, &length, &outcome);
		outcome.Check();
		return Split(found, length);
	}

	const uintptr_t bridge;
};

// ---- secrets ----
//
// Read with the eyes of the client that waits: its transaction sees what it has created and dropped itself.

ClientContext &context_of(uintptr_t client) {
	return *reinterpret_cast<ClientContext *>(client);
}

// The secret's type, then its keys and values, each with a NUL at the end.
string secret_text(const BaseSecret &secret) {
	if (strcmp(typeid(secret).name(), "N6duckdb14KeyValueSecretE") != 0) { // extensions have a type_info of their own
		throw Exception(ExceptionType::INVALID_INPUT, "secret \"" + secret.name + "\" is not made of keys and values");
	}
	string out = secret.type + string(1, '\0');
	for (auto &entry : static_cast<const KeyValueSecret &>(secret).secret_map) {
		if (entry.second.is_null) {
			continue;
		}
		string value = entry.second.ToString();
		if (value.find('\0') != string::npos) {
			throw Exception(ExceptionType::INVALID_INPUT, "secret \"" + secret.name + "\": " + entry.first + " contains a NUL byte");
		}
		out.append(entry.first).append(1, '\0').append(value).append(1, '\0');
	}
	return out;
}

// Looks among the temporary secrets. The others are files of this machine, which a locked DuckDB does not read.
unique_ptr<SecretEntry> find_secret(ClientContext &context, const string &name) {
	auto transaction = CatalogTransaction::GetSystemCatalogTransaction(context);
	return SecretManager::Get(context).GetSecretByName(transaction, name, "memory");
}

// ---- functions and a setting of SQL ----

// The client that a duckdb_client_context is of; frees it.
uintptr_t client_key(duckdb_client_context context) {
	auto key = key_of(&reinterpret_cast<CClientContextWrapper *>(context)->context);
	duckdb_destroy_client_context(&context);
	return key;
}

uintptr_t bridge_of(void *extra_info) {
	return reinterpret_cast<uintptr_t>(extra_info);
}

// pgvfs_stats() → VARCHAR
void stats(duckdb_function_info, duckdb_data_chunk input, duckdb_vector output) {
	size_t length = 0;
	std::unique_ptr<char, void (*)(void *)> text(sluiceStats(&length), free);
	for (idx_t row = 0; row < duckdb_data_chunk_get_size(input); row++) {
		duckdb_vector_assign_string_element_len(output, row, text.get(), length);
	}
}

// Refuses already the statement of a client who may not drop volumes.
void drop_volume_bind(duckdb_bind_info info) {
	duckdb_client_context context;
	duckdb_scalar_function_get_client_context(info, &context);
	Outcome outcome;
	sluiceMayDropVolumes(bridge_of(duckdb_scalar_function_bind_get_extra_info(info)), client_key(context), &outcome);
	outcome.Check();
}

// Remembers who runs the statement.
void drop_volume_init(duckdb_init_info info) {
	duckdb_client_context context;
	duckdb_scalar_function_init_get_client_context(info, &context);
	duckdb_scalar_function_init_set_state(info, reinterpret_cast<void *>(client_key(context)), nullptr);
}

// pgvfs_drop_volume(VARCHAR) → BIGINT
void drop_volume(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
	auto bridge = bridge_of(duckdb_scalar_function_get_extra_info(info));
	auto client = reinterpret_cast<uintptr_t>(duckdb_scalar_function_get_state(info));
	auto column = duckdb_data_chunk_get_vector(input, 0);
	auto valid = duckdb_vector_get_validity(column); // NULL if no row is
	auto volumes = static_cast<duckdb_string_t *>(duckdb_vector_get_data(column));
	auto counts = static_cast<int64_t *>(duckdb_vector_get_data(output));
	for (idx_t row = 0; row < duckdb_data_chunk_get_size(input); row++) {
		if (valid && !duckdb_validity_row_is_valid(valid, row)) {
			duckdb_vector_ensure_validity_writable(output);
			duckdb_validity_set_row_invalid(duckdb_vector_get_validity(output), row);
			continue;
		}
		Outcome outcome;
		string volume(duckdb_string_t_data(&volumes[row]), duckdb_string_t_length(volumes[row]));
		counts[row] = sluiceDropVolume(bridge, client, bytes(volume), volume.size(), &outcome);
		outcome.Check();
	}
}

// Each call of either is a call, whatever its argument: special handling is for NULL, which the optimizer would answer.
struct SQLFunction {
	const char *name;
	duckdb_type returns;
	bool takes_text;
	duckdb_scalar_function_bind_t bind;
	duckdb_scalar_function_init_t init;
	duckdb_scalar_function_t execute;
};

const SQLFunction sql_functions[] = {
    {"pgvfs_stats", DUCKDB_TYPE_VARCHAR, false, nullptr, nullptr, stats},
    {"pgvfs_drop_volume", DUCKDB_TYPE_BIGINT, true, drop_volume_bind, drop_volume_init, drop_volume},
};

void register_function(duckdb_connection connection, const SQLFunction &made, uintptr_t bridge) {
	auto function = duckdb_create_scalar_function();
	auto text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR), returns = duckdb_create_logical_type(made.returns);
	duckdb_scalar_function_set_name(function, made.name);
	if (made.takes_text) {
		duckdb_scalar_function_add_parameter(function, text);
	}
	duckdb_scalar_function_set_return_type(function, returns);
	duckdb_scalar_function_set_extra_info(function, reinterpret_cast<void *>(bridge), nullptr);
	duckdb_scalar_function_set_bind(function, made.bind);
	duckdb_scalar_function_set_init(function, made.init);
	duckdb_scalar_function_set_function(function, made.execute);
	duckdb_scalar_function_set_volatile(function);
	duckdb_scalar_function_set_special_handling(function);
	auto state = duckdb_register_scalar_function(connection, function);
	duckdb_destroy_logical_type(&text);
	duckdb_destroy_logical_type(&returns);
	duckdb_destroy_scalar_function(&function);
	if (state != DuckDBSuccess) {
		throw std::runtime_error(string("DuckDB does not take the function ") + made.name);
	}
}

constexpr const char *secret_setting = "pgvfs_secret";

void register_setting(duckdb_connection connection) {
	auto option = duckdb_create_config_option();
	auto type = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
	auto none = duckdb_create_varchar("");
	duckdb_config_option_set_name(option, secret_setting);
	duckdb_config_option_set_type(option, type);
	duckdb_config_option_set_default_value(option, none);
	duckdb_config_option_set_description(option, "The postgres secret for pgvfs:// paths whose volume has no secret pgvfs_<volume>");
	auto state = duckdb_register_config_option(connection, option);
	duckdb_destroy_value(&none);
	duckdb_destroy_logical_type(&type);
	duckdb_destroy_config_option(&option);
	if (state != DuckDBSuccess) {
		throw std::runtime_error(string("DuckDB does not take the setting ") + secret_setting);
	}
}

void register_sql(void *database, uintptr_t bridge) {
	duckdb_connection connection;
	if (duckdb_connect(static_cast<duckdb_database>(database), &connection) != DuckDBSuccess) {
		throw std::runtime_error("no connection to DuckDB");
	}
	std::unique_ptr<duckdb_connection, void (*)(duckdb_connection *)> owned(&connection, duckdb_disconnect);
	for (auto &function : sql_functions) {
		register_function(connection, function, bridge);
	}
	register_setting(connection);
}

// ---- the guard ----
//
// A table function binds by up to three plain function pointers, which cannot carry data. So there is a row of
// functions for each, all alike but for the number of the slot that holds the original. The catalog's copy of a guarded
// function points at these; every call of it, from whatever view, macro or prepared statement, has to bind anew and so
// comes here with the context of the connection that binds.

constexpr size_t slots_max = 128;

// One original. Written once, before a pointer to its guard exists; never changed, so read without a lock.
struct Slot {
	void *original;
	string *name; // never freed
};
Slot slots[slots_max];
size_t slots_used = 0;  // guarded by slots_mutex
std::mutex slots_mutex; // also keeps two instances from guarding at the same time

// Throws if the connection is a guarded client's.
template <size_t N>
void admit(const ClientContext &context) {
	if (is_guarded(context)) {
		throw Exception(ExceptionType::PERMISSION, "permission denied for function " + *slots[N].name);
	}
}

template <size_t N>
Returned guarded_bind(ClientContext &context, TableFunctionBindInput &input, vector<LogicalType> &types, vector<string> &names) {
	admit<N>(context);
	return reinterpret_cast<table_function_bind_t>(slots[N].original)(context, input, types, names);
}

template <size_t N>
Returned guarded_bind_replace(ClientContext &context, TableFunctionBindInput &input) {
	admit<N>(context);
	return reinterpret_cast<table_function_bind_replace_t>(slots[N].original)(context, input);
}

template <size_t N>
Returned guarded_bind_operator(ClientContext &context, TableFunctionBindInput &input, idx_t bind_index, vector<string> &names) {
	admit<N>(context);
	return reinterpret_cast<table_function_bind_operator_t>(slots[N].original)(context, input, bind_index, names);
}

// The guards of all slots, a row for each of the three kinds.
struct Guards {
	table_function_bind_t bind[slots_max];
	table_function_bind_replace_t bind_replace[slots_max];
	table_function_bind_operator_t bind_operator[slots_max];
};

template <size_t... N>
Guards make_guards(std::index_sequence<N...>) {
	return Guards {{guarded_bind<N>...}, {guarded_bind_replace<N>...}, {guarded_bind_operator<N>...}};
}

const Guards &guards() {
	static const Guards all = make_guards(std::make_index_sequence<slots_max>());
	return all;
}

// The slot of an original: the one that an earlier instance of this process filled, or a new one.
size_t slot_of(void *original, const string &name) {
	for (size_t i = 0; i < slots_used; i++) {
		if (slots[i].original == original && *slots[i].name == name) {
			return i;
		}
	}
	if (slots_used == slots_max) {
		throw std::runtime_error("more table functions to guard than there are slots in bridge.cpp");
	}
	slots[slots_used] = Slot {original, new string(name)};
	return slots_used++;
}

// Puts the guard in the place of one pointer, unless there is none or it is a guard already.
template <class F>
void guard_pointer(F &pointer, const F (&row)[slots_max], const string &name) {
	for (auto guard : row) {
		if (pointer == guard) {
			return;
		}
	}
	if (pointer) {
		pointer = row[slot_of(reinterpret_cast<void *>(pointer), name)];
	}
}

// Guards every overload of one function. The names found must be the function's: a layout that is not the declared one
// is noticed here rather than written over.
void guard_function(DatabaseInstance &db, const string &name) {
	auto *found = ExtensionLoader(db, "sluice").TryGetTableFunction(name).get();
	if (!found) {
		throw std::runtime_error("there is no table function \"" + name + "\" to guard");
	}
	if (found->type != CatalogType::TABLE_FUNCTION_ENTRY) {
		throw std::runtime_error("\"" + name + "\" is not a table function, and nothing else can be guarded");
	}
	auto &set = static_cast<TableFunctionCatalogEntry *>(found)->functions;
	if (found->name != name || set.name != name || set.functions.empty()) {
		throw std::runtime_error("the catalog's entry for \"" + name + "\" does not look as expected");
	}
	for (auto &function : set.functions) {
		if (function.name != name) {
			throw std::runtime_error("the overloads of \"" + name + "\" do not look as expected");
		}
	}
	for (auto &function : set.functions) {
		guard_pointer(function.bind, guards().bind, name);
		guard_pointer(function.bind_replace, guards().bind_replace, name);
		guard_pointer(function.bind_operator, guards().bind_operator, name);
	}
}

// ---- databases ----
//
// DuckDB asks the states of a connection about every statement once it is bound: when it is prepared, and again when it
// is bound anew with its parameters' values, which query($1) needs before anybody can know what it reads.

struct DatabaseGate : ClientContextState {
	std::unordered_set<string> reads, writes; // what may be read and modified; never changed

	// DuckDB asks only states that say they might want another binding. This one never does.
	bool CanRequestRebind() override {
		return true;
	}
	RebindQueryInfo OnFinalizePrepare(ClientContext &, PreparedStatementData &prepared, PreparedStatementMode) override {
		if (OfSecret(prepared)) {
			throw Exception(ExceptionType::PERMISSION, "permission denied for secrets");
		}
		for (auto &db : prepared.properties.read_databases) {
			Check(reads, db.first);
		}
		for (auto &db : prepared.properties.modified_databases) {
			Check(writes, db.first);
		}
		return RebindQueryInfo::DO_NOT_REBIND;
	}

private:
	// Secrets are in no database. They alone return a row when they are created, and need no transaction to be dropped.
	static bool OfSecret(const PreparedStatementData &prepared) {
		auto &properties = prepared.properties;
		return (prepared.statement_type == StatementType::CREATE_STATEMENT && properties.return_type == StatementReturnType::QUERY_RESULT) ||
		       (prepared.statement_type == StatementType::DROP_STATEMENT && !properties.requires_valid_transaction);
	}

	static void Check(const std::unordered_set<string> &allowed, const string &db) {
		if (allowed.count(db) == 0) {
			throw Exception(ExceptionType::PERMISSION, "permission denied for database \"" + db + "\"");
		}
	}
};

// Puts a gate before the connection's statements.
void gate_databases(ClientContext &context, const string &databases) {
	auto gate = std::make_shared<DatabaseGate>();
	for (size_t at = 0, end = 0; at < databases.size(); at = end + 1) {
		end = std::min(databases.find('\n', at), databases.size());
		(databases[at] == 'W' ? gate->writes : gate->reads).insert(databases.substr(at + 1, end - at - 1));
	}
	auto &manager = *context.registered_state;
	std::lock_guard<std::mutex> guard(manager.lock);
	manager.registered_state["sluice_databases"] = shared_ptr<ClientContextState>(gate);
}

// ---- schema pins ----
//
// DuckLake (build d8a1881e, of DuckDB v1.5.5) caches the lake's schemas by version, and a query pins the ones it uses
// until it ends. A transaction goes on using them: the tables that it makes refer to their schema when it commits. If
// another session has replaced the cached schema meanwhile, the commit reads freed memory: 50 connections that made and
// dropped tables, each in BEGIN … COMMIT, crashed stock DuckDB within seconds. Later builds pin for the transaction; for
// this one, DuckLake's state of a connection is replaced by one that does.

// Has the fields of DuckLake's DuckLakeSchemaPinState, whose Pin function writes to them. Where that one clears its pins
// when a query ends, this one does so when the next transaction begins.
struct TransactionPins : ClientContextState {
	std::mutex lock;
	std::unordered_map<void *, std::shared_ptr<void>> pins;

	void QueryEnd(ClientContext &) override {
	}
	void TransactionBegin(MetaTransaction &, ClientContext &) override {
		std::lock_guard<std::mutex> guard(lock);
		pins.clear();
	}
};

constexpr const char *pin_key = "ducklake_schema_pin:"; // what DuckLake's keys for the state begin with

// Replaces the states of every lake that the connection has read. None is an error: the crash would be back unseen.
void keep_schemas(ClientContext &context) {
	auto &manager = *context.registered_state;
	std::lock_guard<std::mutex> guard(manager.lock);
	size_t replaced = 0;
	for (auto &state : manager.registered_state) {
		if (state.first.compare(0, strlen(pin_key), pin_key) == 0) {
			state.second = shared_ptr<ClientContextState>(std::make_shared<TransactionPins>());
			replaced++;
		}
	}
	if (replaced == 0) {
		throw std::runtime_error("DuckLake has pinned no schema for this connection");
	}
}

DuckDB &database_of(void *duckdb_database) {
	return *static_cast<DatabaseWrapper *>(duckdb_database)->database.get();
}

// The text of StatementDatabases.
string statement_databases(void *duckdb_prepared_statement) {
	auto *statement = static_cast<PreparedStatementWrapper *>(duckdb_prepared_statement)->statement.get();
	if (!statement || !statement->success) {
		throw std::runtime_error("the statement could not be prepared, so it has no databases");
	}
	auto properties = statement->GetStatementProperties();
	string out;
	for (auto &db : properties.read_databases) {
		out.append("R").append(db.first).push_back('\0');
	}
	for (auto &db : properties.modified_databases) {
		out.append("W").append(db.first).push_back('\0');
	}
	return out;
}

// Runs work and returns the text of what it throws, NULL for nothing.
template <class F>
char *text_of_failure(F work) {
	try {
		work();
		return nullptr;
	} catch (const std::exception &e) {
		return copy_text(e.what());
	} catch (...) {
		return copy_text("unknown C++ exception");
	}
}

} // namespace

extern "C" {

char *sluice_register(void *duckdb_database, uintptr_t bridge) {
	return text_of_failure([&] {
		unique_ptr<FileSystem> fs(new PgvfsFileSystem(bridge));
		database_of(duckdb_database).GetFileSystem().RegisterSubSystem(std::move(fs));
		register_sql(duckdb_database, bridge);
	});
}

char *sluice_secret(uintptr_t client, const char *name, size_t *length, sluice_error *error) {
	string out;
	error->text = text_of_failure([&] {
		if (auto found = find_secret(context_of(client), name)) {
			out = secret_text(*found->secret);
		}
	});
	if (error->text) {
		error->kind = SLUICE_INVALID_INPUT;
	}
	*length = out.size();
	return out.empty() ? nullptr : copy_text(out);
}

char *sluice_setting(uintptr_t client, const char *name) {
	CClientContextWrapper context {context_of(client)};
	auto value = duckdb_client_context_get_config_option(reinterpret_cast<duckdb_client_context>(&context), name, nullptr);
	if (!value) {
		return nullptr;
	}
	char *text = duckdb_is_null_value(value) ? nullptr : duckdb_get_varchar(value);
	duckdb_destroy_value(&value);
	if (!text) {
		return nullptr;
	}
	char *out = copy_text(text);
	duckdb_free(text);
	return out;
}

uintptr_t sluice_client_key(void *duckdb_connection) {
	return key_of(static_cast<Connection *>(duckdb_connection)->context.get());
}

void sluice_client_guard(uintptr_t client, int on) {
	std::unique_lock<std::shared_mutex> lock(clients_mutex);
	if (on) {
		guarded_clients.insert(client);
	} else {
		guarded_clients.erase(client);
	}
}

char *sluice_guard_functions(void *duckdb_database, const char *names) {
	return text_of_failure([&] {
		std::lock_guard<std::mutex> lock(slots_mutex);
		auto &db = *database_of(duckdb_database).instance.get();
		string text = names;
		for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
			end = std::min(text.find('\n', at), text.size());
			guard_function(db, text.substr(at, end - at));
		}
	});
}

char *sluice_client_databases(void *duckdb_connection, const char *databases) {
	return text_of_failure([&] { gate_databases(*static_cast<Connection *>(duckdb_connection)->context.get(), databases); });
}

char *sluice_keep_schemas(void *duckdb_connection) {
	return text_of_failure([&] { keep_schemas(*static_cast<Connection *>(duckdb_connection)->context.get()); });
}

char *sluice_statement_databases(void *duckdb_prepared_statement, size_t *length) {
	string out;
	char *failure = text_of_failure([&] { out = statement_databases(duckdb_prepared_statement); });
	if (failure) {
		out = string("E") + failure + string(1, '\0');
		free(failure);
	}
	*length = out.size();
	return copy_text(out);
}

} // extern "C"
