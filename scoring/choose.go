package scoring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FactsSource is the source of imported facts. Without Preference.Trust it is the most trusted source
// of every signal, listed or not.
const FactsSource = "facts"

// Preference is the rule by which one of several observations of a signal counts, be they of live
// sources or of origins of facts:
//
//   - A value older than the signal's MaxAge does not count.
//   - A value wins over an absence, and an absence over missing; but an absence does not count if
//     another listed source failed.
//   - Then the newest day wins.
//   - On one day Trust decides, then facts, then the order of sources in the manifest, then unlisted
//     sources.
type Preference struct {
	// Now is the instant of the run.
	Now time.Time
	// Trust lists origins of facts and keys of sources, most trusted first. Others come after them.
	Trust []string
}

// choose picks one observation per signal, in manifest order. A signal without one gets the zero
// Observation.
func (p Preference) choose(observations []Observation) ([SignalCount]Observation, error) {
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
		if p.tooOld(i, o) {
			continue
		}
		if chosen[i].State == "" || p.compare(manifest[i].Sources, o, chosen[i]) < 0 {
			chosen[i] = o
		}
	}
	return chosen, nil
}

// Choose returns the observation that counts for a signal. It returns false if there is none, or if
// Score rejects one.
func (p Preference) Choose(signal string, observations []Observation) (Observation, bool) {
	of := slices.DeleteFunc(slices.Clone(observations), func(o Observation) bool { return o.Signal != signal })
	chosen, err := p.choose(of)
	i, known := signalIndex[signal]
	if err != nil || !known || chosen[i].State == "" {
		return Observation{}, false
	}
	return chosen[i], true
}

// checked returns the observation, or missing instead of a value that is not finite.
func checked(o Observation) Observation {
	if o.State == StateOK && !finite(o.Raw) {
		o.State, o.Raw, o.Reason = StateMissing, 0, ReasonSourceError
	}
	return o
}

// tooOld reports whether an observation of the signal at i is older than its maximum age.
func (p Preference) tooOld(i int, o Observation) bool {
	return !o.At.IsZero() && p.Now.Sub(o.At) > manifest[i].MaxAge
}

// compare sorts the observation that counts first. It is a total order, so the choice does not
// depend on the order of the observations.
func (p Preference) compare(listed []string, a, b Observation) int {
	return cmp.Or(
		p.prefer(listed, a, b),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Origin, b.Origin),
		cmp.Compare(a.Raw, b.Raw),
		cmp.Compare(a.Reason, b.Reason),
		a.At.Compare(b.At),
		cmp.Compare(a.Low, b.Low),
		cmp.Compare(a.High, b.High),
	)
}

// prefer is compare without what makes the order total.
func (p Preference) prefer(listed []string, a, b Observation) int {
	return cmp.Or(
		cmp.Compare(rank(listed, a), rank(listed, b)),
		p.day(b.At).Compare(p.day(a.At)),
		cmp.Compare(p.distrust(a), p.distrust(b)),
		cmp.Compare(distrust(listed, a.Source), distrust(listed, b.Source)),
	)
}

// CompareLayers sorts origins of facts by day, the newest first, then by trust and name.
func (p Preference) CompareLayers(a, b CompanyFacts) int {
	return cmp.Or(
		p.day(b.AsOf).Compare(p.day(a.AsOf)),
		cmp.Compare(p.trustOf(a.Origin), p.trustOf(b.Origin)),
		cmp.Compare(a.Origin, b.Origin),
	)
}

// day returns the day of an instant. The zero time and the future are today.
func (p Preference) day(at time.Time) time.Time {
	if at.IsZero() || at.After(p.Now) {
		at = p.Now
	}
	return at.UTC().Truncate(24 * time.Hour)
}

// distrust returns the index in Trust of the origin or source of an observation.
func (p Preference) distrust(o Observation) int {
	return min(p.trustOf(o.Origin), p.trustOf(o.Source))
}

// trustOf returns the index of a name in Trust, the length if it is not in it.
func (p Preference) trustOf(name string) int {
	if i := slices.Index(p.Trust, name); i >= 0 {
		return i
	}
	return len(p.Trust)
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
