package redis

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/process"
)

const (
	// unixPathMaxBytes fits in the smallest sockaddr_un of the supported platforms.
	unixPathMaxBytes = 100
	// leftoverMax bounds the wait for the end of an earlier owner's server.
	leftoverMax = 35 * time.Second
	// askMax bounds one call to that server, which may be stopped (SIGSTOP).
	askMax = time.Second
)

// Local is a private redis-server. It listens on a unix socket only, keeps an
// append-only file, and is restarted when it dies.
type Local struct {
	URL     string
	process *process.Process
}

// StartLocal starts a redis-server with its data in dir and waits until it has loaded
// the data. Every acknowledged write is on disk. With a sync per second, a killed process
// can lose writes that it acknowledged during a sync. StartLocal first ends a server that
// an earlier owner of dir left running.
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
	if err := endLeftover(ctx, socket, logger); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	log := filepath.Join(dir, "redis.log")
	child, err := process.Start(ctx, process.Config{
		Name: "redis-server",
		Command: func() *exec.Cmd {
			return exec.Command(bin, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
				"--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "",
				"--maxmemory-policy", "noeviction", "--loglevel", "warning", "--logfile", log)
		},
		Ready: func(ctx context.Context) error {
			client := dialOnce(socket)
			defer client.Close()
			return client.Ping(ctx).Err()
		},
		OrphanSignal: syscall.SIGKILL, // loses nothing it has acknowledged
		Logger:       logger,
	})
	if err != nil {
		return nil, fmt.Errorf("%w (%s ends with: %s)", err, log, lastLine(log))
	}
	return &Local{URL: url, process: child}, nil
}

// PID returns the process id of the redis-server, 0 during a restart.
func (l *Local) PID() int { return l.process.PID() }

// Stop ends the server after it has written its data. If ctx ends first, Stop kills it.
func (l *Local) Stop(ctx context.Context) error { return l.process.Stop(ctx) }

// socketPath returns a path in dir. If it is too long for a socket, it returns one in a
// private temporary directory, always the same for dir.
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

// endLeftover shuts down a server that still listens on our socket and waits for
// its end. Two servers would write to one append-only file.
func endLeftover(ctx context.Context, socket string, logger *slog.Logger) error {
	if !listening(socket) {
		return nil
	}
	logger.Info("waiting for the redis-server of an earlier process to end", "socket", socket, "max", leftoverMax)
	client := dialOnce(socket)
	defer client.Close()
	waiting, cancel := context.WithTimeout(ctx, leftoverMax)
	defer cancel()
	for {
		asking, cancel := context.WithTimeout(waiting, askMax)
		// On success the server closes the connection without an answer.
		_ = client.Shutdown(asking).Err()
		cancel()
		if !listening(socket) {
			return nil
		}
		select {
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("another redis-server listens on %s and did not end within %s: end it", socket, leftoverMax)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// listening reports whether a process has the socket open, even if it does not answer.
func listening(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, askMax)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
	}
	conn.Close()
	return true
}

// lastLine returns the last line of a file, or nothing. It reads at most 2 KiB.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	_, _ = f.Seek(-2<<10, io.SeekEnd) // a shorter file is read from its beginning
	text, _ := io.ReadAll(f)
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// dialOnce returns a client that does not retry to connect.
func dialOnce(socket string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Network: "unix", Addr: socket, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ContextTimeoutEnabled: true,
	})
}
