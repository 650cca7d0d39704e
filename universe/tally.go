package universe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"companyscore/scoring"
)

// Tally is what has been counted so far and all that is needed to go on from
// there when records come in: a batch adds a [Change] to it. It is what batch jobs
// publish; servers make their tables of its [Tally.Snapshot].
type Tally struct {
	PipelineVersion string
	// Generation names the count of everything that this goes back to, Note the last
	// batch, whose notes the store has, and Position the last insert that is counted.
	Generation, Note, Position uint64
	// Records is how many records had been inserted up to Position, under any
	// pipeline version: if that is not so any more, records were lost.
	Records uint64
	// At is the instant at which counting stopped and windows end: records made later
	// are not counted yet. Full is when everything was counted last.
	At, Full time.Time
	// Premium counts scale premiums in bins of one point.
	Premium [PremiumBins]int64
	Cohorts map[uint64]*Cohort
	// Movers has the largest changes as of At, Shown those that are published.
	Movers map[Window]*Sides
	Shown  map[Window]Movers

	limits Limits
}

// ErrLost says that a tally does not fit what is stored, so that everything has to
// be counted again.
var ErrLost = errors.New("the count does not fit the records any more")

// Limits are how many leaders a tally needs to show and how many it keeps, so that
// some may fall away before everything has to be counted again. The zero value is
// what the service uses.
type Limits struct{ Members, MembersKept, Movers, MoversKept int }

func (l Limits) orDefault() Limits {
	if l == (Limits{}) {
		return Limits{MembersKept, MembersKept + 40, MoversShown, 10 * MoversShown}
	}
	return l
}

// Cohort is a group with its leaders.
type Cohort struct {
	GroupKey
	Steps []StepCount // in rising order
	Sums  BucketSums
	Top   Ranking
}

// Count is the number of companies in the cohort.
func (c *Cohort) Count() int64 {
	var n int64
	for _, s := range c.Steps {
		n += s.Count
	}
	return n
}

// Sides is the companies that rose most and those that fell most.
type Sides struct{ Up, Down Ranking }

// Ranking is the first companies by Key, largest first and then by domain.
type Ranking struct {
	List []Leader
	// All says that nobody is missing. If it is not set, nobody is missing who comes
	// before LastKey and LastDomain, or is there.
	All        bool
	LastKey    int
	LastDomain string
}

// Leader is a company in a ranking. Composites are in hundredths.
type Leader struct {
	Company      uint64
	Domain, Name string
	Key          int
	Now, Then    int
}

func leads(a, b Leader) int {
	if a.Key != b.Key {
		return b.Key - a.Key
	}
	return strings.Compare(a.Domain, b.Domain)
}

// Floor is the smallest key of interest to the ranking.
func (r *Ranking) Floor(least int) int {
	if r.All {
		return least
	}
	return max(least, r.LastKey)
}

// update takes companies out and puts others in, and keeps at most kept of the
// list once it is longer than twice that.
func (r *Ranking) update(gone map[uint64]bool, come []Leader, kept int) {
	if len(gone) > 0 {
		r.List = slices.DeleteFunc(r.List, func(l Leader) bool { return gone[l.Company] })
	}
	r.List = slices.Grow(r.List, len(come))
	last := Leader{Key: r.LastKey, Domain: r.LastDomain}
	for _, l := range come {
		if r.All || leads(l, last) <= 0 {
			r.List = append(r.List, l)
		}
	}
	slices.SortFunc(r.List, leads)
	if len(r.List) > 2*kept {
		r.cut(kept)
	}
}

// cut shortens the list to n.
func (r *Ranking) cut(n int) {
	if len(r.List) <= n {
		return
	}
	r.List = slices.Clip(slices.Clone(r.List[:n]))
	r.All, r.LastKey, r.LastDomain = false, r.List[n-1].Key, r.List[n-1].Domain
}

// Change is what records have changed since a position.
type Change struct {
	Note, Position, Records uint64
	At                      time.Time
	Steps                   []StepChange // by cohort and then step, each once
	Sums                    []SumChange  // each cohort once
	Premium                 [PremiumBins]int64
	// Names are those of cohorts that the tally does not have.
	Names map[uint64]GroupKey
	// Gone are companies whose standing changed, as far as they can be in a ranking;
	// Come are the new standings that can.
	Gone []uint64
	Come []Standing
}

// StepChange is how many companies more have a step in a cohort.
type StepChange struct {
	Cohort uint64
	Step   int
	Count  int64
}

// SumChange is by how much the sums of a cohort change.
type SumChange struct {
	Cohort uint64
	Sums   BucketSums
}

// Standing is where a company stands. All scores are in hundredths; Delta is 0 for
// windows in which it cannot be compared, or did not change enough to be a mover.
type Standing struct {
	Company      uint64
	Domain, Name string
	Cohort       uint64
	Composite    int
	Delta        [3]int // as Windows
}

