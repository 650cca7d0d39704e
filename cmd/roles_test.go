package cmd

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"

	"companyscore/internal/config"
	"companyscore/internal/test/goroutines"
)

// TestFailedUpLeavesNothingRunning starts an `up` whose later part fails.
func TestFailedUpLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct{ args, reached, says string }{
		"taken address":      {"--listen=" + taken.Addr().String(), `msg="child started" child=batch`, "another companyscore"},
		"Redis that refuses": {"--redis-url=redis://127.0.0.1:1", `msg="child is ready" child=clickhouse`, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := dataDir(t)
			p := launchUp(t, data, c.args)
			if code := p.exit(t); code != exitFailed || !strings.Contains(p.text(), c.reached) || !strings.Contains(p.text(), c.says) {
				t.Errorf("exit code %d, want %d after %q, with %q", code, exitFailed, c.reached, c.says)
			}
			if left := processes(t, data); len(left) > 0 {
				t.Errorf("left processes: %v", left)
			}
			if _, err := config.ReadRuntime(data); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the addresses of a failed start: %v", err)
			}
		})
	}
}

// TestFailedRoleLeavesNothingRunning runs roles in this process on the stores of an `up`. A later part of each fails.
func TestFailedRoleLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	up := launchUp(t, data)
	up.await(t, "Ctrl-C")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct{ args, says string }{
		"serve on a taken address":               {"serve --listen TAKEN", "another companyscore"},
		"serve on a taken address for operators": {"serve --listen 127.0.0.1:0 --admin-listen TAKEN", "--admin-listen"},
		"serve without Redis":                    {"serve --listen 127.0.0.1:0 --redis-url redis://127.0.0.1:1", "refused"},
		"work on a taken address for operators":  {"work --sources facts --admin-listen TAKEN", "--admin-listen"},
		"work without Redis":                     {"work --sources facts --redis-url redis://127.0.0.1:1", "refused"},
		"batch without Redis":                    {"batch --sources facts --redis-url redis://127.0.0.1:1", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goroutines.MustEnd(t, goroutines.Own, func(context.Context) {
				args := strings.Fields(strings.ReplaceAll(c.args, "TAKEN", taken.Addr().String()))
				args = append(args, "--data", data, "--clickhouse-url", runtimeOf(t, data).ClickHouseURL)
				if code, stdout, stderr := command(t, "", args...); code != exitFailed || !strings.Contains(stderr, c.says) {
					t.Errorf("exit code %d: %s%s", code, stdout, stderr)
				}
			})
		})
	}
}
