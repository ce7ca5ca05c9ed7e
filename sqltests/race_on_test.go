//go:build race

package sqltests

// raceEnabled: these tests run with the race detector, so the server under test is built with it too.
const raceEnabled = true
