package queue

import (
	"fmt"
	"strconv"
	"time"

	"companyscore/scoring"
)

// decode reads a run from the fields of its hash.
func decode(fields map[string]string) (scoring.Run, error) {
	run := scoring.Run{
		ID: fields["id"], Domain: fields["domain"], Origin: fields["origin"],
		State: scoring.RunState(fields["state"]), Error: fields["error"],
	}
	attempts, err := strconv.Atoi(fields["attempts"])
	if err != nil || run.ID == "" {
		return scoring.Run{}, fmt.Errorf("read run %q: its hash is damaged", run.ID)
	}
	run.Attempts = attempts
	for name, at := range map[string]*time.Time{
		"created_at": &run.CreatedAt, "started_at": &run.StartedAt,
		"finished_at": &run.FinishedAt, "scored_at": &run.ScoredAt,
	} {
		if *at, err = parseMillis(fields[name]); err != nil {
			return scoring.Run{}, fmt.Errorf("read %s of run %s: %w", name, run.ID, err)
		}
	}
	return run, nil
}

// encode writes what is known of a run while it is under way.
func encode(run scoring.Run) []any {
	fields := []any{
		"id", run.ID, "domain", run.Domain, "origin", run.Origin, "state", string(run.State),
		"created_at", run.CreatedAt.UnixMilli(), "attempts", run.Attempts,
	}
	if !run.StartedAt.IsZero() {
		fields = append(fields, "started_at", run.StartedAt.UnixMilli())
	}
	return fields
}

// decodeReply reads a run from a script's reply of field, value, ...; ok is
// false when the reply is empty.
func decodeReply(reply []string) (run scoring.Run, ok bool, err error) {
	if len(reply) == 0 {
		return scoring.Run{}, false, nil
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		fields[reply[i]] = reply[i+1]
	}
	run, err = decode(fields)
	return run, err == nil, err
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
