package embedded

import (
	"maps"
	"slices"
)

// AnalystSettings returns the names of the settings open to the analyst, those first whose values are bounded.
func AnalystSettings() (limits, others []string) {
	for _, name := range slices.Sorted(maps.Keys(analystSettings)) {
		if analystSettings[name].kind == limit {
			limits = append(limits, name)
		} else {
			others = append(others, name)
		}
	}
	return limits, others
}
