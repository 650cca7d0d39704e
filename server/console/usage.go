package console

import (
	"context"
	"html/template"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/table"
	"companyscore/server/meter"
)

// UsageStore has what the page of usage reads.
type UsageStore interface {
	Keys(ctx context.Context, accountID string) ([]account.Key, error)
	// RequestGroups returns the requests of an account from a minute until before another, by "day",
	// "key" or "route".
	RequestGroups(ctx context.Context, accountID string, from, to time.Time, by string) ([]table.RequestGroup, error)
}

// usageBody is the page of the calls of an account in this month.
type usageBody struct {
	meter.Usage
	Breakers          meter.BreakerUse
	Cold, Cached      budget
	Days              []table.RequestGroup
	Chart             template.HTML
	ByKey, ByRoute    []table.RequestGroup
	Calls             uint64
	KeyNames          map[string]string
	NextReset, Window time.Time
}

// budget is how much of a number of calls is used.
type budget struct {
	Name        string
	Used, Limit int64
	Unmetered   bool
	Note        string
}

// Percent returns the used part, at most 100.
func (b budget) Percent() float64 {
	if b.Unmetered || b.Limit == 0 {
		return 0
	}
	return min(100*float64(b.Used)/float64(b.Limit), 100)
}

// State returns how much is left, as a class.
func (b budget) State() string {
	switch p := b.Percent(); {
	case p >= 100:
		return "full"
	case p >= 80:
		return "high"
	}
	return "fine"
}

func newBudget(name string, used int64, limit *int64, note string) budget {
	b := budget{Name: name, Used: used, Unmetered: limit == nil, Note: note}
	if limit != nil {
		b.Limit = *limit
	}
	return b
}

func (c *Console) usage(v *visit) error {
	now := c.now()
	u, err := c.Meter.Usage(v.ctx(), v.account, now)
	if err != nil {
		return err
	}
	keys, err := c.Stores.Usage.Keys(v.ctx(), v.account.ID)
	if err != nil {
		return err
	}
	body := usageBody{
		Usage: u, NextReset: u.NextReset, KeyNames: make(map[string]string),
		Cold: newBudget("Cold calls", u.ColdCalls, u.Limits.ColdCallsIncluded,
			"POST /v1/score that starts a run. At the limit further ones get 429."),
		Cached: newBudget("Cached calls", u.CachedCalls, u.Limits.CachedCallsIncluded,
			"Stored scores that were read. They are counted and never refused."),
	}
	var ids []string
	for _, key := range keys {
		body.KeyNames[key.ID] = key.Name
		if key.RevokedAt.IsZero() {
			ids = append(ids, key.ID)
		}
	}
	if body.Breakers, err = c.Meter.Breakers(v.ctx(), v.account, ids, now); err != nil {
		return err
	}
	from, to := u.LastReset, now.Add(time.Minute).Truncate(time.Minute)
	for _, by := range []struct {
		name string
		into *[]table.RequestGroup
	}{{"day", &body.Days}, {"key", &body.ByKey}, {"route", &body.ByRoute}} {
		if *by.into, err = c.Stores.Usage.RequestGroups(v.ctx(), v.account.ID, from, to, by.name); err != nil {
			return err
		}
	}
	body.Chart = dailyChart(body.Days, u.LastReset, u.NextReset)
	for _, d := range body.Days {
		body.Calls += d.Calls
	}
	return v.render("usage", "Usage", "usage", body)
}
