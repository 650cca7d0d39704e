package embedded

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"
)

// statementsTimeout is how long statements of the service may run after the context of Run has
// ended.
const statementsTimeout = 2 * time.Second

// exitEnded is the status of the process when its watch ends it.
const exitEnded = 3

// Run opens the engine and serves cfg.Listener until ctx ends or serving fails. Acknowledged data
// are durable in any case. If the engine does not keep its limits of memory and time, the process exits with status 3.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Listener == nil {
		return errors.New("run ClickHouse: Listener is not set")
	}
	if cfg.End == nil {
		cfg.End = func(string) { os.Exit(exitEnded) }
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
