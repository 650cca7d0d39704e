package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// Checked is what a run would store about a company.
type Checked struct {
	Record scoring.Record
	Trace  scoring.Trace
	// Err is why there is no record.
	Err error
}

// Check asks sources about companies, one company after the other, each source after those it waits
// for. It stores nothing. begin returns the start of the run of a company, given its index. The
// logger receives every failure. Check fails if ctx ends or the sources wait for each other.
func Check(ctx context.Context, sources []source.Source, domains []string, begin func(company int) time.Time, logger *slog.Logger,
) ([]Checked, error) {
	w, err := New(sources, noRecords{}, nil, prometheus.NewRegistry(), logger)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	wait := source.RunBackground(ctx, sources)
	defer wait()
	defer stop()
	for _, s := range sources {
		if b, ok := s.(source.Background); ok {
			select {
			case <-b.Ready():
			case <-ctx.Done():
			}
		}
	}
	checked := make([]Checked, len(domains))
	for i, domain := range domains {
		c := &checked[i]
		c.Record, c.Trace, c.Err = w.Score(ctx, scoring.Run{ID: "check", Domain: domain, StartedAt: begin(i)})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return checked, nil
}

// noRecords is the store of records of a check.
type noRecords struct{ RecordStore }

// Earlier returns nothing: a check has no earlier record.
func (noRecords) Earlier(context.Context, string, time.Time) (scoring.Earlier, error) {
	return scoring.Earlier{}, nil
}
