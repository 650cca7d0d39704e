package scoring

import (
	"errors"
	"time"
)

var errNoSignals = errors.New("rescore: the record has no signals")

// Rescore computes a record again from the signals it holds, under the formulas of
// today. Signals that the manifest does not have any more are left out, and those
// it has gained are missing. What sources said of who the company is was not
// stored, only what came of it: name, country, sector and geo scope stay.
//
// The result has the time, the run and the warnings of the old record. ref is the
// record of the new version that the momentum index compares with, nil for none.
// It fails on a record without signals, of which nothing can be computed.
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
			in.Observations = append(in.Observations, Observation{Signal: s.ID, State: s.State, Raw: s.Raw, Source: s.Source, Reason: s.Reason})
		}
	}
	rec, err := Score(in)
	if err != nil {
		return Record{}, err
	}
	rec.CompanyName, rec.Country, rec.Sector, rec.GeoScope = old.CompanyName, old.Country, old.Sector, old.GeoScope
	return rec, nil
}

// ReferenceAmong returns the record that the momentum index of a record made now
// compares with, out of earlier ones in the order of their times; nil for none.
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
