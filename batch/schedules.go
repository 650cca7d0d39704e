package batch

import (
	"errors"
	"fmt"

	"github.com/robfig/cron/v3"
	"github.com/spf13/pflag"
)

// Schedules says when each job runs: in the form of cron with five fields, in UTC,
// or as "@every 10s"; "off" for never by the clock.
type Schedules struct {
	// Count keeps the rank table, the distribution and the cohorts up to date. They
	// are one count, so that they cannot disagree.
	Count string
	// Movers of each window are published.
	Movers7d, Movers30d, Movers90d string
	// Recount counts everything, and says so if that differs from what batches made of
	// changes.
	Recount string
	// Housekeeping merges tables and drops the notes of earlier counts.
	Housekeeping string
}

// Flags adds the flags of s with their defaults.
func (s *Schedules) Flags(flags *pflag.FlagSet) {
	const form = `: cron fields in UTC, "@every 10s" or "off"`
	flags.StringVar(&s.Count, "schedule-count", "@every 10s", "when rank, distribution and cohorts are brought up to date"+form)
	flags.StringVar(&s.Movers7d, "schedule-movers-7d", "@every 5m", "when the movers of 7 days are published"+form)
	flags.StringVar(&s.Movers30d, "schedule-movers-30d", "@every 5m", "when the movers of 30 days are published"+form)
	flags.StringVar(&s.Movers90d, "schedule-movers-90d", "@every 5m", "when the movers of 90 days are published"+form)
	flags.StringVar(&s.Recount, "schedule-recount", "41 2 * * *", "when everything is counted again, to check what batches made of changes"+form)
	flags.StringVar(&s.Housekeeping, "schedule-housekeeping", "17 3 * * *", "when tables are merged and notes of earlier counts dropped"+form)
}

// Args are the flags that say the same to another process.
func (s Schedules) Args() []string {
	return []string{
		"--schedule-count", s.Count, "--schedule-movers-7d", s.Movers7d, "--schedule-movers-30d", s.Movers30d, "--schedule-movers-90d", s.Movers90d,
		"--schedule-recount", s.Recount, "--schedule-housekeeping", s.Housekeeping,
	}
}

// Validate returns an error that names every schedule that cannot be read.
func (s Schedules) Validate() error {
	var faults []error
	for _, f := range []struct{ name, spec string }{
		{"count", s.Count}, {"movers-7d", s.Movers7d}, {"movers-30d", s.Movers30d}, {"movers-90d", s.Movers90d},
		{"recount", s.Recount}, {"housekeeping", s.Housekeeping},
	} {
		if f.spec == "off" {
			continue
		}
		if _, err := cron.ParseStandard(f.spec); err != nil {
			faults = append(faults, fmt.Errorf("schedule-%s %q: %w: write five cron fields, @every and a duration, or off", f.name, f.spec, err))
		}
	}
	return errors.Join(faults...)
}

// parsed is a schedule that Validate accepted, nil for "off".
func parsed(spec string) cron.Schedule {
	if spec == "off" {
		return nil
	}
	s, err := cron.ParseStandard(spec)
	if err != nil {
		panic(err) // Validate has read it
	}
	return s
}
