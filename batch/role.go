package batch

import "context"

// Run runs the jobs by their schedules until ctx ends. If Config.Once has names, it runs these
// jobs once and returns their joined errors.
func Run(ctx context.Context, cfg Config) error {
	r, err := New(cfg)
	if err != nil {
		return err
	}
	if len(cfg.Once) > 0 {
		return r.Once(ctx, cfg.Once, cfg.Report)
	}
	r.Start()
	defer r.Stop()
	if cfg.Ready != nil {
		cfg.Ready()
	}
	<-ctx.Done()
	return nil
}
