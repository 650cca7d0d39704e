// Package selection reads which data sources an operator chose and makes them.
package selection

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"companyscore/internal/config"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

// Config is the choice of an operator.
type Config struct {
	// Chosen is "all", or names of sources separated by commas.
	Chosen string
	// Contact is the e-mail address or URL that servers of live sources receive. Live sources
	// need it.
	Contact string
	// Resolvers are DNS servers, IP:port. Empty means two public ones.
	Resolvers []string
	// Never are domains, addresses and address ranges that no connection is made to.
	Never []string
	// OverridesFile is a YAML file with overrides, empty for none.
	OverridesFile string
	// Ranks is the directory of the lists of traffic ranks. Empty means memory only.
	Ranks string
	// Trust is that of scoring.Preference.
	Trust []string
}

// Flags adds all flags of c.
func (c *Config) Flags(flags *pflag.FlagSet) {
	c.ChoiceFlags(flags, "data sources to ask")
	flags.StringVar(&c.Contact, "contact", "", "e-mail address or URL at which you can be reached; servers of live sources are told it")
	flags.StringSliceVar(&c.Resolvers, "resolvers", nil, "DNS servers to ask, IP:port separated by commas (default two public ones)")
	flags.StringSliceVar(&c.Never, "never-ask", nil, "domains, addresses and address ranges no connection is made to, separated by commas")
	flags.StringVar(&c.Ranks, "ranks", "", "directory for lists of traffic ranks (default in memory only; in the data directory for up)")
	TrustFlag(flags, &c.Trust)
}

// TrustFlag adds --trust.
func TrustFlag(flags *pflag.FlagSet, trust *[]string) {
	flags.StringSliceVar(trust, "trust", nil,
		"origins of facts and sources, most trusted first, for values of one day (default facts first)")
}

// ChoiceFlags adds the flags that choose sources and servers. what begins the help of --sources.
func (c *Config) ChoiceFlags(flags *pflag.FlagSet, what string) {
	flags.StringVar(&c.Chosen, "sources", "all", what+": all, facts, or names separated by commas")
	flags.StringVar(&c.OverridesFile, "sources-at", "",
		"YAML file with source overrides: servers on loopback that are used in place of the internet")
}

// Args returns the flags that give another process the same sources.
func (c *Config) Args() []string {
	return append(c.ChoiceArgs(),
		"--contact", c.Contact, "--resolvers", strings.Join(c.Resolvers, ","), "--never-ask", strings.Join(c.Never, ","), "--ranks",
		c.Ranks, "--trust", strings.Join(c.Trust, ","))
}

// ChoiceArgs returns the flags of ChoiceFlags.
func (c *Config) ChoiceArgs() []string {
	return []string{"--sources", c.Chosen, "--sources-at", c.OverridesFile}
}

// Known returns the keys of all sources, the facts first.
func Known() []string {
	names := []string{scoring.FactsSource}
	for _, p := range fetch.Policies {
		names = append(names, p.Source)
	}
	return names
}

// Names returns the keys of the chosen sources.
func (c *Config) Names() ([]string, error) { return config.ParseSources(c.Chosen, Known()) }

// isLive reports whether the names contain a source other than the facts.
func isLive(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != scoring.FactsSource })
}

// Validate returns an error that says what is wrong with the choice.
func (c *Config) Validate() error {
	names, err := c.Names()
	if err != nil || !isLive(names) {
		return err
	}
	if c.Contact == "" {
		return errors.New("live sources need --contact, an e-mail address or a URL at which you can be reached, since providers want to " +
			"know who asks: give it, or ask imported facts alone with --sources facts")
	}
	_, err = c.client(nil, nil, nil, slog.New(slog.DiscardHandler))
	return err
}

// client returns the client of live sources, or an error if the configuration does not keep the terms
// of their providers. shared, registry and wire may be nil.
func (c *Config) client(shared goredis.UniversalClient, registry prometheus.Registerer, wire fetch.Wire, logger *slog.Logger,
) (*fetch.Client, error) {
	names, err := c.Names()
	if err != nil {
		return nil, err
	}
	if err := fetch.CheckTerms(names, c.Contact, Tokens()); err != nil {
		return nil, err
	}
	overrides, err := c.overrides()
	if err != nil {
		return nil, err
	}
	return fetch.New(fetch.Config{
		Contact: c.Contact, Resolvers: c.Resolvers, Never: c.Never, Redis: shared, Registry: registry, Logger: logger,
		Tokens: Tokens(), Overrides: overrides, Wire: wire,
	})
}

