package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/scoring"
	"companyscore/sql"
	"companyscore/universe"
)

var (
	universeCount     = sql.Query("universe_count")
	universeMovers    = sql.Query("universe_movers")
	moverRecords      = sql.Query("mover_records")
	universeSpreads   = sql.Query("universe_spreads")
	scoreWrittenSince = sql.Query("score_written_since")
)

const (
	// insertMax is longer than any insert takes. A count reads every record whose
	// written_at is at least insertMax before the count.
	insertMax = time.Minute
	// recentMax is the maximum number of ids of records from the last insertMax that a
	// count returns.
	recentMax = 1_000_000
)

// Universe runs the queries of the batch jobs. It is safe for concurrent use and has no
// state.
type Universe struct {
	db        *DB
	recentMax int
}

// NewUniverse returns the store of the batch jobs in db.
func NewUniverse(db *DB) *Universe { return &Universe{db, recentMax} }

// Count counts the newest record of each company under the current pipeline version, if its completeness is at least
// minDataPct. at is the instant of the call.
func (u *Universe) Count(ctx context.Context, at time.Time, minDataPct float64) (universe.Counts, error) {
	at = at.UTC().Truncate(time.Millisecond)
	counts := universe.Counts{PipelineVersion: scoring.PipelineVersion, At: at, Settled: at.Add(-insertMax), MinDataPct: minDataPct}
	args := []any{
		ch.Named("version", counts.PipelineVersion), ch.Named("since_ms", millis(counts.Settled)),
		ch.Named("leaders", uint16(universe.LeaderboardMax)), ch.Named("recent_max", uint32(u.recentMax+1)),
		ch.Named("min_data", minDataPct),
	}
	var sector, geoScope, profile, bins, leaderboard string
	var sums, recent []uint64
	err := u.db.each(ctx, universeCount, args, func(scan func(...any) error) error {
		if err := scan(&sector, &geoScope, &profile, &bins, &sums, &leaderboard, &recent); err != nil {
			return err
		}
		if profile == "" { // the row with the ids of recent records
			counts.Recent = recent
			return nil
		}
		leaders, err := parseLeaderboard(leaderboard)
		if err != nil {
			return err
		}
		counts.Cohorts = append(counts.Cohorts, universe.Cohort{
			CohortKey: universe.CohortKey{Sector: sector, GeoScope: geoScope, Profile: scoring.Profile(profile)},
			Steps:     countBins(bins, &counts.PremiumHist),
			BucketSums: universe.BucketSums{TeamStructure: int64(sums[0]), MarketPosition: int64(sums[1]),
				MomentumTailwinds: int64(sums[2]), FinancialHealth: int64(sums[3])},
			Leaderboard: leaders,
		})
		return nil
	})
	if err != nil {
		return universe.Counts{}, fmt.Errorf("count companies: %w", err)
	}
	slices.Sort(counts.Recent)
	if len(counts.Recent) > u.recentMax {
		counts.Settled, counts.Recent = at, nil
	}
	return counts, nil
}

const (
	// premiumsPerTenth is the number of bins per tenth of a point of the composite.
	premiumsPerTenth = universe.PremiumBins
	// firstBin is the bin of composite 0 and premium 0.
	firstBin = 256
)

// countBins returns the number of companies per composite and adds their premiums to
// premiums. Each company is two bytes, little-endian: firstBin + premiumsPerTenth *
// composite in tenths + premium.
func countBins(bins string, premiums *[universe.PremiumBins]int64) []universe.StepCount {
	var tenths [1001]int64
	for i := 0; i+1 < len(bins); i += 2 {
		bin := (int(bins[i]) | int(bins[i+1])<<8) - firstBin
		tenths[bin/premiumsPerTenth]++
		premiums[bin%premiumsPerTenth]++
	}
	var counts []universe.StepCount
	for tenth, n := range tenths {
		if n > 0 {
			counts = append(counts, universe.StepCount{Step: 10 * tenth, Count: n})
		}
	}
	return counts
}

// parseLeaderboard parses the lines that universe_count describes.
func parseLeaderboard(text string) ([]universe.Company, error) {
	leaders := make([]universe.Company, 0, universe.LeaderboardMax)
	for line := range strings.Lines(text) {
		digits, company := line[:min(4, len(line))], strings.TrimSuffix(line[min(4, len(line)):], "\n")
		domain, name, _ := strings.Cut(company, "\t")
		tenths, name := name[:min(4, len(name))], name[min(4, len(name)):]
		rest, err := strconv.ParseUint(digits, 16, 16)
		completeness, tenthsErr := strconv.ParseUint(tenths, 16, 16)
		completeness -= 4096
		if err != nil || tenthsErr != nil || rest > 20000 || completeness > 1000 {
			return nil, fmt.Errorf("line %q of a leaderboard is not composite, domain, completeness and name", line)
		}
		leaders = append(leaders, universe.Company{Domain: domain, Name: name, Composite: points(uint16(20000 - rest)),
			CompletenessPct: float64(completeness) / 10})
	}
	return leaders, nil
}

func points(hundredths uint16) float64 { return float64(hundredths) / 100 }

