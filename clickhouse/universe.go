package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/scoring"
	"companyscore/sql"
	"companyscore/universe"
)

var (
	universeGroups = sql.Query("universe_groups")
	universeMovers = sql.Query("universe_movers")
	scoreStanding  = sql.Query("score_standing")
)

// groupRow is one row of universe_groups.
type groupRow struct {
	Sector               string    `ch:"sector"`
	GeoScope             string    `ch:"geo_scope"`
	Profile              string    `ch:"profile"`
	Steps                []uint32  `ch:"steps"`
	StepCounts           []int64   `ch:"step_counts"`
	PremiumBins          []uint32  `ch:"premium_bins"`
	PremiumCounts        []int64   `ch:"premium_counts"`
	TeamStructureSum     int64     `ch:"team_structure_sum"`
	MarketPositionSum    int64     `ch:"market_position_sum"`
	MomentumTailwindsSum int64     `ch:"momentum_tailwinds_sum"`
	FinancialHealthSum   int64     `ch:"financial_health_sum"`
	TopDomains           []string  `ch:"top_domains"`
	TopNames             []string  `ch:"top_names"`
	TopComposites        []float64 `ch:"top_composites"`
	TopRatings           []string  `ch:"top_ratings"`
}

// Groups counts the newest records of the current pipeline version. The snapshot
// has no movers.
func (db *DB) Groups(ctx context.Context) (universe.Snapshot, error) {
	s := universe.Snapshot{PipelineVersion: scoring.PipelineVersion, Cut: time.Now().UTC()}
	var rows []groupRow
	if err := db.list(ctx, &rows, universeGroups, ch.Named("version", s.PipelineVersion)); err != nil {
		return universe.Snapshot{}, fmt.Errorf("count the universe: %w", err)
	}
	for _, row := range rows {
		g := universe.Group{
			GroupKey: universe.GroupKey{Sector: row.Sector, GeoScope: row.GeoScope, Profile: scoring.Profile(row.Profile)},
			BucketSums: universe.BucketSums{
				TeamStructure: row.TeamStructureSum, MarketPosition: row.MarketPositionSum,
				MomentumTailwinds: row.MomentumTailwindsSum, FinancialHealth: row.FinancialHealthSum,
			},
		}
		for i, step := range row.Steps {
			g.Steps = append(g.Steps, universe.StepCount{Step: int(step), Count: row.StepCounts[i]})
		}
		for i, bin := range row.PremiumBins {
			s.PremiumHist[bin] += row.PremiumCounts[i]
		}
		for i, domain := range row.TopDomains {
			g.Top = append(g.Top, universe.Member{
				Domain: domain, CompanyName: row.TopNames[i], Composite: row.TopComposites[i], Rating: scoring.Rating(row.TopRatings[i]),
			})
		}
		s.Groups = append(s.Groups, g)
	}
	s.At = time.Now().UTC()
	return s, nil
}

// moversRow is the row of universe_movers.
type moversRow struct {
	UpDomains      []string  `ch:"up_domains"`
	UpNames        []string  `ch:"up_names"`
	UpNow          []float64 `ch:"up_now"`
	UpThen         []float64 `ch:"up_then"`
	UpRatingNow    []string  `ch:"up_rating_now"`
	UpRatingThen   []string  `ch:"up_rating_then"`
	DownDomains    []string  `ch:"down_domains"`
	DownNames      []string  `ch:"down_names"`
	DownNow        []float64 `ch:"down_now"`
	DownThen       []float64 `ch:"down_then"`
	DownRatingNow  []string  `ch:"down_rating_now"`
	DownRatingThen []string  `ch:"down_rating_then"`
}

// Movers returns whose composite changed most within the window that ends at an
// instant, under the current pipeline version.
func (db *DB) Movers(ctx context.Context, window universe.Window, end time.Time) (universe.Movers, error) {
	end = end.UTC().Truncate(time.Millisecond)
	m := universe.Movers{Start: end.Add(-window.Length()), End: end}
	var row moversRow
	_, err := db.first(ctx, &row, universeMovers,
		ch.Named("version", scoring.PipelineVersion), ch.Named("start_ms", millis(m.Start)), ch.Named("end_ms", millis(m.End)))
	if err != nil {
		return universe.Movers{}, fmt.Errorf("find movers of %s: %w", window, err)
	}
	m.Gainers = movers(row.UpDomains, row.UpNames, row.UpNow, row.UpThen, row.UpRatingNow, row.UpRatingThen)
	m.Decliners = movers(row.DownDomains, row.DownNames, row.DownNow, row.DownThen, row.DownRatingNow, row.DownRatingThen)
	return m, nil
}

func movers(domains, names []string, now, then []float64, ratingNow, ratingThen []string) []universe.Mover {
	list := make([]universe.Mover, len(domains))
	for i := range domains {
		list[i] = universe.Mover{
			Domain: domains[i], CompanyName: names[i], Now: now[i], Then: then[i],
			RatingNow: scoring.Rating(ratingNow[i]), RatingThen: scoring.Rating(ratingThen[i]),
		}
	}
	return list
}

// Standing returns the newest record of a company, as LatestHeads does, and the
// record by which statistics of the current pipeline version count it that were
// made of what was written up to cut; nil when they do not count it. The error is
// scoring.ErrNotFound when the company was never scored.
func (s *Scores) Standing(ctx context.Context, domain string, cut time.Time) (latest scoring.Record, counted *scoring.Record, err error) {
	var rows []struct {
		headRow
		Counted uint8 `ch:"counted"`
	}
	err = s.db.list(ctx, &rows, scoreStanding,
		ch.Named("domain", domain), ch.Named("version", scoring.PipelineVersion), ch.Named("cut_ms", millis(cut)))
	if err == nil && len(rows) == 0 {
		err = scoring.ErrNotFound
	}
	if err != nil {
		return scoring.Record{}, nil, fmt.Errorf("standing of %s: %w", domain, err)
	}
	for _, row := range rows {
		if row.Counted == 1 {
			rec := row.record()
			counted = &rec
		}
	}
	return rows[0].record(), counted, nil
}
