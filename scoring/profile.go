package scoring

// profile returns the business profile from points for known values. Unknown values give no
// points.
func profile(s signalScores) Profile {
	established := 2*s.reached(publicListing, 0.5) +
		s.reached(employeeCount, 250, 1000) +
		s.reached(revenue, 2.5e7, 1e8) +
		s.reached(organizationAge, 10, 20) +
		s.reached(wikipediaEditions, 10)
	// Without an age more points are needed.
	age, ageKnown := s.known(organizationAge)
	if ageKnown && age >= 8 && established >= 4 || !ageKnown && established >= 5 {
		return ProfileEstablished
	}

	growth := s.within(organizationAge, 12) +
		s.reached(openRoles, 3, 25) +
		s.reached(productSurface, 3) +
		2*s.within(capitalRaise, 1095) +
		s.within(trafficRank, 300_000) +
		s.reached(hnMentions, 5)
	if growth >= 3 {
		return ProfileGrowth
	}
	return ProfileUnclassified
}