// Movers returns the companies with the largest deltas within each window that ends at
// at. It reads records of the current pipeline version. The records at both ends of a delta have a completeness of at least
// minDataPct.
func (u *Universe) Movers(ctx context.Context, at time.Time, minDataPct float64) (universe.Movers, error) {
	at = at.UTC().Truncate(time.Millisecond)
	movers := universe.Movers{PipelineVersion: scoring.PipelineVersion, Lists: make(map[universe.Window]universe.MoverList,
		len(universe.Windows))}
	args := []any{ch.Named("version", movers.PipelineVersion), ch.Named("limit", uint8(universe.MoversShown)),
		ch.Named("end_ms", millis(at)), ch.Named("min_data", minDataPct)}
	for _, w := range universe.Windows {
		args = append(args, ch.Named("start_"+string(w)+"_ms", millis(at.Add(-w.Length()))))
	}
	var rows []struct {
		Domain string  `ch:"domain"`
		Name   string  `ch:"name"`
		Data   float64 `ch:"data_pct"`
		Now    int32   `ch:"now"`
		Thens  []int32 `ch:"thens"`
	}
	if err := u.db.listBuffered(ctx, &rows, universeMovers, args...); err != nil {
		return universe.Movers{}, fmt.Errorf("find movers: %w", err)
	}
	for i, w := range universe.Windows {
		list := universe.MoverList{Start: at.Add(-w.Length()), End: at}
		for _, row := range rows {
			then := row.Thens[i]
			m := universe.Mover{
				Company: universe.Company{Domain: row.Domain, Name: row.Name, Composite: points(uint16(row.Now)),
					CompletenessPct: row.Data},
				Then: points(uint16(max(then, 0))),
			}
			switch {
			case then < 0:
			case row.Now > then:
				list.Gainers = append(list.Gainers, m)
			case row.Now < then:
				list.Decliners = append(list.Decliners, m)
			}
		}
		list.Gainers, list.Decliners = largest(list.Gainers), largest(list.Decliners)
		if err := u.splitDeltas(ctx, list, movers.PipelineVersion); err != nil {
			return universe.Movers{}, fmt.Errorf("split deltas of movers: %w", err)
		}
		movers.Lists[w] = list
	}
	return movers, nil
}

// splitDeltas sets the attribution of all movers of a list. It reads at most two records of
// each.
func (u *Universe) splitDeltas(ctx context.Context, list universe.MoverList, version string) error {
	var domains []string
	for _, m := range slices.Concat(list.Gainers, list.Decliners) {
		domains = append(domains, m.Domain)
	}
	if len(domains) == 0 {
		return nil
	}
	rows, err := listOf[recordRow](ctx, u.db, moverRecords, domains,
		ch.Named("version", version), ch.Named("start_ms", millis(list.Start)), ch.Named("end_ms", millis(list.End)))
	if err != nil {
		return err
	}
	records := make(map[string][]scoring.Record)
	for i := range rows {
		records[rows[i].Domain] = append(records[rows[i].Domain], rows[i].record())
	}
	for _, side := range [][]universe.Mover{list.Gainers, list.Decliners} {
		for i := range side {
			m := &side[i]
			ends := records[m.Domain]
			if len(ends) != 2 || ends[0].Composite != m.Then || ends[1].Composite != m.Composite {
				continue // a record was written since the movers were found
			}
			split := scoring.Attribute(ends[0], ends[1])
			split.Signals = nil
			m.Attribution = &split
		}
	}
	return nil
}

// spreadSample is the number of companies from which Spreads reads about as many.
const spreadSample = 100_000

// Spreads returns how the signals of the newest records of the current pipeline version spread,
// within each cohort and among all companies. companies is their number; of more than 100,000 it
// reads a sample.
func (u *Universe) Spreads(ctx context.Context, companies uint64) (scoring.Spreads, error) {
	spreads := scoring.Spreads{Cohorts: make(map[scoring.CohortKey]*scoring.Spread)}
	var key scoring.CohortKey
	var profile string
	var ids []string
	var counts, sums, squares []float64
	var premium scoring.Moments
	args := []any{ch.Named("version", scoring.PipelineVersion), ch.Named("blocks", uint32(max(companies/spreadSample, 1)))}
	err := u.db.each(ctx, universeSpreads, args, func(scan func(...any) error) error {
		if err := scan(&key.Sector, &key.GeoScope, &profile, &ids, &counts, &sums, &squares, &premium.Count, &premium.Sum,
			&premium.Squares); err != nil {
			return err
		}
		key.Profile = scoring.Profile(profile)
		for i, id := range ids {
			spreads.Add(key, id, scoring.Moments{Count: counts[i], Sum: sums[i], Squares: squares[i]})
		}
		spreads.AddPremium(key, premium)
		return nil
	})
	if err != nil {
		return scoring.Spreads{}, fmt.Errorf("read spreads of signals: %w", err)
	}
	return spreads, nil
}

// largest returns the universe.MoversShown largest deltas, largest first and then by
// domain.
func largest(side []universe.Mover) []universe.Mover {
	slices.SortFunc(side, func(a, b universe.Mover) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Delta()), math.Abs(a.Delta())), cmp.Compare(a.Domain, b.Domain))
	})
	return side[:min(len(side), universe.MoversShown)]
}

// WrittenSince returns records of a company and a pipeline version, newest first: all that
// were written since an instant, and the newest of the earlier ones.
func (s *Scores) WrittenSince(ctx context.Context, domain, version string, since time.Time) ([]universe.Stored, error) {
	var rows []headRow
	if err := s.db.listBuffered(ctx, &rows, scoreWrittenSince, ch.Named("domain", domain), ch.Named("version", version),
		ch.Named("since_ms", millis(since))); err != nil {
		return nil, fmt.Errorf("records of %s: %w", domain, err)
	}
	records := make([]universe.Stored, len(rows))
	for i := range rows {
		records[i] = rows[i].stored()
	}
	return records, nil
}
