package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"companyscore/batch/jobs"
	"companyscore/internal/queue"
	"companyscore/internal/table"
	"companyscore/scoring"
)

const (
	// healthRuns is the number of the newest runs whose sources a page shows, within healthSpan.
	healthRuns = 200
	healthSpan = 24 * time.Hour
	// importsMax is the number of the newest imports that a page shows.
	importsMax = 20
)

// DataStore has what the page of data reads.
type DataStore interface {
	// SourceHealth returns how often each source answered in the newest runs since an instant.
	SourceHealth(ctx context.Context, since time.Time, runs int) ([]scoring.SourceHealth, error)
	// Imports returns the newest imports of facts and removals of origins, the newest first.
	Imports(ctx context.Context, limit int) ([]table.FactsImport, error)
}

type dataBody struct {
	Counted   bool
	CountedAt time.Time
	Companies int64
	Version   string
	Refresh   *table.Refreshed // nil before the first run of the refresh job
	RefreshAt time.Time
	Sources   []source
	Jobs      []batchJob
	Imports   []table.FactsImport
	Queue     queue.Status
}

// source is the health of one source.
type source struct {
	scoring.SourceHealth
	Signals int // that name it in the manifest
	Percent float64
}

// batchJob is the last run of a cron job.
type batchJob struct {
	Name string
	Ran  bool
	jobs.Status
}

func (c *Console) data(v *visit) (err error) {
	var body dataBody
	if tables := c.Universe.Tables(c.now()); tables != nil {
		body.Counted, body.CountedAt, body.Companies, body.Version = true, tables.At(), tables.Distribution().Count,
			tables.PipelineVersion()
	}
	status, err := jobs.ReadStatus(v.ctx(), c.Redis)
	if err != nil {
		return err
	}
	for _, name := range jobs.Names() {
		s, ran := status[name]
		body.Jobs = append(body.Jobs, batchJob{name, ran, s})
		if s.Refresh != nil {
			body.Refresh, body.RefreshAt = s.Refresh, s.Good
		}
	}
	if body.Queue, err = c.Queue.Status(v.ctx()); err != nil {
		return err
	}
	health, err := c.Stores.Data.SourceHealth(v.ctx(), c.now().Add(-healthSpan), healthRuns)
	if err != nil {
		return err
	}
	body.Sources = sources(health)
	if body.Imports, err = c.Stores.Data.Imports(v.ctx(), importsMax); err != nil {
		return err
	}
	return v.render("data", "Data", "data", body)
}

// sources adds the signals of the manifest to the health of sources, the most asked first.
func sources(health []scoring.SourceHealth) []source {
	all := make([]source, len(health))
	for i, h := range health {
		all[i] = source{h, scoring.SignalsFrom(h.Source), 100 * float64(h.Answered) / float64(max(h.Asked, 1))}
	}
	slices.SortFunc(all, func(a, b source) int {
		return cmp.Or(cmp.Compare(b.Signals, a.Signals), cmp.Compare(a.Source, b.Source))
	})
	return all
}
