package stores

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/redis"
)

// RedisServer is a real redis-server that belongs to one test.
type RedisServer struct {
	// URL is what redis.Open takes.
	URL   string
	local *redis.Local
}

// Redis starts a redis-server with a data directory of its own and ends it with
// the test. A server that dies is started again on the same data.
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "companyscore-redis-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	local, err := redis.StartLocal(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := local.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return &RedisServer{URL: local.URL, local: local}
}

// Kill kills the server as an outage would; it comes back by itself, with every
// write it had acknowledged.
func (s *RedisServer) Kill(t testing.TB) {
	t.Helper()
	if pid := s.local.PID(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// Freeze stops the server as an overloaded machine would: connections stay open, and
// what is sent is read after the returned function is called. The server must be thawed
// before the test ends.
func (s *RedisServer) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	pid := s.local.PID()
	signal := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, sig); pid == 0 || err != nil {
			t.Fatalf("signal redis-server %d: %v", pid, err)
		}
	}
	signal(syscall.SIGSTOP)
	return func() { t.Helper(); signal(syscall.SIGCONT) }
}
