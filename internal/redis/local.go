package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/process"
)

// unixPathMaxBytes is what the smallest sockaddr_un among our platforms holds.
const unixPathMaxBytes = 100

// Local is a private redis-server. It listens on a unix socket only, keeps an
// append-only file, and is started again when it dies.
type Local struct {
	URL     string
	process *process.Process
}

// StartLocal starts a redis-server whose data lives in dir and waits until it
// has loaded that data. Every write it acknowledged is on the disk: with a sync each
// second instead, writes acknowledged while one was under way were seen to be lost
// with a killed process. A server that an earlier owner of dir left behind is ended first.
func StartLocal(ctx context.Context, dir string, logger *slog.Logger) (*Local, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed: run `make deps`, or install Redis 7, or set REDIS_URL")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	socket, err := socketPath(dir)
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	url := "unix://" + socket
	if err := endLeftover(ctx, socket); err != nil {
		return nil, err
	}
	child, err := process.Start(ctx, process.Config{
		Name: "redis-server",
		Command: func() *exec.Cmd {
			return exec.Command(bin, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
				"--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "",
				"--maxmemory-policy", "noeviction", "--loglevel", "warning", "--logfile", filepath.Join(dir, "redis.log"))
		},
		Ready: func(ctx context.Context) error {
			client := dialOnce(socket)
			defer client.Close()
			return client.Ping(ctx).Err()
		},
		Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("%w (its log is %s)", err, filepath.Join(dir, "redis.log"))
	}
	return &Local{URL: url, process: child}, nil
}

// PID is the process id of the redis-server, 0 while it is being started again.
func (l *Local) PID() int { return l.process.PID() }

// Stop ends the server after it has written its data; when ctx ends first it is killed.
func (l *Local) Stop(ctx context.Context) error { return l.process.Stop(ctx) }

// socketPath is a place in dir, or, when that path is too long for a socket, a
// private directory under the system's temporary one that is always the same for dir.
func socketPath(dir string) (string, error) {
	if path := filepath.Join(dir, "redis.sock"); len(path) <= unixPathMaxBytes {
		return path, nil
	}
	sum := sha256.Sum256([]byte(dir))
	short := filepath.Join(os.TempDir(), fmt.Sprintf("companyscore-%d-%s", os.Getuid(), hex.EncodeToString(sum[:8])))
	if err := os.MkdirAll(short, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(short, "redis.sock"), nil
}

// endLeftover shuts down a server that still answers on our socket.
func endLeftover(ctx context.Context, socket string) error {
	client := dialOnce(socket)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if client.Ping(ctx).Err() != nil {
		return nil
	}
	// A server that obeys closes the connection instead of answering.
	_ = client.Shutdown(ctx).Err()
	for client.Ping(ctx).Err() == nil {
		select {
		case <-ctx.Done():
			return errors.New("another redis-server uses this data directory and does not end when asked")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// dialOnce is a client that reports a server that is not there at once.
func dialOnce(socket string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Network: "unix", Addr: socket, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ContextTimeoutEnabled: true,
	})
}
