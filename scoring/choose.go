package scoring

import (
	"cmp"
	"fmt"
	"slices"
)

// FactsSource is the source of an operator's own import. It is trusted most for
// every signal, listed or not.
const FactsSource = "facts"

// choose picks one observation per signal, in manifest order. Where nobody
// spoke it leaves the zero Observation.
func choose(observations []Observation) ([SignalCount]Observation, error) {
	var chosen [SignalCount]Observation
	for _, o := range observations {
		i, ok := signalIndex[o.Signal]
		if !ok {
			return chosen, fmt.Errorf("%s observed the unknown signal %q", o.Source, o.Signal)
		}
		switch o.State {
		case StateOK:
			if !finite(o.Raw) {
				o.State, o.Raw, o.Reason = StateMissing, 0, ReasonSourceError
			}
		case StateAbsent, StateMissing:
			o.Raw = 0
		default:
			return chosen, fmt.Errorf("%s observed %s in the unknown state %q", o.Source, o.Signal, o.State)
		}
		if chosen[i].State == "" || compare(manifest[i].Sources, o, chosen[i]) < 0 {
			chosen[i] = o
		}
	}
	return chosen, nil
}

// compare puts the observation first that counts for more. It is a total order,
// so the choice does not depend on who answered first.
func compare(listed []string, a, b Observation) int {
	return cmp.Or(
		cmp.Compare(rank(listed, a), rank(listed, b)),
		cmp.Compare(distrust(listed, a.Source), distrust(listed, b.Source)),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Raw, b.Raw),
		cmp.Compare(a.Reason, b.Reason),
	)
}

// rank orders what can be said about a signal, the most telling first. A source
// that failed might have had a value, so "there is none" from another source
// cannot be believed; the operator's own word can.
func rank(listed []string, o Observation) int {
	switch {
	case o.State == StateOK:
		return 0
	case o.State == StateAbsent && o.Source == FactsSource:
		return 1
	case o.State == StateMissing && o.Reason.failure() && slices.Contains(listed, o.Source):
		return 2
	case o.State == StateAbsent:
		return 3
	default:
		return 4
	}
}

// distrust is the place of a source in a signal's list; facts stand before it,
// sources outside the list after it.
func distrust(listed []string, source string) int {
	if source == FactsSource {
		return -1
	}
	if i := slices.Index(listed, source); i >= 0 {
		return i
	}
	return len(listed)
}

// failure reports whether the source was asked and could not answer.
func (r Reason) failure() bool {
	switch r {
	case ReasonSourceTimeout, ReasonSourceError, ReasonSourceRateLimited, ReasonBlockedByRobots:
		return true
	}
	return false
}

// Believed returns the observation that Score would choose for a signal out of
// several, false when there is none, or one that Score refuses.
func Believed(signal string, observations []Observation) (Observation, bool) {
	of := slices.DeleteFunc(slices.Clone(observations), func(o Observation) bool { return o.Signal != signal })
	chosen, err := choose(of)
	i, known := signalIndex[signal]
	if err != nil || len(of) == 0 || !known {
		return Observation{}, false
	}
	return chosen[i], true
}
