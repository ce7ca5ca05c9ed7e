package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// commands is the whole command line. Flags go before the environment, which goes before the defaults. Nothing else
// reads the environment.
type commands struct {
	Serve      serveCommand      `cmd:"" default:"withargs" help:"Serve the lake to PostgreSQL clients (the default command)."`
	Files      filesCommands     `cmd:"" set:"log_level=warn" help:"List, copy, remove and check the files of the lake's store, pgvfs://VOLUME/PATH."`
	Extensions extensionsCommand `cmd:"" help:"Fetch DuckDB's extensions into the data directory; serve does so by itself."`
	User       userCommands      `cmd:"" help:"Who may log in."`
	Version    versionCommand    `cmd:"" help:"Show the versions of Sluice and of the DuckDB in it."`
}

// serveCommand holds serve's settings.
type serveCommand struct {
	dataDirFlag
	usersFlag
	logFlags
	dsnFlags
	lakeFlag
	reapGraceFlag

	Listen         []string      `env:"SLUICE_LISTEN" default:"127.0.0.1:5433" placeholder:"ADDR" help:"Where to listen: host:port, or a directory for a Unix socket (${env}, default ${default})."`
	DataPath       string        `env:"SLUICE_DATA_PATH" placeholder:"URL" help:"Where the lake's files are (${env}, default pgvfs://<lake>/data/)."`
	MetadataSchema string        `env:"SLUICE_METADATA_SCHEMA" default:"public" placeholder:"SCHEMA" help:"The schema of DuckLake's catalog in that PostgreSQL (${env}, default ${default})."`
	PgvfsURL       string        `name:"pgvfs-url" env:"PGVFS_URL" placeholder:"DSN" help:"The PostgreSQL of an administrator's pgvfs:// paths in other volumes than the lake's, where no secret names one (${env})."`
	Auth           string        `env:"SLUICE_AUTH" enum:"scram-sha-256,trust" default:"scram-sha-256" placeholder:"METHOD" help:"How clients prove who they are: scram-sha-256, or trust, on loopback and Unix sockets only (${env}, default ${default})."`
	TLSCert        string        `name:"tls-cert" env:"SLUICE_TLS_CERT" placeholder:"FILE" help:"The certificate chain to offer TLS with, a PEM file; it is read again when it changes (${env}, default: no TLS)."`
	TLSKey         string        `name:"tls-key" env:"SLUICE_TLS_KEY" placeholder:"FILE" help:"The certificate's private key, a PEM file (${env})."`
	ChannelBinding bool          `env:"SLUICE_CHANNEL_BINDING" default:"true" negatable:"" help:"Offer to bind logins to the TLS certificate (SCRAM-SHA-256-PLUS); not for servers behind something that ends TLS with another certificate (${env}, default ${default})."`
	MemoryLimit    string        `env:"SLUICE_MEMORY_LIMIT" placeholder:"SIZE" help:"DuckDB's memory limit, such as 4GB (${env}, default: DuckDB's own, 80% of the machine's or container's)."`
	Threads        int           `env:"SLUICE_THREADS" placeholder:"N" help:"DuckDB's threads (${env}, default: DuckDB's own, one a core)."`
	DrainTimeout   time.Duration `env:"SLUICE_DRAIN_TIMEOUT" default:"30s" placeholder:"TIME" help:"What running statements have left when Sluice is told to stop (${env}, default ${default})."`
}

// extensionsCommand holds the settings of `sluice extensions`.
type extensionsCommand struct {
	dataDirFlag
	logFlags
}

// userCommands are the commands about users.
type userCommands struct {
	Add userAddCommand `cmd:"" help:"Add a user to the user file, or give one a new password."`
}

// userAddCommand holds the settings of `sluice user add`.
type userAddCommand struct {
	Name     string  `arg:"" help:"The user's name."`
	Password *string `placeholder:"PASSWORD" help:"The password. Without it, it is asked for on a terminal, else read from standard input."`
	Admin    bool    `help:"Make the user an administrator, who may reach the metadata database."`
	dataDirFlag
	usersFlag
}

// versionCommand has no settings.
type versionCommand struct{}

// dataDirFlag is where Sluice keeps what it has to keep.
type dataDirFlag struct {
	DataDir string `env:"SLUICE_DATA_DIR" default:"${data_dir}" placeholder:"DIR" help:"Where the embedded PostgreSQL, extensions and spill files are kept (${env}, default ${default})."`
}

// dataDirMode lets a server that is not root's pass through root's data directory; what is private in it has a mode of
// its own.
const dataDirMode = 0o711

// makeDataDir makes the data directory.
func (f dataDirFlag) makeDataDir() error {
	if err := os.MkdirAll(f.DataDir, dataDirMode); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	return nil
}

// dsnFlags say which PostgreSQL holds the lake.
type dsnFlags struct {
	DSN          string `name:"dsn" env:"SLUICE_DSN" placeholder:"DSN" help:"The PostgreSQL 14+ that holds the lake, a libpq URL or keyword string; without one an embedded PostgreSQL under the data directory (${env})."`
	DSNPlaintext bool   `name:"dsn-plaintext" env:"SLUICE_DSN_PLAINTEXT" help:"Connect to a PostgreSQL on another machine without TLS, or without verifying it; for isolated networks (${env})."`
}

