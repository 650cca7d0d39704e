package scoring

import (
	"cmp"
	"math"
	"slices"
)

// Attribution splits the difference between the composites of two records of a company. All parts
// have one decimal and sum to Delta exactly.
type Attribution struct {
	// Delta is the composite of the later record minus that of the earlier one.
	Delta float64 `json:"delta"`
	// Observation is due to signals that both records know: the company changed.
	Observation float64 `json:"observation"`
	// Coverage is due to signals that one record lacks, or to which another weight applies: what is known
	// about the company changed.
	Coverage float64 `json:"coverage"`
	// Premium is the difference of the scale premiums, and the whole delta if nothing else changed.
	Premium float64 `json:"premium"`
	// Formula is the whole delta if the records have different pipeline versions.
	Formula float64 `json:"formula"`
	// Defunct is the whole delta if one record is of a defunct company and the other is not.
	Defunct float64 `json:"defunct"`
	// Signals are the signals whose contribution changed, largest change first.
	Signals []SignalChange `json:"-"`
}

// SignalChange is the change of the contribution of one signal to the composite.
type SignalChange struct {
	ID     string      `json:"id"`
	Before SignalState `json:"before"`
	After  SignalState `json:"after"`
	// Contribution is the change in points, not rounded.
	Contribution float64 `json:"contribution"`
}

// SignalState is a signal in one record.
type SignalState struct {
	State State `json:"state"`
	// Raw is nil unless a value was observed.
	Raw   *float64 `json:"raw"`
	Score float64  `json:"score"`
}

// Attribute splits the delta of two records of one company. Swapped records give the negated parts.
// Records without signals, as histories have them, give observation and premium only.
func Attribute(before, after Record) Attribution {
	a := Attribution{Delta: round1(after.Composite - before.Composite)}
	observation, coverage := a.compare(before, after)
	switch {
	case before.PipelineVersion != after.PipelineVersion:
		a.Formula = a.Delta
		return a
	case before.Defunct() != after.Defunct():
		a.Defunct = a.Delta
		return a
	}
	a.Premium = round1(after.ScalePremium - before.ScalePremium)
	rest := a.Delta - a.Premium
	// The larger part takes what rounding and the bounds of the composite leave over.
	switch {
	case before.Base == after.Base:
		a.Premium = a.Delta
	case math.Abs(observation) >= math.Abs(coverage):
		a.Coverage = round1(coverage)
		a.Observation = round1(rest - a.Coverage)
	default:
		a.Observation = round1(observation)
		a.Coverage = round1(rest - a.Observation)
	}
	return a
}

// compare sets the changed signals and returns the points of observation and of coverage.
func (a *Attribution) compare(before, after Record) (observation, coverage float64) {
	if len(before.Signals) != len(manifest) || len(after.Signals) != len(manifest) {
		return after.Base - before.Base, 0
	}
	sharesBefore, sharesAfter := Shares(before), Shares(after)
	for i := range manifest {
		old, now := before.Signals[i], after.Signals[i]
		value := (sharesBefore[i] + sharesAfter[i]) / 2 * (now.Score - old.Score)
		weight := (sharesAfter[i] - sharesBefore[i]) * (old.Score + now.Score) / 2
		if old.Known() && now.Known() {
			observation += value
		} else {
			coverage += value
		}
		coverage += weight
		if value+weight != 0 {
			a.Signals = append(a.Signals, SignalChange{ID: now.ID, Before: stateOf(old), After: stateOf(now), Contribution: value + weight})
		}
	}
	slices.SortFunc(a.Signals, func(x, y SignalChange) int {
		return cmp.Or(cmp.Compare(math.Abs(y.Contribution), math.Abs(x.Contribution)), cmp.Compare(x.ID, y.ID))
	})
	return observation, coverage
}

func stateOf(s SignalScore) SignalState {
	state := SignalState{State: s.State, Score: s.Score}
	if s.State == StateOK {
		state.Raw = &s.Raw
	}
	return state
}
