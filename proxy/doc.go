// Package proxy speaks the PostgreSQL protocol to one client at a time.
//
// # Layers
//
// A [Server] accepts (server.go) and runs one session a connection, in one goroutine. start answers encryption and
// cancel requests until a start-up packet comes (startup.go) and logs the client in (login.go). From then on the
// session is a state machine (session.go): a state handles one message and returns the next state. ready takes any
// message; drain skips to Sync after an error. simple.go holds the Query message, extended.go prepared statements and
// portals, copy.go COPY. Below them receiver frames what the client sends (receive.go) and sender gathers and writes
// what it gets (send.go); rows go from the engine's chunks through pgcodec into sender's buffer (rows.go). The messages
// are pgproto3's; its Backend is not used, because it hides its buffer (a read must be given up and resumed, and the
// next message's type looked at), allocates what a client merely claims to send, and takes an unreadable body for a
// broken stream where PostgreSQL answers 08P01 and goes on.
//
// # Encryption
//
// With a certificate (tls.go) a client may ask for TLS or begin with it; the latter needs the ALPN name `postgresql`. The
// session's conn stays the one below TLS: deadlines are set there, which end reads of both. Logins over TLS are bound to
// the certificate where the client can (SCRAM-SHA-256-PLUS), so somebody in between with another certificate gets no login.
// Clients on a Unix socket are declined, as PostgreSQL does.
//
// # Failures
//
// A state's error is a broken connection and ends the session. Everything else goes through report (errors.go), which
// fails the transaction, sends one ErrorResponse and says whether the session is over: severity FATAL ends it.
//
// # Implicit transactions
//
// Outside a transaction block everything up to Sync is one transaction, but most often it is one statement. Execute
// therefore looks whether the client's Sync has arrived already. If so, and nothing else ran since the last one, the
// statement runs in mode Auto: the engine commits by itself, queues and retries, and CommandComplete is the truth. If
// not, it runs in mode Implicit and its CommandComplete is held back together with all that follows. At Sync the engine
// commits first: if that succeeds everything held back is sent, then ReadyForQuery; if it fails the client gets the
// error in place of the first completion, and never learns of a success that was none. An error in a later statement, a
// Flush, COPY FROM STDIN and more answers than the buffer holds (128 KiB) release what is held back, as PostgreSQL would
// have sent it; a commit that fails after that is an error at Sync, after the completions. Rows are never held back for
// the commit of their own statement. An Execute with a row limit is always Implicit: its portal may be suspended.
//
// A Query message with one statement is Auto. Several are Implicit, and only the last one's completion waits for the
// commit. BEGIN and COMMIT in between are the engine's business: it turns an implicit block into an explicit one as
// PostgreSQL does.
//
// Portals end with their transaction, implicit ones at Sync, and an unnamed one also with the next Query or Bind.
//
// # Cancellation
//
// All running is inside a work, whose context's cause says why it ends: a CancelRequest (cancel.go) gives 57014, the end
// of the grace period 57P01, and a client that hangs up ends the session without a word. Only the running statement is
// hit, never the next one. watch.go sees hang-ups: once a statement has run for 200 ms a goroutine reads ahead of the
// session until the statement ends, up to 1 MiB, and what it read is handled afterwards.
//
// # Shutdown
//
// Sessions that wait for a message get 57P01 at once, in a transaction or not. Running statements, and pipelines whose
// Sync is still to come, may finish within the grace period; then they are interrupted and get 57P01 too. Whoever
// cannot be told within two seconds is cut off.
//
// # Differences from PostgreSQL
//
//   - GSS encryption is declined. Parameters of the replication protocol and FunctionCall are refused (0A000).
//   - A start-up packet of impossible length is answered with 08P01 before the connection closes; PostgreSQL only closes.
//   - ParameterStatus is sent before ReadyForQuery, once for each setting that changed (PostgreSQL 14 and later as well).
//   - A session has at most 10,000 prepared statements and 1,000 portals (54000).
//   - A failing commit takes the place of completions that PostgreSQL would have sent already.
//
// # Debugging
//
// The log has a line for each connection, statement (tag and duration) and failure (code) at debug. It never has
// statement texts, parameter values, passwords or cancel keys. XX000 is logged as an error with its cause; a panic costs
// one session and is logged with its stack. A client that hangs is as a rule one that waits for an answer it did not
// ask for with Flush or Sync; one that says "message out of order" got rows in a format its Bind did not name.
package proxy
