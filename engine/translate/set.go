package translate

import (
	"strconv"
	"strings"

	"github.com/jackc/pgerrcode"
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"sluice/engine/pgerr"
)

// duckLocal are DuckDB's settings that a client may change: they belong to its connection alone (DuckDB's settings.hpp,
// scope LOCAL_DEFAULT) and reach neither files nor other sessions.
var duckLocal = wordSet(`asof_loop_join_threshold dynamic_or_filter_threshold explain_output ieee_floating_point_ops
	integer_division lambda_syntax late_materialization_max_rows merge_join_threshold nested_loop_join_threshold
	order_by_non_integer_literal ordered_aggregate_threshold perfect_ht_threshold pivot_filter_threshold pivot_limit
	prefer_range_joins scalar_subquery_error_on_multiple_rows`)

// duckShared are DuckDB's other settings, as duckdb_settings() of 1.5.5 lists them, without those that PostgreSQL has
// as well. They belong to the whole server.
var duckShared = wordSet(`__delta_only_variant_encoding_enabled access_mode allocator_background_threads
	allocator_bulk_deallocation_flush_threshold allocator_flush_threshold allow_community_extensions
	allow_extensions_metadata_mismatch allow_parser_override_extension allow_persistent_secrets allow_unredacted_secrets
	allow_unsigned_extensions allowed_configs allowed_directories allowed_paths arrow_large_buffer_size
	arrow_lossless_conversion arrow_output_list_view arrow_output_version auto_checkpoint_skip_wal_threshold
	autoinstall_extension_repository autoinstall_known_extensions autoload_known_extensions binary_as_string
	block_allocator_memory calendar catalog_error_max_schemas checkpoint_threshold current_transaction_invalidation_policy
	custom_extension_repository custom_profiling_settings custom_user_agent debug_asof_iejoin debug_checkpoint_abort
	debug_checkpoint_sleep_ms debug_eviction_queue_sleep_micro_seconds debug_force_external debug_force_no_cross_product
	debug_physical_table_scan_execution_strategy debug_skip_checkpoint_on_commit debug_verify_blocks debug_verify_vector
	debug_window_mode default_block_size default_collation default_null_order default_order default_secret_storage
	deprecated_using_key_syntax disable_database_invalidation disable_parquet_prefetching disable_timestamptz_casts
	disabled_compression_methods disabled_filesystems disabled_log_types disabled_optimizers duckdb_api
	ducklake_default_data_inlining_row_limit ducklake_max_retry_count ducklake_retry_backoff ducklake_retry_wait_ms
	ducklake_target_file_size ducklake_write_deletion_vectors enable_caching_operators enable_external_access
	enable_external_file_cache enable_fsst_vectors enable_geoparquet_conversion enable_http_logging
	enable_http_metadata_cache enable_logging enable_macro_dependencies enable_object_cache enable_profiling
	enable_progress_bar enable_progress_bar_print enable_view_dependencies enabled_log_types errors_as_json
	experimental_metadata_reuse extension_directories extension_directory external_threads file_search_path
	force_bitpacking_mode force_column_metadata_reuse force_compression force_mbedtls_unsafe force_variant_shredding
	geometry_minimum_shredding_size home_directory http_logging_output http_proxy http_proxy_password http_proxy_username
	ignore_unknown_crs immediate_transaction_mode index_scan_max_count index_scan_percentage lock_configuration
	log_query_path logging_level logging_mode logging_storage max_expression_depth max_memory max_temp_directory_size
	max_vacuum_tasks memory_limit null_order old_implicit_casting parquet_metadata_cache
	partitioned_write_flush_threshold partitioned_write_max_open_files password pgvfs_secret pin_threads prefetch_all_parquet_files
	preserve_identifier_case preserve_insertion_order produce_arrow_string_view profile_output profiling_coverage
	profiling_mode profiling_output progress_bar_time scheduler_process_partial schema secret_directory
	storage_block_prefetch storage_compatibility_version streaming_buffer_size temp_directory temp_file_encryption threads
	user username vacuum_rebuild_indexes validate_external_file_cache variant_minimum_shredding_size wal_autocheckpoint
	wal_autocheckpoint_entries warnings_as_errors worker_threads write_buffer_row_group_count
	write_buffer_row_group_memory_limit zstd_min_string_length`)

// set reads SET and RESET.
func set(r *rewrite, s *Stmt) {
	if r.words(1, "variable") && r.raw(2) != "=" && r.word(2) != "to" {
		variable(r, s)
		return
	}
	node, failure := parse(s, r.text)
	stmt := node.GetVariableSetStmt()
	switch {
	case stmt != nil:
		setting(r, s, stmt)
	case failure == nil: // SET CONSTRAINTS
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, "SET CONSTRAINTS is not supported"))
	case r.o.Admin:
		s.Set = &Set{Name: r.name(1), Duck: true}
	case r.words(1, "global") || duckShared[r.name(1)] || duckShared[r.name(2)]:
		deny(s, "settings of the server")
	default:
		refuse(s, failure)
	}
}

