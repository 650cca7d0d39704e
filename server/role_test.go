package server

import (
	"context"
	"net"
	"strings"
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/test/goroutines"
	"companyscore/server/requestlog"
)

func TestFailedStartLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	f := theFixture(t)
	taken := listen(t)
	defer taken.Close()
	for name, c := range map[string]struct {
		change func(*Config)
		err    string
	}{
		"taken address":                 {func(c *Config) { c.Listen = taken.Addr().String() }, "--listen"},
		"taken address for operators":   {func(c *Config) { c.AdminListen = taken.Addr().String() }, "--admin-listen"},
		"a store that the server lacks": {func(c *Config) { c.Stores.Requests, c.Requests.On = nil, false }, "RequestCounts is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			accounts := clickhouse.NewAccounts(f.db)
			at := listen(t)
			if err := at.Close(); err != nil {
				t.Fatal(err)
			}
			cfg := Config{
				Listen: at.Addr().String(), CacheMB: 64, HTTP: config.DefaultHTTP(), Requests: requestlog.Config{On: true, HotRows: 1},
				Limits: smallLimits(), Logger: quiet,
				Stores: Stores{Accounts: accounts, Ledger: clickhouse.NewUsage(f.db), Records: f.scores,
					Requests: clickhouse.NewRequests(f.db), ClickHouse: f.db, Redis: f.rdb},
			}
			c.change(&cfg)
			goroutines.MustEnd(t, goroutines.Own, func(ctx context.Context) {
				if err := Run(ctx, cfg); err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("the start ended with %v, want %q", err, c.err)
				}
			})
			if cfg.Listen == at.Addr().String() {
				ln, err := net.Listen("tcp", cfg.Listen)
				if err != nil {
					t.Fatalf("the address is in use: %v", err)
				}
				ln.Close()
			}
		})
	}
}
