package fakesources_test

import (
	"context"
	"flag"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/internal/test/fakesources"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/worker"
)

var seed = flag.Uint64("seed", 1, "seed of the invented companies and faults")

// forgetful is a history without records.
type forgetful struct{ worker.RecordStore }

func (forgetful) Earlier(context.Context, string, time.Time) (scoring.Earlier, error) {
	return scoring.Earlier{}, nil
}

func outcome(rec scoring.Record) fakesources.Outcome {
	got := fakesources.Outcome{ScoredAt: rec.ScoredAt, CompletenessPct: rec.CompletenessPct, Signals: make(map[string]fakesources.Seen),
		Warnings: make(map[string]string)}
	for _, s := range rec.Signals {
		got.Signals[s.ID] = fakesources.Seen{State: s.State, Raw: s.Raw, Reason: s.Reason}
	}
	for _, w := range rec.Warnings {
		got.Warnings[w.Source] = w.Code
	}
	return got
}

// The live sources derive the signals from the data of invented companies. Every injected fault
// makes a warning, and nothing else does.
func TestSignalsFollowFromFacts(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]float64{"no faults": 0, "one in five fails": 0.2} {
		t.Run(name, func(t *testing.T) {
			fakes, err := fakesources.Start(fakesources.Config{
				Companies: 24, Seed: *seed, Latency: time.Millisecond, Faults: share, Ranked: 2000, Dir: t.TempDir(), Scale: 10_000,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer fakes.Close()
			overrides := fakes.Overrides()
			client, err := fetch.New(fetch.Config{Contact: "operator@example.com", Overrides: &overrides})
			if err != nil {
				t.Fatal(err)
			}
			sources := source.Live(client, "", slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var background sync.WaitGroup
			defer background.Wait()
			for _, s := range sources {
				if b, ok := s.(source.Background); ok {
					background.Go(func() { b.Run(ctx) })
				}
			}
			w, err := worker.New(sources, forgetful{}, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			var running errgroup.Group
			running.SetLimit(3) // deadlines are not scaled, and machines are slow
			for _, c := range fakes.Companies {
				running.Go(func() error {
					rec, _, err := w.Score(ctx, scoring.Run{ID: c.Label, Domain: c.Domain, StartedAt: time.Now()})
					if err != nil {
						t.Error(err)
						return nil
					}
					if faults := fakes.Check(c, outcome(rec)); faults != nil {
						t.Errorf("%v\n%s", fakes.Injected(c.Domain), strings.Join(faults, "\n"))
					}
					return nil
				})
			}
			_ = running.Wait()
			cancel()
		})
	}
}
