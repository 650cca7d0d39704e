package seed

// SetPartMax sets the maximum number of companies per part, before the first test.
func SetPartMax(companies int) { partMax = companies }
