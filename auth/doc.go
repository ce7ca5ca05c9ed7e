// Package auth decides who a client is and what it may do.
//
// auth.go has the users, scram.go the SCRAM-SHA-256 exchange as a pure function of byte strings, prep.go the preparation
// of passwords, file.go the user file. Nothing here touches the network; package proxy carries the strings.
//
// # The user file
//
// It is PgBouncer's auth_file (https://www.pgbouncer.org/config.html#authentication-file-format), one user a line:
//
//	"ann" "SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey>"
//	"bob" "SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey>" "admin"
//
// A quote inside a field is doubled; lines that are empty or begin with a semicolon are skipped. The third word, which
// PgBouncer ignores, makes an administrator. Only SCRAM verifiers are taken: a plain password in the file is worth as
// much as the file, and an MD5 hash can be used to log in by whoever reads it. For the same reason a file that everyone
// may read is refused.
//
// # What an attacker learns
//
// A user who does not exist gets a salt all the same, the same one each time as long as the process lives, and a proof
// that is checked with the same work. Comparisons take constant time. The proof is refused with [ErrAuth] and nothing
// else, whatever was wrong.
package auth
