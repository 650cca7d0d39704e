// Package extent says how much of the test suite runs: `make test` leaves out what takes minutes, `make test-all` runs it.
package extent

import (
	"os"
	"testing"
)

// variable is set by `make test-all`.
const variable = "TEST_ALL"

// All reports whether tests run at their full length.
func All() bool { return os.Getenv(variable) != "" }

// Of returns all if tests run at their full length, else few.
func Of(all, few int) int {
	if All() {
		return all
	}
	return few
}

// Crash skips a test that kills or freezes processes, unless all tests run.
func Crash(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("a crash test, which make test-all runs")
	}
}
