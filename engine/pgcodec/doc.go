// Package pgcodec turns DuckDB's column vectors into PostgreSQL's wire formats, and PostgreSQL's parameters and COPY
// data into values that DuckDB takes.
//
// # Layers
//
// [LogicalType] describes a DuckDB type (types.go), [Vector] a column of a chunk as it lies in DuckDB's memory
// (vector.go). table.go has one row per DuckDB type: OID, name, length, array OID, text and binary encoder. Describe,
// the encoders and the catalog read that table and nothing else. [RowEncoder] (row.go) builds whole DataRow messages.
// [DecodeText] and [DecodeBinary] read parameters (value.go, decode_text.go, decode_binary.go). [CopyDecoder],
// [CopyEncoder] and [VectorWriter] serve COPY (copy*.go, writer.go). There is no cgo here: vectors are read and written
// through unsafe pointers that package engine supplies.
//
// # Decisions where DuckDB and PostgreSQL differ
//
//   - Unsigned integers go to the next wider signed type, UBIGINT and the 128-bit ones to numeric: no digit is lost.
//   - TIMESTAMP_S, _MS and _NS, and TIME_NS, are PostgreSQL's timestamp and time, with microseconds. Nanoseconds are cut
//     off, towards the past.
//   - STRUCT, MAP and UNION, and lists of them, are json (114) in both formats. The OID of record would be right but
//     no common driver decodes an anonymous record, while all of them show JSON. It reads as PostgreSQL's to_json
//     would write it; a UNION is an object of one key, the member's name, as DuckDB's to_json has it.
//   - LIST and ARRAY are the array of their innermost element, whatever the depth. An OID has to be named before the
//     first row, so lists of unequal length cannot choose another one: their text form shows them as they are
//     ({{1},{2,3}}), their binary form does not exist and raises 2202E.
//   - ENUM is text, BIT is varbit, GEOMETRY is text in hexadecimal WKB (as PostGIS prints it). VARIANT has no encoder:
//     [NeedsCast] says so and package engine casts such a column to VARCHAR in DuckDB.
//   - Values before what PostgreSQL can hold (timestamps of 290,000 BC) are printed in text; in binary the few thousand
//     years that do not fit in its 64 bits become the earliest value that does.
//
// # Truth
//
// testdata/encodings.json holds text and binary as a real PostgreSQL answered them; encodings_gen.go made it.
//
// # Lifetimes
//
// Encoders append to dst and keep nothing. Bytes of DuckDB's memory are copied before the function returns. What
// CopyDecoder.Next returns lives until the next call of Next or Write.
package pgcodec
