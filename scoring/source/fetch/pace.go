package fetch

import "slices"

// RefreshPace returns how many companies a second may be scored again on nobody's
// behalf with the given sources: half of what the slowest limit lets through that all
// workers share, so that customers' calls have the other half. Zero is no such limit.
// Tokens are by the name of their variable; a overrides may be nil.
func RefreshPace(sources []string, tokens map[string]string, overrides *Overrides) float64 {
	slowest := 0.0
	for _, e := range Endpoints {
		if !slices.Contains(sources, e.Source) {
			continue
		}
		scale := 1.0
		if overrides != nil {
			if overrides.Endpoints[e.Name] == "" { // it is off
				continue
			}
			if overrides.Scale > 0 {
				scale = overrides.Scale
			}
		}
		quota := quotaOf(e.Quota)
		if e.Token != "" && tokens[e.Token] != "" {
			quota = quotaOf(e.TokenQuota)
		}
		if !quota.Shared {
			continue
		}
		if pace := float64(quota.Requests) / quota.Per.Seconds() * scale / 2; slowest == 0 || pace < slowest {
			slowest = pace
		}
	}
	return slowest
}
