package scoring

// ratingCuts are the lowest composites of the grades, highest grade first.
var ratingCuts = [...]struct {
	min    float64
	rating Rating
}{
	{75, RatingElite},
	{65, Rating1},
	{58, Rating2Plus},
	{51, Rating2},
	{44, Rating3},
	{32, Rating4},
}

// RatingOf returns the grade of a composite that is rounded to one decimal.
func RatingOf(composite float64) Rating {
	for _, cut := range ratingCuts {
		if composite >= cut.min {
			return cut.rating
		}
	}
	return Rating5
}

// Ratings returns all grades, highest first.
func Ratings() []Rating {
	ratings := make([]Rating, 0, len(ratingCuts)+1)
	for _, cut := range ratingCuts {
		ratings = append(ratings, cut.rating)
	}
	return append(ratings, Rating5)
}

// RatingFrom returns the lowest composite of a grade.
func RatingFrom(r Rating) float64 {
	for _, cut := range ratingCuts {
		if cut.rating == r {
			return cut.min
		}
	}
	return 0
}
