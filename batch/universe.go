package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"companyscore/universe"
	"companyscore/universe/published"
)

// countRun says what a run publishes beside the counts.
type countRun struct {
	show []universe.Window
	full bool // count everything
}

// notesFactor is how many notes there may be for each company before everything is
// counted again, which leaves one for each.
const notesFactor = 2

// manyRecords is how many new records are too many to count them one by one: counting
// everything takes less time for each.
func manyRecords(counted uint64) uint64 { return counted/10 + 100_000 }

// count brings the tally up to date and publishes it. Whatever fails leaves what
// was published before.
func (r *Runner) count(ctx context.Context, fence int64, do countRun) (run Run, err error) {
	run.Kind = "incremental"
	at := time.Now().UTC()
	t, err := r.last(ctx)
	if err != nil {
		return run, err
	}
	position, records, err := r.cfg.Store.Position(ctx)
	if err != nil {
		return run, err
	}
	defer func() {
		if t != nil && records > 0 {
			run.Coverage = min(1, float64(t.Records)/float64(records))
		} else if records == 0 {
			run.Coverage = 1
		}
	}()
	if t != nil {
		run.Companies = uint64(t.Companies())
	}
	if t != nil && !do.full && len(do.show) == 0 && position == t.Position && records == t.Records {
		run.Kind = "same"
		return run, nil
	}
	// From here on the tally is unfinished; if anything fails the published one is read again.
	r.tally = nil
	next, why, err := r.next(ctx, t, at, records, do.full)
	if err != nil {
		return run, err
	}
	if why != "" {
		run.Kind = "full"
	}
	if why != "" && t != nil && !do.full {
		r.cfg.Logger.Info("everything is counted again", "why", why)
	}
	for w, shown := range shownBefore(t) {
		next.Shown[w] = shown
	}
	for _, w := range universe.Windows {
		if _, ok := next.Shown[w]; !ok { // what was never shown is not missing until its time comes
			next.Show(w)
		}
	}
	for _, w := range do.show {
		next.Show(w)
	}
	if why != "" && do.full && t != nil {
		run.Error = r.compare(ctx, t, next, at)
	}
	if err := published.Publish(ctx, r.cfg.Redis, next, fence); err != nil {
		return run, fmt.Errorf("universe: %w", err)
	}
	r.progress("tables published")
	r.tally, t = next, next
	run.Companies = uint64(t.Companies())
	return run, nil
}

// last returns what is published, nil when nothing fitting is.
func (r *Runner) last(ctx context.Context) (*universe.Tally, error) {
	if t := r.tally; t != nil {
		// Another process may have published since.
		generation, note, err := published.Count(ctx, r.cfg.Redis)
		if err != nil {
			return nil, err
		}
		if generation == t.Generation && note == t.Note {
			return t, nil
		}
	}
	t, err := published.Read(ctx, r.cfg.Redis)
	if errors.Is(err, universe.ErrFormat) {
		r.cfg.Logger.Warn("published universe is not readable and is made anew", "err", err)
		return nil, nil
	}
	return t, err
}

// next counts on from a tally to some records, or everything. What t counts is then of no use any
// more, what it shows and where it stood still are. why is why everything was counted,
// empty if it was not.
func (r *Runner) next(ctx context.Context, t *universe.Tally, at time.Time, records uint64, full bool) (next *universe.Tally, why string, err error) {
	switch {
	case full:
		why = "it is time"
	case t == nil:
		why = "nothing is published"
	case records > t.Records+manyRecords(t.Records):
		why = fmt.Sprintf("%d records were counted, and there are %d", t.Records, records)
	default:
		notes, err := r.cfg.Store.Notes(ctx, t.Generation)
		if err != nil {
			return nil, "", err
		}
		if companies := uint64(t.Companies()); notes > notesFactor*companies+100_000 {
			why = fmt.Sprintf("there are %d notes on %d companies", notes, companies)
			break
		}
		err = r.cfg.Store.Advance(ctx, t, at)
		if err == nil {
			r.progress("changes counted")
			return t, "", nil
		}
		if !errors.Is(err, universe.ErrLost) {
			return nil, "", err
		}
		why = err.Error()
	}
	// Housekeeping drops old notes; here it only matters that they cannot pile up.
	current := uint64(math.MaxUint64) // when nothing is published any generation is of before
	if t != nil {
		current = t.Generation
	}
	if err := r.cfg.Store.Forget(ctx, current); err != nil {
		return nil, "", err
	}
	next, err = r.cfg.Store.Count(ctx, at, universe.Limits{}, r.progress)
	return next, why, err
}

func shownBefore(t *universe.Tally) map[universe.Window]universe.Movers {
	if t == nil {
		return nil
	}
	return t.Shown
}

// compare brings the tally of before to the state of a count of everything and
// returns in what they differ: batches that count changes have then gone wrong.
func (r *Runner) compare(ctx context.Context, before, full *universe.Tally, at time.Time) string {
	if before.Position != full.Position {
		if err := r.cfg.Store.Advance(ctx, before, at); err != nil || before.Position != full.Position {
			return "" // records came in meanwhile, so that there is nothing to compare
		}
	}
	why := before.Differs(full)
	if why == "" {
		return ""
	}
	r.cfg.Logger.Error("counting everything gave another result than counting changes; the former is published", "difference", why)
	return "counting everything gave another result than counting changes: " + why
}
