package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/go-faster/city"
	"golang.org/x/sync/errgroup"

	"companyscore/scoring"
	"companyscore/sql"
	"companyscore/universe"
)

var (
	universePosition     = sql.Query("universe_position")
	universeThreads      = sql.Query("universe_threads")
	universeCount        = sql.Query("universe_count")
	universeTouch        = sql.Query("universe_touch")
	universeTouchedCount = sql.Query("universe_touched_count")
	universeAdvance      = sql.Query("universe_advance")
	universeSteps        = sql.Query("universe_steps")
	universeSums         = sql.Query("universe_sums")
	universeDeltas       = sql.Query("universe_deltas")
	universeLeaders      = sql.Query("universe_leaders")
	universeCome         = sql.Query("universe_come")
	universeGone         = sql.Query("universe_gone")
	universeNames        = sql.Query("universe_names")
	universeStanding     = sql.Query("universe_standing")
	universeGenerations  = sql.Query("universe_generations")
	universeForget       = sql.Query("universe_forget")
	universeBatches      = sql.Query("universe_batches")
	universeUntouch      = sql.Query("universe_untouch")
	universeNewestNote   = sql.Query("universe_newest_note")
)

// Universe counts companies. It keeps notes in the table universe_company; one
// process at a time may count, see batch.
type Universe struct {
	db *DB
	// recordsMax is how many records may be grouped at a time, and changesMax how many
	// of those that came, which bounds the memory. Up to fewMax a second query costs
	// more than it saves.
	recordsMax, changesMax, fewMax uint64
}

// NewUniverse returns the statistics of a database.
func NewUniverse(db *DB) *Universe { return &Universe{db, 5_000_000, 1_000_000, 20_000} }

// companies is a range of hashes of companies, both ends in it.
type companies struct{ first, last uint64 }

func (c companies) args() []any { return []any{ch.Named("first", c.first), ch.Named("last", c.last)} }

// ranges cuts all companies into n ranges of equal width.
func ranges(n uint64) []companies {
	width := (math.MaxUint64-n+1)/n + 1 // 2^64 by n, rounded up; wraps to 0 when there is one range
	all := make([]companies, n)
	for i := range all {
		all[i] = companies{uint64(i) * width, uint64(i+1)*width - 1}
	}
	all[n-1].last = math.MaxUint64
	return all
}

// inPasses runs a query on all companies, some of them at a time so that no more than
// limit of n records are grouped at once. As many passes as the engine has threads for run side by side,
// with one thread each: threads that group the same companies have to bring together what they found, which costs a
// quarter more. done is told how many passes are through, one call at a time.
func (u *Universe) inPasses(ctx context.Context, n, limit uint64, query string, args []any, done func(pass, passes int)) error {
	var row struct {
		Threads uint64 `ch:"threads"`
	}
	if _, err := u.db.first(ctx, &row, universeThreads); err != nil {
		return fmt.Errorf("ask for the number of threads: %w", err)
	}
	threads := max(row.Threads, 1)
	all := ranges(1)
	if n > u.fewMax {
		all = ranges(((n-1)/limit + 1) * threads)
	}
	var through int
	var telling sync.Mutex
	passes, ctx := errgroup.WithContext(ctx)
	passes.SetLimit(int(threads))
	for _, of := range all {
		passes.Go(func() error {
			if err := u.db.exec(ctx, query, slices.Concat(args, of.args())...); err != nil {
				return err
			}
			telling.Lock()
			defer telling.Unlock()
			through++
			done(through, len(all))
			return nil
		})
	}
	return passes.Wait()
}

// Position returns the last insert that can be seen and how many records all
// inserts up to it brought.
func (u *Universe) Position(ctx context.Context) (position, records uint64, err error) {
	var row struct {
		Position int64  `ch:"position"`
		Records  uint64 `ch:"records"`
	}
	if _, err := u.db.first(ctx, &row, universePosition); err != nil {
		return 0, 0, fmt.Errorf("position of the records: %w", err)
	}
	return uint64(max(row.Position, 0)), row.Records, nil
}

