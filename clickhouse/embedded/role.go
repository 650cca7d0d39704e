package embedded

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// statementsTimeout is how long statements of the service may run after the context of Run has
// ended.
const statementsTimeout = 2 * time.Second

// Run opens the engine and serves cfg.Listener until ctx ends or serving fails. Acknowledged data
// are durable in any case.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Listener == nil {
		return errors.New("run ClickHouse: Listener is not set")
	}
	server, err := New(ctx, cfg)
	if err != nil {
		return errors.Join(err, cfg.Listener.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(cfg.Listener) }() // ends with Shutdown
	if cfg.Ready != nil {
		cfg.Ready()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementsTimeout)
	defer cancel()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if unfinished := server.Shutdown(closing); unfinished != nil {
		server.cfg.Logger.Warn("stopped with unfinished statements; acknowledged data is safe", "err", unfinished)
	}
	return err
}
