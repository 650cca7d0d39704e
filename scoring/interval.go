package scoring

import "math"

// Interval is a range of composites, 0 to 100 with one decimal.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Level is the probability in percent that the range holds the composite if all signals were known.
	Level int `json:"level"`
}

const (
	// IntervalLevel is the level of intervals, in percent.
	IntervalLevel = 90
	// intervalWidth is the number of standard deviations from the centre to an end of the interval.
	intervalWidth = 1.645
	// referenceDeviation is the standard deviation of a signal score in the reference population: its
	// 10th and 90th percentile are 30 points from the median, which are 1.2816 standard deviations.
	referenceDeviation = 30 / 1.2816
	// referencePremiumDeviation is the standard deviation of the premium of a company of unknown size,
	// by judgement.
	referencePremiumDeviation = 2
)

// Likely returns the interval and the expected composite of a record from its missing signals and
// the spreads of its cohort; nil are those of the reference population. open restricts both to some
// of the missing signals; nil means all of them.
//
// Signals of one source miss together and move together: their deviations add up. Those of
// different sources are independent. An old value counts as uncertain by its age, a disputed one
// by the difference between the sources, a range by its width. The interval always holds the
// composite. That of a defunct company is all that it may have.
func Likely(rec Record, spreads *Spreads, open func(signal string) bool) (Interval, float64) {
	if rec.Defunct() {
		return Interval{Low: 0, High: DefunctMax, Level: IntervalLevel}, rec.Composite
	}
	signals, key := signalScores(rec.Signals), KeyOf(rec)
	shares := Shares(rec)
	centre := rec.Base + rec.ScalePremium
	deviations := make(map[string]float64) // by the most trusted source
	for i := range signals {
		s := &signals[i]
		mean, deviation := spreads.signal(key, i)
		switch {
		case s.State == StateMissing && (open == nil || open(s.ID)):
			centre += shares[i] * (mean - Neutral)
		case s.Known():
			age := min(float64(s.age(rec.ScoredAt))/float64(manifest[i].MaxAge), 1) // as a share of the largest
			deviation = max(s.doubt, deviation*math.Sqrt(age)/2)
		default:
			continue
		}
		deviations[manifest[i].Sources[0]] += shares[i] * deviation
	}
	unknown := unknownScale(signals, open)
	mean, deviation := spreads.premium(key, rec.ScalePremium)
	centre += unknown * (mean - rec.ScalePremium)
	deviations["premium"] = math.Sqrt(unknown) * deviation

	var variance float64
	for _, d := range deviations {
		variance += d * d
	}
	half := intervalWidth * math.Sqrt(variance)
	return Interval{
		Low:   min(rec.Composite, round1(clamp(centre-half, 0, 100))),
		High:  max(rec.Composite, round1(clamp(centre+half, 0, 100))),
		Level: IntervalLevel,
	}, round1(clamp(centre, 0, 100))
}
