package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"companyscore/scoring"
)

const (
	// awaitInterval is the time between two reads of runs that have not ended.
	awaitInterval = 200 * time.Millisecond
	// Runs end about in the order in which they were started. Await reads the first awaitLeast,
	// and awaitMost as soon as half of those have ended.
	awaitLeast, awaitMost = 100, 1000
)

// Await returns when all runs have ended, with those that failed. It retries during an outage of
// Redis. progress is called with the number of runs that have ended. The error is that of ctx.
func (q *Queue) Await(ctx context.Context, ids []string, progress func(ended int)) (failed []scoring.Run, err error) {
	open := slices.Clone(ids)
	tick := time.NewTicker(awaitInterval)
	defer tick.Stop()
	for size := awaitLeast; len(open) > 0; {
		page := open[:min(len(open), size)]
		still := page[:0:0]
		runs, err := q.GetMany(ctx, page...)
		if err != nil {
			still = page
		}
		for i, run := range runs {
			switch {
			case run.ID == "":
				failed = append(failed, scoring.Run{ID: page[i], State: scoring.RunFailed, Error: "Redis does not know this run any more"})
			case !run.State.Final():
				still = append(still, page[i])
			case run.State != scoring.RunSucceeded || run.ScoredAt.IsZero():
				failed = append(failed, run)
			}
		}
		open = open[len(page)-len(still):]
		copy(open, still)
		progress(len(ids) - len(open))
		if len(still) <= len(page)/2 { // the next page may have ended too
			size = awaitMost
			continue
		}
		size = awaitLeast
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped waiting for %d open runs", len(open))
		case <-tick.C:
		}
	}
	return failed, nil
}
