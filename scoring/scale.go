package scoring

import "math"

// measure is a measure of scale. Its share of scale is 0 at raw value from and 1 at raw value to, on
// a logarithmic scale. weight is how much it says about scale.
type measure struct {
	signal   int
	from, to float64
	weight   float64
}

var measures = [...]measure{
	{employeeCount, 250, 2e6, 2},
	{revenue, 2.5e7, 7e11, 2.5},
	{totalAssets, 5e7, 4e12, 0.3},
	{marketValue, 5e7, 4e12, 0.5},
	{fundingTotal, 1e7, 5e9, 0.5},
	{trafficRank, 300_000, 300, 0.75}, // lower ranks are better
	{wikipediaEditions, 3, 120, 0.5},
}

const (
	// priorWeight is the weight of the prior, a company without scale. It keeps the premium of a single
	// measure low and makes the premium grow with each further one that agrees.
	priorWeight = 0.3
	// listingScale is the share of scale of a listed company, listingWeight the weight of the listing.
	listingScale  = 0.3
	listingWeight = 0.1
	// premiumMax is the premium of scale 1, in points.
	premiumMax = 12
)

// share returns the share of scale of a raw value, 0 to 1.
func (m measure) share(raw float64) float64 {
	return clamp(math.Log(max(raw, 1)/m.from)/math.Log(m.to/m.from), 0, 1)
}

// scaleOf returns the scale of a company, 0 to 1: the weighted mean of its known measures and of the
// prior. A missing measure changes nothing but the weight of the others, so that the scale has no
// steps.
func scaleOf(s signalScores) float64 {
	var sum float64
	weights := priorWeight
	for _, m := range measures {
		if s[m.signal].State == StateOK {
			sum += m.weight * m.share(s[m.signal].Raw)
			weights += m.weight
		}
	}
	if s.reached(publicListing, 0.5) > 0 {
		sum += listingWeight * listingScale
		weights += listingWeight
	}
	return sum / weights
}

// premium returns the points for scale, 0 to premiumMax.
func premium(scale float64) float64 { return premiumMax * scale }

// unknownScale returns the share of the weight of all measures that those have which are missing and
// open. open is that of Likely.
func unknownScale(s signalScores, open func(signal string) bool) float64 {
	weights, unknown := priorWeight, 0.0
	for _, m := range measures {
		switch {
		case s[m.signal].State == StateOK:
			weights += m.weight
		case s[m.signal].State == StateMissing && (open == nil || open(s[m.signal].ID)):
			weights += m.weight
			unknown += m.weight
		}
	}
	return unknown / weights
}