// windowStarts are the parameters of the windows that end at an instant.
func windowStarts(end time.Time, prefix string) []any {
	args := []any{ch.Named(prefix+"end_ms", millis(end))}
	for _, w := range universe.Windows {
		args = append(args, ch.Named(prefix+"start_"+string(w)+"_ms", millis(end.Add(-w.Length()))))
	}
	return args
}

// Count counts everything that was inserted by now and scored by an instant, of
// the current pipeline version. progress is told after each step.
func (u *Universe) Count(ctx context.Context, at time.Time, limits universe.Limits, progress func(step string)) (*universe.Tally, error) {
	at = at.UTC().Truncate(time.Millisecond)
	position, records, err := u.Position(ctx)
	if err != nil {
		return nil, err
	}
	t := universe.NewTally(scoring.PipelineVersion, 0, limits)
	for t.Generation = uint64(time.Now().UnixMilli()); ; t.Generation++ { // two counts may begin in one millisecond
		generations, err := u.generations(ctx)
		if err != nil {
			return nil, err
		}
		if _, ok := slices.BinarySearch(generations, t.Generation); !ok {
			break
		}
	}
	args := append(windowStarts(at, ""), ch.Named("generation", t.Generation), ch.Named("note", t.Generation), ch.Named("position", position),
		ch.Named("version", t.PipelineVersion))
	err = u.inPasses(ctx, records, u.recordsMax, universeCount, args, func(pass, passes int) {
		progress(fmt.Sprintf("records grouped by company, pass %d of %d", pass, passes))
	})
	if err != nil {
		return nil, fmt.Errorf("count the universe: %w", err)
	}
	change := universe.Change{Note: t.Generation, Position: position, Records: records, At: at}
	var up, down [3]int64
	var f floors
	both, counting := errgroup.WithContext(ctx)
	both.Go(func() error { return u.counts(counting, t.Generation, &change) })
	both.Go(func() (err error) {
		up, down, err = u.changes(counting, t, &f)
		return err
	})
	if err := both.Wait(); err != nil {
		return nil, err
	}
	f.ofCohorts(change.Steps, t.Limits().MembersKept)
	progress("companies counted by cohort")
	if err := u.come(ctx, t, universeLeaders, f, []any{ch.Named("version", t.PipelineVersion)}, &change); err != nil {
		return nil, err
	}
	if err := t.Add(change); err != nil {
		return nil, err
	}
	if err := t.Trim(up, down); err != nil {
		return nil, err
	}
	t.Full = at
	progress("leaders of cohorts and movers found")
	return t, nil
}

