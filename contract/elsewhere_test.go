package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"companyscore/internal/test/program"
)

// elsewhere lists rules that a caller cannot trigger: they need another clock, a store that
// loses data, or a faulty server. Each has a test in the package of its code.
var elsewhere = []struct{ section, says, room, test string }{
	{"2.1", "canned and live scores obey the same formulas", "server/sandbox", "TestCannedRecordsObeyTheFormulas"},
	{"3.1", "a run that ended without a record fails its job with scoring_completed_no_record", "server/job",
		"TestJobSettlesAsItsRunEnded"},
	{"3.1", "polling does not make a job live longer, and after its time it is gone", "server/job", "TestSettlingDoesNotExtendLife"},
	{"3.1", "polls at once agree on one end", "server/job", "TestConcurrentPollsAgree"},
	{"4.7", "with the month the counts begin at zero, at the first call", "server/meter", "TestUsageHasWhatWasJustCounted"},
	{"5 rule 3", "a revoked key lives five minutes at most, even without a message", "server/keys", "TestDirectoryLifeOfAVerdict"},
	{"5 sandbox", "the sandbox reaches no store, no source and no network", ".", "TestDependencies"},
	{"5 sandbox", "histograms, ratings and profiles of the twelve companies agree with their records", "server/sandbox",
		"TestUniverseHasTwelveListedCompanies"},
	{"7", "a panic is an internal error with the request id, and its stack is in the log only", "server", "TestPanicIsAnInternalError"},
	{"7", "a test key that came near live data is sandbox_invariant_violated", "server", "TestSandboxInvariant"},
	{"7 rule 3", "a source that fails during a run is a data warning of its record", "scoring/worker", "TestFailedSourceIsAWarning"},
	{"8.1", "the tiers are those of the table", "server/meter", "TestDefaultLimitsAreTheTable"},
	{"8.2 rule 1", "the monthly budget lasts until the month ends in UTC", "server/meter", "TestMonthlyCapLastsUntilNextMonth"},
	{"8.2 rule 3", "the 24 hours of an account reach over the end of a month", "server/meter", "TestAccountWindowSlidesAcrossMonths"},
	{"decided: storm", "an emptied Redis gives nobody a new budget", "server/meter", "TestEmptyRedisGivesNoNewBudget"},
	{"decided: tiers file", "every fault of a file is named with its line or its field", "server/meter", "TestFileFaultsAreNamed"},
}

// TestElsewhere checks that these tests exist. `make contract` also runs them.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	run := testing.Verbose() && !*composed
	passed := make(map[string]bool)
	if run {
		passed = runElsewhere(t)
	}
	rule(t, "decided: elsewhere", "what a caller cannot make happen has a test beside its code", func(t *testing.T) {
		for _, e := range elsewhere {
			if !hasTest(t, e.room, e.test) {
				t.Errorf("%s: %s has no %s", e.section, e.room, e.test)
			}
		}
	})
	for _, e := range elsewhere {
		if run {
			rule(t, e.section, e.says+" ("+e.room+" "+e.test+")", func(t *testing.T) {
				if !passed[e.test] {
					t.Errorf("%s of %s does not pass", e.test, e.room)
				}
			})
		}
	}
}

// runElsewhere runs the tests and returns which passed.
func runElsewhere(t *testing.T) map[string]bool {
	t.Helper()
	var tests []string
	rooms := make(map[string]bool)
	args := []string{"test", "-count=1", "-json"}
	for _, e := range elsewhere {
		tests = append(tests, e.test)
		if !rooms[e.room] {
			rooms[e.room] = true
			args = append(args, "companyscore/"+strings.TrimPrefix(e.room, "."))
		}
	}
	for i := range args {
		args[i] = strings.TrimSuffix(args[i], "/")
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, "-run", "^("+strings.Join(tests, "|")+")$")...).Output()
	passed := make(map[string]bool)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Action == "pass" {
			passed[event.Test] = true
		}
	}
	if err != nil {
		t.Errorf("tests elsewhere: %v\n%s", err, program.Tail(out, 4000))
	}
	return passed
}

// hasTest reports whether a package has a test of that name.
func hasTest(t *testing.T, room, test string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", room, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == test {
				return true
			}
		}
	}
	return false
}
