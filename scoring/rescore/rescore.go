// Package rescore brings stored records to the current pipeline version: it scores
// their signals again under the formulas of today. Nothing is fetched, and the
// records of the old version stay as they are.
package rescore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/scoring"
)

// Amount says how much there is to do.
type Amount struct {
	// Pending records have signals and no record of the new version at the same time.
	Pending uint64
	// Bare records have no signals, so that they cannot be scored again.
	Bare uint64
}

// Store is where the records are.
type Store interface {
	// RescoreAmount counts the records of version from, or of all others than to when
	// it is empty.
	RescoreAmount(ctx context.Context, from, to string) (Amount, error)
	// RescorePage returns the records of the next companies after a domain that have
	// pending ones: those of the versions named, whole, each once, in the order of
	// domain, time and writing. At least limit of them are pending, unless there are
	// no more. It returns none when nothing is pending.
	RescorePage(ctx context.Context, after, from, to string, limit int) ([]scoring.Record, error)
	// PutRecords stores records and returns when they are durable.
	PutRecords(ctx context.Context, records []scoring.Record) error
}

// Config says what to do. Store, To and Score are required.
type Config struct {
	Store Store
	// From is the version whose records are scored again; empty means all but To.
	From string
	// To is the current version, under which the results are stored.
	To string
	// Score computes a record again, as scoring.Rescore does.
	Score func(old scoring.Record, ref *scoring.Reference) (scoring.Record, error)
	// Page is how many records are read at once; 0 means 2000.
	Page int
	// Workers is how many pages are scored at a time; 0 means 2.
	Workers int
	// Progress is told how many of how many records are done, by one caller at a
	// time; nil means nobody.
	Progress func(done, total uint64)
}

// Validate reports all that is wrong with c.
func (c Config) Validate() error {
	var faults []error
	if c.Store == nil || c.Score == nil || c.To == "" {
		faults = append(faults, errors.New("rescore config: Store, Score and To must be set"))
	}
	if c.From == c.To && c.To != "" {
		faults = append(faults, fmt.Errorf("records of version %s are of the current version already", c.To))
	}
	if c.Page < 0 || c.Workers < 0 {
		faults = append(faults, errors.New("rescore config: Page and Workers must not be negative"))
	}
	return errors.Join(faults...)
}

// faultsKept bounds the faults that a report holds.
const faultsKept = 20

// Report says what was done.
type Report struct {
	Amount
	Rescored uint64
	Failed   uint64
	// Faults are the first that were met; a record at fault stops no other.
	Faults []error
	Took   time.Duration
}

// Run scores all pending records again. What was done before is not done again, so
// an interrupted run is simply repeated. Records that come in meanwhile are of
// the new version anyway.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	if cfg.Page == 0 {
		cfg.Page = 2000
	}
	if cfg.Workers == 0 {
		cfg.Workers = 2
	}
	began := time.Now()
	amount, err := cfg.Store.RescoreAmount(ctx, cfg.From, cfg.To)
	if err != nil {
		return Report{}, err
	}
	r := run{cfg: cfg, report: Report{Amount: amount}}
	if amount.Pending > 0 {
		err = r.all(ctx)
	}
	r.report.Took = time.Since(began)
	return r.report, err
}

type run struct {
	cfg    Config
	mu     sync.Mutex
	report Report
}

// all reads page after page and has them scored, a few at a time.
func (r *run) all(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	pages := make(chan []scoring.Record)
	work.Go(func() error {
		defer close(pages)
		for after := ""; ; {
			page, err := r.cfg.Store.RescorePage(ctx, after, r.cfg.From, r.cfg.To, r.cfg.Page)
			if err != nil || len(page) == 0 {
				return err
			}
			after = page[len(page)-1].Domain
			select {
			case pages <- page:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	for range r.cfg.Workers {
		work.Go(func() error {
			for page := range pages {
				if err := r.page(ctx, page); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// page scores the records of some companies, each company's from the oldest on, so
// that later ones can be compared with what came of earlier ones.
func (r *run) page(ctx context.Context, records []scoring.Record) error {
	var rescored []scoring.Record
	var faults []error
	for len(records) > 0 {
		n := 1
		for n < len(records) && records[n].Domain == records[0].Domain {
			n++
		}
		done, failed := r.company(records[:n])
		rescored, faults = append(rescored, done...), append(faults, failed...)
		records = records[n:]
	}
	if err := r.cfg.Store.PutRecords(ctx, rescored); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Rescored += uint64(len(rescored))
	r.report.Failed += uint64(len(faults))
	r.report.Faults = append(r.report.Faults, faults[:min(len(faults), faultsKept-len(r.report.Faults))]...)
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.report.Rescored+r.report.Failed, max(r.report.Pending, r.report.Rescored+r.report.Failed))
	}
	return nil
}

// company scores what is pending of one company.
func (r *run) company(records []scoring.Record) (rescored []scoring.Record, faults []error) {
	var earlier []scoring.Reference
	for len(records) > 0 {
		at, n := records[0].ScoredAt, 0
		var old, current *scoring.Record // of several old ones the last counts
		for ; n < len(records) && records[n].ScoredAt.Equal(at); n++ {
			if records[n].PipelineVersion == r.cfg.To {
				current = &records[n]
			} else {
				old = &records[n]
			}
		}
		records = records[n:]
		if current == nil && len(old.Signals) > 0 {
			rec, err := r.cfg.Score(*old, scoring.ReferenceAmong(earlier, at))
			if err != nil {
				faults = append(faults, fmt.Errorf("record of %s made %s: %w", old.Domain, at.Format(time.RFC3339Nano), err))
				continue
			}
			rec.PipelineVersion = r.cfg.To
			rescored = append(rescored, rec)
			current = &rescored[len(rescored)-1]
		}
		if current != nil {
			earlier = append(earlier, scoring.Reference{ScoredAt: current.ScoredAt, Base: current.Base})
		}
	}
	return rescored, faults
}
