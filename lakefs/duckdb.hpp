// Declarations of the few C++ classes of DuckDB v1.5.5 that bridge.cpp needs and DuckDB's C API does not offer. They
// are made for that version alone (SLUICE_DUCKDB_VERSION in bridge.h): each class repeats the members and the order of
// the virtual functions there. Names and parameter types are DuckDB's own, because the linker finds functions by them.
//
// abi/layout.inc lists what must agree with DuckDB's real headers, and .ci/abi compares it (sizes, offsets, places of
// virtual functions, numbers of enumerations). Bump the version only together with a clean run of that check.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace duckdb {

using std::string;
using idx_t = uint64_t;

class ClientContext;
class DatabaseInstance;
class FileOpener;
class FileSystem;
class MultiFileList;
class PreparedStatementData;
class Transaction;
struct FileGlobInput;
struct TableFunctionBindInput;

// ---- wrappers round the standard library ----

template <class T, class D = std::default_delete<T>, bool SAFE = true>
class unique_ptr : public std::unique_ptr<T, D> {
public:
	using std::unique_ptr<T, D>::unique_ptr;
};

template <class T, bool SAFE = true>
class shared_ptr {
public:
	shared_ptr() = default;
	explicit shared_ptr(std::shared_ptr<T> p) : internal(std::move(p)) {}
	T *get() const { return internal.get(); }

private:
	std::shared_ptr<T> internal;
};

// Has a constructor and nothing else of its own: passed and returned in a register, as in DuckDB.
template <class T, bool SAFE = true>
class optional_ptr {
public:
	optional_ptr() noexcept : ptr(nullptr) {}
	optional_ptr(T *p) : ptr(p) {}
	T *get() const { return ptr; }

private:
	T *ptr;
};

template <class T, bool SAFE = true, class A = std::allocator<T>>
class vector : public std::vector<T, A> {
public:
	using std::vector<T, A>::vector;
};

class optional_idx {
	idx_t index = idx_t(-1);
};

// ---- exceptions ----

enum class ExceptionType : uint8_t { NOT_IMPLEMENTED = 11, IO = 28, INTERRUPT = 29, INVALID_INPUT = 32, PERMISSION = 34 };

class Exception : public std::runtime_error {
public:
	Exception(ExceptionType type, const string &message);
};

// ---- files ----

enum class FileCompressionType : uint8_t { AUTO_DETECT = 0, UNCOMPRESSED = 1 };
enum class FileLockType : uint8_t { NO_LOCK = 0 };
enum class CachingMode : uint8_t { NO_CACHING = 2 };
enum class FileType { FILE_TYPE_REGULAR, FILE_TYPE_DIR, FILE_TYPE_FIFO, FILE_TYPE_SOCKET, FILE_TYPE_LINK, FILE_TYPE_BLOCKDEV, FILE_TYPE_CHARDEV, FILE_TYPE_INVALID };

struct timestamp_t {
	int64_t value; // microseconds since 1970
	timestamp_t() = default;
	explicit constexpr timestamp_t(int64_t micros) : value(micros) {}
};

class FileOpenFlags {
public:
	static constexpr idx_t FILE_FLAGS_READ = 1 << 0;
	static constexpr idx_t FILE_FLAGS_WRITE = 1 << 1;
	static constexpr idx_t FILE_FLAGS_FILE_CREATE = 1 << 3;
	static constexpr idx_t FILE_FLAGS_FILE_CREATE_NEW = 1 << 4;
	static constexpr idx_t FILE_FLAGS_APPEND = 1 << 5;
	static constexpr idx_t FILE_FLAGS_NULL_IF_NOT_EXISTS = 1 << 7;
	static constexpr idx_t FILE_FLAGS_EXCLUSIVE_CREATE = 1 << 9;
	static constexpr idx_t FILE_FLAGS_NULL_IF_EXISTS = 1 << 10;

	idx_t flags = 0; // private in DuckDB, like the rest
	FileLockType lock = FileLockType::NO_LOCK;
	CachingMode caching_mode = CachingMode::NO_CACHING;
	FileCompressionType compression = FileCompressionType::UNCOMPRESSED;
};

enum class LogicalTypeId : uint8_t { INVALID = 0 };
enum class PhysicalType : uint8_t { INVALID = 255 };
struct ExtraTypeInfo;
struct ExtraValueInfo;

