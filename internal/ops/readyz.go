package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/batch/jobs"
	"companyscore/internal/table"
)

// checks returns what /readyz checks. Only ClickHouse and Redis make a process unready.
func checks(clickhouse ClickHouse, rdb goredis.UniversalClient, clock *Clock) map[string]Check {
	return map[string]Check{
		"clickhouse": clickhouse.Ping,
		"redis":      func(ctx context.Context) error { return rdb.Ping(ctx).Err() },
		"batch":      func(ctx context.Context) error { return checkBatch(ctx, rdb) },
		"refresh":    func(ctx context.Context) error { return checkRefresh(ctx, rdb) },
		"clock":      clock.Check,
	}
}

// checkBatch returns a Degraded error that names the cron jobs whose last execution failed.
// Meanwhile servers answer from the last snapshot.
func checkBatch(ctx context.Context, rdb goredis.UniversalClient) error {
	all, err := jobs.ReadStatus(ctx, rdb)
	if err != nil {
		return &Degraded{Reason: err.Error()}
	}
	var failed []string
	for _, job := range jobs.Names() {
		status, ok := all[job]
		if !ok || status.Outcome == table.BatchOK {
			continue
		}
		good := "there was no good run before"
		if !status.Good.IsZero() {
			good = "the last good run ended " + status.Good.Format(time.RFC3339)
		}
		failed = append(failed, fmt.Sprintf("%s %s at %s (%s), %s", job, status.Outcome, status.At.Format(time.RFC3339), status.Error,
			good))
	}
	if len(failed) > 0 {
		return &Degraded{Reason: strings.Join(failed, "; ")}
	}
	return nil
}

// checkRefresh returns a Degraded error unless all companies are younger than their target age.
func checkRefresh(ctx context.Context, rdb goredis.UniversalClient) error {
	all, err := jobs.ReadStatus(ctx, rdb)
	if err != nil {
		return &Degraded{Reason: err.Error()}
	}
	status := all[jobs.Refresh]
	if status.Refresh == nil {
		return &Degraded{Reason: "the refresh job has not run yet"}
	}
	c := status.Refresh
	if c.Young == c.Companies {
		return nil
	}
	return &Degraded{Reason: fmt.Sprintf("%.1f %% of %d companies were younger than their target age at %s, %d were due, the oldest "+
		"record was of %s",
		100*c.Share(), c.Companies, status.Good.Format(time.RFC3339), c.Due, c.Oldest.Format(time.RFC3339))}
}
