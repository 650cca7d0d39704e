package batch

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"companyscore/internal/table"
)

// ageLeast is the minimum target age. By default the refresh job runs once a minute.
const ageLeast = time.Minute

// Ages are the target ages of the refresh job, as flags.
type Ages table.RefreshAges

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