// NewTally returns a tally of nothing.
func NewTally(version string, generation uint64, limits Limits) *Tally {
	t := &Tally{PipelineVersion: version, Generation: generation, Cohorts: map[uint64]*Cohort{}, Movers: map[Window]*Sides{}, Shown: map[Window]Movers{}, limits: limits}
	for _, w := range Windows {
		t.Movers[w] = &Sides{Ranking{All: true}, Ranking{All: true}}
	}
	return t
}

// SetLimits changes how many leaders are kept from now on.
func (t *Tally) SetLimits(l Limits) { t.limits = l }

// Limits returns how many leaders are kept.
func (t *Tally) Limits() Limits { return t.limits.orDefault() }

// Add brings the tally forward. The error says in what the change does not fit;
// the tally is then of no use any more.
func (t *Tally) Add(c Change) error {
	limits := t.Limits()
	for id, key := range c.Names {
		if t.Cohorts[id] == nil {
			t.Cohorts[id] = &Cohort{GroupKey: key, Top: Ranking{All: true}}
		}
	}
	for rest := c.Steps; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Cohort == rest[0].Cohort {
			n++
		}
		g := t.Cohorts[rest[0].Cohort]
		if g == nil {
			return fmt.Errorf("add to the tally: cohort %d has no name", rest[0].Cohort)
		}
		if err := g.addSteps(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for _, s := range c.Sums {
		g := t.Cohorts[s.Cohort]
		if g == nil {
			return fmt.Errorf("add to the tally: cohort %d has no name", s.Cohort)
		}
		g.Sums = BucketSums{
			g.Sums.TeamStructure + s.Sums.TeamStructure, g.Sums.MarketPosition + s.Sums.MarketPosition,
			g.Sums.MomentumTailwinds + s.Sums.MomentumTailwinds, g.Sums.FinancialHealth + s.Sums.FinancialHealth,
		}
	}
	for i, n := range c.Premium {
		if t.Premium[i] += n; t.Premium[i] < 0 {
			return fmt.Errorf("add to the tally: %d companies have a premium of %d points", t.Premium[i], i)
		}
	}
	gone := make(map[uint64]bool, len(c.Gone))
	for _, id := range c.Gone {
		gone[id] = true
	}
	amounts := make(map[uint64]int, len(t.Cohorts))
	for _, s := range c.Come {
		amounts[s.Cohort]++
	}
	members := make(map[uint64][]Leader, len(amounts))
	for id, n := range amounts {
		members[id] = make([]Leader, 0, n)
	}
	var up, down [3][]Leader
	for _, s := range c.Come {
		l := Leader{Company: s.Company, Domain: s.Domain, Name: s.Name, Key: s.Composite, Now: s.Composite}
		members[s.Cohort] = append(members[s.Cohort], l)
		for i := range Windows {
			switch l.Then = s.Composite - s.Delta[i]; {
			case s.Delta[i] > 0:
				l.Key = s.Delta[i]
				up[i] = append(up[i], l)
			case s.Delta[i] < 0:
				l.Key = -s.Delta[i]
				down[i] = append(down[i], l)
			}
		}
	}
	var updates sync.WaitGroup // what they share they only read
	for id, g := range t.Cohorts {
		if len(g.Steps) == 0 {
			delete(t.Cohorts, id)
			continue
		}
		updates.Go(func() { g.Top.update(gone, members[id], limits.MembersKept) })
	}
	updates.Wait()
	for i, w := range Windows {
		t.Movers[w].Up.update(gone, up[i], limits.MoversKept)
		t.Movers[w].Down.update(gone, down[i], limits.MoversKept)
	}
	t.Note, t.Position, t.Records, t.At = c.Note, c.Position, c.Records, c.At
	return nil
}

// addSteps merges changes in rising order into the counts.
func (c *Cohort) addSteps(changes []StepChange) error {
	merged := make([]StepCount, 0, len(c.Steps)+len(changes))
	old := c.Steps
	for _, change := range changes {
		for len(old) > 0 && old[0].Step < change.Step {
			merged = append(merged, old[0])
			old = old[1:]
		}
		n := change.Count
		if len(old) > 0 && old[0].Step == change.Step {
			n += old[0].Count
			old = old[1:]
		}
		if n < 0 {
			return fmt.Errorf("add to the tally: %d companies of %v have a composite of %v", n, c.GroupKey, points(change.Step))
		}
		if n > 0 {
			merged = append(merged, StepCount{change.Step, n})
		}
	}
	c.Steps = append(merged, old...)
	return nil
}

// Trim says that every ranking holds only its first companies, after a count of
// everything: as many as are kept, and of a cohort or window with fewer, all.
// movers is how many companies rose and fell, by window.
func (t *Tally) Trim(up, down [3]int64) error {
	limits := t.Limits()
	trim := func(r *Ranking, all int64, kept int) error {
		if int64(len(r.List)) < min(all, int64(kept)) {
			return fmt.Errorf("trim the tally: %d leaders are known of %d companies", len(r.List), all)
		}
		r.All = true
		r.cut(kept)
		if r.All && int64(len(r.List)) < all {
			last := r.List[len(r.List)-1]
			r.All, r.LastKey, r.LastDomain = false, last.Key, last.Domain
		}
		return nil
	}
	for _, g := range t.Cohorts {
		if err := trim(&g.Top, g.Count(), limits.MembersKept); err != nil {
			return fmt.Errorf("%v: %w", g.GroupKey, err)
		}
	}
	for i, w := range Windows {
		if err := trim(&t.Movers[w].Up, up[i], limits.MoversKept); err != nil {
			return err
		}
		if err := trim(&t.Movers[w].Down, down[i], limits.MoversKept); err != nil {
			return err
		}
	}
	return nil
}

// Leaders returns who is in a ranking, by company.
func (t *Tally) Leaders() map[uint64]Leader {
	all := make(map[uint64]Leader)
	add := func(r Ranking) {
		for _, l := range r.List {
			all[l.Company] = l
		}
	}
	for _, g := range t.Cohorts {
		add(g.Top)
	}
	for _, sides := range t.Movers {
		add(sides.Up)
		add(sides.Down)
	}
	return all
}

// Short reports whether a ranking has lost so many companies that it no longer
// has all that are shown: everything is then to be counted again.
func (t *Tally) Short() bool {
	limits := t.Limits()
	short := func(r Ranking, need int) bool { return !r.All && len(r.List) < need }
	for _, g := range t.Cohorts {
		if short(g.Top, limits.Members) {
			return true
		}
	}
	for _, w := range Windows {
		if short(t.Movers[w].Up, limits.Movers) || short(t.Movers[w].Down, limits.Movers) {
			return true
		}
	}
	return false
}

// Show publishes the movers of a window as they are now.
func (t *Tally) Show(w Window) {
	limits := t.Limits()
	list := func(r Ranking) []Mover {
		list := make([]Mover, 0, limits.Movers)
		for _, l := range r.List[:min(len(r.List), limits.Movers)] {
			now, then := points(l.Now), points(l.Then)
			list = append(list, Mover{l.Domain, l.Name, now, then, scoring.RatingOf(now), scoring.RatingOf(then)})
		}
		return list
	}
	t.Shown[w] = Movers{Start: t.At.Add(-w.Length()), End: t.At, Gainers: list(t.Movers[w].Up), Decliners: list(t.Movers[w].Down)}
}

// Companies is how many companies are counted.
func (t *Tally) Companies() int64 {
	var n int64
	for _, bin := range t.Premium {
		n += bin
	}
	return n
}

// Snapshot returns what the tally says, for [New]. It shares memory with the tally.
func (t *Tally) Snapshot() Snapshot {
	limits := t.Limits()
	s := Snapshot{
		PipelineVersion: t.PipelineVersion, Generation: t.Generation, Note: t.Note, Cut: t.At, PremiumHist: t.Premium,
		Groups: make([]Group, 0, len(t.Cohorts)), Movers: maps.Clone(t.Shown),
	}
	for id, c := range t.Cohorts {
		g := Group{GroupKey: c.GroupKey, ID: id, Steps: c.Steps, BucketSums: c.Sums}
		list := c.Top.List[:min(len(c.Top.List), limits.Members)]
		g.Top = make([]Member, len(list))
		for i, l := range list {
			composite := points(l.Now)
			g.Top[i] = Member{l.Domain, l.Name, composite, scoring.RatingOf(composite)}
		}
		s.Groups = append(s.Groups, g)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Sector, b.Sector), cmp.Compare(a.GeoScope, b.GeoScope), cmp.Compare(a.Profile, b.Profile))
	})
	return s
}

