// Package sqltests runs SQL over the wire against a running server and compares what comes back.
//
// Most of it is files: sql/<feature>/*.test, in the dialect that script.go parses and runner.go runs (README.md is its
// manual). They know a server only as a client does, so `-addr` can point them at a real PostgreSQL, which is how the
// expected values were found. wire/<topic>/*.txt are scripts of single messages and their answers: wire.go parses them,
// wire_run.go runs them, wire_send.go knows what can be sent, wire_answer.go how answers are shown, wire_conn.go the
// connection below. They run on Sluice and on PostgreSQL each time. What a file cannot say (two servers, a standby, a
// killed process, flat memory, a stock driver) is a Go test beside them, on servers that server_test.go starts.
//
// The package imports nothing of the server: a test here can only see what every client sees.
package sqltests
