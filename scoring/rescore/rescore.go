// Package rescore computes stored records again with the current formulas and stores them under
// the current pipeline version. It uses no source, and does not change the old records.
package rescore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/table"
	"companyscore/scoring"
)

// Store is the store of the records.
type Store interface {
	// RescoreAmount counts the records of version from, or of all versions but to if from is
	// empty.
	RescoreAmount(ctx context.Context, from, to string) (table.RescoreAmount, error)
	// RescorePage returns the next companies after a domain that have pending records, with all
	// their records of the given versions, each once, sorted by domain, time and insertion. At
	// least limit of them are pending, unless there are fewer. It returns none if nothing is
	// pending.
	RescorePage(ctx context.Context, after, from, to string, limit int) ([]scoring.Record, error)
	// PutRecords stores records and returns when they are durable.
	PutRecords(ctx context.Context, records []scoring.Record) error
}

// Config configures Run. Store, To and Score are required.
type Config struct {
	Store Store
	// From is the version to rescore; empty means all but To.
	From string
	// To is the current version, under which the results are stored.
	To string
	// Score computes a record again; see scoring.Rescore.
	Score func(old scoring.Record, ref *scoring.Reference) (scoring.Record, error)
	// Page is the number of pending records per page; 0 means 2000.
	Page int
	// Workers is the number of pages that are scored concurrently; 0 means 2.
	Workers int
	// Progress is called with the numbers of finished and of all records, by one goroutine at a
	// time; nil disables it.
	Progress func(done, total uint64)
}

// Validate returns all errors of the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.Store == nil || c.Score == nil || c.To == "" {
		faults = append(faults, errors.New("rescore config: Store, Score and To must be set"))
	}
	if c.From == c.To && c.To != "" {
		faults = append(faults, fmt.Errorf("version %s is the current version", c.To))
	}
	if c.Page < 0 || c.Workers < 0 {
		faults = append(faults, errors.New("rescore config: Page and Workers must not be negative"))
	}
	return errors.Join(faults...)
}

// faultsKept bounds the faults in a report.
const faultsKept = 20

// Report is the result of Run.
type Report struct {
	table.RescoreAmount
	Rescored uint64
	Failed   uint64
	// Faults are the first failures. A failed record does not stop the others.
	Faults []error
	Took   time.Duration
}

// Run scores all pending records again. Finished records are not pending, so an interrupted run
// can be repeated. New records have the current version and are never pending.
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
	r := run{cfg: cfg, report: Report{RescoreAmount: amount}}
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

// all reads pages and scores them concurrently.
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

// page scores the records of some companies. It scores each company from the oldest record on, so
// that earlier results are the references of later ones.
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

// company scores the pending records of one company.
func (r *run) company(records []scoring.Record) (rescored []scoring.Record, faults []error) {
	var earlier []scoring.Reference
	for len(records) > 0 {
		at, n := records[0].ScoredAt, 0
		var old, current *scoring.Record // the last of several old ones counts
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
				faults = append(faults, fmt.Errorf("record of %s scored at %s: %w", old.Domain, at.Format(time.RFC3339Nano), err))
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
