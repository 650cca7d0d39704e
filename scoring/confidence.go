package scoring

import "slices"

// bandCuts are the lowest completeness percentages of the bands, best first. A
// level is a place in this list.
var bandCuts = [...]struct {
	min  float64
	band Band
}{
	{85, BandHigh},
	{65, BandMedium},
	{40, BandLow},
	{0, BandDirectional},
}

// coreSources carry so many signals that a score without one of them is worth
// a band less than its completeness says.
var coreSources = [...]string{"dns", "web", "wikidata", "tranco"}

const (
	// manyFailures is how many failed sources allow no better band than BandLow.
	manyFailures = 4
	lowLevel     = 2
)

// BandOf returns the band of a completeness percentage, lowered by the
// sources that failed during the run.
func BandOf(completenessPct float64, warnings []Warning) Band {
	level := 0
	for completenessPct < bandCuts[level].min {
		level++
	}
	failed := failedSources(warnings)
	if slices.ContainsFunc(failed, func(source string) bool {
		return slices.Contains(coreSources[:], source)
	}) {
		level++
	}
	if len(failed) >= manyFailures {
		level = max(level, lowLevel)
	}
	return bandCuts[min(level, len(bandCuts)-1)].band
}

// failedSources lists each source with a warning once.
func failedSources(warnings []Warning) []string {
	var failed []string
	for _, w := range warnings {
		if !slices.Contains(failed, w.Source) {
			failed = append(failed, w.Source)
		}
	}
	return failed
}
