package stores

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"companyscore/internal/redis"
	"companyscore/internal/test/wait"
)

// stopLimit bounds the stop of the shared Redis server.
const stopLimit = wait.Max

// both are the stores that Shared returns, started by its first call.
var both struct {
	redis                   *redis.Local
	redisDir, clickhouseURL string
}

// Shared returns the URLs of a Redis server and of a ClickHouse database that all tests of this
// binary share. The database has no tables at the first call. Both end with the binary.
func Shared(t testing.TB) (redisURL, clickhouseURL string) {
	t.Helper()
	requireLibrary(t)
	t.Cleanup(func() {
		if t.Failed() {
			shared.Lock()
			defer shared.Unlock()
			shared.keep = true
		}
	})
	shared.Lock()
	defer shared.Unlock()
	if both.clickhouseURL == "" {
		url, err := newDatabase("shared")
		if err != nil {
			t.Fatal(err)
		}
		both.clickhouseURL = url
	}
	if both.redis == nil {
		dir, err := os.MkdirTemp("", "companyscore-redis-")
		if err != nil {
			t.Fatal(err)
		}
		if both.redis, err = redis.StartLocal(context.WithoutCancel(t.Context()), dir, slog.New(slog.DiscardHandler)); err != nil {
			os.RemoveAll(dir)
			t.Fatal(err)
		}
		both.redisDir = dir
	}
	return both.redis.URL, both.clickhouseURL
}

// stopBoth stops the shared Redis server. ClickHouse is stopped by Main.
func stopBoth() {
	if both.redis == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := both.redis.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "stores: shared Redis:", err)
	}
	os.RemoveAll(both.redisDir)
}
