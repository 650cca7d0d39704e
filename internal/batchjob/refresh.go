package batchjob

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// AskedWithin is how long a company counts as asked for after somebody did.
const AskedWithin = 30 * 24 * time.Hour

// ageLeast is the least target age. The refresh job looks once a minute.
const ageLeast = time.Minute

// Ages are the ages that companies should stay younger than.
type Ages struct {
	// Asked is for companies that were asked for within AskedWithin, Others for all
	// others. Both are a minute or more.
	Asked, Others time.Duration
}

// Flags adds the flags of a with their defaults.
func (a *Ages) Flags(flags *pflag.FlagSet) {
	flags.DurationVar(&a.Asked, "refresh-asked", 24*time.Hour, "age at which a company is scored again that was asked for in the last 30 days")
	flags.DurationVar(&a.Others, "refresh-others", 7*24*time.Hour, "age at which any other company is scored again")
}

// Args are the flags that give another process the same ages.
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
			faults = append(faults, fmt.Errorf("%s %s: use an age of a minute or more", f.name, f.age))
		}
	}
	return errors.Join(faults...)
}

// Targets say which companies are due for a refresh.
type Targets struct {
	Ages Ages
	// Live says that workers ask other sources than imported facts, so that every run can
	// learn something new. Without them only companies are due whose facts are newer than
	// their record, or whose record is of another pipeline version.
	Live bool
}

// Coverage says how far companies are younger than their target ages.
type Coverage struct {
	// Companies have a record, Young ones one that is younger than the target age. Due
	// ones are older, were not started again within that age, and a run can learn
	// something new of them.
	Companies, Young, Due uint64
	// Oldest is when the newest record of the oldest company was made, zero without any.
	Oldest time.Time
}

// Share is the part of the companies that are younger than their target ages, 0 to 1.
// It is 1 without companies.
func (c Coverage) Share() float64 {
	if c.Companies == 0 {
		return 1
	}
	return float64(c.Young) / float64(c.Companies)
}

// Refreshed is what a run of the refresh job saw and did.
type Refreshed struct {
	Coverage        // from before the runs were started
	Started  uint64 // runs
}
