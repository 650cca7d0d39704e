package scoring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	prefer := in.preference()
	chosen, err := prefer.choose(in.Observations)
	if err != nil {
		return Record{}, fmt.Errorf("score %s: %w", in.Domain, err)
	}
	carried := carryForward(&chosen, in)

	rec := Record{
		Domain:          in.Domain,
		RunID:           in.RunID,
		PipelineVersion: PipelineVersion,
		ScoredAt:        in.Now.UTC().Truncate(time.Millisecond),
		Signals:         make([]SignalScore, len(manifest)),
	}
	for i := range manifest {
		rec.Signals[i] = manifest[i].score(chosen[i], rec.ScoredAt)
		rec.Signals[i].carried = carried[i]
	}
	signals := signalScores(rec.Signals)
	prefer.noteDoubts(signals, in.Observations)
	rec.identify(in)
	signals.exclude(rec.Sector)
	rec.Warnings = warnings(in, signals, rec.ScoredAt)
	rec.fill(in.Reference)
	rec.Interval, rec.ExpectedComposite = Likely(rec, in.Spreads, nil)
	return rec, nil
}

// preference returns the rule by which observations of the input are chosen.
func (in Input) preference() Preference { return Preference{Now: in.Now, Trust: in.Trust} }

// fill computes all numbers and labels of the record but the interval from its signals and warnings.
func (rec *Record) fill(ref *Reference) {
	signals := signalScores(rec.Signals)
	buckets, known := signals.buckets()
	if rec.Defunct() {
		buckets.MomentumTailwinds = 0
	}
	rec.Base = buckets.weighted()
	rec.Buckets = buckets.rounded(1)
	rec.CompletenessPct = round1(100 * known.weighted())
	rec.BucketCompleteness = known.rounded(100)
	rec.Profile = profile(signals)
	if !rec.Defunct() {
		rec.ScalePremium = round1(premium(scaleOf(signals)))
	}
	rec.Composite = round1(clamp(rec.Base+rec.ScalePremium, 0, 100))
	if rec.Defunct() {
		rec.Composite = min(rec.Composite, DefunctMax)
	}
	rec.Rating = RatingOf(rec.Composite)
	rec.MomentumIndex = momentumIndex(buckets.MomentumTailwinds, rec.Base, rec.ScoredAt, ref)
	rec.Confidence = BandOf(rec.CompletenessPct, rec.Warnings)
}

// Defunct reports whether a source found the company dissolved, dead or its domain parked.
func (rec *Record) Defunct() bool {
	return slices.ContainsFunc(rec.Warnings, func(w Warning) bool { return w.Code == WarningDefunct })
}

// Stale reports whether a signal of the record was carried forward: it is old, and the record has a
// warning about one of its sources.
func (rec *Record) Stale(s SignalScore) bool {
	return s.Old(rec.ScoredAt) && slices.ContainsFunc(rec.Warnings, func(w Warning) bool {
		return w.Code == WarningStale && slices.Contains(strings.Split(s.Source, "|"), w.Source)
	})
}

// DefunctMax is the largest composite of a defunct company, which is of the lowest grade.
const DefunctMax = 30

// identify sets name, country, sector and geo scope. What is not known is taken from the previous
// record, and everything is if a source failed whose observations are carried forward: it may have
// decided them.
func (rec *Record) identify(in Input) {
	rec.CompanyName = companyName(in.Identity.Name, in.Domain)
	rec.Country = headquarters(in.Identity.Country, in.Domain)
	rec.Sector = SectorOf(in.Identity)
	rec.GeoScope = geoScope(rec.Country, in.Identity.HiringRegions, rec.Signals)
	old := in.Previous
	if old == nil || rec.ScoredAt.Sub(old.ScoredAt) > PreviousMaxAge {
		return
	}
	failed := slices.ContainsFunc(in.Warnings, func(w Warning) bool {
		return w.failure() && slices.ContainsFunc(rec.Signals, func(s SignalScore) bool {
			return s.Source == w.Source && s.carried
		})
	})
	if old.CompanyName != "" && (failed || in.Identity.Name == "") {
		rec.CompanyName = old.CompanyName
	}
	if old.Country != "" && (failed || rec.Country == "") {
		rec.Country = old.Country
	}
	if old.Sector != "" && old.Sector != Unknown && (failed || rec.Sector == Unknown) {
		rec.Sector = old.Sector
	}
	if old.GeoScope != "" && old.GeoScope != Unknown && (failed || rec.GeoScope == Unknown) {
		rec.GeoScope = old.GeoScope
	}
}

