package scoring

import "time"

// The momentum index compares a record with the company's own record of the
// same pipeline version that is between ReferenceMinAge and ReferenceMaxAge old
// and nearest to ReferenceAge; of two equally near the older one counts.
const (
	ReferenceMinAge = 20 * 24 * time.Hour
	ReferenceAge    = 30 * 24 * time.Hour
	ReferenceMaxAge = 120 * 24 * time.Hour
)

// momentumIndex shifts the momentum bucket by half of what the base has moved
// since the reference, by 10 points at most. A reference of the wrong age is
// not used.
func momentumIndex(momentum, base float64, now time.Time, ref *Reference) float64 {
	var moved float64
	if ref != nil && finite(ref.Base) {
		if age := now.Sub(ref.ScoredAt); age >= ReferenceMinAge && age <= ReferenceMaxAge {
			moved = clamp(base-ref.Base, -20, 20)
		}
	}
	return round1(clamp(momentum+0.5*moved, 0, 100))
}
