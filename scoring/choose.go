package scoring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// FactsSource is the source of imported facts. It is the most trusted source of every signal,
// listed or not.
const FactsSource = "facts"

// choose picks one observation per signal, in manifest order. A signal without one gets the zero
// Observation.
func choose(observations []Observation) ([SignalCount]Observation, error) {
	var chosen [SignalCount]Observation
	for _, o := range observations {
		i, ok := signalIndex[o.Signal]
		if !ok {
			return chosen, fmt.Errorf("%s observed the unknown signal %q", o.Source, o.Signal)
		}
		o = checked(o)
		switch o.State {
		case StateOK:
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

// checked returns the observation, or missing instead of a value that is not finite.
func checked(o Observation) Observation {
	if o.State == StateOK && !finite(o.Raw) {
		o.State, o.Raw, o.Reason = StateMissing, 0, ReasonSourceError
	}
	return o
}

// compare sorts the observation that counts first. It is a total order, so the choice does not
// depend on the order of the observations.
func compare(listed []string, a, b Observation) int {
	return cmp.Or(
		cmp.Compare(rank(listed, a), rank(listed, b)),
		cmp.Compare(distrust(listed, a.Source), distrust(listed, b.Source)),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Raw, b.Raw),
		cmp.Compare(a.Reason, b.Reason),
	)
}

// rank orders observations of one signal, the most useful first. An absence does not count if a
// listed source failed, since that source could have had a value. An absence in imported facts
// always counts.
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

// distrust returns the index of a source in a signal's list. Facts come before the list, unlisted
// sources after it. Several sources with "|" between them count as the last of them.
func distrust(listed []string, source string) int {
	if first, rest, several := strings.Cut(source, "|"); several {
		return max(distrust(listed, first), distrust(listed, rest))
	}
	if source == FactsSource {
		return -1
	}
	if i := slices.Index(listed, source); i >= 0 {
		return i
	}
	return len(listed)
}

// failure reports whether the source was called and failed.
func (r Reason) failure() bool {
	switch r {
	case ReasonSourceTimeout, ReasonSourceError, ReasonSourceRateLimited, ReasonBlockedByRobots:
		return true
	}
	return false
}

// MostTrusted returns the observation that Score chooses for a signal. It returns false if there
// is none, or if Score rejects one.
func MostTrusted(signal string, observations []Observation) (Observation, bool) {
	of := slices.DeleteFunc(slices.Clone(observations), func(o Observation) bool { return o.Signal != signal })
	chosen, err := choose(of)
	i, known := signalIndex[signal]
	if err != nil || len(of) == 0 || !known {
		return Observation{}, false
	}
	return chosen[i], true
}