// Advance counts what was inserted since the tally's position, and what time has
// passed since. The error wraps ErrLost of the universe when only counting everything helps; the
// tally must not be used any more after an error.
func (u *Universe) Advance(ctx context.Context, t *universe.Tally, at time.Time) error {
	at = at.UTC().Truncate(time.Millisecond)
	position, records, err := u.Position(ctx)
	if err != nil {
		return err
	}
	switch {
	case t.PipelineVersion != scoring.PipelineVersion:
		return fmt.Errorf("%w: they are of pipeline version %s", universe.ErrLost, t.PipelineVersion)
	case position < t.Position, records < t.Records, position == t.Position && records != t.Records:
		return fmt.Errorf("%w: %d records up to insert %d were counted, and there are %d up to %d", universe.ErrLost, t.Records, t.Position, records, position)
	case at.Before(t.At):
		return fmt.Errorf("%w: the clock went back from %s to %s", universe.ErrLost, t.At.Format(time.RFC3339), at.Format(time.RFC3339))
	}
	var newest struct {
		Note uint64 `ch:"note"`
	}
	if _, err := u.db.first(ctx, &newest, universeNewestNote, ch.Named("generation", t.Generation)); err != nil {
		return fmt.Errorf("find the newest note: %w", err)
	}
	switch {
	case newest.Note == 0 && t.Companies() > 0:
		return fmt.Errorf("%w: generation %d is gone", universe.ErrLost, t.Generation)
	case newest.Note > t.Note: // they would be taken for what was counted
		return fmt.Errorf("%w: there are notes of batch %d, which was not published", universe.ErrLost, newest.Note)
	}
	note := max(uint64(time.Now().UnixMilli()), t.Note+1)
	notes := []any{ch.Named("generation", t.Generation), ch.Named("note", note)}
	inserts := []any{ch.Named("version", t.PipelineVersion), ch.Named("since", t.Position), ch.Named("position", position)}
	windows := slices.Concat(windowStarts(at, ""), windowStarts(t.At, "was_"))
	untouch := func() error { return u.untouch(context.WithoutCancel(ctx), note) }
	if err := u.db.exec(ctx, universeTouch, slices.Concat([]any{ch.Named("note", note)}, inserts, windows)...); err != nil {
		return errors.Join(fmt.Errorf("find what changed: %w", err), untouch())
	}
	var touched struct {
		Records uint64 `ch:"records"`
	}
	if _, err := u.db.first(ctx, &touched, universeTouchedCount, ch.Named("note", note)); err != nil {
		return errors.Join(fmt.Errorf("count what is touched: %w", err), untouch())
	}
	args := slices.Concat(notes, inserts, windows, []any{ch.Named("was_note", t.Note)})
	if err := u.inPasses(ctx, touched.Records, u.changesMax, universeAdvance, args, func(int, int) {}); err != nil {
		return errors.Join(fmt.Errorf("count what changed: %w", err), untouch())
	}
	change := universe.Change{Note: note, Position: position, Records: records, At: at}
	f := floorsOf(t)
	all, reading := errgroup.WithContext(ctx) // each fills in fields of its own
	all.Go(func() error { return u.counts(reading, t.Generation, &change) })
	all.Go(func() error { return u.gone(reading, t, f, &change) })
	all.Go(func() error { return u.come(reading, t, universeCome, f, inserts, &change) })
	all.Go(untouch)
	if err := all.Wait(); err != nil {
		return err
	}
	if err := t.Add(change); err != nil {
		return fmt.Errorf("%w: %w", universe.ErrLost, err)
	}
	if t.Short() {
		return fmt.Errorf("%w: too many of the first have fallen back", universe.ErrLost)
	}
	return nil
}

// generations lists the generations of the notes in rising order.
func (u *Universe) generations(ctx context.Context) ([]uint64, error) {
	var rows []struct {
		Generation uint64 `ch:"generation"`
		Notes      uint64 `ch:"notes"`
	}
	if err := u.db.list(ctx, &rows, universeGenerations); err != nil {
		return nil, fmt.Errorf("list generations: %w", err)
	}
	generations := make([]uint64, len(rows))
	for i, row := range rows {
		generations[i] = row.Generation
	}
	return generations, nil
}

// untouch drops what a batch touched.
func (u *Universe) untouch(ctx context.Context, note uint64) error {
	if err := u.db.exec(ctx, universeUntouch, ch.Named("note", note)); err != nil {
		return fmt.Errorf("drop what batch %d touched: %w", note, err)
	}
	return nil
}

// Notes is how many notes a generation has.
func (u *Universe) Notes(ctx context.Context, generation uint64) (uint64, error) {
	var rows []struct {
		Generation uint64 `ch:"generation"`
		Notes      uint64 `ch:"notes"`
	}
	if err := u.db.list(ctx, &rows, universeGenerations); err != nil {
		return 0, fmt.Errorf("list generations: %w", err)
	}
	for _, row := range rows {
		if row.Generation == generation {
			return row.Notes, nil
		}
	}
	return 0, nil
}

