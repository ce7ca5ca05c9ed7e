// Package embedded runs a private PostgreSQL for a Sluice that was given none.
//
// # What is where
//
// Everything is in one folder, the server's home: <data-dir>/postgres.
//
//	cluster/         PostgreSQL's data directory
//	sockets/         the Unix socket, the only way in
//	pgpass           passwords of both roles in libpq's format: PGPASSFILE=…/pgpass psql -h …/sockets -U sluice lake
//	postgresql.log   what PostgreSQL says
//	lock             held while a Sluice runs here, with its process id
//	guests           held shared by commands that use its server; see [Attach]
//
// PostgreSQL refuses to run as root. A Sluice of root runs it as postgres or nobody, who must be able to reach the
// home; where they cannot (a data directory below /root), the home is /var/lib/sluice/<hash of the data directory>.
//
// # Who may do what
//
// SQL of lake clients runs in Sluice's process, so being that process proves nothing: each connection needs a
// password, also on the socket. [Server.DSN] is the role sluice, which owns one database and is no superuser. The
// superuser postgres serves the set-up below and whoever reads pgpass.
//
// # Life
//
// [Start] takes the lock, ends what an earlier Sluice may have left running, makes the cluster if there is none (in a
// folder beside it that is renamed when complete, so that a crash leaves nothing half made), runs the server, and sets
// up role and database, which is repeatable. [Server.Stop] is PostgreSQL's fast shutdown. If Sluice is killed, the
// kernel sends the server the same signal (Linux), and the next Start waits for its end or, elsewhere, causes it. The
// server is in a process group of its own: Ctrl-C in a terminal is for Sluice, which stops PostgreSQL last.
//
// # Versions
//
// A cluster belongs to the major version that made it. Its programs are looked for on the PATH, then in the folders
// where distributions put them, then fetched (module fergusstrange/embedded-postgres). A new cluster takes the newest.
package embedded
