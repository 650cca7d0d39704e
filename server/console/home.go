package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"companyscore/examples"
	"companyscore/facts"
	"companyscore/internal/account"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/server/meter"
	"companyscore/universe"
)

// HomeStore has what the first page and the import of the examples read and write.
type HomeStore interface {
	Keys(ctx context.Context, accountID string) ([]account.Key, error)
	Latest(ctx context.Context, domain string) (scoring.Record, error)
	// FreshSince returns the domains with a record of the current pipeline version since an instant.
	FreshSince(ctx context.Context, domains []string, at time.Time) (map[string]time.Time, error)
	facts.Store
}

// homeBody is the first page.
type homeBody struct {
	Companies    int64 // 0 without any
	Counted      bool
	Distribution universe.Distribution
	Histogram    histogram
	Examples     int // number of example companies
	Keys         int // that are not revoked
	Usage        meter.Usage
	Cold         budget
	Movers       []universe.Mover
}

func (c *Console) home(v *visit) error {
	body := homeBody{Examples: len(exampleDomains())}
	if tables := c.Universe.Tables(c.now()); tables != nil {
		d := tables.Distribution()
		body.Counted, body.Companies, body.Distribution = true, d.Count, d
		body.Histogram = newHistogram(d.CompositeHist[:], 100, -1, "the composite", fullWidth)
		if list, ok := tables.Movers().Lists[universe.Month]; ok {
			gainers, _ := withData(list.Gainers, hasData)
			body.Movers = gainers[:min(len(gainers), 5)]
		}
	}
	if body.Companies == 0 { // the count may be older than the first score
		if _, scored, err := c.importState(v); err != nil {
			return err
		} else if scored > 0 {
			body.Companies = int64(scored)
		}
	}
	keys, err := c.Stores.Home.Keys(v.ctx(), v.account.ID)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key.RevokedAt.IsZero() {
			body.Keys++
		}
	}
	if body.Usage, err = c.Meter.Usage(v.ctx(), v.account, c.now()); err != nil {
		return err
	}
	body.Cold = newBudget("Cold calls", body.Usage.ColdCalls, body.Usage.Limits.ColdCallsIncluded, "")
	return v.render("home", "Overview", "home", body)
}

// exampleDomains returns the domains of the examples.
var exampleDomains = sync.OnceValue(func() []string { return examples.Domains(examples.Companies) })

// importExamples imports the facts of the examples and starts their runs.
func (c *Console) importExamples(v *visit) error {
	if err := v.audit(table.ImportStarted, "examples", fmt.Sprintf("%d companies", len(exampleDomains()))); err != nil {
		return err
	}
	report, err := facts.ImportCSV(v.ctx(), c.Stores.Home, examples.Companies.Name, examples.Companies.Text, facts.Options{})
	if err == nil && len(report.Faults) > 0 {
		err = report.Faults[0]
	}
	if err != nil {
		return err
	}
	// A repeated import starts runs only for what has no score.
	scored, err := c.Stores.Home.FreshSince(v.ctx(), exampleDomains(), time.UnixMilli(0))
	if err != nil {
		return err
	}
	var missing []string
	for _, domain := range exampleDomains() {
		if _, ok := scored[domain]; !ok {
			missing = append(missing, domain)
		}
	}
	if _, err := c.Queue.Start(v.ctx(), scoring.LaneBulk, missing...); err != nil {
		return err
	}
	return v.redirect("/examples")
}

// progressBody is the page of an import.
type progressBody struct {
	Total, Scored, Open int
	Counted             bool // the statistics include them
	First               []scoring.Record
}

// Percent returns how much is done.
func (b progressBody) Percent() int { return 100 * b.Scored / max(b.Total, 1) }

// Done reports whether no run is open.
func (b progressBody) Done() bool { return b.Scored >= b.Total || b.Open == 0 }

// refresh loads the page again until the runs have ended and are counted.
func (b progressBody) refresh() int { return map[bool]int{true: 1}[!b.Done()] }

// importState returns the number of runs in flight, and of examples that have a score.
func (c *Console) importState(v *visit) (open, scored int, err error) {
	status, err := c.Queue.Status(v.ctx())
	if err != nil {
		return 0, 0, err
	}
	fresh, err := c.Stores.Home.FreshSince(v.ctx(), exampleDomains(), time.UnixMilli(0))
	return status.Open(), len(fresh), err
}

func (c *Console) examplesProgress(v *visit) (err error) {
	body := progressBody{Total: len(exampleDomains())}
	if body.Open, body.Scored, err = c.importState(v); err != nil {
		return err
	}
	if tables := c.Universe.Tables(c.now()); tables != nil {
		body.Counted = tables.Distribution().Count > 0
	}
	if body.Scored > 0 {
		for _, domain := range []string{"apple.com", "zapier.com"} {
			if rec, err := c.Stores.Home.Latest(v.ctx(), domain); err == nil {
				body.First = append(body.First, rec)
			}
		}
	}
	return v.render("examples", "Import of the examples", "home", body)
}
