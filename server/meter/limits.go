// Package meter counts what accounts consume and decides whether a cold call may
// start: the monthly budget and both circuit breakers, in one atomic step.
//
// Counters live in Redis. A copy goes to ClickHouse within a second, and each of
// the two can be rebuilt from the other.
package meter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gopkg.in/yaml.v3"

	"companyscore/server/account"
)

// Tier holds the limits of one tier. A nil number means unmetered.
type Tier struct {
	// FreshnessWindow is the age up to which a stored score is served without a cold run.
	FreshnessWindow     time.Duration `yaml:"freshness_window"`
	CachedCallsIncluded *int64        `yaml:"cached_calls_included"`
	ColdCallsIncluded   *int64        `yaml:"cold_calls_included"`
}

// Limits holds everything that can be set in the file given by --tiers.
type Limits struct {
	Tiers    map[account.Tier]Tier `yaml:"tiers"`
	Breakers Breakers              `yaml:"breakers"`
	// JobTTL is how long a job can be polled after it was made.
	JobTTL time.Duration `yaml:"job_ttl"`
	// RunDeadline bounds one attempt at a cold run.
	RunDeadline time.Duration `yaml:"run_deadline"`
}

// Breakers stop bursts of cold calls within sliding windows.
type Breakers struct {
	ColdPerKey struct {
		Limit  int64         `yaml:"limit"`
		Window time.Duration `yaml:"window"`
	} `yaml:"cold_per_key"`
	// ColdPerAccount allows a multiple of the tier's monthly budget.
	ColdPerAccount struct {
		BudgetMultiple int64         `yaml:"budget_multiple"`
		Window         time.Duration `yaml:"window"`
	} `yaml:"cold_per_account"`
}

// DefaultLimits returns the limits that hold when no file says otherwise.
func DefaultLimits() Limits {
	tier := func(window time.Duration, cached, cold int64) Tier {
		return Tier{FreshnessWindow: window, CachedCallsIncluded: &cached, ColdCallsIncluded: &cold}
	}
	l := Limits{
		Tiers: map[account.Tier]Tier{
			account.Free:       tier(7*24*time.Hour, 1_000, 0),
			account.Starter:    tier(24*time.Hour, 10_000, 100),
			account.Growth:     tier(6*time.Hour, 100_000, 1_000),
			account.Scale:      tier(time.Hour, 1_000_000, 10_000),
			account.Enterprise: {FreshnessWindow: 15 * time.Minute},
		},
		JobTTL:      30 * 24 * time.Hour,
		RunDeadline: 90 * time.Second,
	}
	l.Breakers.ColdPerKey.Limit, l.Breakers.ColdPerKey.Window = 200, time.Hour
	l.Breakers.ColdPerAccount.BudgetMultiple, l.Breakers.ColdPerAccount.Window = 2, 24*time.Hour
	return l
}

// LoadLimits reads a YAML file over the defaults; a file names only what it
// changes, and an empty path changes nothing. The error joins all faults.
func LoadLimits(path string) (Limits, error) {
	if path == "" {
		return DefaultLimits(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Limits{}, fmt.Errorf("read limits: %w", err)
	}
	l, err := parseLimits(text)
	if err != nil {
		return Limits{}, fmt.Errorf("limits in %s:\n%w", path, err)
	}
	return l, nil
}

func parseLimits(text []byte) (Limits, error) {
	// yaml.v3 replaces the values of a map as a whole, so tiers are read over
	// their defaults one by one.
	l := DefaultLimits()
	var file struct {
		Tiers       map[account.Tier]yaml.Node `yaml:"tiers"`
		Breakers    *Breakers                  `yaml:"breakers"`
		JobTTL      *time.Duration             `yaml:"job_ttl"`
		RunDeadline *time.Duration             `yaml:"run_deadline"`
	}
	file.Breakers, file.JobTTL, file.RunDeadline = &l.Breakers, &l.JobTTL, &l.RunDeadline
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var faults []error
	if err := dec.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		faults = append(faults, err)
	}
	for name, node := range file.Tiers {
		if _, err := account.ParseTier(string(name)); err != nil {
			faults = append(faults, fmt.Errorf("tiers, line %d: %w", node.Line, err))
			continue
		}
		tier := l.Tiers[name]
		if err := decodeTier(&node, &tier); err != nil {
			faults = append(faults, fmt.Errorf("tiers.%s: %w", name, err))
			continue
		}
		l.Tiers[name] = tier
	}
	return l, errors.Join(append(faults, l.validate())...)
}

// decodeTier reads a tier and refuses fields it does not know, which Node.Decode
// alone would pass over.
func decodeTier(node *yaml.Node, tier *Tier) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	return dec.Decode(tier)
}

func (l Limits) validate() error {
	var faults []error
	positive := func(name string, ok bool) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s must be greater than 0", name))
		}
	}
	for _, name := range account.Tiers {
		tier := l.Tiers[name]
		positive(fmt.Sprintf("tiers.%s.freshness_window", name), tier.FreshnessWindow > 0)
		for field, n := range map[string]*int64{"cached_calls_included": tier.CachedCallsIncluded, "cold_calls_included": tier.ColdCallsIncluded} {
			if n != nil && *n < 0 {
				faults = append(faults, fmt.Errorf("tiers.%s.%s must be 0 or more, or null for unmetered", name, field))
			}
		}
	}
	positive("breakers.cold_per_key.limit", l.Breakers.ColdPerKey.Limit > 0)
	positive("breakers.cold_per_key.window", l.Breakers.ColdPerKey.Window > 0)
	positive("breakers.cold_per_account.budget_multiple", l.Breakers.ColdPerAccount.BudgetMultiple > 0)
	positive("breakers.cold_per_account.window", l.Breakers.ColdPerAccount.Window > 0)
	positive("job_ttl", l.JobTTL > 0)
	positive("run_deadline", l.RunDeadline > 0)
	return errors.Join(faults...)
}
