package fakesources_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/internal/test/fakesources"
	"companyscore/internal/test/golden"
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

// signalsOf returns what is known of each signal, with the warnings and the completeness, a line each.
func signalsOf(rec scoring.Record) string {
	var b strings.Builder
	for _, s := range rec.Signals {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", rec.Domain, s.ID, s.State, strconv.FormatFloat(s.Raw, 'g', 9, 64), s.Reason)
	}
	for _, w := range rec.Warnings {
		fmt.Fprintf(&b, "%s\twarning\t%s\t%s\n", rec.Domain, w.Source, w.Code)
	}
	fmt.Fprintf(&b, "%s\tcompleteness\t%.1f\n", rec.Domain, rec.CompletenessPct)
	return b.String()
}

// wantInjected checks that every injected fault made its warning, and that nothing else made one.
func wantInjected(t testing.TB, fakes *fakesources.Fakes, domain string, warnings map[string]string) {
	t.Helper()
	want := make(map[string]string)
	for _, f := range fakes.Injected(domain) {
		want[f.Source] = f.Code()
	}
	got := maps.Clone(warnings)
	maps.DeleteFunc(got, func(_, code string) bool { return code == scoring.WarningDefunct })
	if !maps.Equal(got, want) {
		t.Errorf("%s: warnings %v, want %v of the faults %v", domain, got, want, fakes.Injected(domain))
	}
}

func warningsOf(rec scoring.Record) map[string]string {
	codes := make(map[string]string)
	for _, w := range rec.Warnings {
		codes[w.Source] = w.Code
	}
	return codes
}

// instant is the clock of the golden files.
var instant = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// scoreAll scores the companies of fakes at an instant each, some at a time, and returns the records
// in order.
func scoreAll(t testing.TB, fakes *fakesources.Fakes, now func() time.Time, at func(*fakesources.Company) time.Time, concurrency int,
) []scoring.Record {
	t.Helper()
	overrides := fakes.Overrides()
	client, err := fetch.New(fetch.Config{Contact: "operator@example.com", Overrides: &overrides, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	sources := source.Live(client, "", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	wait := source.RunBackground(ctx, sources)
	defer wait()
	defer cancel()
	w, err := worker.New(sources, forgetful{}, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	records := make([]scoring.Record, len(fakes.Companies))
	var running errgroup.Group
	running.SetLimit(concurrency)
	for i, c := range fakes.Companies {
		running.Go(func() (err error) {
			records[i], _, err = w.Score(ctx, scoring.Run{ID: c.Label, Domain: c.Domain, StartedAt: at(c)})
			return err
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	return records
}

// The live sources derive the signals of invented companies that testdata has, with and without
// failing servers. Every injected fault makes a warning, and nothing else does.
func TestSignalsOfInventedCompanies(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]float64{"no-faults": 0, "one-in-five-fails": 0.2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fakes, err := fakesources.Start(fakesources.Config{
				Companies: 24, Seed: *seed, Latency: time.Millisecond, Faults: share, Ranked: 2000, Dir: t.TempDir(), Scale: 10_000,
				Now: instant,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer fakes.Close()
			// Deadlines are not scaled, and machines are slow.
			records := scoreAll(t, fakes, func() time.Time { return instant }, func(*fakesources.Company) time.Time { return instant }, 3)
			var b strings.Builder
			for i, c := range fakes.Companies {
				wantInjected(t, fakes, c.Domain, warningsOf(records[i]))
				b.WriteString(signalsOf(records[i]))
			}
			if *seed == 1 {
				golden.Compare(t, "testdata/"+name+".golden", b.String())
			}
		})
	}
}
