package batch

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"companyscore/batch/jobs"
)

// The measurement of analytics starts its own counts, so no scheduled job may run at the same time.
func TestMeasurementSwitchesOffEveryJob(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../scripts/bench.sh")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`!= analytics \] \|\| for job in ([a-z ]+); do\n\tschedules="\$schedules --schedule-\$job off"`).
		FindSubmatch(script)
	if found == nil {
		t.Fatal("scripts/bench.sh switches off no job")
	}
	if off := strings.Fields(string(found[1])); !slices.Equal(slices.Sorted(slices.Values(off)),
		slices.Sorted(slices.Values(jobs.Names()))) {
		t.Errorf("scripts/bench.sh switches off %v of %v", off, jobs.Names())
	}
}
