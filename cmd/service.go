package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"companyscore/client"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/redis"
	"companyscore/scoring/source/status"
)

// service is where the commands of customers find the HTTP API, and the key that they send.
type service struct {
	key, url, data string
}

// flags adds the flags of s with their defaults.
func (s *service) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.key, "key", "", "API key; prefer the variable, because other users can see arguments")
	flags.StringVar(&s.url, "url", "", "address of the service (default: of the running up of --data, else http://127.0.0.1:8080)")
	flags.StringVar(&s.data, "data", config.DefaultData, "data directory of a running up")
}

// client returns a client of the service. It sets url if there is none.
func (s *service) client() (*client.Client, error) {
	if s.url == "" {
		s.url = "http://127.0.0.1:8080"
		if rt, err := config.ReadRuntime(s.data); err == nil {
			s.url = rt.BaseURL
		}
	}
	if s.key == "" {
		return nil, cli.Usage(errors.New("no API key: set COMPANYSCORE_KEY; `up` prints the keys of a demo account, and `companyscore " +
			"key create` makes one"))
	}
	c, err := client.New(client.Config{URL: s.url, Key: s.key})
	return c, cli.Usage(err)
}

// describeSources says on a terminal what a run can learn, if the service is the running up of the data directory.
func (s *service) describeSources(ctx context.Context, w io.Writer) {
	rt, err := config.ReadRuntime(s.data)
	if err != nil || rt.BaseURL != s.url || !cli.IsTerminal(w) {
		return
	}
	rdb, err := redis.Open(ctx, rt.RedisURL)
	if err != nil {
		return // the calls say what is wrong
	}
	defer rdb.Close()
	describeSources(ctx, w, rdb)
}

// describeSources says on a terminal what a run can learn.
func describeSources(ctx context.Context, w io.Writer, rdb goredis.UniversalClient) {
	if !cli.IsTerminal(w) {
		return
	}
	if sources, err := status.Read(ctx, rdb, time.Now()); err == nil {
		fmt.Fprintf(w, "%s\n", status.Describe(sources))
	}
}

// report prints what failed and what to do about it. It returns cli.ErrReported.
func (s *service) report(w io.Writer, what string, err error) error {
	text := strings.ReplaceAll(err.Error(), " See /docs/", " See "+s.url+"/docs/")
	fmt.Fprintf(w, "%s: %s%s\n", what, text, s.advice(err))
	return cli.ErrReported
}

// advice returns what to do about an error, empty if its text has that.
func (s *service) advice(err error) string {
	var refused *client.Error
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		return " `companyscore key list` shows the keys, `companyscore key create` makes one."
	case errors.Is(err, client.ErrFreeTier):
		return " `companyscore account set-tier` changes the tier."
	case errors.As(err, &refused):
		return ""
	case errors.As(err, new(*client.RunError)):
		return "; `companyscore run list --state all` shows the cause"
	case errors.As(err, new(*client.PendingError)):
		return "; repeat the command later"
	}
	return fmt.Sprintf("; check that the service runs at %s (`companyscore up`), or use --url or --data", s.url)
}