// lakeFlag is the lake's name, which is also that of its database in an embedded PostgreSQL.
type lakeFlag struct {
	Lake string `env:"SLUICE_LAKE" default:"lake" placeholder:"NAME" help:"The lake's name: the database that clients ask for, the pgvfs volume, and the database in an embedded PostgreSQL (${env}, default ${default})."`
}

// reapGraceFlag is how long rows outlive their file.
type reapGraceFlag struct {
	ReapGrace time.Duration `env:"SLUICE_REAP_GRACE" default:"600s" placeholder:"TIME" help:"How long a replaced or removed file stays readable for statements that began before (${env}, default ${default})."`
}

// storeGrace is what lakefs.Config wants: there, 0 is the default, and a negative time is none.
func (f reapGraceFlag) storeGrace() time.Duration {
	if f.ReapGrace == 0 {
		return -1
	}
	return f.ReapGrace
}

// storeFlags lead to the store of a lake's files.
type storeFlags struct {
	dsnFlags
	lakeFlag
	dataDirFlag
	reapGraceFlag
	logFlags
}

// filesCommands are the commands about files.
type filesCommands struct {
	List   filesListCommand   `cmd:"" name:"ls" help:"List volumes, or the files of one."`
	Stat   filesStatCommand   `cmd:"" help:"Show what is known of a file."`
	Get    filesGetCommand    `cmd:"" help:"Copy files out of the store."`
	Put    filesPutCommand    `cmd:"" help:"Copy files into the store."`
	Remove filesRemoveCommand `cmd:"" name:"rm" help:"Remove files."`
	Usage  filesUsageCommand  `cmd:"" name:"du" help:"Sum up what files take, and what removed ones still do."`
	Reap   filesReapCommand   `cmd:"" help:"Delete the rows of files that were removed longer than the grace ago."`
	Verify filesVerifyCommand `cmd:"" help:"Check everything that must hold in the store."`
}

// usersFlag is the user file.
type usersFlag struct {
	Users string `env:"SLUICE_USERS" placeholder:"FILE" help:"The user file, in PgBouncer's userlist format (${env}, default <data-dir>/users.txt)."`
}

// path is the user file's place.
func (f usersFlag) path(d dataDirFlag) string {
	if f.Users != "" {
		return f.Users
	}
	return filepath.Join(d.DataDir, "users.txt")
}

// logFlags say what is logged, and how.
type logFlags struct {
	LogLevel  string `env:"SLUICE_LOG_LEVEL" enum:"trace,debug,info,warn,error" default:"${log_level}" placeholder:"LEVEL" help:"trace, debug, info, warn or error (${env}, default ${default})."`
	LogFormat string `env:"SLUICE_LOG_FORMAT" enum:"console,json," default:"" placeholder:"FORMAT" help:"console or json (${env}, default: console on a terminal, else json)."`
}

// logger writes to standard error: standard output is for what people paste.
func (f logFlags) logger() zerolog.Logger {
	var w io.Writer = os.Stderr
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	if f.LogFormat == "console" || (f.LogFormat == "" && terminal) {
		w = zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly, NoColor: !terminal || os.Getenv("NO_COLOR") != ""}
	}
	level, err := zerolog.ParseLevel(f.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // the flag's enum leaves no other
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// runner is a parsed command.
type runner interface {
	Run(ctx context.Context) error
}

// usageError is a command line that does not parse.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// parse reads the command line and the environment. --help is answered here and ends the process.
func parse(args []string) (runner, error) {
	var all commands
	parser, err := kong.New(&all,
		kong.Name("sluice"),
		kong.Description("A PostgreSQL gate on a DuckLake whose catalog and files are in one PostgreSQL database."),
		kong.Vars{"data_dir": defaultDataDir(), "log_level": "info"},
		kong.ValueFormatter(func(v *kong.Value) string { return v.Help }), // the texts name the environment themselves
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}),
		kong.Help(printHelp),
	)
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	for _, arg := range args {
		if !utf8.ValidString(arg) { // Kong would make another text of it
			return nil, usageError{fmt.Errorf("argument %q is not UTF-8", arg)}
		}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return nil, usageError{fmt.Errorf("%w; see sluice --help", err)}
	}
	// Kong finds a command's Run by reflection; this way the compiler checks it.
	return parsed.Selected().Target.Addr().Interface().(runner), nil
}

// printHelp prints a command's help. Without a command that is the list of all and then, since serve is what such a
// command line runs, serve's.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	serve, err := kong.Trace(ctx.Kong, []string{"serve"})
	if err != nil {
		return err
	}
	fmt.Fprintln(ctx.Stdout)
	return kong.DefaultHelpPrinter(options, serve)
}

// defaultDataDir follows the XDG Base Directory Specification.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "." // no home, as in some containers: --data-dir is then the better choice
	}
	return filepath.Join(home, ".local", "share", "sluice")
}

var (
	_ runner = (*serveCommand)(nil)
	_ runner = (*filesListCommand)(nil)
	_ runner = (*filesStatCommand)(nil)
	_ runner = (*filesGetCommand)(nil)
	_ runner = (*filesPutCommand)(nil)
	_ runner = (*filesRemoveCommand)(nil)
	_ runner = (*filesUsageCommand)(nil)
	_ runner = (*filesReapCommand)(nil)
	_ runner = (*filesVerifyCommand)(nil)
	_ runner = (*extensionsCommand)(nil)
	_ runner = (*userAddCommand)(nil)
	_ runner = (*versionCommand)(nil)
)
