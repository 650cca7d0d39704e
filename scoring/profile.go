package scoring

const (
	// establishedScale is the scale from which a company is established whatever its age, and
	// matureScale from which it is unless it is known to be young.
	establishedScale = 0.3
	matureScale      = 0.08
	// matureAge is the age in years from which a company is not young.
	matureAge = 8
)

// profile returns the business profile. It is a label only: no point of the score depends on it.
// A listed company and a company of some scale are established unless they are known to be young.
// A company with two signs of growth is growing.
func profile(s signalScores) Profile {
	scale := scaleOf(s)
	age := s[organizationAge]
	young := age.State == StateOK && age.Raw < matureAge
	if scale >= establishedScale || !young && (scale >= matureScale || s.reached(publicListing, 0.5) > 0) {
		return ProfileEstablished
	}
	growth := s.within(organizationAge, 12) +
		s.reached(openRoles, 3, 25) +
		s.reached(productSurface, 3) +
		2*s.within(capitalRaise, 1095) +
		s.reached(fundingTotal, 500_000, 5_000_000) +
		s.reached(fundingRounds, 1, 2) +
		s.within(trafficRank, 300_000) +
		s.reached(hnMentions, 5)
	if growth >= 2 {
		return ProfileGrowth
	}
	return ProfileUnclassified
}
