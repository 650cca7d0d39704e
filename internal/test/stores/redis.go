package stores

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"companyscore/internal/redis"
)

// RedisServer is a real redis-server that belongs to one test.
type RedisServer struct {
	// URL is the argument of redis.Open.
	URL   string
	local *redis.Local
}

// Redis starts a redis-server with its own data directory, and stops it with the test. A server
// that dies is restarted on its data.
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
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := local.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return &RedisServer{URL: local.URL, local: local}
}

// Kill kills the server. It restarts by itself with every acknowledged write.
func (s *RedisServer) Kill(t testing.TB) {
	t.Helper()
	if pid := s.local.PID(); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// Freeze stops the server as an overloaded machine would: connections stay open, and the server
// reads what was sent after the returned function is called. That function must be called before
// the test ends.
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