// Forget drops the notes of all generations but one and the one before it, which
// servers may still look into, and what batches touched that died before that one. A batch that is
// under way is younger than the generation it goes on from.
func (u *Universe) Forget(ctx context.Context, current uint64) error {
	generations, err := u.generations(ctx)
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearch(generations, current)
	for _, generation := range generations[:max(0, i-1)] {
		if err := u.db.exec(ctx, universeForget, ch.Named("generation", generation)); err != nil {
			return fmt.Errorf("drop generation %d: %w", generation, err)
		}
	}
	var batches []struct {
		Note uint64 `ch:"note"`
	}
	if err := u.db.few(ctx, &batches, universeBatches); err != nil {
		return fmt.Errorf("list batches: %w", err)
	}
	for _, batch := range batches {
		if batch.Note > current {
			break
		}
		if err := u.untouch(ctx, batch.Note); err != nil {
			return err
		}
	}
	return nil
}

// counts reads what the notes of a batch change.
func (u *Universe) counts(ctx context.Context, generation uint64, c *universe.Change) error {
	args := []any{ch.Named("generation", generation), ch.Named("note", c.Note)}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		err := u.db.each(ctx, universeSteps, args, func(scan func(...any) error) error {
			var cohort uint64
			var step uint16
			var n int64
			if err := scan(&cohort, &step, &n); err != nil {
				return err
			}
			c.Steps = append(c.Steps, universe.StepChange{Cohort: cohort, Step: int(step), Count: n})
			return nil
		})
		if err != nil {
			return fmt.Errorf("count by composite: %w", err)
		}
		return nil
	})
	both.Go(func() error {
		err := u.db.each(ctx, universeSums, args, func(scan func(...any) error) error {
			var s universe.SumChange
			var bin uint8
			var n int64
			if err := scan(&s.Cohort, &bin, &n, &s.Sums.TeamStructure, &s.Sums.MarketPosition, &s.Sums.MomentumTailwinds, &s.Sums.FinancialHealth); err != nil {
				return err
			}
			c.Premium[min(int(bin), universe.PremiumBins-1)] += n
			c.Sums = append(c.Sums, s)
			return nil
		})
		if err != nil {
			return fmt.Errorf("sum by cohort: %w", err)
		}
		return nil
	})
	return both.Wait()
}

// floors are what a standing must reach to be of interest.
type floors struct {
	cohorts    []uint64
	composites []uint16
	up, down   [3]int16
}

func (f floors) args() []any {
	args := []any{ch.Named("cohorts", f.cohorts), ch.Named("floors", f.composites)}
	for i, w := range universe.Windows {
		args = append(args, ch.Named("up_"+string(w), f.up[i]), ch.Named("down_"+string(w), f.down[i]))
	}
	return args
}

// floorsOf are those that the rankings of a tally set.
func floorsOf(t *universe.Tally) floors {
	var f floors
	for id, c := range t.Cohorts {
		if floor := c.Top.Floor(0); floor > 0 {
			f.cohorts, f.composites = append(f.cohorts, id), append(f.composites, uint16(floor))
		}
	}
	for i, w := range universe.Windows {
		f.up[i] = int16(t.Movers[w].Up.Floor(1))
		f.down[i] = int16(-t.Movers[w].Down.Floor(1))
	}
	return f
}

// ofCohorts sets the floors that as many companies of each cohort reach as are kept.
func (f *floors) ofCohorts(steps []universe.StepChange, kept int) {
	for end := len(steps); end > 0; { // backwards, as the highest come first
		cohort := steps[end-1].Cohort
		var seen int64
		floor := 0
		for ; end > 0 && steps[end-1].Cohort == cohort; end-- {
			if seen < int64(kept) {
				floor = steps[end-1].Step
			}
			seen += steps[end-1].Count
		}
		f.cohorts, f.composites = append(f.cohorts, cohort), append(f.composites, uint16(floor))
	}
}

