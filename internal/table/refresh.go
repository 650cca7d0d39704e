package table

import (
	"time"
)

// AskedWithin is the age of demand up to which a company counts as asked for.
const AskedWithin = 30 * 24 * time.Hour

// RefreshAges are the target ages: the newest record of a company should be younger.
type RefreshAges struct {
	// Asked is for companies that were asked for within AskedWithin, Others for all
	// others. Both are at least one minute.
	Asked, Others time.Duration
}

// RefreshTargets determines which companies are due for a refresh.
type RefreshTargets struct {
	Ages RefreshAges
	// Live is set if workers use other sources than imported facts. Every run can then
	// change the score. Without it, a company is due only if its facts are newer than its
	// record or its record has another pipeline version.
	Live bool
}

// RefreshCoverage counts companies by their target ages.
type RefreshCoverage struct {
	// Companies is the number of companies with a record, Young that of companies whose
	// newest record is younger than the target age. Due is the number of companies whose
	// record and last refresh are older, and whose score a run can change.
	Companies, Young, Due uint64
	// Oldest is the oldest time of a newest record, zero without companies.
	Oldest time.Time
}

// Share returns the share of the companies that are younger than their target age, 0 to
// 1. It is 1 without companies.
func (c RefreshCoverage) Share() float64 {
	if c.Companies == 0 {
		return 1
	}
	return float64(c.Young) / float64(c.Companies)
}

// Refreshed is the result of a run of the refresh job.
type Refreshed struct {
	RefreshCoverage        // before the start of the runs
	Started         uint64 // number of runs started
}
