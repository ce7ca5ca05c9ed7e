// Package pgerr is the error that clients of Sluice see: the fields of PostgreSQL's ErrorResponse and NoticeResponse
// (https://www.postgresql.org/docs/current/protocol-error-fields.html) and the cause that only the log sees.
//
// Words follow PostgreSQL's error style guide: the message is lower case, one clause, no full stop, names in double
// quotes; detail and hint are sentences, and a hint says what to do. Codes come from pgerrcode.
package pgerr