// changes sets the floors that as many movers reach as are kept, after a count of
// everything. up and down is how many companies rose and fell, by window.
func (u *Universe) changes(ctx context.Context, t *universe.Tally, f *floors) (up, down [3]int64, err error) {
	kept := int64(t.Limits().MoversKept)
	type delta struct {
		delta int16
		n     int64
	}
	var deltas [3][]delta
	args := []any{ch.Named("generation", t.Generation), ch.Named("note", t.Generation)}
	err = u.db.each(ctx, universeDeltas, args, func(scan func(...any) error) error {
		var window uint8
		var d int16
		var n uint64
		if err := scan(&window, &d, &n); err != nil {
			return err
		}
		deltas[window] = append(deltas[window], delta{d, int64(n)})
		return nil
	})
	if err != nil {
		return up, down, fmt.Errorf("count changes: %w", err)
	}
	for i, list := range deltas {
		slices.SortFunc(list, func(a, b delta) int { return int(b.delta) - int(a.delta) })
		f.up[i], f.down[i] = 1, -1
		for _, d := range list {
			if d.delta > 0 {
				if up[i] < kept {
					f.up[i] = d.delta
				}
				up[i] += d.n
			}
		}
		for _, d := range slices.Backward(list) {
			if d.delta < 0 {
				if down[i] < kept {
					f.down[i] = d.delta
				}
				down[i] += d.n
			}
		}
	}
	return up, down, nil
}

// standingRow is what queries for standings return. Its company has no names when
// domain is empty.
type standingRow struct {
	company, cohort     uint64
	stampHigh, stampLow uint64
	composite           uint16
	delta               [3]int16
	names
}

// names are what a record calls a company and its cohort.
type names struct{ domain, name, sector, geoScope, profile string }

func (n *names) fields() []any { return []any{&n.domain, &n.name, &n.sector, &n.geoScope, &n.profile} }

func (s *standingRow) standing(f floors) universe.Standing {
	out := universe.Standing{Company: s.company, Domain: s.domain, Name: s.name, Cohort: s.cohort, Composite: int(s.composite)}
	for i, d := range s.delta {
		if d >= f.up[i] || d <= f.down[i] {
			out.Delta[i] = int(d)
		}
	}
	return out
}

// gone reads who may have been among the first and whose standing changed.
func (u *Universe) gone(ctx context.Context, t *universe.Tally, f floors, c *universe.Change) error {
	args := append(f.args(), ch.Named("generation", t.Generation), ch.Named("note", c.Note))
	err := u.db.each(ctx, universeGone, args, func(scan func(...any) error) error {
		var company uint64
		if err := scan(&company); err != nil {
			return err
		}
		c.Gone = append(c.Gone, company)
		return nil
	})
	if err != nil {
		return fmt.Errorf("find who was first: %w", err)
	}
	return nil
}

// come reads the standings of which query finds that they reach a floor, and the
// names of their cohorts, among which are all that the tally does not have.
func (u *Universe) come(ctx context.Context, t *universe.Tally, query string, f floors, args []any, c *universe.Change) error {
	c.Names = make(map[uint64]universe.GroupKey)
	notes := []any{ch.Named("generation", t.Generation), ch.Named("note", c.Note)}
	type record struct {
		at        int // in c.Come
		high, low uint64
	}
	unnamed := make(map[uint64]record) // by company
	var s standingRow
	fields := append([]any{&s.company, &s.stampHigh, &s.stampLow, &s.cohort, &s.composite, &s.delta[0], &s.delta[1], &s.delta[2]}, s.names.fields()...)
	err := u.db.each(ctx, query, slices.Concat(f.args(), args, notes), func(scan func(...any) error) error {
		if err := scan(fields...); err != nil {
			return err
		}
		if s.domain == "" {
			unnamed[s.company] = record{len(c.Come), s.stampHigh, s.stampLow}
		} else {
			c.Names[s.cohort] = s.group()
		}
		c.Come = append(c.Come, s.standing(f))
		return nil
	})
	if err != nil {
		return fmt.Errorf("find who may be first: %w", err)
	}
	if len(unnamed) > 0 { // only time has passed for them, and most were among the first before
		known := t.Leaders()
		for company, r := range unnamed {
			// A record made after the batch before, which is not among those that came, was ahead of its clock.
			before := r.high <= uint64(millis(t.At))
			if l, ok := known[company]; ok && before && t.Cohorts[c.Come[r.at].Cohort] != nil {
				c.Come[r.at].Domain, c.Come[r.at].Name = l.Domain, l.Name
				delete(unnamed, company)
			}
		}
	}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(unnamed)), freshPage) {
		highs, lows := make([]uint64, len(page)), make([]uint64, len(page))
		for i, company := range page {
			highs[i], lows[i] = unnamed[company].high, unnamed[company].low
		}
		args := []any{ch.Named("version", t.PipelineVersion), ch.Named("companies", page), ch.Named("stamp_highs", highs), ch.Named("stamp_lows", lows)}
		err := u.db.each(ctx, universeNames, args, func(scan func(...any) error) error {
			var company uint64
			var n names
			if err := scan(append([]any{&company}, n.fields()...)...); err != nil {
				return err
			}
			named := &c.Come[unnamed[company].at]
			named.Domain, named.Name = n.domain, n.name
			c.Names[named.Cohort] = n.group()
			delete(unnamed, company)
			return nil
		})
		if err != nil {
			return fmt.Errorf("name companies: %w", err)
		}
	}
	if len(unnamed) > 0 {
		return fmt.Errorf("name companies: %d of those counted have no record", len(unnamed))
	}
	return nil
}

