package batch

import "context"

// Run runs the jobs until ctx ends: by their schedules, or those in Config.Once once, after which
// it returns the errors of all of them.
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