struct LogicalType {
	LogicalTypeId id_;
	PhysicalType physical_type_;
	shared_ptr<ExtraTypeInfo> type_info_;
};

class Value {
public:
	LogicalType type_;
	bool is_null;
	union Val {
		struct { uint64_t lower; int64_t upper; } hugeint;
	} value_;
	shared_ptr<ExtraValueInfo> value_info_;

	string ToString() const;
};

struct FileMetadata {
	int64_t file_size = -1;
	timestamp_t last_modification_time = timestamp_t(-INT64_MAX);
	FileType file_type = FileType::FILE_TYPE_INVALID;
	std::unordered_map<string, Value> extended_file_info;
};

struct ExtendedOpenFileInfo {
	std::unordered_map<string, Value> options;
};

struct OpenFileInfo {
	OpenFileInfo() = default;
	OpenFileInfo(string p) : path(std::move(p)) {}
	string path;
	shared_ptr<ExtendedOpenFileInfo> extended_info;
};

// Passed by value, so its size counts.
class QueryContext {
	optional_ptr<ClientContext> context;
};

class Logger;

struct FileHandle {
	FileHandle(FileSystem &fs, string path, FileOpenFlags flags);
	FileHandle(const FileHandle &) = delete;
	virtual ~FileHandle();
	virtual idx_t GetProgress();
	virtual FileCompressionType GetFileCompressionType();
	virtual void Close() = 0;

	FileSystem &file_system;
	string path;
	FileOpenFlags flags;
	shared_ptr<Logger> logger;
};

class FileOpener {
public:
	static optional_ptr<ClientContext> TryGetClientContext(optional_ptr<FileOpener> opener);
};

// The order of the virtual functions is the order of the table of functions.
class FileSystem {
public:
	virtual ~FileSystem();

	virtual unique_ptr<FileHandle> OpenFile(const string &path, FileOpenFlags flags, optional_ptr<FileOpener> opener = nullptr);
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
	virtual bool DirectoryExists(const string &directory, optional_ptr<FileOpener> opener = nullptr);
	virtual void CreateDirectory(const string &directory, optional_ptr<FileOpener> opener = nullptr);
	virtual void CreateDirectoriesRecursive(const string &path, optional_ptr<FileOpener> opener = nullptr);
	virtual void RemoveDirectory(const string &directory, optional_ptr<FileOpener> opener = nullptr);
	virtual bool ListFiles(const string &directory, const std::function<void(const string &, bool)> &callback, FileOpener *opener = nullptr);
	virtual void MoveFile(const string &source, const string &target, optional_ptr<FileOpener> opener = nullptr);
	virtual bool FileExists(const string &filename, optional_ptr<FileOpener> opener = nullptr);
	virtual bool IsPipe(const string &filename, optional_ptr<FileOpener> opener = nullptr);
	virtual void RemoveFile(const string &filename, optional_ptr<FileOpener> opener = nullptr);
	virtual bool TryRemoveFile(const string &filename, optional_ptr<FileOpener> opener = nullptr);
	virtual void RemoveFiles(const vector<string> &filenames, optional_ptr<FileOpener> opener = nullptr);
	virtual void FileSync(FileHandle &handle);
	virtual string GetHomeDirectory();
	virtual string ExpandPath(const string &path);
	virtual string PathSeparator(const string &path);
	virtual bool IsPathAbsolute(const string &path);
	virtual vector<OpenFileInfo> Glob(const string &path, FileOpener *opener = nullptr);
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
	virtual string CanonicalizePath(const string &path, optional_ptr<FileOpener> opener = nullptr);

	// Protected in DuckDB; access does not change names or places.
	virtual unique_ptr<FileHandle> OpenFileExtended(const OpenFileInfo &path, FileOpenFlags flags, optional_ptr<FileOpener> opener);
	virtual bool SupportsOpenFileExtended() const;
	virtual bool ListFilesExtended(const string &directory, const std::function<void(OpenFileInfo &info)> &callback, optional_ptr<FileOpener> opener);
	virtual bool SupportsListFilesExtended() const;
	virtual unique_ptr<MultiFileList> GlobFilesExtended(const string &path, const FileGlobInput &input, optional_ptr<FileOpener> opener = nullptr);
	virtual bool SupportsGlobExtended() const;
};

// ---- states that extensions keep with a connection ----