// setting turns PostgreSQL's tree into Set or Tx.
func setting(r *rewrite, s *Stmt, stmt *pg_query.VariableSetStmt) {
	name := strings.ToLower(stmt.Name)
	s.Set = &Set{Name: name, Local: stmt.IsLocal}
	switch stmt.Kind {
	case pg_query.VariableSetKind_VAR_SET_MULTI:
		characteristics(s, stmt)
		return
	case pg_query.VariableSetKind_VAR_RESET_ALL:
		s.Set = &Set{All: true}
		return
	case pg_query.VariableSetKind_VAR_SET_CURRENT:
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, "SET FROM CURRENT is not supported"))
		return
	case pg_query.VariableSetKind_VAR_SET_VALUE:
		s.Set.Values = make([]string, 0, len(stmt.Args))
		for _, a := range stmt.Args {
			s.Set.Values = append(s.Set.Values, constant(a))
		}
	}
	switch {
	case duckLocal[name], duckShared[name] && r.o.Admin:
		s.Set.Duck = true
	case duckShared[name]:
		deny(s, "setting \""+name+"\"")
	}
}

// characteristics is SET TRANSACTION and SET SESSION CHARACTERISTICS AS TRANSACTION.
func characteristics(s *Stmt, stmt *pg_query.VariableSetStmt) {
	s.Kind, s.Set, s.Tag = KindTx, nil, "SET"
	switch stmt.Name {
	case "TRANSACTION":
		s.Tx = &Tx{Op: TxSetTransaction}
	case "SESSION CHARACTERISTICS":
		s.Tx = &Tx{Op: TxSetCharacteristics}
	default:
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, "SET TRANSACTION SNAPSHOT is not supported"))
		return
	}
	s.Tx.modes(stmt.Args)
}

// variable is SET or RESET VARIABLE, which is DuckDB's and belongs to the connection. Sluice keeps what its catalogs
// need to know in variables of the prefix sluice_. A value may be made of literals only: it is not bound as a
// statement, so a query in it would pass the engine's checks by.
func variable(r *rewrite, s *Stmt) {
	name := strings.ToLower(r.name(2))
	s.Set = &Set{Name: name, Duck: true}
	if r.o.Admin {
		return
	}
	simple := name != "" && (r.words(0, "reset") || r.raw(3) == "=" || r.word(3) == "to")
	for i := 4; i < len(r.tokens); i++ {
		switch r.kind(i) {
		case tokWord:
			w := r.word(i)
			simple = simple && (w == "true" || w == "false" || w == "null" || r.raw(i+1) == ":" || r.raw(i-1) == "::" || w == "date" || w == "timestamp")
			simple = simple && r.raw(i+1) != "("
		case tokPunct:
			simple = simple && r.raw(i) != "("
		}
	}
	if strings.HasPrefix(name, "sluice_") || !simple {
		deny(s, "this variable")
	}
}

// use turns DuckDB's USE into the search path: the lake is the only database that there is for a client.
func use(r *rewrite, s *Stmt) {
	schema, other := r.name(1), false
	switch {
	case r.raw(2) == ".":
		other = r.name(1) != r.o.Lake
		schema = r.name(3)
	case schema == r.o.Lake:
		schema = ""
	}
	if other {
		if r.o.Admin {
			s.Set = &Set{Name: "search_path", Duck: true}
			return
		}
		deny(s, "database \""+r.name(1)+"\"")
		return
	}
	s.Set = &Set{Name: "search_path"}
	if schema == "main" {
		schema = "public"
	}
	if schema != "" {
		s.Set.Values = []string{schema}
	}
}

// constant is a literal of PostgreSQL's tree as text; "" for what is none.
func constant(n *pg_query.Node) string {
	switch {
	case n.GetTypeCast() != nil: // SET TIME ZONE INTERVAL '…'
		return constant(n.GetTypeCast().Arg)
	case n.GetString_() != nil:
		return n.GetString_().Sval
	case n.GetInteger() != nil:
		return strconv.Itoa(int(n.GetInteger().Ival))
	case n.GetFloat() != nil:
		return n.GetFloat().Fval
	case n.GetBoolean() != nil:
		return strconv.FormatBool(n.GetBoolean().Boolval)
	case n.GetAConst() == nil:
		return ""
	}
	c := n.GetAConst()
	switch {
	case c.GetSval() != nil:
		return c.GetSval().Sval
	case c.GetFval() != nil:
		return c.GetFval().Fval
	case c.GetBoolval() != nil:
		return strconv.FormatBool(c.GetBoolval().Boolval)
	}
	return strconv.Itoa(int(c.GetIval().GetIval()))
}
