// Package redis connects to Redis, builds every key the service uses, and runs
// a private redis-server for the embedded mode and for tests.
package redis

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// quiet sends go-redis's own messages, which repeat what the errors say, to the
// debug level of our log.
type quiet struct{}

func (quiet) Printf(ctx context.Context, format string, args ...any) {
	slog.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
}

func init() { goredis.SetLogger(quiet{}) }

// Open connects to a Redis and checks that it answers. The URL is one of
//
//	redis://[user:password@]host:port[/db]                   one server; rediss:// for TLS
//	unix://[user:password@]/path/to.sock[?db=0]              one server on a unix socket
//	redis+sentinel://host:port?master_name=NAME[&addr=h:p]   Sentinel
//	redis+cluster://host:port[?addr=h:p]                     Cluster
//
// and takes the options of go-redis as parameters. The caller closes the client.
// Commands obey the deadline of their context, and have one of their own of a
// few seconds.
func Open(ctx context.Context, url string) (goredis.UniversalClient, error) {
	client, err := newClient(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		client.Close()
		return nil, fmt.Errorf("reach Redis: %w", err)
	}
	return client, nil
}

func newClient(url string) (goredis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return nil, fmt.Errorf("redis url %q has no scheme: use redis://host:port or unix:///path", url)
	}
	switch scheme {
	case "redis", "rediss", "unix":
		opt, err := goredis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("read redis url: %w", err)
		}
		opt.ContextTimeoutEnabled = true
		return goredis.NewClient(opt), nil
	case "redis+sentinel":
		opt, err := goredis.ParseFailoverURL("redis://" + rest)
		if err != nil {
			return nil, fmt.Errorf("read redis url: %w", err)
		}
		opt.ContextTimeoutEnabled = true
		return goredis.NewFailoverClient(opt), nil
	case "redis+cluster":
		opt, err := goredis.ParseClusterURL("redis://" + rest)
		if err != nil {
			return nil, fmt.Errorf("read redis url: %w", err)
		}
		opt.ContextTimeoutEnabled = true
		return goredis.NewClusterClient(opt), nil
	}
	return nil, fmt.Errorf("redis url scheme %q: use redis, rediss, unix, redis+sentinel or redis+cluster", scheme)
}