class ErrorData;
class MetaTransaction;
class SQLStatement;
struct BindPreparedStatementCallbackInfo;
struct PreparedStatementCallbackInfo;
enum class PreparedStatementMode : uint8_t { PREPARE_ONLY, PREPARE_AND_EXECUTE };
enum class RebindQueryInfo { DO_NOT_REBIND, ATTEMPT_TO_REBIND };

// The bodies are DuckDB's: what a state does not say, does nothing.
class ClientContextState {
public:
	virtual ~ClientContextState() = default;
	virtual void QueryBegin(ClientContext &) {}
	virtual void QueryEnd() {}
	virtual void QueryEnd(ClientContext &) { QueryEnd(); }
	virtual void QueryEnd(ClientContext &context, optional_ptr<ErrorData>) { QueryEnd(context); }
	virtual void TransactionBegin(MetaTransaction &, ClientContext &) {}
	virtual void TransactionCommit(MetaTransaction &, ClientContext &) {}
	virtual void TransactionRollback(MetaTransaction &, ClientContext &) {}
	virtual void TransactionRollback(MetaTransaction &transaction, ClientContext &context, optional_ptr<ErrorData>) { TransactionRollback(transaction, context); }
	virtual bool CanRequestRebind() { return false; }
	virtual RebindQueryInfo OnPlanningError(ClientContext &, SQLStatement &, ErrorData &) { return RebindQueryInfo::DO_NOT_REBIND; }
	virtual RebindQueryInfo OnFinalizePrepare(ClientContext &, PreparedStatementData &, PreparedStatementMode) { return RebindQueryInfo::DO_NOT_REBIND; }
	virtual RebindQueryInfo OnExecutePrepared(ClientContext &, PreparedStatementCallbackInfo &, RebindQueryInfo) { return RebindQueryInfo::DO_NOT_REBIND; }
	virtual RebindQueryInfo OnRebindPreparedStatement(ClientContext &, BindPreparedStatementCallbackInfo &, RebindQueryInfo) { return RebindQueryInfo::DO_NOT_REBIND; }
	virtual void WriteProfilingInformation(std::ostream &) {}
	virtual void OnTaskStart(ClientContext &) {}
	virtual void OnTaskStop(ClientContext &) {}
};

class RegisteredStateManager {
public:
	std::mutex lock;
	std::unordered_map<string, shared_ptr<ClientContextState>> registered_state;
};

// Never made or destroyed here, only looked into.
class ClientContext {
public:
	ClientContext() = delete;
	unsigned char before[40]; // what stands before the one field that is needed
	std::unique_ptr<RegisteredStateManager> registered_state;
};

// ---- secrets ----

// Passed by value, so its size counts.
struct CatalogTransaction {
	optional_ptr<DatabaseInstance> db;
	optional_ptr<ClientContext> context;
	optional_ptr<Transaction> transaction;
	idx_t transaction_id;
	idx_t start_time;

	static CatalogTransaction GetSystemCatalogTransaction(ClientContext &context);
};

enum class SecretDisplayType : uint8_t { REDACTED };
enum class SecretPersistType : uint8_t { DEFAULT };
class Serializer;

// Never made here, but destroyed through its table of functions.
class BaseSecret {
public:
	BaseSecret() = delete;
	virtual ~BaseSecret();
	virtual int64_t MatchScore(const string &path) const;
	virtual string ToString(SecretDisplayType mode) const;
	virtual void Serialize(Serializer &serializer) const;
	virtual unique_ptr<const BaseSecret> Clone() const;

	vector<string> prefix_paths;
	string type;
	string provider;
	string name;
	bool serializable;
};

// Orders keys without regard to case, in DuckDB. Here maps with it are only walked through.
struct CaseInsensitiveStringCompare {
	bool operator()(const string &a, const string &b) const;
};

class KeyValueSecret : public BaseSecret {
public:
	~KeyValueSecret() override;
	std::map<string, Value, CaseInsensitiveStringCompare> secret_map;
	std::unordered_set<string> redact_keys;
};

struct SecretEntry {
	SecretPersistType persist_type;
	string storage_mode;
	unique_ptr<const BaseSecret> secret;
};

class SecretManager {
public:
	static SecretManager &Get(ClientContext &context);
	unique_ptr<SecretEntry> GetSecretByName(CatalogTransaction transaction, const string &name, const string &storage);
};

// ---- handles of the C API ----

// What a duckdb_client_context points to.
struct CClientContextWrapper {
	ClientContext &context;
};

