package lakefs_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/lakefs"
	"sluice/lakefs/embedded/embeddedtest"
)

// TestOpenPG_Starting: a server that is just starting is waited for. Any other answer is final.
func TestOpenPG_Starting(t *testing.T) {
	server := embeddedtest.Start(t)
	for _, c := range []struct {
		code     string
		refusals int32
		opens    bool
	}{{"57P03", 3, true}, {"53300", 1, false}, {"57P03", 1 << 30, false}} {
		dsn, tries := refusing(t, server.DSN(), c.code, c.refusals)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		p, err := lakefs.OpenPG(ctx, lakefs.Config{DSN: dsn})
		cancel()
		if (err == nil) != c.opens || (err != nil && !strings.Contains(err.Error(), c.code)) {
			t.Errorf("%s, %d times: %v after %d tries", c.code, c.refusals, err, tries.Load())
		}
		if err == nil {
			p.Close()
		}
	}
}

// refusing puts a listener before a server that refuses the first connections with an SQLSTATE. It counts them all.
func refusing(t *testing.T, dsn, code string, refusals int32) (string, *atomic.Int32) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	tries := &atomic.Int32{}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if tries.Add(1) <= refusals {
				go refuse(client, code)
			} else {
				network, address := pgconn.NetworkAddress(config.Host, config.Port)
				go relay(client, network, address)
			}
		}
	}()
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s dbname=%s sslmode=disable",
		listener.Addr().(*net.TCPAddr).Port, config.User, config.Password, config.Database), tries
}

// refuse answers a start-up packet with an error.
func refuse(client net.Conn, code string) {
	defer client.Close()
	backend := pgproto3.NewBackend(client, client)
	if _, err := backend.ReceiveStartupMessage(); err == nil {
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "not now"})
		_ = backend.Flush()
	}
}

// relay connects a client with a server.
func relay(client net.Conn, network, address string) {
	defer client.Close()
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}
