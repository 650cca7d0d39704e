package scoring

import (
	"errors"
	"slices"
	"time"
)

var errNoSignals = errors.New("rescore: the record has no signals")

// Rescore computes a record again from its signals, with the current formulas. It drops signals
// that the manifest no longer has; new signals are missing. The identity claims are not stored,
// so name, country, sector and geo scope do not change.
//
// The result has the time, the run and the warnings of the old record. With unchanged formulas it equals
// the old record, except the interval and the expected composite: they come from the spreads of the
// reference population, and leave out ranges and disagreements of sources, which are not stored.
//
// ref is the record of the current version that the momentum index compares with, nil if there is none.
// Rescore fails on a record without signals.
func Rescore(old Record, ref *Reference) (Record, error) {
	in := Input{
		Domain: old.Domain, RunID: old.RunID, Now: old.ScoredAt, Warnings: old.Warnings, Reference: ref,
		Identity: Identity{Name: old.CompanyName, Country: old.Country},
	}
	if len(old.Signals) == 0 {
		return Record{}, errNoSignals
	}
	for _, s := range old.Signals {
		if _, ok := signalIndex[s.ID]; ok {
			o := Observation{Signal: s.ID, State: s.State, Raw: s.Raw, Source: s.Source, Origin: s.Origin, Reason: s.Reason,
				At: s.ObservedAt}
			if o.State == StateNotApplicable {
				o = Observation{Signal: s.ID, State: StateMissing, Reason: ReasonNotFound}
			}
			in.Observations = append(in.Observations, o)
		}
	}
	rec, err := Score(in)
	if err != nil {
		return Record{}, err
	}
	rec.CompanyName, rec.Country, rec.Sector, rec.GeoScope = old.CompanyName, old.Country, old.Sector, old.GeoScope
	rec.Warnings = slices.Clone(old.Warnings)
	signalScores(rec.Signals).exclude(rec.Sector)
	rec.fill(ref)
	rec.Interval, rec.ExpectedComposite = Likely(rec, nil, nil)
	return rec, nil
}

// ReferenceAmong returns the reference for a record made now, out of earlier ones sorted by time;
// nil if there is none.
func ReferenceAmong(earlier []Reference, now time.Time) *Reference {
	var best *Reference
	distance := func(r *Reference) time.Duration { return (now.Sub(r.ScoredAt) - ReferenceAge).Abs() }
	for i := range earlier {
		r := &earlier[i]
		age := now.Sub(r.ScoredAt)
		if age >= ReferenceMinAge && age <= ReferenceMaxAge && (best == nil || distance(r) < distance(best)) {
			best = r
		}
	}
	return best
}
