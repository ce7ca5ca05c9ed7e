//go:build !race

package sqltests

// raceEnabled: see race_on_test.go.
const raceEnabled = false
