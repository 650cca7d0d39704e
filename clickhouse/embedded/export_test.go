package embedded

import (
	"maps"
	"slices"
)

// AnalystSettings returns the settings that the analyst may change, bounded ones first.
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
