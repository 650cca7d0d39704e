package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/scoring"
	"companyscore/sql"
)

var (
	scoreEarlier  = sql.Query("score_earlier")
	scorePrevious = sql.Query("score_previous")
)

// earlierKey is a domain and the time of its new record in Unix milliseconds.
type earlierKey struct {
	domain string
	now    int64
}

// Earlier returns what a record made at now uses of the company's earlier records. Concurrent
// calls share queries.
func (s *Scores) Earlier(ctx context.Context, domain string, now time.Time) (scoring.Earlier, error) {
	earlier, _, err := s.earlier.Get(ctx, earlierKey{domain, millis(now)})
	if err != nil {
		return scoring.Earlier{}, fmt.Errorf("earlier scores of %s: %w", domain, err)
	}
	return earlier, nil
}

// EarlierOf returns the result of Earlier for each run, at its StartedAt. It uses one query if no
// company has a record, else two, and more if a domain occurs twice or the domains are long.
func (s *Scores) EarlierOf(ctx context.Context, runs []scoring.Run) ([]scoring.Earlier, error) {
	keys := make([]earlierKey, len(runs))
	for i, run := range runs {
		keys[i] = earlierKey{run.Domain, millis(run.StartedAt)}
	}
	found, err := s.manyEarlier(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("earlier scores of %d companies: %w", len(runs), err)
	}
	earlier := make([]scoring.Earlier, len(runs))
	for i, key := range keys {
		earlier[i] = found[key]
	}
	return earlier, nil
}

// manyEarlier returns what exists, by key. A domain that occurs with several times needs further
// queries, and so do more than listMax bytes of domains and times.
func (s *Scores) manyEarlier(ctx context.Context, keys []earlierKey) (map[earlierKey]scoring.Earlier, error) {
	found := make(map[earlierKey]scoring.Earlier)
	for len(keys) > 0 {
		page := make(map[string]earlierKey, len(keys))
		var again []earlierKey
		size := 0
		for _, key := range keys {
			if _, twice := page[key.domain]; twice || size >= listMax {
				again = append(again, key)
				continue
			}
			page[key.domain] = key
			size += len(key.domain) + listItem + len("1234567890123") + listItem
		}
		keys = again
		if err := s.pageOfEarlier(ctx, page, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// pageOfEarlier adds what exists for the keys, given by domain, to found.
func (s *Scores) pageOfEarlier(ctx context.Context, keys map[string]earlierKey, found map[earlierKey]scoring.Earlier) error {
	domains, nows := make([]string, 0, len(keys)), make([]int64, 0, len(keys))
	for domain, key := range keys {
		domains, nows = append(domains, domain), append(nows, key.now)
	}
	days := func(d time.Duration) uint16 { return uint16(d / (24 * time.Hour)) }
	var times []struct {
		Domain        string    `ch:"domain"`
		PreviousAt    time.Time `ch:"previous_at"`
		ReferenceAt   time.Time `ch:"reference_at"`
		ReferenceBase float64   `ch:"reference_base"`
	}
	err := s.db.listBuffered(ctx, &times, scoreEarlier,
		ch.Named("domains", domains), ch.Named("nows_ms", nows), ch.Named("version", scoring.PipelineVersion),
		ch.Named("previous_days", days(scoring.PreviousMaxAge)),
		ch.Named("min_days", days(scoring.ReferenceMinAge)), ch.Named("best_days", days(scoring.ReferenceAge)),
		ch.Named("max_days", days(scoring.ReferenceMaxAge)))
	if err != nil {
		return err
	}
	var detailed []string
	var at []int64
	for _, row := range times {
		var earlier scoring.Earlier
		if !fromColumn(row.ReferenceAt).IsZero() {
			earlier.Reference = &scoring.Reference{ScoredAt: row.ReferenceAt.UTC(), Base: row.ReferenceBase}
		}
		found[keys[row.Domain]] = earlier
		if !fromColumn(row.PreviousAt).IsZero() {
			detailed, at = append(detailed, row.Domain), append(at, millis(row.PreviousAt))
		}
	}
	if len(detailed) == 0 {
		return nil
	}
	var rows []recordRow
	if err := s.db.listBuffered(ctx, &rows, scorePrevious, ch.Named("domains", detailed), ch.Named("scored_ms", at)); err != nil {
		return err
	}
	for i := range rows {
		earlier, rec := found[keys[rows[i].Domain]], rows[i].record()
		earlier.Previous = &rec
		found[keys[rows[i].Domain]] = earlier
	}
	return nil
}
