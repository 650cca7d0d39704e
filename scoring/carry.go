package scoring

import (
	"math"
	"slices"
	"strings"
	"time"
)

// carryForward replaces chosen observations by those of the previous record where the run has no news.
// An old observation is carried until the signal's MaxAge, if one of its sources had no news, unless the
// run has one that supersedes it. It returns which signals it replaced.
func carryForward(chosen *[SignalCount]Observation, in Input) (carried [SignalCount]bool) {
	if in.Previous == nil {
		return carried
	}
	failing := slices.ContainsFunc(in.Warnings, Warning.failure)
	silent := make(map[[2]string]bool) // signal and source
	for _, o := range in.Observations {
		if o = checked(o); o.State == StateMissing && o.Reason.noNews(failing) {
			silent[[2]string{o.Signal, o.Source}] = true
		}
	}
	// answered reports whether all sources of an observation had news of the signal.
	answered := func(signal, sources string) bool {
		for source := range strings.SplitSeq(sources, "|") {
			if !slices.Contains(in.Answered, source) || silent[[2]string{signal, source}] {
				return false
			}
		}
		return true
	}
	for _, old := range in.Previous.Signals {
		i, found := signalIndex[old.ID]
		if !found || !old.Known() || in.Now.Sub(old.ObservedAt) > manifest[i].MaxAge {
			continue
		}
		now := &chosen[i]
		// An absence is a statement of all sources. It stays if one of them has no news.
		stays := old.State == StateAbsent && now.State == StateMissing && now.Reason.noNews(failing)
		earlier := Observation{Signal: old.ID, State: old.State, Raw: old.Raw, Source: old.Source, Origin: old.Origin, At: old.ObservedAt}
		if answered(old.ID, old.Source) && !stays || in.preference().supersedes(manifest[i].Sources, *now, earlier) {
			continue
		}
		*now, carried[i] = earlier, true
	}
	return carried
}

// supersedes reports whether an observation counts although the sources of an old one have no news.
// An absence does so only for an absence, or if it is a fact: the silent source could have a value.
func (p Preference) supersedes(listed []string, now, old Observation) bool {
	switch now.State {
	case StateOK:
		old.At = time.Time{} // its source would have said it today
		return p.prefer(listed, now, old) <= 0
	case StateAbsent:
		return old.State == StateAbsent || now.Source == FactsSource
	}
	return false
}

// noNews reports whether a missing observation says nothing about the company. failing is true if a
// source of the run failed: the identity is then unresolved because of the failure.
func (r Reason) noNews(failing bool) bool {
	switch r {
	case "", ReasonSourceDisabled:
		return true
	case ReasonUnresolvedIdentity, ReasonAmbiguousName:
		return failing
	}
	return r.failure()
}

// warnings returns the warnings of a record: those of the run, those of defunct companies that were
// carried forward, and one for each source with stale signals.
func warnings(in Input, signals signalScores, now time.Time) []Warning {
	all := slices.Clone(in.Warnings)
	if in.Previous == nil {
		return all // nothing was carried forward, or the run is that of Rescore
	}
	for _, w := range in.Previous.Warnings {
		if w.Code == WarningDefunct && !slices.Contains(in.Answered, w.Source) && now.Sub(w.At) <= PreviousMaxAge {
			all = append(all, w)
		}
	}
	for i := range signals {
		s := &signals[i]
		if !s.carried {
			continue
		}
		for _, source := range staleSources(s.Source, in.Answered) {
			if j := slices.IndexFunc(all, func(w Warning) bool { return w.Source == source && w.Code == WarningStale }); j < 0 {
				all = append(all, Warning{Source: source, Code: WarningStale, At: s.ObservedAt})
			} else if s.ObservedAt.Before(all[j].At) {
				all[j].At = s.ObservedAt
			}
		}
	}
	return all
}

// staleSources returns the sources of a value that did not answer, all of them if all did.
func staleSources(sources string, answered []string) []string {
	all := strings.Split(sources, "|")
	silent := slices.DeleteFunc(slices.Clone(all), func(source string) bool { return slices.Contains(answered, source) })
	if len(silent) == 0 {
		return all
	}
	return silent
}

// disputeMax is the time between two days on which different values contradict each other. Values of
// days further apart may both be true.
const disputeMax = 366 * 24 * time.Hour

// noteDoubts sets the doubt of signals with a value that is a range, and of those for which two
// sources or origins observed different values.
func (p Preference) noteDoubts(signals signalScores, observations []Observation) {
	for _, o := range observations {
		i, found := signalIndex[o.Signal]
		if !found || o.State != StateOK || !finite(o.Raw) || signals[i].State != StateOK || p.tooOld(i, o) {
			continue
		}
		s, curve := &signals[i], manifest[i].Curve
		if p.day(s.ObservedAt).Sub(p.day(o.At)).Abs() > disputeMax {
			continue
		}
		if s.Source == o.Source && s.Origin == o.Origin && s.Raw == o.Raw && o.High > o.Low {
			s.doubt = max(s.doubt, math.Abs(curve.Score(o.High)-curve.Score(o.Low))/math.Sqrt(12)) // uniform
			continue
		}
		s.doubt = max(s.doubt, math.Abs(curve.Score(o.Raw)-s.Score)/2)
	}
}
