package inbox

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/scoring/source"
)

// standing is what counts among the layers of a company.
type standing struct {
	signals map[string][3]float64 // raw value and the ends of its range
	claims  map[source.Kind][]string
	values  map[string]float64
	defunct bool
}

// standingOf returns what counts among layers by prefer. It has neither origins nor days.
func standingOf(layers []scoring.CompanyFacts, prefer scoring.Preference) standing {
	result := source.FromFacts(layers, prefer)
	s := standing{map[string][3]float64{}, map[source.Kind][]string{}, result.Values, result.Defunct}
	observed := map[string][]scoring.Observation{}
	for _, o := range result.Observations {
		observed[o.Signal] = append(observed[o.Signal], o)
	}
	for signal, all := range observed {
		if o, found := prefer.Choose(signal, all); found {
			s.signals[signal] = [3]float64{o.Raw, o.Low, o.High}
		}
	}
	for _, c := range source.NewCompany(result.Claims...).Claims() {
		if c.Kind == source.Industry || s.claims[c.Kind] == nil { // all labels of industries vote, of others the first counts
			s.claims[c.Kind] = append(s.claims[c.Kind], c.Value)
		}
	}
	return s
}

// noteChanges notes the companies whose facts that count a staged import changes, page by page. They get their runs when the
// import is complete.
func (in *Inbox) noteChanges(ctx context.Context, importID string) error {
	if err := in.cfg.Redis.SAdd(ctx, redis.InboxImports(), importID).Err(); err != nil {
		return fmt.Errorf("note the companies that an import changes: %w", err)
	}
	prefer := scoring.Preference{Now: time.Now(), Trust: in.cfg.Trust}
	return in.cfg.Store.StagedChanges(ctx, importID, func(changes []table.FactsChange) error {
		var domains []any
		for _, c := range changes {
			if !reflect.DeepEqual(standingOf(c.Before, prefer), standingOf(c.After, prefer)) {
				domains = append(domains, c.Domain)
			}
		}
		if len(domains) == 0 {
			return nil
		}
		if err := in.cfg.Redis.RPush(ctx, redis.InboxChanged(importID), domains...).Err(); err != nil {
			return fmt.Errorf("note the companies that an import changes: %w", err)
		}
		return nil
	})
}

const (
	// laneMax is the maximum number of runs of the inbox that wait in the lane bulk.
	laneMax = 100_000
	// runPage is the number of runs that are started at once.
	runPage = 1000
)

// startRuns starts runs for the companies that complete imports have changed, as many as the lane has room for. Companies of
// imports that failed are dropped.
func (in *Inbox) startRuns(ctx context.Context, done *table.Received) error {
	imports, err := in.cfg.Redis.SMembers(ctx, redis.InboxImports()).Result()
	if err != nil {
		return fmt.Errorf("read the companies that imports changed: %w", err)
	}
	done.Waiting = 0
	if len(imports) == 0 {
		return nil
	}
	status, err := in.cfg.Queue.Status(ctx)
	if err != nil {
		return err
	}
	room := laneMax
	for _, lane := range status.Lanes {
		if lane.Lane == scoring.LaneBulk {
			room -= lane.Waiting
		}
	}
	for _, id := range imports {
		complete, err := in.cfg.Store.ImportDone(ctx, id)
		if err != nil {
			return err
		}
		if complete {
			if err := in.startRunsOf(ctx, id, &room, done); err != nil {
				return err
			}
			left, err := in.cfg.Redis.LLen(ctx, redis.InboxChanged(id)).Result()
			if err != nil {
				return fmt.Errorf("read the companies that imports changed: %w", err)
			}
			if done.Waiting += uint64(left); left > 0 {
				continue
			}
		}
		if err := in.cfg.Redis.Del(ctx, redis.InboxChanged(id)).Err(); err != nil {
			return fmt.Errorf("drop the companies of import %s: %w", id, err)
		}
		if err := in.cfg.Redis.SRem(ctx, redis.InboxImports(), id).Err(); err != nil {
			return fmt.Errorf("drop the companies of import %s: %w", id, err)
		}
	}
	return nil
}

// startRunsOf starts runs for the companies of one import. A process that ends in between repeats at most one page, and a
// repeated start joins the open runs.
func (in *Inbox) startRunsOf(ctx context.Context, importID string, room *int, done *table.Received) error {
	key := redis.InboxChanged(importID)
	for *room > 0 {
		domains, err := in.cfg.Redis.LRange(ctx, key, 0, int64(min(runPage, *room))-1).Result()
		if err != nil {
			return fmt.Errorf("read the companies that imports changed: %w", err)
		}
		if len(domains) == 0 {
			return nil
		}
		if _, err := in.cfg.Queue.Start(ctx, scoring.LaneBulk, domains...); err != nil {
			return err
		}
		if err := in.cfg.Redis.LTrim(ctx, key, int64(len(domains)), -1).Err(); err != nil {
			return fmt.Errorf("note the runs that were started: %w", err)
		}
		*room -= len(domains)
		done.Started += uint64(len(domains))
	}
	return nil
}
