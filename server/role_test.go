package server

import (
	"bytes"
	"context"
	"net"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/server/requestlog"
)

// goroutinesLeft returns the goroutines in code of this module that f and all it has started leave. It
// waits a while for those that are about to end.
func goroutinesLeft(t *testing.T, f func(ctx context.Context)) (left []string) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), f) // goroutines inherit the label
	for deadline := time.Now().Add(5 * time.Second); ; {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		left = nil
		for group := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(group, `"test":"`+t.Name()+`"`) && strings.Contains(group, "companyscore/") {
				left = append(left, group)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

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
				Listen: at.Addr().String(), CacheMB: 64, HTTP: config.DefaultHTTP(), Requests: requestlog.Config{On: true, HotRows: 1}, Limits: smallLimits(), Logger: quiet,
				Stores: Stores{Accounts: accounts, Ledger: clickhouse.NewUsage(f.db), Records: f.scores, Requests: clickhouse.NewRequests(f.db), ClickHouse: f.db, Redis: f.rdb},
			}
			c.change(&cfg)
			left := goroutinesLeft(t, func(ctx context.Context) {
				if err := Run(ctx, cfg); err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("the start ended with %v, want %q", err, c.err)
				}
			})
			if len(left) > 0 {
				t.Errorf("%d are left: %s", len(left), strings.Join(left, "\n\n"))
			}
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
