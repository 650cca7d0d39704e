package scoring

// Indices of the signals that the scale, the profile and the geo scope read.
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
	marketValue       = indexOf("market_value_usd")
	fundingTotal      = indexOf("funding_total_usd")
	fundingRounds     = indexOf("funding_rounds")
	capitalRaise      = indexOf("capital_raise_recency_days")
)

// signalScores are the signals of a record in manifest order.
type signalScores []SignalScore

// reached counts the limits that the observed value of the signal at i is not below.
func (s signalScores) reached(i int, limits ...float64) (n int) {
	for _, limit := range limits {
		if s[i].State == StateOK && s[i].Raw >= limit {
			n++
		}
	}
	return n
}

// within returns 1 if the observed value of the signal at i is at most limit, else 0.
func (s signalScores) within(i int, limit float64) int {
	if s[i].State == StateOK && s[i].Raw <= limit {
		return 1
	}
	return 0
}
