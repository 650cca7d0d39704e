// Package config reads the configuration: flags, their environment variables, and the
// file in a data directory with the addresses of a running `up`.
package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envPrefix begins the environment variable of every flag.
const envPrefix = "COMPANYSCORE_"

// wellKnown are flags whose variable has a name that other tools use too.
var wellKnown = map[string]string{"clickhouse-url": "CLICKHOUSE_URL", "redis-url": "REDIS_URL"}

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	if name, ok := wellKnown[flag]; ok {
		return name
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// DescribeEnv adds to the help of every flag of cmd and its subcommands the
// environment variable that sets it.
func DescribeEnv(cmd *cobra.Command) {
	describe := func(f *pflag.Flag) {
		if f.Name != "help" && !strings.Contains(f.Usage, "[$") {
			f.Usage += " [$" + EnvName(f.Name) + "]"
		}
	}
	cmd.LocalFlags().VisitAll(describe)
	for _, sub := range cmd.Commands() {
		DescribeEnv(sub)
	}
}

// ApplyEnv sets each flag that the command line does not set from its environment
// variable. The error joins those of all values that do not parse.
func ApplyEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(EnvName(f.Name))
		if f.Changed || !ok || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s=%q: %w", EnvName(f.Name), value, err))
		}
	})
	return errors.Join(faults...)
}

// Log is the level and the format of the log.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Flags adds the flags of l with their defaults.
func (l *Log) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&l.Level, "log-level", "info", "lowest logged level: debug, info, warn or error")
	flags.StringVar(&l.Format, "log-format", "text", "format of the log: text or json")
}

// Logger returns a logger that writes to w.
func (l Log) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	var faults []error
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		faults = append(faults, fmt.Errorf("log level %q: use debug, info, warn or error", l.Level))
	}
	opt := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, opt)
	switch l.Format {
	case "text":
	case "json":
		handler = slog.NewJSONHandler(w, opt)
	default:
		faults = append(faults, fmt.Errorf("log format %q: use text or json", l.Format))
	}
	return slog.New(handler), errors.Join(faults...)
}

// CheckAddress returns an error unless s is host:port.
func CheckAddress(name, s string) error {
	if _, _, err := net.SplitHostPort(s); err != nil {
		return fmt.Errorf("%s %q: use host:port, such as 127.0.0.1:8080", name, s)
	}
	return nil
}

// ParseSources returns the data sources that the value of --sources names. They must be
// in known. "all" and the empty value mean all of them.
func ParseSources(value string, known []string) ([]string, error) {
	if value == "" || value == "all" {
		return known, nil
	}
	var names []string
	var faults []error
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(known, name):
			faults = append(faults, fmt.Errorf("unknown source %q: use all or names of %s", name, strings.Join(known, ", ")))
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, errors.Join(faults...)
}

// Stores are the addresses of ClickHouse and Redis.
type Stores struct {
	ClickHouseURL string
	RedisURL      string
	// Data is the directory of an `up` whose stores are used when no URL is given.
	Data string
}

// Flags adds the flags of s with their defaults.
func (s *Stores) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.ClickHouseURL, "clickhouse-url", "", "ClickHouse: clickhouse:// or http(s)://user:password@host:port/database")
	flags.StringVar(&s.RedisURL, "redis-url", "", "Redis: redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://")
	flags.StringVar(&s.Data, "data", DefaultData, "data directory of the running `up` whose stores are used without URLs")
}

// DefaultData is the default data directory of `up`.
const DefaultData = "./data"

// Resolve fills the URLs that are not set from the running `up` of the data
// directory. It returns the Runtime of that `up`, nil if both URLs are set.
func (s *Stores) Resolve() (*Runtime, error) {
	if s.ClickHouseURL != "" && s.RedisURL != "" {
		return nil, nil
	}
	rt, err := ReadRuntime(s.Data)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no stores: start `companyscore up`, use its --data (now %s), or set CLICKHOUSE_URL and REDIS_URL", s.Data)
	}
	if err != nil {
		return nil, err
	}
	if s.ClickHouseURL == "" {
		s.ClickHouseURL = rt.ClickHouseURL
	}
	if s.RedisURL == "" {
		s.RedisURL = rt.RedisURL
	}
	return rt, nil
}
