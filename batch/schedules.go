package batch

import (
	"errors"
	"fmt"

	"github.com/robfig/cron/v3"
	"github.com/spf13/pflag"
)

// Schedules has the schedule of each job: five cron fields in UTC, "@every 10s", or "off"
// for no schedule.
type Schedules struct {
	// Count is the schedule of the count job: rank, distribution and cohorts.
	Count string
	// Movers is the schedule of the movers job.
	Movers string
	// Refresh is the schedule of the refresh job.
	Refresh string
	// Housekeeping is the schedule of the housekeeping job, which merges tables.
	Housekeeping string
	// Spreads is the schedule of the spreads job: how signals spread, for the intervals of scores.
	Spreads string
}

// Flags adds the flags of s with their defaults.
func (s *Schedules) Flags(flags *pflag.FlagSet) {
	const form = `: cron fields in UTC, "@every 10s" or "off"`
	flags.StringVar(&s.Count, "schedule-count", "@every 10s", "schedule of the count job"+form)
	flags.StringVar(&s.Movers, "schedule-movers", "@every 5m", "schedule of the movers job"+form)
	flags.StringVar(&s.Refresh, "schedule-refresh", "@every 1m", "schedule of the refresh job"+form)
	flags.StringVar(&s.Housekeeping, "schedule-housekeeping", "17 3 * * *", "schedule of the housekeeping job"+form)
	flags.StringVar(&s.Spreads, "schedule-spreads", "@every 1h", "schedule of the spreads job"+form)
}

// Args returns the flags that set the same schedules in another process.
func (s Schedules) Args() []string {
	return []string{"--schedule-count", s.Count, "--schedule-movers", s.Movers, "--schedule-refresh", s.Refresh, "--schedule-housekeeping", s.Housekeeping, "--schedule-spreads", s.Spreads}
}

// Validate returns an error that names every invalid schedule.
func (s Schedules) Validate() error {
	var faults []error
	for _, f := range []struct{ name, spec string }{{"count", s.Count}, {"movers", s.Movers}, {"refresh", s.Refresh}, {"housekeeping", s.Housekeeping}, {"spreads", s.Spreads}} {
		if f.spec == "off" {
			continue
		}
		if _, err := cron.ParseStandard(f.spec); err != nil {
			faults = append(faults, fmt.Errorf("schedule-%s %q: %w: use five cron fields, @every and a duration, or off", f.name, f.spec, err))
		}
	}
	return errors.Join(faults...)
}

// parsed returns a valid schedule, nil for "off". It panics if spec is not valid.
func parsed(spec string) cron.Schedule {
	if spec == "off" {
		return nil
	}
	s, err := cron.ParseStandard(spec)
	if err != nil {
		panic(err) // Validate accepted it
	}
	return s
}
