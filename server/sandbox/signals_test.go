package sandbox

import (
	"math"
	"testing"
	"time"

	"companyscore/scoring"
)

// The contributions of canned signals give the canned base, today and earlier.
func TestSignalsGiveTheBase(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, domain := range Domains {
		for days := range 4 {
			rec := WithSignals(At(domain, now.AddDate(0, 0, -days), now))
			if base := scoring.Explain(rec).Base; math.Abs(base-rec.Base) > 0.05+1e-9 {
				t.Errorf("%s, %d days ago: the signals give %v, the base is %v", domain, days, base, rec.Base)
			}
			for _, s := range rec.Signals {
				if s.Score < 0 || s.Score > 100 {
					t.Errorf("%s, %d days ago: %s scores %v", domain, days, s.ID, s.Score)
				}
			}
		}
	}
}
