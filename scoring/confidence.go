package scoring

import "slices"

// bandCuts are the lowest completeness percentages of the bands, best first. A level is an index
// of this list.
var bandCuts = [...]struct {
	min  float64
	band Band
}{
	{85, BandHigh},
	{65, BandMedium},
	{40, BandLow},
	{0, BandDirectional},
}

// coreSources feed so many signals that the failure of one lowers the band by one.
var coreSources = [...]string{"dns", "web", "wikidata", "tranco"}

const (
	// manyFailures is the number of failed sources from which the band is BandLow at best.
	manyFailures = 4
	lowLevel     = 2
)

// BandOf returns the band of a completeness percentage, lowered for sources that failed in the
// run.
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

// HasData reports whether any of the score rests on data.
func (r Record) HasData() bool { return r.CompletenessPct > 0 }

// failedSources returns each source that failed once.
func failedSources(warnings []Warning) []string {
	var failed []string
	for _, w := range warnings {
		if w.failure() && !slices.Contains(failed, w.Source) {
			failed = append(failed, w.Source)
		}
	}
	return failed
}
