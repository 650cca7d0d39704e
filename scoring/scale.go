package scoring

import "math"

// measure is a measure of scale. Its share of scale is 0 at raw value from and 1 at raw value to, on
// a logarithmic scale.
type measure struct {
	signal   int
	from, to float64
	// weight is how much it says about scale if revenue is known, and withoutRevenue if not.
	weight, withoutRevenue float64
}

// Total assets repeat most of what revenue says, so they have little weight beside it and replace it where it is missing: the
// premium of a company with statements then never depends on revenue alone.
var measures = [...]measure{
	{employeeCount, 250, 2e6, 2, 2},
	{revenue, 2.5e7, 7e11, 2.5, 2.5},
	{totalAssets, 5e7, 4e12, 0.3, 2},
	{marketValue, 5e7, 4e12, 0.5, 0.5},
	{fundingTotal, 1e7, 5e9, 0.5, 0.5},
	{trafficRank, 300_000, 300, 0.75, 0.75}, // lower ranks are better
	{wikipediaEditions, 3, 120, 0.5, 0.5},
}

const (
	// priorWeight is the weight of the prior, a company without scale. It makes the premium grow with
	// each further measure that agrees.
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

// weightBeside returns the weight of the measure, with revenue known or not.
func (m measure) weightBeside(revenueKnown bool) float64 {
	if revenueKnown {
		return m.weight
	}
	return m.withoutRevenue
}

// scaleOf returns the scale of a company, 0 to 1: the weighted mean of its known measures and of the
// prior. A missing measure changes only weights, so that the scale has no steps.
func scaleOf(s signalScores) float64 {
	var sum float64
	weights := priorWeight
	revenueKnown := s[revenue].State == StateOK
	for _, m := range measures {
		if s[m.signal].State == StateOK {
			weight := m.weightBeside(revenueKnown)
			sum += weight * m.share(s[m.signal].Raw)
			weights += weight
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
// open, if all of these became known. open is that of Likely.
func unknownScale(s signalScores, open func(signal string) bool) float64 {
	missing := func(i int) bool { return s[i].State == StateMissing && (open == nil || open(s[i].ID)) }
	revenueKnown := s[revenue].State == StateOK || missing(revenue)
	weights, unknown := priorWeight, 0.0
	for _, m := range measures {
		weight := m.weightBeside(revenueKnown)
		switch {
		case s[m.signal].State == StateOK:
			weights += weight
		case missing(m.signal):
			weights += weight
			unknown += weight
		}
	}
	return unknown / weights
}
