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
	Domain    string               `json:"d"`
	Name      string               `json:"n"`
	Version   string               `json:"v"`
	Composite float64              `json:"c"`
	Premium   float64              `json:"p"`
	Rating    scoring.Rating       `json:"r"`
	Buckets   scoring.BucketScores `json:"b"`
	// The rest is the evidence.
	RunID        string           `json:"i"`
	Confidence   scoring.Band     `json:"f"`
	Completeness float64          `json:"k"`
	Interval     scoring.Interval `json:"l"`
}

// Put caches each record unless a newer one of its company is cached.
func Put(ctx context.Context, rdb goredis.UniversalClient, records ...scoring.Record) error {
	// One script per key: in a cluster the keys have different slots.
	pipe := rdb.Pipeline()
	for _, rec := range records {
		body, err := json.Marshal(summary{rec.Domain, rec.CompanyName, rec.PipelineVersion, rec.Composite, rec.ScalePremium, rec.Rating, rec.Buckets,
			rec.RunID, rec.Confidence, rec.CompletenessPct, rec.Interval})
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

// Get returns the cached part of the newest record: domain, name, version, time,
// composite, premium, rating, buckets, run, confidence, completeness and interval. The error is scoring.ErrNotFound if none is
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
		Domain: h.Domain, CompanyName: h.Name, PipelineVersion: h.Version, ScoredAt: time.UnixMilli(at).UTC(),
		Composite: h.Composite, ScalePremium: h.Premium, Rating: h.Rating, Buckets: h.Buckets,
		RunID: h.RunID, Confidence: h.Confidence, CompletenessPct: h.Completeness, Interval: h.Interval,
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
