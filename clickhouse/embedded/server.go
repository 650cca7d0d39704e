// Package embedded serves the ClickHouse engine in libchdb over ClickHouse's own HTTP protocol, for clickhouse-go and for curl.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Config says where the engine keeps its data and who may use it.
type Config struct {
	Library         string       // path of libchdb; "" means Find()
	Path            string       // data directory, made if missing; one process at a time
	User            string       // the service's own user; "" means "companyscore"
	Password        string       // required
	AnalystPassword string       // password of the read-only user "analyst"; "" means there is no such user
	Connections     int          // connections of the library and so queries at a time; 0 means twice the CPUs, at least 4
	Logger          *slog.Logger // nil means slog.Default()
}

// Server answers ClickHouse's HTTP protocol from the embedded engine. It is safe for concurrent use.
type Server struct {
	cfg     Config
	pool    *pool
	analyst *pool
	spool   string
	http    *http.Server
}

// New opens the engine on cfg.Path.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Library == "" {
		path, err := Find()
		if err != nil {
			return nil, err
		}
		cfg.Library = path
	}
	if cfg.User == "" {
		cfg.User = "companyscore"
	}
	if cfg.Connections == 0 {
		cfg.Connections = max(4, 2*runtime.NumCPU())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, err
	}
	spool := filepath.Join(path, "spool")
	if err := os.RemoveAll(spool); err != nil {
		return nil, fmt.Errorf("clear spool: %w", err)
	}
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lib, err := openLibrary(cfg.Library)
	if err != nil {
		return nil, err
	}
	e := &engine{lib: lib, args: []string{"clickhouse", "--path=" + path}}
	s := &Server{cfg: cfg, spool: spool}
	s.pool = newPool(e, cfg.Connections, "")
	s.analyst = newPool(e, max(1, cfg.Connections/2), "readonly = 1")
	c, err := s.pool.get(ctx, session{})
	if err != nil {
		return nil, err
	}
	s.pool.put(c, true)
	s.http = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	return s, nil
}

// Serve answers requests on ln until Shutdown, then returns http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error { return s.http.Serve(ln) }

// Shutdown stops accepting, waits for running requests and closes the engine.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.analyst.close()
	s.pool.close()
	return errors.Join(err)
}
