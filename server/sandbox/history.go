package sandbox

import (
	"math"
	"slices"
	"time"

	"companyscore/scoring"
	"companyscore/server/api"
)

// History returns the daily records of a canned company for a page. If more records follow, it returns page.Limit+1
// of them. It returns false for any other domain.
func History(domain string, page api.Page, now time.Time) ([]scoring.Record, bool) {
	newest, ok := Score(domain, now)
	if !ok {
		return nil, false
	}
	var records []scoring.Record
	for day := range companies[domain].days {
		rec := companies[domain].daysAgo(newest, day)
		if !rec.ScoredAt.Before(page.From) && (page.To.IsZero() || rec.ScoredAt.Before(page.To)) {
			records = append(records, rec)
		}
	}
	if page.OldestFirst {
		slices.Reverse(records)
	}
	return records[:min(len(records), page.Limit+1)], true
}

// At returns the newest record of a canned company at or before an instant, its oldest if there is
// none. domain is one of Domains.
func At(domain string, at, now time.Time) scoring.Record {
	records, _ := History(domain, api.Page{Limit: api.HistoryMax}, now)
	for _, rec := range records {
		if !rec.ScoredAt.After(at) {
			return rec
		}
	}
	return records[len(records)-1]
}

// daysAgo returns the record of the given number of days before rec. The buckets follow the
// drift of the company, with a small fixed variation per day.
func (c company) daysAgo(rec scoring.Record, days int) scoring.Record {
	if days == 0 {
		return rec
	}
	rec.ScoredAt = rec.ScoredAt.AddDate(0, 0, -days)
	swing := func(score float64, bucket int) float64 {
		return tenths(score - c.drift*float64(days) + float64((7*days+3*bucket)%5-2)/10)
	}
	b := rec.Buckets
	rec.Buckets = scoring.BucketScores{
		TeamStructure: swing(b.TeamStructure, 0), MarketPosition: swing(b.MarketPosition, 1),
		MomentumTailwinds: swing(b.MomentumTailwinds, 2), FinancialHealth: swing(b.FinancialHealth, 3),
	}
	rec.MomentumIndex = rec.Buckets.MomentumTailwinds
	rec.Base = base(rec.Buckets)
	rec.Composite = tenths(rec.Base + rec.ScalePremium)
	rec.Rating = scoring.RatingOf(rec.Composite)
	return rec
}

// base returns the weighted sum of the buckets, rounded to tenths.
func base(buckets scoring.BucketScores) float64 {
	var sum float64
	for _, b := range scoring.Buckets() {
		sum += b.Weight() * buckets.Get(b)
	}
	return tenths(sum)
}

func tenths(x float64) float64 { return math.Round(x*10) / 10 }
