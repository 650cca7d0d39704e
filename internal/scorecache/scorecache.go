// Package scorecache caches the newest score of each company in Redis. Workers write
// scores, servers read them. ClickHouse has the durable records; an entry of the cache
// can be lost at any time.
package scorecache

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// ttl bounds the staleness of a score that was replaced in ClickHouse by other means
	// than a run.
	ttl         = time.Hour
	callTimeout = time.Second
	// putTimeout bounds the write of a group of scores.
	putTimeout = 5 * time.Second
	stampLen   = 16
)

//go:embed put.lua
var putLua string

var putScript = goredis.NewScript(putLua)

// summary is the cached part of a record.
type summary struct {
	Domain       string               `json:"d"`
	Name         string               `json:"n"`
	Version      string               `json:"v"`
	RunID        string               `json:"i"`
	Composite    float64              `json:"c"`
	Low          float64              `json:"l"`
	High         float64              `json:"h"`
	Expected     float64              `json:"e"`
	Premium      float64              `json:"p"`
	Rating       scoring.Rating       `json:"r"`
	Buckets      scoring.BucketScores `json:"b"`
	Completeness float64              `json:"k"`
	Confidence   scoring.Band         `json:"f"`
}

// Put caches each record unless a newer one of its company is cached.
func Put(ctx context.Context, rdb goredis.UniversalClient, records ...scoring.Record) error {
	// One script per key: in a cluster the keys have different slots.
	pipe := rdb.Pipeline()
	for _, rec := range records {
		body, err := json.Marshal(summary{
			Domain: rec.Domain, Name: rec.CompanyName, Version: rec.PipelineVersion, RunID: rec.RunID,
			Composite: rec.Composite, Low: rec.Interval.Low, High: rec.Interval.High, Expected: rec.ExpectedComposite,
			Premium: rec.ScalePremium,
			Rating:  rec.Rating, Buckets: rec.Buckets, Completeness: rec.CompletenessPct, Confidence: rec.Confidence,
		})
		if err != nil {
			return fmt.Errorf("cache score of %s: %w", rec.Domain, err)
		}
		at := rec.ScoredAt.UnixMilli()
		putScript.Eval(ctx, pipe, []string{redis.Score(rec.Domain)}, at, fmt.Sprintf("%0*d%s", stampLen, at, body), ttl.Milliseconds())
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("cache %d scores: %w", len(records), err)
	}
	return nil
}

// Get returns the cached part of the newest record: domain, name, version, run, time, composite,
// interval, expected composite, premium, rating, buckets, completeness and band. The error is scoring.ErrNotFound if none is
// cached; ClickHouse may still have one.
func Get(ctx context.Context, rdb goredis.UniversalClient, domain string) (scoring.Record, error) {
	records, err := GetMany(ctx, rdb, domain)
	if err != nil {
		return scoring.Record{}, err
	}
	rec, ok := records[domain]
	if !ok {
		return scoring.Record{}, scoring.ErrNotFound
	}
	return rec, nil
}

// GetMany is Get for several companies. The result omits companies that are not cached.
func GetMany(ctx context.Context, rdb goredis.UniversalClient, domains ...string) (map[string]scoring.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Not MGET: in a cluster the keys have different slots.
	pipe := rdb.Pipeline()
	replies := make([]*goredis.StringCmd, len(domains))
	for i, domain := range domains {
		replies[i] = pipe.Get(ctx, redis.Score(domain))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, fmt.Errorf("read cached scores: %w", err)
	}
	records := make(map[string]scoring.Record, len(domains))
	for i, domain := range domains {
		value, err := replies[i].Result()
		if err != nil {
			continue
		}
		if rec, ok := decode(value); ok && rec.Domain == domain {
			records[domain] = rec
		}
	}
	return records, nil
}

func decode(value string) (scoring.Record, bool) {
	if len(value) < stampLen {
		return scoring.Record{}, false
	}
	at, err := strconv.ParseInt(value[:stampLen], 10, 64)
	if err != nil {
		return scoring.Record{}, false
	}
	var h summary
	if err := json.Unmarshal([]byte(value[stampLen:]), &h); err != nil {
		return scoring.Record{}, false
	}
	return scoring.Record{
		Domain: h.Domain, CompanyName: h.Name, PipelineVersion: h.Version, RunID: h.RunID, ScoredAt: time.UnixMilli(at).UTC(),
		Composite: h.Composite, Interval: scoring.Interval{Low: h.Low, High: h.High, Level: scoring.IntervalLevel},
		ExpectedComposite: h.Expected,
		ScalePremium:      h.Premium, Rating: h.Rating, Buckets: h.Buckets, CompletenessPct: h.Completeness, Confidence: h.Confidence,
	}, true
}

// Publish caches the records as Put does and announces their companies on the bus, so that servers
// drop their entries in memory.
func Publish(ctx context.Context, rdb goredis.UniversalClient, records ...scoring.Record) error {
	if err := Put(ctx, rdb, records...); err != nil {
		return err
	}
	domains := make([]string, len(records))
	for i, rec := range records {
		domains[i] = rec.Domain
	}
	return redis.Announce(ctx, rdb, redis.ScoreStored, domains...)
}
