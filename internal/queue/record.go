package queue

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"companyscore/scoring"
)

// runFields are the fields of a run's hash that decode reads, in its order.
var runFields = []string{
	"domain", "state", "lane", "error", "attempts", "created_at", "started_at", "finished_at", "scored_at",
	"done", "total",
}

// decode reads a run from the values of runFields, nil for those that are absent.
// It returns the zero Run when the run does not exist.
func decode(id string, values []any) (scoring.Run, error) {
	text := make([]string, len(runFields))
	for i, value := range values {
		text[i], _ = value.(string)
	}
	if text[0] == "" {
		return scoring.Run{}, nil
	}
	run := scoring.Run{ID: id, Domain: text[0], State: scoring.RunState(text[1]), Lane: scoring.Lane(text[2]), Error: text[3]}
	var err error
	if run.Attempts, err = strconv.Atoi(text[4]); err != nil {
		return scoring.Run{}, fmt.Errorf("read attempts of run %s: %w", id, err)
	}
	for i, at := range []*time.Time{&run.CreatedAt, &run.StartedAt, &run.FinishedAt, &run.ScoredAt} {
		if *at, err = parseMillis(text[5+i]); err != nil {
			return scoring.Run{}, fmt.Errorf("read %s of run %s: %w", runFields[5+i], id, err)
		}
	}
	if text[10] != "" {
		var errs [2]error
		run.Progress.Done, errs[0] = strconv.Atoi(text[9])
		run.Progress.Total, errs[1] = strconv.Atoi(text[10])
		if err := errors.Join(errs[:]...); err != nil {
			return scoring.Run{}, fmt.Errorf("read progress of run %s: %w", id, err)
		}
	}
	return run, nil
}

// claimedFields is the number of values per run that claim.lua returns.
const claimedFields = 6

// decodeClaimed decodes the reply of claim.lua.
func decodeClaimed(reply []string) ([]scoring.Run, error) {
	runs := make([]scoring.Run, 0, len(reply)/claimedFields)
	for ; len(reply) >= claimedFields; reply = reply[claimedFields:] {
		run := scoring.Run{ID: reply[0], Domain: reply[1], Lane: scoring.Lane(reply[2]), State: scoring.RunRunning}
		var errs [3]error
		run.CreatedAt, errs[0] = parseMillis(reply[3])
		run.Attempts, errs[1] = strconv.Atoi(reply[4])
		run.StartedAt, errs[2] = parseMillis(reply[5])
		for _, err := range errs {
			if err != nil {
				return nil, fmt.Errorf("read claimed run %s: %w", run.ID, err)
			}
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func parseMillis(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(ms).UTC(), nil
}

// millis formats a time in unix ms, as the scripts do.
func millis(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
