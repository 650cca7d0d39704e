package scoring

import "math"

// premiumParts are the measures of scale, except the listing. A share is 0 at raw value from and
// 1 at from*factor, on a logarithmic scale.
var premiumParts = [...]struct {
	signal       int
	from, factor float64
	weight       float64
}{
	{employeeCount, 250, 400, 0.30},
	{revenue, 2.5e7, 2000, 0.30},
	{totalAssets, 5e7, 2000, 0.10},
	{trafficRank, 300_000, 1.0 / 1000, 0.15}, // lower ranks are better
	{wikipediaEditions, 3, 20, 0.10},
}

const (
	listingWeight = 0.05
	// fullCoverage is the known weight that the full premium needs, so that one large value alone
	// does not earn it.
	fullCoverage = 0.60
)

// scalePremium returns the points for scale: 0 to 12 for an established company, 0 to 6 for a
// growing one, rounded to one decimal.
func scalePremium(p Profile, s signalScores) float64 {
	scale, coverage := scaleOf(s)
	return round1(premiumCap(p) * scale * min(1, coverage/fullCoverage))
}

func premiumCap(p Profile) float64 {
	switch p {
	case ProfileEstablished:
		return 12
	case ProfileGrowth:
		return 6
	}
	return 0
}

// scaleOf returns the weighted mean of the known measures of scale and their weight, both 0 to 1.
func scaleOf(s signalScores) (scale, coverage float64) {
	var sum float64
	for _, part := range premiumParts {
		if raw, ok := s.known(part.signal); ok {
			share := math.Log10(max(raw, 1)/part.from) / math.Log10(part.factor)
			sum += part.weight * clamp(share, 0, 1)
			coverage += part.weight
		}
	}
	if _, ok := s.known(publicListing); ok {
		sum += listingWeight * float64(s.reached(publicListing, 0.5))
		coverage += listingWeight
	}
	if coverage == 0 {
		return 0, 0
	}
	return sum / coverage, coverage
}
