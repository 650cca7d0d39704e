package scoring

import "math"

// CohortKey identifies a cohort.
type CohortKey struct {
	Sector, GeoScope string
	Profile          Profile
}

// KeyOf returns the cohort key of a record.
func KeyOf(rec Record) CohortKey {
	return CohortKey{rec.Sector, rec.GeoScope, rec.Profile}
}

// Peers reports whether companies with the key are peers. It is false if sector, reach or
// profile is unknown.
func (k CohortKey) Peers() bool {
	return k.Sector != Unknown && k.GeoScope != Unknown && k.Profile != ProfileUnclassified
}

// Spreads are the spreads of the signals within each cohort and among all companies. They are not
// safe for use while Add runs.
type Spreads struct {
	All     Spread
	Cohorts map[CohortKey]*Spread
}

// Spread is how the scores of signals and the premiums of companies spread.
type Spread struct {
	// Signals are the moments of the signal scores, in manifest order.
	Signals [SignalCount]Moments
	// Premium has the moments of the scale premiums, in points.
	Premium Moments
}

// Moments are the number, the sum and the sum of squares of values.
type Moments struct{ Count, Sum, Squares float64 }

// NewSpreads returns the spreads of records.
func NewSpreads(records []Record) *Spreads {
	s := &Spreads{Cohorts: make(map[CohortKey]*Spread)}
	for _, rec := range records {
		key := KeyOf(rec)
		for _, signal := range rec.Signals {
			if signal.Known() {
				s.Add(key, signal.ID, momentsOf(signal.Score))
			}
		}
		s.AddPremium(key, momentsOf(rec.ScalePremium))
	}
	return s
}

// Add adds scores of a signal in a cohort. It ignores a signal that the manifest does not have.
func (s *Spreads) Add(key CohortKey, signal string, m Moments) {
	if i, found := signalIndex[signal]; found {
		s.All.Signals[i].add(m)
		s.cohort(key).Signals[i].add(m)
	}
}

// AddPremium adds premiums of a cohort.
func (s *Spreads) AddPremium(key CohortKey, m Moments) {
	s.All.Premium.add(m)
	s.cohort(key).Premium.add(m)
}

func (s *Spreads) cohort(key CohortKey) *Spread {
	if s.Cohorts[key] == nil {
		s.Cohorts[key] = new(Spread)
	}
	return s.Cohorts[key]
}

func momentsOf(x float64) Moments { return Moments{Count: 1, Sum: x, Squares: x * x} }

func (m *Moments) add(other Moments) {
	m.Count += other.Count
	m.Sum += other.Sum
	m.Squares += other.Squares
}

func (m Moments) mean() float64 { return m.Sum / m.Count }

// deviation returns the standard deviation of the population.
func (m Moments) deviation() float64 {
	return math.Sqrt(max(m.Squares/m.Count-m.mean()*m.mean(), 0))
}

// minSample is the number of values from which the moments of a cohort count, else those of all
// companies, else those of the reference population.
const minSample = 20

// of returns mean and deviation of one quantity in a cohort. s may be nil.
func (s *Spreads) of(key CohortKey, quantity func(*Spread) Moments, mean, deviation float64) (float64, float64) {
	if s == nil {
		return mean, deviation
	}
	for _, spread := range []*Spread{s.Cohorts[key], &s.All} {
		if spread == nil {
			continue
		}
		if m := quantity(spread); m.Count >= minSample {
			return m.mean(), m.deviation()
		}
	}
	return mean, deviation
}

// signal returns mean and deviation of the score of the signal at i.
func (s *Spreads) signal(key CohortKey, i int) (mean, deviation float64) {
	return s.of(key, func(spread *Spread) Moments { return spread.Signals[i] }, Neutral, referenceDeviation)
}

// premium returns mean and deviation of the premium. In the reference population the mean is own.
func (s *Spreads) premium(key CohortKey, own float64) (mean, deviation float64) {
	return s.of(key, func(spread *Spread) Moments { return spread.Premium }, own, referencePremiumDeviation)
}
