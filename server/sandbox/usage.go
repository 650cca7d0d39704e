package sandbox

import (
	"time"

	"companyscore/server/api"
)

// The canned usage of an unmetered account, and that of a metered one in percent of its
// budgets.
const (
	unmeteredCached, unmeteredCold = 48_210, 1_935
	cachedSharePct, coldSharePct   = 42, 38
)

// Usage returns canned counts for a tier, below its budgets.
func Usage(accountID, tier string, limits api.TierLimits, now time.Time) api.Usage {
	year, month, _ := now.UTC().Date()
	start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	cold, cached := Calls(limits.ColdCallsIncluded, limits.CachedCallsIncluded)
	u := api.Usage{
		Mode: api.Sandbox, UserID: accountID, Period: start.Format("2006-01"), Tier: tier,
		CachedCalls: cached, ColdCalls: cold,
		LastReset: api.Time(start), NextReset: api.Time(start.AddDate(0, 1, 0)), TierLimits: limits,
	}
	u.TotalCalls = u.CachedCalls + u.ColdCalls
	return u
}

// Calls returns the numbers of cold and of cached calls of Usage, for the numbers that a tier includes.
func Calls(coldIncluded, cachedIncluded *int64) (cold, cached int64) {
	return share(coldIncluded, coldSharePct, unmeteredCold), share(cachedIncluded, cachedSharePct, unmeteredCached)
}

func share(included *int64, pct, unmetered int64) int64 {
	if included == nil {
		return unmetered
	}
	return *included * pct / 100
}
