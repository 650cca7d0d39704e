package snapshot

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// awaitInterval is the time between two reads of the snapshot.
const awaitInterval = time.Second

// Await waits for a snapshot of a pipeline version whose count began after an instant. It retries
// during a Redis outage. The error is that of ctx.
func Await(ctx context.Context, rdb goredis.UniversalClient, version string, after time.Time) error {
	tick := time.NewTicker(awaitInterval)
	defer tick.Stop()
	for {
		s, _, err := Read(ctx, rdb)
		if err == nil && s.Counts.PipelineVersion == version && s.Counts.At.After(after) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