// PreviousMaxAge is the age until which a previous record counts.
const PreviousMaxAge = 400 * 24 * time.Hour

// score normalises the chosen observation of the signal. The zero observation means that no
// source reported the signal.
func (s *Signal) score(o Observation, now time.Time) SignalScore {
	out := SignalScore{ID: s.ID, State: o.State, Source: o.Source, Origin: o.Origin, ObservedAt: o.At}
	if o.At.IsZero() || o.At.After(now) {
		out.ObservedAt = now
	}
	switch o.State {
	case StateOK:
		out.Raw, out.Score = o.Raw, s.Curve.Score(o.Raw)
		return out
	case StateAbsent:
		if score, counts := s.Curve.Absent(); counts {
			out.Score = score
			return out
		}
	default:
		out.Reason = o.Reason
	}
	out.State, out.Score, out.ObservedAt = StateMissing, Neutral, time.Time{}
	if out.Reason == "" {
		out.Reason = ReasonNotFound
	}
	return out
}

// exclude marks the signals that mean nothing for the company.
func (s signalScores) exclude(sector string) {
	kinds := []string{sector}
	if listing := s[publicListing]; listing.Known() && listing.Raw >= 0.5 {
		kinds = append(kinds, Listed)
	} else if listing.Known() {
		kinds = append(kinds, Unlisted)
	}
	for i := range manifest {
		// A value shows that Listed and Unlisted, unlike a sector, do not rule the signal out.
		if s[i].State == StateOK && !slices.Contains(manifest[i].NotFor, sector) {
			continue
		}
		if slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(manifest[i].NotFor, kind) }) {
			s[i] = SignalScore{ID: s[i].ID, State: StateNotApplicable, Score: Neutral}
		}
	}
}

// buckets returns the scores of the buckets, 0 to 100, and the known share of their weight, 0 to 1.
func (s signalScores) buckets() (scores, known BucketScores) {
	weights := s.bucketWeights()
	for i := range manifest {
		share := s.share(i, weights)
		b := manifest[i].Bucket
		*scores.field(b) += share * s[i].Score
		if s[i].Known() {
			*known.field(b) += share
		}
	}
	return scores, known
}

// bucketWeights returns the weight of the applicable signals of each bucket, 0 to 1.
func (s signalScores) bucketWeights() (weights BucketScores) {
	for i := range manifest {
		if s[i].State != StateNotApplicable {
			*weights.field(manifest[i].Bucket) += manifest[i].Weight
		}
	}
	return weights
}

// share returns the share of the signal at i in its bucket, 0 if it is not applicable.
func (s signalScores) share(i int, weights BucketScores) float64 {
	if s[i].State == StateNotApplicable {
		return 0
	}
	return manifest[i].Weight / weights.Get(manifest[i].Bucket)
}

// Shares returns the share of each signal of a record in Base, in manifest order: Base is the sum of
// share times score. A signal that is not applicable has 0, as have the signals of momentum of a
// defunct company. The shares of all other records sum to 1.
func Shares(rec Record) []float64 {
	signals := signalScores(rec.Signals)
	weights := signals.bucketWeights()
	shares := make([]float64, len(signals))
	defunct := rec.Defunct()
	for i := range signals {
		if bucket := manifest[i].Bucket; !defunct || bucket != MomentumTailwinds {
			shares[i] = signals.share(i, weights) * bucket.Weight()
		}
	}
	return shares
}