class DuckDB {
public:
	shared_ptr<DatabaseInstance> instance;
	FileSystem &GetFileSystem();
};

// What a duckdb_database points to.
struct DatabaseWrapper {
	shared_ptr<DuckDB> database;
};

// What a duckdb_connection points to.
class Connection {
public:
	shared_ptr<ClientContext> context;
};

enum class QueryResultOutputType : uint8_t { FORCE_MATERIALIZED, ALLOW_STREAMING };
enum class StatementReturnType : uint8_t { QUERY_RESULT, CHANGED_ROWS, NOTHING };

struct DatabaseModificationType {
	idx_t value;
};

struct StatementProperties {
	struct CatalogIdentity {
		idx_t catalog_oid;
		optional_idx catalog_version;
	};
	struct ModificationInfo {
		CatalogIdentity identity;
		DatabaseModificationType modifications;
	};
	std::unordered_map<string, CatalogIdentity> read_databases;
	std::unordered_map<string, ModificationInfo> modified_databases;
	bool requires_valid_transaction;
	QueryResultOutputType output_type;
	bool bound_all_parameters;
	StatementReturnType return_type;
	idx_t parameter_count;
	bool always_require_rebind;
};

enum class StatementType : uint8_t { CREATE_STATEMENT = 4, DROP_STATEMENT = 15 };
class PhysicalPlan;

// Never made or destroyed here, only looked into.
class PreparedStatementData {
public:
	PreparedStatementData() = delete;
	StatementType statement_type;
	SQLStatement *unbound_statement; // a unique_ptr in DuckDB, like the next
	PhysicalPlan *physical_plan;
	vector<string> names;
	vector<LogicalType> types;
	StatementProperties properties;
};

class PreparedStatement {
public:
	shared_ptr<ClientContext> context;
	shared_ptr<PreparedStatementData> data;
	string query;
	bool success;

	StatementProperties GetStatementProperties();
};

// Stands for a map of another value type: an empty or full std::unordered_map is as large whatever it holds.
using any_map = std::unordered_map<string, idx_t>;

// What a duckdb_prepared_statement points to, as far as it is needed.
struct PreparedStatementWrapper {
	any_map values;
	unique_ptr<PreparedStatement> statement;
};

// ---- table functions in the catalog ----

enum class CatalogType : uint8_t { TABLE_FUNCTION_ENTRY = 25 };

class Catalog;
class CatalogSet;
class SchemaCatalogEntry;
struct FunctionDescription;

template <class V>
class InsertionOrderPreservingMap {
	vector<std::pair<string, V>> map;
	any_map map_idx;
};

class LogicalDependencyList {
	std::unordered_set<string> set;
};

// Never made or destroyed here, only looked into.
class CatalogEntry {
public:
	CatalogEntry() = delete;
	virtual ~CatalogEntry();

	idx_t oid;
	CatalogType type;
	optional_ptr<CatalogSet> set;
	string name;
	bool deleted;
	bool temporary;
	bool internal;
	std::atomic<idx_t> timestamp;
	Value comment;
	InsertionOrderPreservingMap<string> tags;

private:
	std::unique_ptr<CatalogEntry> child;
	optional_ptr<CatalogEntry> parent;
};

class InCatalogEntry : public CatalogEntry {
public:
	~InCatalogEntry() override;
	Catalog &catalog;
};

class StandardEntry : public InCatalogEntry {
public:
	~StandardEntry() override;
	SchemaCatalogEntry &schema;
	LogicalDependencyList dependencies;
};

class FunctionEntry : public StandardEntry {
public:
	~FunctionEntry() override;
	string alias_of;
	vector<FunctionDescription *> descriptions;
};

class Function {
public:
	Function() = delete;
	virtual ~Function();
	string name;
	string extra_info;
	string catalog_name;
	string schema_name;
};

class SimpleFunction : public Function {
public:
	~SimpleFunction() override;
	vector<LogicalType> arguments;
	vector<LogicalType> original_arguments;
	LogicalType varargs;
	virtual string ToString() const;
};

class SimpleNamedParameterFunction : public SimpleFunction {
public:
	~SimpleNamedParameterFunction() override;
	any_map named_parameters;
};

// Stands for a unique_ptr of a class of which nothing is known here. It has a destructor so that it is returned in
// memory, as a unique_ptr is; it owns nothing because it is only ever handed on.
struct Returned {
	~Returned() {}
	void *pointer;
};

