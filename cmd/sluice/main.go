// Command sluice is a PostgreSQL gate on a DuckLake: clients of PostgreSQL query a lake whose catalog and files are in
// one PostgreSQL database. `sluice --help` lists its commands and settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes. A process that a second signal ends has the signal's own.
const (
	exitFailure = 1
	exitUsage   = 2
	exitFaults  = 3 // `sluice files verify` has found some
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// From the first signal on signals do what they do by default: the second one ends the process at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "sluice:", err)
	os.Exit(exitCode(err))
}

// exitCode tells apart what scripts have to.
func exitCode(err error) int {
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.As(err, new(faultsError)):
		return exitFaults
	}
	return exitFailure
}

// run parses the command line and runs the command it names.
func run(ctx context.Context, args []string) error {
	command, err := parse(args)
	if err != nil {
		return err
	}
	return command.Run(ctx)
}
