package scoring

// bucketWeights are the shares of the buckets in the base; they sum to 1. Financial health has
// the least weight: few private companies publish their finances, so most of its signals are
// neutral.
var bucketWeights = BucketScores{
	TeamStructure:     0.25,
	MarketPosition:    0.30,
	MomentumTailwinds: 0.25,
	FinancialHealth:   0.20,
}

// Buckets returns the four buckets in display order. The caller owns the slice.
func Buckets() []Bucket {
	return []Bucket{TeamStructure, MarketPosition, MomentumTailwinds, FinancialHealth}
}

// Weight returns the share of the bucket in the base, 0 for an unknown bucket.
func (b Bucket) Weight() float64 { return bucketWeights.Get(b) }

// Get returns the number of one bucket, 0 for an unknown bucket.
func (s BucketScores) Get(b Bucket) float64 {
	if p := s.field(b); p != nil {
		return *p
	}
	return 0
}

// field returns a pointer to the number of one bucket, nil for an unknown bucket.
func (s *BucketScores) field(b Bucket) *float64 {
	switch b {
	case TeamStructure:
		return &s.TeamStructure
	case MarketPosition:
		return &s.MarketPosition
	case MomentumTailwinds:
		return &s.MomentumTailwinds
	case FinancialHealth:
		return &s.FinancialHealth
	}
	return nil
}

// weighted returns the sum of the four numbers, each times the weight of its bucket.
func (s BucketScores) weighted() float64 {
	w := bucketWeights
	return w.TeamStructure*s.TeamStructure +
		w.MarketPosition*s.MarketPosition +
		w.MomentumTailwinds*s.MomentumTailwinds +
		w.FinancialHealth*s.FinancialHealth
}

// rounded returns the four numbers times factor, each rounded to one decimal.
func (s BucketScores) rounded(factor float64) BucketScores {
	return BucketScores{
		TeamStructure:     round1(factor * s.TeamStructure),
		MarketPosition:    round1(factor * s.MarketPosition),
		MomentumTailwinds: round1(factor * s.MomentumTailwinds),
		FinancialHealth:   round1(factor * s.FinancialHealth),
	}
}
