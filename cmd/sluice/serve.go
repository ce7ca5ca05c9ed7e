package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/proxy"
)

// Run serves until ctx ends: what started first stops last.
func (c *serveCommand) Run(ctx context.Context) error {
	log := c.logger()
	if err := c.checkTrust(ctx); err != nil {
		return err
	}
	if err := c.makeDataDir(); err != nil {
		return err
	}
	backing, err := c.startBacking(ctx, log)
	if err != nil {
		return err
	}
	ctx, lost := context.WithCancelCause(ctx)
	backing.keep(ctx, lost)
	err = c.serve(ctx, backing.dsn, log)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	lost(nil)
	return errors.Join(err, backing.stop())
}

// serve opens the lake, listens, says so, and drains its sessions when ctx ends.
func (c *serveCommand) serve(ctx context.Context, dsn string, log zerolog.Logger) error {
	lake, err := engine.Open(ctx, c.engineConfig(dsn, log))
	if err != nil {
		return fmt.Errorf("open the lake: %w", err)
	}
	err = c.serveLake(ctx, lake, log)
	return errors.Join(err, lake.Close())
}

// engineConfig is what the engine needs to know of the settings.
func (c *serveCommand) engineConfig(dsn string, log zerolog.Logger) engine.Config {
	config := engine.Config{
		DSN:            dsn,
		Lake:           c.Lake,
		DataPath:       c.DataPath,
		MetadataSchema: c.MetadataSchema,
		PgvfsURL:       c.PgvfsURL,
		DataDir:        c.DataDir,
		MemoryLimit:    c.MemoryLimit,
		Threads:        c.Threads,
		AllowPlaintext: c.DSNPlaintext,
		ReapGrace:      c.ReapGrace,
		Logger:         log,
	}
	if config.DataPath == "" {
		config.DataPath = "pgvfs://" + c.Lake + "/data/"
	}
	return config
}

// serveLake serves an open lake.
func (c *serveCommand) serveLake(ctx context.Context, lake *engine.Engine, log zerolog.Logger) error {
	usersPath, name, password := c.path(c.dataDirFlag), firstUser, ""
	if c.Auth == proxy.AuthSCRAM {
		var err error
		if name, password, err = firstLogin(usersPath); err != nil {
			return err
		}
	}
	server, err := proxy.Listen(proxy.Config{
		Listen:       c.Listen,
		Auth:         c.Auth,
		UsersPath:    usersPath,
		TLSCert:      c.TLSCert,
		TLSKey:       c.TLSKey,
		NoBinding:    !c.ChannelBinding,
		Engine:       lake,
		Logger:       log,
		DrainTimeout: c.DrainTimeout,
	})
	if err != nil {
		return err
	}
	log.Info().Strs("listen", c.Listen).Str("lake", c.Lake).Bool("read_only", lake.ReadOnly()).Msg("ready")
	fmt.Printf("psql \"%s\"\n", clientURL(server.Addrs()[0], name, password, c.Lake))
	return server.Serve(ctx)
}

// checkTrust refuses to let strangers in without a password: with trust, every address must be this machine's own.
func (c *serveCommand) checkTrust(ctx context.Context) error {
	if c.Auth != proxy.AuthTrust {
		return nil
	}
	for _, addr := range c.Listen {
		if strings.Contains(addr, "/") {
			continue // a Unix socket
		}
		if err := checkLoopback(ctx, addr); err != nil {
			return fmt.Errorf("--auth trust lets in everybody who can connect, so it listens on loopback addresses and Unix sockets only: %w", err)
		}
	}
	return nil
}

// checkLoopback wants each address that a host stands for to be a loopback address.
func checkLoopback(ctx context.Context, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if host == "" {
		return fmt.Errorf("%q is every address of this machine", addr)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return fmt.Errorf("%q is not a loopback address", addr)
		}
	}
	return nil
}

// clientURL is a URL for psql on this machine. name and password may be empty.
func clientURL(addr net.Addr, name, password, database string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database}
	switch {
	case password != "":
		u.User = url.UserPassword(name, password)
	case name != "":
		u.User = url.User(name)
	}
	switch a := addr.(type) {
	case *net.TCPAddr:
		host := a.IP
		if host.IsUnspecified() { // all addresses: this is one of them
			host = net.IPv4(127, 0, 0, 1)
		}
		u.Host = net.JoinHostPort(host.String(), fmt.Sprint(a.Port))
	case *net.UnixAddr:
		u.RawQuery = url.Values{"host": {filepath.Dir(a.Name)}, "port": {strings.TrimPrefix(filepath.Ext(a.Name), ".")}}.Encode()
	}
	return u.String()
}
