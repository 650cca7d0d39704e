package batch

import (
	"context"
	"fmt"
	"time"

	"companyscore/universe"
	"companyscore/universe/published"
)

// moversEvery is how long a list of movers stands.
const moversEvery = 5 * time.Minute

// countUniverse counts all companies and publishes what came out. Whatever fails
// leaves what was published before.
func (r *Runner) countUniverse(ctx context.Context, fence int64) error {
	s, err := r.cfg.Store.Groups(ctx)
	if err != nil {
		return err
	}
	before, found, err := published.Read(ctx, r.cfg.Redis)
	if err != nil {
		r.cfg.Logger.Warn("published universe is not readable and is made anew", "err", err)
	}
	s.Movers = before.Movers
	if !found || before.PipelineVersion != s.PipelineVersion || outdated(s.Movers, s.Cut) {
		s.Movers = make(map[universe.Window]universe.Movers)
		for _, window := range universe.Windows {
			if s.Movers[window], err = r.cfg.Store.Movers(ctx, window, s.Cut); err != nil {
				return err
			}
		}
	}
	if err := published.Publish(ctx, r.cfg.Redis, s, fence); err != nil {
		return fmt.Errorf("universe: %w", err)
	}
	return nil
}

func outdated(movers map[universe.Window]universe.Movers, now time.Time) bool {
	for _, window := range universe.Windows {
		if now.Sub(movers[window].End) >= moversEvery {
			return true
		}
	}
	return false
}