func (n *names) group() universe.GroupKey {
	return universe.GroupKey{Sector: n.sector, GeoScope: n.geoScope, Profile: scoring.Profile(n.profile)}
}

// countedKey is a company as a count counted it.
type countedKey struct {
	company          uint64
	generation, note uint64
}

// Counted returns how a count counted a company, nil when it did not. Those who ask at
// about the same time share queries.
func (s *Scores) Counted(ctx context.Context, domain string, generation, note uint64) (*universe.Counted, error) {
	as, found, err := s.counted.Get(ctx, countedKey{city.CH64([]byte(domain)), generation, note})
	if err != nil {
		return nil, fmt.Errorf("how %s was counted: %w", domain, err)
	}
	if !found {
		return nil, nil
	}
	as.Domain = domain
	return &as, nil
}

// manyCounted returns how companies were counted, without their domains.
func (s *Scores) manyCounted(ctx context.Context, keys []countedKey) (map[countedKey]universe.Counted, error) {
	type count struct{ generation, note uint64 }
	companies := make(map[count][]uint64)
	for _, key := range keys {
		of := count{key.generation, key.note}
		companies[of] = append(companies[of], key.company)
	}
	found := make(map[countedKey]universe.Counted, len(keys))
	points := func(hundredths uint16) float64 { return float64(hundredths) / 100 }
	for of, list := range companies { // two at most, when tables have just changed
		var rows []struct {
			Company           uint64 `ch:"company"`
			ScoredMs          int64  `ch:"scored_ms"`
			Cohort            uint64 `ch:"cohort"`
			Composite         uint16 `ch:"composite"`
			TeamStructure     uint16 `ch:"team_structure"`
			MarketPosition    uint16 `ch:"market_position"`
			MomentumTailwinds uint16 `ch:"momentum_tailwinds"`
			FinancialHealth   uint16 `ch:"financial_health"`
		}
		if err := s.db.few(ctx, &rows, universeStanding, ch.Named("companies", list), ch.Named("generation", of.generation), ch.Named("note", of.note)); err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[countedKey{row.Company, of.generation, of.note}] = universe.Counted{
				Target: universe.Target{Composite: points(row.Composite), Buckets: scoring.BucketScores{
					TeamStructure: points(row.TeamStructure), MarketPosition: points(row.MarketPosition),
					MomentumTailwinds: points(row.MomentumTailwinds), FinancialHealth: points(row.FinancialHealth),
				}},
				Group: row.Cohort, ScoredAt: time.UnixMilli(row.ScoredMs).UTC(),
			}
		}
	}
	return found, nil
}
