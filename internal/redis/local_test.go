package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"log/slog"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
)

func TestLocalKeepsAcknowledgedWritesThroughKill(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client, err := redis.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 100 {
		if err := client.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	before := client.Info(t.Context(), "server").Val()
	server.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	for client.Ping(ctx).Err() != nil || runID(client.Info(ctx, "server").Val()) == runID(before) {
		if ctx.Err() != nil {
			t.Fatal("redis-server did not come back")
		}
	}
	for i := range 100 {
		if got, err := client.Get(ctx, fmt.Sprint("k", i)).Int(); err != nil || got != i {
			t.Fatalf("key k%d after the kill = %d, %v; want %d", i, got, err, i)
		}
	}
}

func runID(info string) string {
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

func TestLocalTakesOverFromLeftoverServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30)) // too long for a socket
	quiet := slog.New(slog.DiscardHandler)
	first, err := redis.StartLocal(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	client, err := redis.Open(t.Context(), first.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	second, err := redis.StartLocal(t.Context(), dir, quiet)
	if err != nil {
		t.Fatalf("start beside a running server: %v", err)
	}
	stop, cancel := context.WithTimeout(context.Background(), wait.Max)
	defer cancel()
	defer second.Stop(stop)
	defer first.Stop(stop)
	defer os.RemoveAll(filepath.Dir(strings.TrimPrefix(first.URL, "unix://")))
	if got := client.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("value after takeover = %q, want v", got)
	}
}

func TestLocalRefusesStartBesideFrozenServer(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "companyscore-redis-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	quiet := slog.New(slog.DiscardHandler)
	frozen, err := redis.StartLocal(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	stop, cancel := context.WithTimeout(context.Background(), wait.Max)
	defer cancel()
	defer frozen.Stop(stop)
	if err := syscall.Kill(frozen.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(frozen.PID(), syscall.SIGCONT)
	var log bytes.Buffer
	soon, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	second, err := redis.StartLocal(soon, dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err == nil {
		second.Stop(stop)
		t.Fatal("a second redis-server was started on the same append-only file")
	}
	if !strings.Contains(log.String(), "waiting for the redis-server of an earlier process") {
		t.Errorf("the log does not name what is waited for: %s", &log)
	}
}

func TestLocalNamesADamagedFile(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "companyscore-redis-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "appendonlydir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"appendonly.aof.manifest":   "file appendonly.aof.1.incr.aof seq 1 type i\n",
		"appendonly.aof.1.incr.aof": "*3\r\n$3\r\nSET\r\n" + strings.Repeat("\x00", 4096),
	} {
		if err := os.WriteFile(filepath.Join(dir, "appendonlydir", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err = redis.StartLocal(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "Bad file format") || !strings.Contains(err.Error(), "redis.log") {
		t.Errorf("StartLocal on a damaged append-only file = %v", err)
	}
}

func TestOpenRefusesBadURLs(t *testing.T) {
	t.Parallel()
	f := func(url, want string) {
		t.Helper()
		_, err := redis.Open(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q) = %v, want an error saying %q", url, err, want)
		}
	}
	f("localhost:6379", "no scheme")
	f("http://127.0.0.1", "scheme")
	f("redis://127.0.0.1:1", "reach Redis")
	f("unix:///nonexistent.sock", "reach Redis")
}