// Differs says in what two tallies of the same records differ, "" if in nothing.
func (t *Tally) Differs(other *Tally) string {
	switch {
	case t.PipelineVersion != other.PipelineVersion || t.Position != other.Position:
		return "they are of different records"
	case t.Companies() != other.Companies():
		return fmt.Sprintf("%d and %d companies", t.Companies(), other.Companies())
	case t.Premium != other.Premium:
		return fmt.Sprintf("premiums %v and %v", t.Premium, other.Premium)
	case len(t.Cohorts) != len(other.Cohorts):
		return fmt.Sprintf("%d and %d cohorts", len(t.Cohorts), len(other.Cohorts))
	}
	need := t.Limits()
	same := func(a, b Ranking, n int) bool {
		return slices.EqualFunc(a.List[:min(len(a.List), n)], b.List[:min(len(b.List), n)], func(a, b Leader) bool {
			a.Name, b.Name = "", "" // a name may have been read later than the count
			return a == b
		})
	}
	for id, a := range t.Cohorts {
		b := other.Cohorts[id]
		if b == nil || a.GroupKey != b.GroupKey || a.Sums != b.Sums || !slices.Equal(a.Steps, b.Steps) {
			return fmt.Sprintf("cohort %v", a.GroupKey)
		}
		if !same(a.Top, b.Top, need.Members) {
			return fmt.Sprintf("leaders of cohort %v", a.GroupKey)
		}
	}
	for _, w := range Windows {
		if t.At.Equal(other.At) && (!same(t.Movers[w].Up, other.Movers[w].Up, need.Movers) || !same(t.Movers[w].Down, other.Movers[w].Down, need.Movers)) {
			return fmt.Sprintf("movers of %s", w)
		}
	}
	return ""
}
