package scoring

// Indices of the signals that the premium, the profile and the geo scope read.
var (
	employeeCount     = indexOf("employee_count")
	openRoles         = indexOf("open_roles")
	organizationAge   = indexOf("organization_age_years")
	trafficRank       = indexOf("traffic_rank")
	wikipediaEditions = indexOf("wikipedia_language_count")
	hnMentions        = indexOf("hn_mentions_365d")
	productSurface    = indexOf("product_surface")
	siteLanguages     = indexOf("site_language_count")
	publicListing     = indexOf("public_listing")
	revenue           = indexOf("revenue_latest_usd")
	totalAssets       = indexOf("total_assets_usd")
	capitalRaise      = indexOf("capital_raise_recency_days")
)

// signalScores are the signals of a record in manifest order.
type signalScores []SignalScore

// known returns the raw value of the signal at i, false if it is missing. An absence that counts
// as a value is known.
func (s signalScores) known(i int) (raw float64, ok bool) {
	return s[i].Raw, s[i].State != StateMissing
}

// reached counts the limits that the known value of the signal at i is not below.
func (s signalScores) reached(i int, limits ...float64) (n int) {
	raw, ok := s.known(i)
	for _, limit := range limits {
		if ok && raw >= limit {
			n++
		}
	}
	return n
}

// within returns 1 if the signal at i is known and at most limit, else 0.
func (s signalScores) within(i int, limit float64) int {
	if raw, ok := s.known(i); ok && raw <= limit {
		return 1
	}
	return 0
}
