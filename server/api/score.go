package api

import (
	"encoding/json"
	"strconv"

	"companyscore/scoring"
)

// A score is sent far more often than it changes, so its body is put together of
// parts: a head that depends on the record alone, the rank that changes with the
// universe, and a tail that depends on the caller's tier alone. What AppendScore
// makes of them is what encoding/json makes of a [Score].

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

// AppendScore appends the body of a score. mode is "" for live answers, rank nil
// when it is not known.
func AppendScore(dst []byte, mode string, head []byte, rank *Rank, tail []byte) []byte {
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
	return append(dst, tail...)
}
