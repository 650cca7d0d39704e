// Package status says which sources the workers ask, and which of them do not answer. Each worker writes
// it to Redis every few seconds, and other processes read it there.
package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	interval    = 5 * time.Second // between two writes
	keptFor     = time.Minute     // after the last write, a source counts as not asked
	callTimeout = 2 * time.Second
)

// Source is the status of a source.
type Source struct {
	Name string
	// SilentSince is the time of the first failure after the last answer, zero if the last request was
	// answered.
	SilentSince time.Time
}

// Board collects the status of the sources of one worker. It is safe for concurrent use.
type Board struct {
	mu     sync.Mutex
	silent map[string]time.Time // by source
}

// NewBoard returns the board of a worker that asks the named sources.
func NewBoard(sources []string) *Board {
	b := &Board{silent: make(map[string]time.Time, len(sources))}
	for _, name := range sources {
		b.silent[name] = time.Time{}
	}
	return b
}

// Note records whether a source answered at an instant.
func (b *Board) Note(source string, answered bool, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case answered:
		b.silent[source] = time.Time{}
	case b.silent[source].IsZero():
		b.silent[source] = at
	}
}

// entry is the status of a source in Redis. Instants are unix ms.
type entry struct {
	WrittenAt   int64 `json:"written_at"`
	SilentSince int64 `json:"silent_since,omitempty"`
}

func (b *Board) write(ctx context.Context, rdb goredis.UniversalClient) error {
	now := time.Now()
	fields := make([]any, 0, 2*len(b.silent))
	b.mu.Lock()
	for name, since := range b.silent {
		e := entry{WrittenAt: now.UnixMilli()}
		if !since.IsZero() {
			e.SilentSince = since.UnixMilli()
		}
		text, err := json.Marshal(e)
		if err != nil {
			panic("status: " + err.Error()) // cannot happen, these are numbers
		}
		fields = append(fields, name, text)
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return rdb.HSet(ctx, redis.SourceStatus(), fields...).Err()
}

// Publish writes the status to Redis every few seconds until ctx ends.
func (b *Board) Publish(ctx context.Context, rdb goredis.UniversalClient, logger *slog.Logger) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := b.write(ctx, rdb); err != nil && ctx.Err() == nil {
			logger.Warn("status of sources not written", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Read returns the status of the sources that workers ask now, by name. It is empty if no worker runs.
func Read(ctx context.Context, rdb goredis.UniversalClient, now time.Time) ([]Source, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := rdb.HGetAll(ctx, redis.SourceStatus()).Result()
	if err != nil {
		return nil, fmt.Errorf("read the status of sources: %w", err)
	}
	var all []Source
	for name, text := range fields {
		var e entry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, fmt.Errorf("read the status of source %s: %w", name, err)
		}
		if now.Sub(time.UnixMilli(e.WrittenAt)) > keptFor {
			continue
		}
		s := Source{Name: name}
		if e.SilentSince != 0 {
			s.SilentSince = time.UnixMilli(e.SilentSince).UTC()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Source) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Describe says in one line what a run can learn from the sources that workers ask now.
func Describe(all []Source) string {
	var live, silent []string
	for _, s := range all {
		if s.Name == scoring.FactsSource {
			continue
		}
		live = append(live, s.Name)
		if !s.SilentSince.IsZero() {
			silent = append(silent, fmt.Sprintf("no answer from %s since %s", s.Name, s.SilentSince.Format("2006-01-02 15:04")))
		}
	}
	switch {
	case len(all) == 0:
		return "no worker runs now: runs wait until one is started"
	case len(live) == 0:
		return "a run asks imported facts alone: a company without facts gets a neutral 50 about which nothing is known"
	}
	text := fmt.Sprintf("a run asks %d live sources, which can tell up to %d of %d signals", len(live), scoring.SignalsFrom(live...),
		len(scoring.Manifest()))
	return strings.Join(append([]string{text}, silent...), "; ")
}
