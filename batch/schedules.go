package batch

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/spf13/pflag"
)

// Schedules has the schedule of each job: five cron fields in UTC, "@every 10s", or "off"
// for no schedule. It also has the epochs at whose ends servers adopt the results.
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
	// Inbox is the schedule of the inbox job, which imports new files.
	Inbox string
	// CountEpoch and MoversEpoch are the times between the instants at which servers adopt counts and
	// movers of a large universe, see universe.Counts. They are between epochMin and epochMax.
	CountEpoch, MoversEpoch time.Duration
}

const (
	// epochMin leaves time for a job and for the notice of its publication.
	epochMin = 10 * time.Second
	epochMax = 24 * time.Hour
	// smallUniverse is the number of companies below which servers adopt results at once.
	smallUniverse = 10_000
)

// Flags adds the flags of s with their defaults.
func (s *Schedules) Flags(flags *pflag.FlagSet) {
	const form = `: cron fields in UTC, "@every 10s" or "off"`
	flags.StringVar(&s.Count, "schedule-count", "@every 10s", "schedule of the count job"+form)
	flags.StringVar(&s.Movers, "schedule-movers", "@every 5m", "schedule of the movers job"+form)
	flags.StringVar(&s.Refresh, "schedule-refresh", "@every 1m", "schedule of the refresh job"+form)
	flags.StringVar(&s.Housekeeping, "schedule-housekeeping", "17 3 * * *", "schedule of the housekeeping job"+form)
	flags.StringVar(&s.Spreads, "schedule-spreads", "@every 1h", "schedule of the spreads job"+form)
	flags.StringVar(&s.Inbox, "schedule-inbox", "@every 1m", "schedule of the inbox job"+form)
	const adopted = " of 10,000 companies and more at multiples of this time"
	flags.DurationVar(&s.CountEpoch, "epoch-count", 10*time.Minute, "servers adopt ranks, distribution and cohorts"+adopted)
	flags.DurationVar(&s.MoversEpoch, "epoch-movers", 5*time.Minute, "servers adopt movers"+adopted)
}

// Args returns the flags that set the same schedules in another process.
func (s Schedules) Args() []string {
	return []string{
		"--schedule-count", s.Count, "--schedule-movers", s.Movers, "--schedule-refresh", s.Refresh, "--schedule-housekeeping",
		s.Housekeeping,
		"--schedule-spreads", s.Spreads, "--schedule-inbox", s.Inbox,
		"--epoch-count", s.CountEpoch.String(), "--epoch-movers", s.MoversEpoch.String(),
	}
}

// Validate returns an error that names every invalid schedule and epoch.
func (s Schedules) Validate() error {
	var faults []error
	for _, f := range []struct {
		name, spec string
	}{{"count", s.Count}, {"movers", s.Movers}, {"refresh", s.Refresh}, {"housekeeping", s.Housekeeping}, {"spreads", s.Spreads},
		{"inbox", s.Inbox}} {
		if f.spec == "off" {
			continue
		}
		if _, err := cron.ParseStandard(f.spec); err != nil {
			faults = append(faults, fmt.Errorf("schedule-%s %q: %w: use five cron fields, @every and a duration, or off", f.name, f.spec,
				err))
		}
	}
	for _, f := range []struct {
		name  string
		epoch time.Duration
	}{{"count", s.CountEpoch}, {"movers", s.MoversEpoch}} {
		if f.epoch < epochMin || f.epoch > epochMax || f.epoch%time.Second != 0 {
			faults = append(faults, fmt.Errorf("epoch-%s %s: use whole seconds, from %s to %s", f.name, f.epoch, epochMin, epochMax))
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
