package stores_test

import (
	"context"
	"strings"
	"testing"

	"companyscore/internal/config"
	"companyscore/internal/stores"
	"companyscore/internal/test/goroutines"
	servers "companyscore/internal/test/stores"
)

func TestMain(m *testing.M) { servers.Main(m) }

// refused is an address at which nothing listens.
const refused = "127.0.0.1:1"

func TestFailedOpenLeavesNoConnection(t *testing.T) {
	t.Parallel()
	redisURL, clickhouseURL := servers.Shared(t)
	for name, where := range map[string]config.Stores{
		"no Redis":      {ClickHouseURL: clickhouseURL, RedisURL: "redis://" + refused},
		"no ClickHouse": {ClickHouseURL: "http://" + refused + "/companyscore", RedisURL: redisURL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goroutines.MustEnd(t, "", func(ctx context.Context) {
				if open, err := stores.Open(ctx, where); err == nil || open != nil || !strings.Contains(err.Error(), refused) {
					t.Errorf("Open returns %v, %v", open, err)
				}
			})
		})
	}
}

func TestCloseEndsConnectionsAndWriters(t *testing.T) {
	t.Parallel()
	redisURL, clickhouseURL := servers.Shared(t)
	goroutines.MustEnd(t, "", func(ctx context.Context) {
		open, err := stores.Open(ctx, config.Stores{ClickHouseURL: clickhouseURL, RedisURL: redisURL})
		if err != nil {
			t.Error(err)
			return
		}
		open.Scores(0)
		open.Traces(0)
		if err := open.Close(); err != nil {
			t.Error(err)
		}
		if err := open.DB.Ping(ctx); err == nil {
			t.Error("ClickHouse answers after Close")
		}
		if err := open.Redis.Ping(ctx).Err(); err == nil {
			t.Error("Redis answers after Close")
		}
	})
}
