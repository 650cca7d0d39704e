package peer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	goredis "github.com/redis/go-redis/v9"
)

// The kinds of servers of this program.
const (
	KindFiber   = "fiber"
	KindNetHTTP = "nethttp"
	KindRedis   = "redis"
)

// Route is the route of all servers.
const Route = "/v1/score/"

// idle is the idle timeout of connections. It exceeds the time between two rounds.
const idle = 10 * time.Minute

// Serve answers every request for a score with the same bytes until ctx ends. It calls
// ready with its address. A server of kind redis reads the body from Redis for every
// request; PutBody writes it.
func Serve(ctx context.Context, kind string, a Answer, client goredis.UniversalClient, ready func(address string)) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ready(ln.Addr().String())
	if kind == KindNetHTTP {
		return serveNetHTTP(ctx, ln, a)
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true, IdleTimeout: idle})
	body := []byte(a.Body)
	switch kind {
	case KindFiber:
		app.Get(Route+":domain", func(c *fiber.Ctx) error {
			setHeader(c, a)
			return c.Send(body)
		})
	case KindRedis:
		app.Get(Route+":domain", func(c *fiber.Ctx) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			text, err := client.Get(ctx, redisKey(c.Params("domain"))).Bytes()
			if err != nil {
				return err
			}
			setHeader(c, a)
			return c.Send(text)
		})
	default:
		return fmt.Errorf("unknown kind of server %q", kind)
	}
	failed := make(chan error, 1)
	go func() { failed <- app.Listener(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return app.ShutdownWithContext(ending)
}

func setHeader(c *fiber.Ctx, a Answer) {
	for name, value := range a.Header {
		c.Set(name, value)
	}
}

// redisKey returns the key of the body of a company in Redis.
func redisKey(domain string) string { return "bench:peer:" + domain }

// PutBody writes the body of a company for servers of kind redis. It expires after an hour.
func PutBody(ctx context.Context, client goredis.UniversalClient, domain string, a Answer) error {
	return client.Set(ctx, redisKey(domain), a.Body, time.Hour).Err()
}

func serveNetHTTP(ctx context.Context, ln net.Listener, a Answer) error {
	body := []byte(a.Body)
	length := strconv.Itoa(len(body))
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Route+"{domain}", func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		for name, value := range a.Header {
			header.Set(name, value)
		}
		header.Set("Content-Length", length)
		_, _ = w.Write(body) // the client may have closed the connection
	})
	server := &http.Server{Handler: mux, IdleTimeout: idle, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(ending)
}
