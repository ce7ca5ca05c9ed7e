package lakefs

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

const (
	connsMin     = 4 // two for readers, one streaming writer, one closing writer: see slots
	connsDefault = 8
	connsMax     = 64 // of PostgreSQL's usual 100

	connectMax = 10 * time.Second
	pingMax    = 5 * time.Second

	applicationName = "sluice pgvfs"

	readBufferBytes = 128 << 10 // of each connection
)

// sessionSettings prepare a connection. Without index scans a range of chunks is fetched in the order of its pages
// (bitmap scan). Every query goes by a key whatever its values are, so it is planned once a connection and not each time,
// which costs as much as reading 64 KB; and no table that was small when that happened may leave a plan that reads it
// whole. The keep-alives notice a dead network within a minute. A transaction that a killed Sluice left open ends by
// itself; a COPY in progress does not count as idle.
const sessionSettings = `SET enable_indexscan = off; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
SET idle_in_transaction_session_timeout = '5min'`

// Config says where the store is.
type Config struct {
	DSN            string        // libpq URL or keywords; never logged
	MaxConns       int           // connections at most; 0: the larger of 8 and twice GOMAXPROCS, at most 64; never below 4
	ReapGrace      time.Duration // how long rows outlive their file; 0: 600 s, negative: not at all
	AllowPlaintext bool          // permits unencrypted or unverified connections to other machines
	SpillDir       string        // for files being written when all connections are taken; empty: the system's
	Logger         zerolog.Logger
}

// maxConns applies default and bounds.
func (c Config) maxConns() int {
	if c.MaxConns == 0 {
		return min(max(connsDefault, 2*runtime.GOMAXPROCS(0)), connsMax)
	}
	return max(c.MaxConns, connsMin)
}

// grace applies the default.
func (c Config) grace() time.Duration {
	if c.ReapGrace == 0 {
		return reapGraceDefault
	}
	return max(c.ReapGrace, 0)
}

// poolConfig makes pgx's configuration out of ours.
func (c Config) poolConfig() (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, dsnError(err)
	}
	if !c.AllowPlaintext {
		if err := verifyServers(&pc.ConnConfig.Config); err != nil {
			return nil, err
		}
	}
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = applicationName
	}
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = connectMax
	}
	pc.MaxConns = int32(c.maxConns())
	pc.MinConns, pc.MinIdleConns = min(pc.MinConns, pc.MaxConns), min(pc.MinIdleConns, pc.MaxConns)
	pc.PingTimeout = pingMax
	// A connection that has idled is not tried first: that would cost a read another round trip. Whoever meets a dead
	// one takes a new one.
	pc.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	pc.ConnConfig.BuildFrontend = buildFrontend
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sessionSettings)
		return err
	}
	return pc, nil
}

// buildFrontend gives a connection a buffer for several of the messages that carry rows, of 8 KB each. pgx's own takes
// one at a time from the socket.
func buildFrontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(bufio.NewReaderSize(r, readBufferBytes), w)
}

// dsnError reports a malformed DSN without quoting it.
func dsnError(err error) error {
	const text = "parse the DSN, which must be a postgres:// URL or keyword=value pairs"
	var parse *pgconn.ParseConfigError
	var asURL *url.Error
	if errors.As(err, &parse) && parse.Unwrap() != nil && !errors.As(err, &asURL) {
		return fmt.Errorf("%s: %w", text, parse.Unwrap())
	}
	return errors.New(text)
}

// verifyServers makes every connection to another machine encrypted and its server's certificate and name verified,
// whatever sslmode says short of disable: require alone would accept anybody's certificate. What has no TLS is left out,
// or refused if nothing is left.
func verifyServers(c *pgconn.Config) error {
	type server = pgconn.FallbackConfig
	var kept []*server
	refused := ""
	for _, s := range append([]*server{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...) {
		switch {
		case IsLocal(s.Host):
		case s.TLSConfig == nil:
			refused = s.Host
			continue
		default:
			verify(s.TLSConfig, s.Host)
		}
		kept = append(kept, s)
	}
	if len(kept) == 0 {
		return fmt.Errorf("connection to PostgreSQL on %q would not be encrypted; use sslmode=verify-full in the DSN", refused)
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = kept[0].Host, kept[0].Port, kept[0].TLSConfig, kept[1:]
	return nil
}

// verify makes a TLS configuration check chain and host name. It is changed in place: pgx makes one for each host, and
// finds the client's certificate by its address.
func verify(config *tls.Config, host string) {
	config.InsecureSkipVerify = false
	config.VerifyPeerCertificate = nil // sslmode=verify-ca's check, which leaves the name out
	config.ServerName = host
}

// IsLocal reports whether a host is this machine for sure: a Unix socket or a loopback address.
func IsLocal(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
