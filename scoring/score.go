package scoring

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Score computes one record. It retains no part of the input. The order of the observations does
// not change the record.
//
// It fails on an empty domain and on an observation of an unknown signal or state, which are
// errors of the caller. A raw value that is not finite is an error of the source: that
// observation counts as missing with ReasonSourceError.
func Score(in Input) (Record, error) {
	if in.Domain == "" {
		return Record{}, errors.New("score: the domain is empty")
	}
	chosen, err := choose(in.Observations)
	if err != nil {
		return Record{}, fmt.Errorf("score %s: %w", in.Domain, err)
	}

	signals := make(signalScores, len(manifest))
	var buckets, known BucketScores
	for i := range manifest {
		s := &manifest[i]
		signals[i] = s.score(chosen[i])
		*buckets.field(s.Bucket) += s.Weight * signals[i].Score
		if signals[i].State != StateMissing {
			*known.field(s.Bucket) += s.Weight
		}
	}

	rec := Record{
		Domain:             in.Domain,
		CompanyName:        companyName(in.Identity.Name, in.Domain),
		RunID:              in.RunID,
		PipelineVersion:    PipelineVersion,
		ScoredAt:           in.Now.UTC().Truncate(time.Millisecond),
		Base:               buckets.weighted(),
		Buckets:            buckets.rounded(1),
		Profile:            profile(signals),
		Sector:             SectorOf(in.Identity),
		Country:            headquarters(in.Identity.Country, in.Domain),
		CompletenessPct:    round1(100 * known.weighted()),
		BucketCompleteness: known.rounded(100),
		Signals:            signals,
		Warnings:           slices.Clone(in.Warnings),
	}
	rec.GeoScope = geoScope(rec.Country, in.Identity.HiringRegions, signals)
	rec.ScalePremium = scalePremium(rec.Profile, signals)
	rec.Composite = round1(clamp(rec.Base+rec.ScalePremium, 0, 100))
	rec.Rating = RatingOf(rec.Composite)
	rec.MomentumIndex = momentumIndex(buckets.MomentumTailwinds, rec.Base, rec.ScoredAt, in.Reference)
	rec.Confidence = BandOf(rec.CompletenessPct, rec.Warnings)
	return rec, nil
}

// score normalises the chosen observation of the signal. The zero observation means that no
// source reported the signal.
func (s *Signal) score(o Observation) SignalScore {
	out := SignalScore{ID: s.ID, State: o.State, Source: o.Source}
	switch o.State {
	case StateOK:
		out.Raw = o.Raw
	case StateAbsent:
		var counts bool
		if out.Raw, counts = s.Normalizer.Absent(); !counts {
			out.State = StateMissing
		}
	default:
		out.State, out.Reason = StateMissing, o.Reason
	}
	if out.State != StateMissing {
		out.Score = s.Normalizer.Score(out.Raw)
		return out
	}
	out.Score = Neutral
	if out.Reason == "" {
		out.Reason = ReasonNotFound
	}
	return out
}
