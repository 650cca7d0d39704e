package api

import (
	"encoding/json"
	"strconv"

	"companyscore/scoring"
)

// The body of a score consists of three parts, so that servers can cache them: a head that
// depends on the record alone, the rank, which depends on the snapshot, the evidence if the caller
// asked for it, and a tail that depends on the tier of the caller alone. The output of AppendScore equals the JSON of a
// [Score].

// ScoreHead returns the part of a score's body that depends on the record alone.
func ScoreHead(rec scoring.Record) []byte {
	b, err := json.Marshal(struct {
		Domain       string               `json:"domain"`
		ScoredAt     Time                 `json:"scored_at"`
		Rating       scoring.Rating       `json:"svc_rating"`
		Composite    float64              `json:"composite_score"`
		ScalePremium float64              `json:"scale_premium"`
		Buckets      scoring.BucketScores `json:"buckets"`
	}{rec.Domain, Time(rec.ScoredAt), rec.Rating, rec.Composite, rec.ScalePremium, rec.Buckets})
	if err != nil {
		panic("api: score of " + rec.Domain + ": " + err.Error()) // scores are finite numbers
	}
	return b[1 : len(b)-1]
}

// ScoreTail returns the part of a score's body that depends on the caller alone.
func ScoreTail(caller Caller) []byte {
	b, err := json.Marshal(caller)
	if err != nil {
		panic("api: caller: " + err.Error()) // windows are finite numbers
	}
	return append(append([]byte(`,"x_svc":`), b...), '}')
}

// NewEvidence returns the evidence of a record. Its band is scoring.BandNone if the score rests on no data.
func NewEvidence(rec scoring.Record) Evidence {
	if !rec.HasData() {
		rec.Confidence = scoring.BandNone
	}
	return Evidence{
		PipelineVersion: rec.PipelineVersion, RunID: rec.RunID, Band: rec.Confidence, CompletenessPct: rec.CompletenessPct,
		Interval: rec.Interval,
	}
}

// AppendScore appends the body of a score to dst. mode is empty for live answers. rank is
// nil if it is not known, evidence if the caller did not ask for it.
func AppendScore(dst []byte, mode string, head []byte, rank *Rank, evidence *Evidence, tail []byte) []byte {
	dst = append(dst, '{')
	if mode != "" {
		dst = append(dst, `"mode":"`...)
		dst = append(dst, mode...)
		dst = append(dst, `",`...)
	}
	dst = append(dst, head...)
	if rank != nil {
		dst = append(dst, `,"rank":{"percentile":`...)
		dst = strconv.AppendInt(dst, int64(rank.Percentile), 10)
		dst = append(dst, `,"cohort_size":`...)
		dst = strconv.AppendInt(dst, rank.CohortSize, 10)
		dst = append(dst, '}')
	}
	if evidence != nil {
		b, err := json.Marshal(evidence)
		if err != nil {
			panic("api: evidence: " + err.Error()) // its numbers are finite
		}
		dst = append(append(dst, `,"evidence":`...), b...)
	}
	return append(dst, tail...)
}
