package main

import (
	"context"
	"fmt"
	"runtime/debug"

	"sluice/engine"
)

// Run fetches what is missing.
func (c *extensionsCommand) Run(ctx context.Context) error {
	if err := c.makeDataDir(); err != nil {
		return err
	}
	if err := engine.FetchExtensions(ctx, c.DataDir, c.logger()); err != nil {
		return err
	}
	fmt.Printf("DuckDB's extensions are in %s\n", c.DataDir)
	return nil
}

// Run prints the module's version, which go install and go build set from the commit, and DuckDB's.
func (c *versionCommand) Run(context.Context) error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	fmt.Printf("sluice %s\nDuckDB %s\n", version, engine.DuckDBVersion())
	return nil
}
