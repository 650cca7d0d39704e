package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// Check asks sources about one company, each after those it waits for, and returns the record and
// the trace that a run would store. It stores nothing. The logger receives every failure.
func Check(ctx context.Context, sources []source.Source, domain string, logger *slog.Logger) (scoring.Record, scoring.Trace, error) {
	w, err := New(sources, noRecords{}, nil, prometheus.NewRegistry(), logger)
	if err != nil {
		return scoring.Record{}, scoring.Trace{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	wait := source.RunBackground(ctx, sources)
	rec, trace, err := w.Score(ctx, scoring.Run{ID: "check", Domain: domain, StartedAt: time.Now()})
	stop()
	wait()
	return rec, trace, err
}

// noRecords is the store of records of a check.
type noRecords struct{ RecordStore }

// Earlier returns nothing: a check has no earlier record.
func (noRecords) Earlier(context.Context, string, time.Time) (scoring.Earlier, error) {
	return scoring.Earlier{}, nil
}