using table_function_bind_t = Returned (*)(ClientContext &, TableFunctionBindInput &, vector<LogicalType> &, vector<string> &);
using table_function_bind_replace_t = Returned (*)(ClientContext &, TableFunctionBindInput &);
using table_function_bind_operator_t = Returned (*)(ClientContext &, TableFunctionBindInput &, idx_t, vector<string> &);
struct FunctionPointer;      // the callbacks that are not touched, as pointers
struct TableFunctionInfo;
enum class OrderPreservationType : uint8_t { INSERTION_ORDER };
enum class TableFunctionInitialization { INITIALIZE_ON_EXECUTE };

class TableFunction : public SimpleNamedParameterFunction {
public:
	table_function_bind_t bind;
	table_function_bind_replace_t bind_replace;
	table_function_bind_operator_t bind_operator;
	FunctionPointer *init_global, *init_local, *function, *in_out_function, *in_out_function_final;
	FunctionPointer *statistics, *statistics_extended, *dependency, *cardinality, *rows_scanned, *get_metrics;
	FunctionPointer *pushdown_complex_filter, *pushdown_expression, *to_string, *dynamic_to_string;
	FunctionPointer *table_scan_progress, *get_partition_data, *get_bind_info, *type_pushdown;
	FunctionPointer *get_multi_file_reader, *supports_pushdown_type, *supports_pushdown_extract;
	FunctionPointer *get_partition_info, *get_partition_stats, *get_virtual_columns, *get_row_id_columns;
	FunctionPointer *set_scan_order, *serialize, *deserialize;
	bool verify_serialization, projection_pushdown, filter_pushdown, filter_prune, sampling_pushdown, late_materialization;
	shared_ptr<TableFunctionInfo> function_info;
	OrderPreservationType order_preservation_type;
	TableFunctionInitialization global_initialization;
};

template <class T>
class FunctionSet {
public:
	FunctionSet() = delete;
	string name;
	vector<T> functions;
};

class TableFunctionSet : public FunctionSet<TableFunction> {};

class TableFunctionCatalogEntry : public FunctionEntry {
public:
	TableFunctionSet functions;
};

class ExtensionInfo;

class ExtensionLoader {
public:
	ExtensionLoader(DatabaseInstance &db, const string &extension_name);
	optional_ptr<CatalogEntry> TryGetTableFunction(const string &name);

private:
	DatabaseInstance &db;
	string extension_name;
	string extension_description;
	optional_ptr<ExtensionInfo> extension_info;
};

} // namespace duckdb

// ---- the C API ----
//
// What bridge.cpp uses of duckdb.h, for functions and settings of SQL.

