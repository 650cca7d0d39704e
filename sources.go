package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

// sourceConfig is what an operator says about data sources.
type sourceConfig struct {
	names     string
	contact   string
	resolvers []string
	never     []string
	at        string // YAML file with source overrides
	ranks     string // directory
}

// flags adds the flags of c.
func (c *sourceConfig) flags(cmd *cobra.Command) {
	c.choiceFlags(cmd, "data sources to ask")
	cmd.Flags().StringVar(&c.contact, "contact", "", "e-mail address or URL at which you can be reached; servers of live sources are told it")
	cmd.Flags().StringSliceVar(&c.resolvers, "resolvers", nil, "DNS servers to ask, IP:port separated by commas (default two public ones)")
	cmd.Flags().StringSliceVar(&c.never, "never-ask", nil, "domains, addresses and address ranges no connection is made to, separated by commas")
	cmd.Flags().StringVar(&c.ranks, "ranks", "", "directory for lists of traffic ranks (default in memory only; in the data directory for up)")
}

// choiceFlags adds the flags that say which servers are asked.
func (c *sourceConfig) choiceFlags(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&c.names, "sources", "all", what+": all, facts, or names separated by commas")
	cmd.Flags().StringVar(&c.at, "sources-at", "", "YAML file with source overrides: servers on loopback that are used in place of the internet")
}

// args are the flags with which another process gets the same sources.
func (c *sourceConfig) args() []string {
	return append(c.choiceArgs(),
		"--contact", c.contact, "--resolvers", strings.Join(c.resolvers, ","), "--never-ask", strings.Join(c.never, ","), "--ranks", c.ranks)
}

// choiceArgs are those of choiceFlags.
func (c *sourceConfig) choiceArgs() []string {
	return []string{"--sources", c.names, "--sources-at", c.at}
}

// knownSources are the data sources there are, by name.
func knownSources() []string {
	names := []string{scoring.FactsSource}
	for _, p := range fetch.Policies {
		names = append(names, p.Source)
	}
	return names
}

// chosen are the sources to ask, by name.
func (c *sourceConfig) chosen() ([]string, error) {
	return config.ParseSources(c.names, knownSources())
}

// isLive reports whether any source but the facts is chosen.
func isLive(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != scoring.FactsSource })
}

// check returns all that is wrong with what was said.
func (c *sourceConfig) check() error {
	names, err := c.chosen()
	if err != nil || !isLive(names) {
		return err
	}
	if c.contact == "" {
		return errors.New("live sources need --contact, an e-mail address or a URL at which you can be reached, since providers want to know who asks: give it, or ask imported facts alone with --sources facts")
	}
	_, err = c.client(nil, nil, slog.New(slog.DiscardHandler))
	return err
}

// client returns the client that live sources ask through. Registry and redis may be nil.
func (c *sourceConfig) client(shared goredis.UniversalClient, registry prometheus.Registerer, logger *slog.Logger) (*fetch.Client, error) {
	overrides, err := c.overrides()
	if err != nil {
		return nil, err
	}
	return fetch.New(fetch.Config{
		Contact: c.contact, Resolvers: c.resolvers, Never: c.never, Redis: shared, Registry: registry, Logger: logger,
		Tokens: sourceTokens(), Overrides: overrides,
	})
}

// sourceTokens are the tokens that were given for endpoints, by name of their variable.
// They are secrets, and arguments can be seen by everyone.
func sourceTokens() map[string]string {
	tokens := make(map[string]string)
	for _, e := range fetch.Endpoints {
		if token := os.Getenv(e.Token); e.Token != "" && token != "" {
			tokens[e.Token] = token
		}
	}
	return tokens
}

// overrides is what was named to be asked in the place of the internet, nil for none.
func (c *sourceConfig) overrides() (*fetch.Overrides, error) {
	if c.at == "" {
		return nil, nil
	}
	return fetch.ReadOverrides(c.at)
}

// pace returns whether workers with these sources ask any but the facts, and how many
// companies a second may then be refreshed; 0 for no limit.
func (c *sourceConfig) pace() (live bool, perSecond float64, err error) {
	names, err := c.chosen()
	if err != nil || !isLive(names) {
		return false, 0, err
	}
	overrides, err := c.overrides()
	if err != nil {
		return false, 0, err
	}
	return true, fetch.RefreshPace(names, sourceTokens(), overrides), nil
}

// open returns the sources that were chosen, with what they need of our stores.
func (c *sourceConfig) open(stores *stores, registry prometheus.Registerer, logger *slog.Logger) ([]source.Source, error) {
	names, err := c.chosen()
	if err != nil {
		return nil, err
	}
	var all []source.Source
	if slices.Contains(names, scoring.FactsSource) {
		all = append(all, source.Facts{Store: clickhouse.NewFacts(stores.db)})
	}
	if !isLive(names) {
		return all, nil
	}
	client, err := c.client(stores.redis, registry, logger)
	if err != nil {
		return nil, err
	}
	for _, s := range source.Live(client, c.ranks, logger) {
		if slices.Contains(names, s.Name()) {
			all = append(all, s)
		}
	}
	return all, nil
}

// runBackground has sources do what they do beside runs until ctx ends, and
// returns a function that waits for their end.
func runBackground(ctx context.Context, sources []source.Source) (wait func()) {
	var running sync.WaitGroup
	for _, s := range sources {
		if b, ok := s.(source.Background); ok {
			running.Go(func() { b.Run(ctx) })
		}
	}
	return running.Wait
}

func sourceNames(sources []source.Source) string {
	var names []string
	for _, s := range sources {
		if s.Plan().Off == "" {
			names = append(names, s.Name())
		}
	}
	return strings.Join(names, ",")
}