// Tokens returns the tokens of endpoints by environment variable. They are secrets, and everyone
// can see the arguments of a process, so they have no flags.
func Tokens() map[string]string {
	given := make(map[string]string)
	for _, e := range fetch.Endpoints {
		if token := os.Getenv(e.Token); e.Token != "" && token != "" {
			given[e.Token] = token
		}
	}
	return given
}

func (c *Config) overrides() (*fetch.Overrides, error) {
	if c.OverridesFile == "" {
		return nil, nil
	}
	return fetch.ReadOverrides(c.OverridesFile)
}

// Summary says which sources are on, in one line, and what turns on the others.
func (c *Config) Summary() string {
	names, err := c.Names()
	switch {
	case err != nil:
		return err.Error()
	case !isLive(names):
		return "imported facts alone; live sources are off, because they need a contact: make run CONTACT=you@example.com, or " +
			"up --contact you@example.com"
	}
	live := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == scoring.FactsSource })
	return fmt.Sprintf("%d live ones (%s); providers are told %s", len(live), strings.Join(live, ", "), c.Contact)
}

// Pace reports whether workers with this choice ask live sources, and how many companies per
// second may then be refreshed. 0 means no limit.
func (c *Config) Pace() (live bool, perSecond float64, err error) {
	names, err := c.Names()
	if err != nil || !isLive(names) {
		return false, 0, err
	}
	overrides, err := c.overrides()
	if err != nil {
		return false, 0, err
	}
	return true, fetch.RefreshPace(names, Tokens(), overrides), nil
}

// Open returns the chosen sources. facts stores imported facts. shared is the Redis through which
// workers share quotas; it may be nil, as registry.
func (c *Config) Open(facts source.FactStore, shared goredis.UniversalClient, registry prometheus.Registerer,
	logger *slog.Logger) ([]source.Source, error) {
	names, err := c.Names()
	if err != nil {
		return nil, err
	}
	var all []source.Source
	if slices.Contains(names, scoring.FactsSource) {
		all = append(all, source.Facts{Store: facts})
	}
	if !isLive(names) {
		return all, nil
	}
	client, err := c.client(shared, registry, nil, logger)
	if err != nil {
		return nil, err
	}
	return append(all, c.live(client, names, logger)...), nil
}

// OpenLive returns the chosen live sources. Their exchanges with the network pass through wire.
func (c *Config) OpenLive(wire fetch.Wire, logger *slog.Logger) ([]source.Source, error) {
	names, err := c.Names()
	if err != nil {
		return nil, err
	}
	client, err := c.client(nil, nil, wire, logger)
	if err != nil {
		return nil, err
	}
	return c.live(client, names, logger), nil
}

// live returns the live sources among names.
func (c *Config) live(client *fetch.Client, names []string, logger *slog.Logger) (chosen []source.Source) {
	for _, s := range source.Live(client, c.Ranks, logger) {
		if slices.Contains(names, s.Name()) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// Status returns "yes" if a live source is asked, and else "no" with the reason.
func (c *Config) Status(name string, chosen []string) string {
	switch {
	case !slices.Contains(chosen, name):
		return "no: not chosen"
	case c.Contact == "" && name != scoring.FactsSource:
		return "no: needs --contact"
	}
	if err := fetch.CheckTerms([]string{name}, c.Contact, Tokens()); err != nil {
		return "no: " + err.Error()
	}
	return "yes"
}

// Limits describes the quotas of a source's servers, with the tokens of the environment.
func Limits(name string) []string {
	given := Tokens()
	var quotas, lines []string
	for _, e := range fetch.Endpoints {
		quota := e.Quota
		if given[e.Token] != "" {
			quota = e.TokenQuota
		}
		if e.Source == name && !slices.Contains(quotas, quota) {
			quotas = append(quotas, quota)
		}
	}
	for _, q := range fetch.Quotas {
		if q.Name == name || slices.Contains(quotas, q.Name) {
			lines = append(lines, q.String())
		}
	}
	return lines
}
