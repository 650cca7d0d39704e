package scoring

import "time"

// The momentum index compares a record with a reference: a record of the same company and
// pipeline version, between ReferenceMinAge and ReferenceMaxAge old, and nearest to ReferenceAge.
// Of two equally near ones the older one counts.
const (
	ReferenceMinAge = 20 * 24 * time.Hour
	ReferenceAge    = 30 * 24 * time.Hour
	ReferenceMaxAge = 120 * 24 * time.Hour
)

// momentumIndex returns the momentum bucket plus half of the change of the base since the
// reference, at most 10 points either way. It ignores a reference of the wrong age.
func momentumIndex(momentum, base float64, now time.Time, ref *Reference) float64 {
	var moved float64
	if ref != nil && finite(ref.Base) {
		if age := now.Sub(ref.ScoredAt); age >= ReferenceMinAge && age <= ReferenceMaxAge {
			moved = clamp(base-ref.Base, -20, 20)
		}
	}
	return round1(clamp(momentum+0.5*moved, 0, 100))
}
