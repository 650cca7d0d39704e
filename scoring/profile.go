package scoring

// profile decides the business profile by points for known facts; what is
// unknown earns none.
func profile(s signalScores) Profile {
	established := 2*s.reached(publicListing, 0.5) +
		s.reached(employeeCount, 250, 1000) +
		s.reached(revenue, 2.5e7, 1e8) +
		s.reached(organizationAge, 10, 20) +
		s.reached(wikipediaEditions, 10)
	// Without an age the other facts must say more.
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