extern "C" {

typedef uint64_t idx_t;
typedef struct _duckdb_database { void *internal_ptr; } *duckdb_database;
typedef struct _duckdb_connection { void *internal_ptr; } *duckdb_connection;
typedef struct _duckdb_client_context { void *internal_ptr; } *duckdb_client_context;
typedef struct _duckdb_logical_type { void *internal_ptr; } *duckdb_logical_type;
typedef struct _duckdb_data_chunk { void *internal_ptr; } *duckdb_data_chunk;
typedef struct _duckdb_vector { void *internal_ptr; } *duckdb_vector;
typedef struct _duckdb_value { void *internal_ptr; } *duckdb_value;
typedef struct _duckdb_config_option { void *internal_ptr; } *duckdb_config_option;
typedef struct _duckdb_scalar_function { void *internal_ptr; } *duckdb_scalar_function;
typedef struct _duckdb_function_info { void *internal_ptr; } *duckdb_function_info;
typedef struct _duckdb_bind_info { void *internal_ptr; } *duckdb_bind_info;
typedef struct _duckdb_init_info { void *internal_ptr; } *duckdb_init_info;

typedef enum duckdb_state { DuckDBSuccess = 0, DuckDBError = 1 } duckdb_state;
typedef enum DUCKDB_TYPE { DUCKDB_TYPE_BIGINT = 5, DUCKDB_TYPE_VARCHAR = 17 } duckdb_type;
typedef enum duckdb_config_option_scope { DUCKDB_CONFIG_OPTION_SCOPE_SESSION = 2, DUCKDB_CONFIG_OPTION_SCOPE_MAX = 3 } duckdb_config_option_scope;

typedef struct {
	union {
		struct {
			uint32_t length;
			char prefix[4];
			char *ptr;
		} pointer;
		struct {
			uint32_t length;
			char inlined[12];
		} inlined;
	} value;
} duckdb_string_t;

typedef void (*duckdb_delete_callback_t)(void *data);
typedef void (*duckdb_scalar_function_bind_t)(duckdb_bind_info info);
typedef void (*duckdb_scalar_function_init_t)(duckdb_init_info info);
typedef void (*duckdb_scalar_function_t)(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output);

duckdb_state duckdb_connect(duckdb_database database, duckdb_connection *out_connection);
void duckdb_disconnect(duckdb_connection *connection);
void duckdb_destroy_client_context(duckdb_client_context *context);
duckdb_logical_type duckdb_create_logical_type(duckdb_type type);
void duckdb_destroy_logical_type(duckdb_logical_type *type);

duckdb_scalar_function duckdb_create_scalar_function();
void duckdb_destroy_scalar_function(duckdb_scalar_function *function);
void duckdb_scalar_function_set_name(duckdb_scalar_function function, const char *name);
void duckdb_scalar_function_set_special_handling(duckdb_scalar_function function);
void duckdb_scalar_function_set_volatile(duckdb_scalar_function function);
void duckdb_scalar_function_add_parameter(duckdb_scalar_function function, duckdb_logical_type type);
void duckdb_scalar_function_set_return_type(duckdb_scalar_function function, duckdb_logical_type type);
void duckdb_scalar_function_set_extra_info(duckdb_scalar_function function, void *extra_info, duckdb_delete_callback_t destroy);
void duckdb_scalar_function_set_bind(duckdb_scalar_function function, duckdb_scalar_function_bind_t bind);
void duckdb_scalar_function_set_init(duckdb_scalar_function function, duckdb_scalar_function_init_t init);
void duckdb_scalar_function_set_function(duckdb_scalar_function function, duckdb_scalar_function_t execute);
duckdb_state duckdb_register_scalar_function(duckdb_connection connection, duckdb_scalar_function function);
void *duckdb_scalar_function_get_extra_info(duckdb_function_info info);
void *duckdb_scalar_function_get_state(duckdb_function_info info);
void *duckdb_scalar_function_bind_get_extra_info(duckdb_bind_info info);
void duckdb_scalar_function_get_client_context(duckdb_bind_info info, duckdb_client_context *out_context);
void duckdb_scalar_function_init_get_client_context(duckdb_init_info info, duckdb_client_context *out_context);
void duckdb_scalar_function_init_set_state(duckdb_init_info info, void *state, duckdb_delete_callback_t destroy);

idx_t duckdb_data_chunk_get_size(duckdb_data_chunk chunk);
duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk chunk, idx_t column);
void *duckdb_vector_get_data(duckdb_vector vector);
uint64_t *duckdb_vector_get_validity(duckdb_vector vector);
void duckdb_vector_ensure_validity_writable(duckdb_vector vector);
void duckdb_vector_assign_string_element_len(duckdb_vector vector, idx_t index, const char *text, idx_t length);
bool duckdb_validity_row_is_valid(uint64_t *validity, idx_t row);
void duckdb_validity_set_row_invalid(uint64_t *validity, idx_t row);
uint32_t duckdb_string_t_length(duckdb_string_t text);
const char *duckdb_string_t_data(duckdb_string_t *text);

duckdb_config_option duckdb_create_config_option();
void duckdb_destroy_config_option(duckdb_config_option *option);
void duckdb_config_option_set_name(duckdb_config_option option, const char *name);
void duckdb_config_option_set_type(duckdb_config_option option, duckdb_logical_type type);
void duckdb_config_option_set_default_value(duckdb_config_option option, duckdb_value value);
void duckdb_config_option_set_description(duckdb_config_option option, const char *description);
duckdb_state duckdb_register_config_option(duckdb_connection connection, duckdb_config_option option);
duckdb_value duckdb_client_context_get_config_option(duckdb_client_context context, const char *name, duckdb_config_option_scope *out_scope);
duckdb_value duckdb_create_varchar(const char *text);
char *duckdb_get_varchar(duckdb_value value);
bool duckdb_is_null_value(duckdb_value value);
void duckdb_destroy_value(duckdb_value *value);
void duckdb_free(void *ptr);

} // extern "C"
