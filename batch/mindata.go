package batch

import (
	"fmt"

	"github.com/spf13/pflag"
)

const minDataName = "universe-min-data"

// MinDataFlag adds the flag of Config.MinDataPct.
func MinDataFlag(flags *pflag.FlagSet, pct *float64) {
	flags.Float64Var(pct, minDataName, 0,
		"lowest percentage of data with which a score counts in ranks, distribution, cohorts and movers; 0 counts all")
}

// MinDataArgs returns the flag that sets the same value in another process.
func MinDataArgs(pct float64) []string { return []string{"--" + minDataName, fmt.Sprint(pct)} }

// CheckMinData returns an error for a value that is no percentage.
func CheckMinData(pct float64) error {
	if !(pct >= 0 && pct <= 100) {
		return fmt.Errorf("--%s %g: use a percentage of 0 to 100", minDataName, pct)
	}
	return nil
}
