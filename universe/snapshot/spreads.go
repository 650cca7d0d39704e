package snapshot

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

// spreadsPoll is the time between two reads of the spreads.
const spreadsPoll = time.Minute

// PublishSpreads publishes the result of the spreads job. It is not part of the snapshot: servers do
// not use it.
func PublishSpreads(ctx context.Context, rdb goredis.UniversalClient, spreads scoring.Spreads) error {
	var blob bytes.Buffer
	if err := gob.NewEncoder(&blob).Encode(spreads); err != nil {
		return fmt.Errorf("publish spreads: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := rdb.Set(ctx, redis.Spreads(), blob.Bytes(), 0).Err(); err != nil {
		return fmt.Errorf("publish spreads: %w", err)
	}
	return nil
}

// ReadSpreads returns the published spreads, nil if nothing is published.
func ReadSpreads(ctx context.Context, rdb goredis.UniversalClient) (*scoring.Spreads, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	blob, err := rdb.Get(ctx, redis.Spreads()).Bytes()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the published spreads: %w", err)
	}
	spreads := new(scoring.Spreads)
	if err := gob.NewDecoder(bytes.NewReader(blob)).Decode(spreads); err != nil {
		return nil, fmt.Errorf("read the published spreads: %w", err)
	}
	return spreads, nil
}

// FollowSpreads calls set with the published spreads at once and then every minute, until ctx ends.
// It logs errors.
func FollowSpreads(ctx context.Context, rdb goredis.UniversalClient, logger *slog.Logger, set func(*scoring.Spreads)) {
	for {
		spreads, err := ReadSpreads(ctx, rdb)
		if err != nil && ctx.Err() == nil {
			logger.Warn("spreads of signals may be out of date", "err", err)
		}
		if spreads != nil {
			set(spreads)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(spreadsPoll):
		}
	}
}
