package batchjob

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// AskedWithin is the age of demand up to which a company counts as asked for.
const AskedWithin = 30 * 24 * time.Hour

// ageLeast is the minimum target age. By default the refresh job runs once a minute.
const ageLeast = time.Minute

// Ages are the target ages: the newest record of a company should be younger.
type Ages struct {
	// Asked is for companies that were asked for within AskedWithin, Others for all
	// others. Both are at least one minute.
	Asked, Others time.Duration
}

// Flags adds the flags of a with their defaults.
func (a *Ages) Flags(flags *pflag.FlagSet) {
	flags.DurationVar(&a.Asked, "refresh-asked", 24*time.Hour, "target age of companies asked for in the last 30 days")
	flags.DurationVar(&a.Others, "refresh-others", 7*24*time.Hour, "target age of other companies")
}

// Args returns the flags that set the same ages in another process.
func (a Ages) Args() []string {
	return []string{"--refresh-asked", a.Asked.String(), "--refresh-others", a.Others.String()}
}

// Validate returns an error that names every age that is too small.
func (a Ages) Validate() error {
	var faults []error
	for _, f := range []struct {
		name string
		age  time.Duration
	}{{"refresh-asked", a.Asked}, {"refresh-others", a.Others}} {
		if f.age < ageLeast {
			faults = append(faults, fmt.Errorf("%s %s: use a minute or more", f.name, f.age))
		}
	}
	return errors.Join(faults...)
}

// Targets determines which companies are due for a refresh.
type Targets struct {
	Ages Ages
	// Live is set if workers use other sources than imported facts. Every run can then
	// change the score. Without it, a company is due only if its facts are newer than its
	// record or its record has another pipeline version.
	Live bool
}

// Coverage counts companies by their target ages.
type Coverage struct {
	// Companies is the number of companies with a record, Young that of companies whose
	// newest record is younger than the target age. Due is the number of companies whose
	// record and last refresh are older, and whose score a run can change.
	Companies, Young, Due uint64
	// Oldest is the oldest time of a newest record, zero without companies.
	Oldest time.Time
}

// Share returns the share of the companies that are younger than their target age, 0 to
// 1. It is 1 without companies.
func (c Coverage) Share() float64 {
	if c.Companies == 0 {
		return 1
	}
	return float64(c.Young) / float64(c.Companies)
}

// Refreshed is the result of a run of the refresh job.
type Refreshed struct {
	Coverage        // before the start of the runs
	Started  uint64 // number of runs started
}
