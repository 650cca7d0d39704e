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

// envPrefix begins the environment variables of settings.
const envPrefix = "COMPANYSCORE_"

// wellKnown are flags whose variable has a name that other tools use too.
var wellKnown = map[string]string{"clickhouse-url": "CLICKHOUSE_URL", "redis-url": "REDIS_URL"}

// connection are settings that no role has: addresses and keys of what tools connect to.
var connection = []string{"url", "key", "analyst-url"}

// ofOneCall are flags of roles that are not settings.
var ofOneCall = []string{"once"}

// variable is the annotation of settings with the name of their environment variable.
const variable = "variable"

// EnvName returns the environment variable of a setting.
func EnvName(flag string) string {
	if name, ok := wellKnown[flag]; ok {
		return name
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// BindEnv gives each setting of root and the commands below it an environment variable, which [ApplyEnv] reads, and adds it to the help.
// Settings are the flags of the roles and of root, and the flags of other commands that have the name of one of them or are in connection.
// All other flags, such as --wait and --name, are of one call and have no variable.
func BindEnv(root *cobra.Command, roles ...*cobra.Command) {
	settings := slices.Clone(connection)
	collect := func(f *pflag.Flag) {
		if f.Name != "help" && !slices.Contains(ofOneCall, f.Name) {
			settings = append(settings, f.Name)
		}
	}
	for _, role := range roles {
		role.Flags().VisitAll(collect)
	}
	root.PersistentFlags().VisitAll(collect)
	visitFlags(root, func(f *pflag.Flag) {
		if !slices.Contains(settings, f.Name) || f.Annotations[variable] != nil {
			return
		}
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[variable] = []string{EnvName(f.Name)}
		f.Usage += " [$" + EnvName(f.Name) + "]"
	})
}

// Variables returns the environment variables of the settings of root and the commands below it.
func Variables(root *cobra.Command) (names []string) {
	visitFlags(root, func(f *pflag.Flag) { names = append(names, f.Annotations[variable]...) })
	return names
}

// visitFlags calls do for each flag of a command and the commands below it, for some more than once.
func visitFlags(cmd *cobra.Command, do func(*pflag.Flag)) {
	cmd.Flags().VisitAll(do)
	cmd.PersistentFlags().VisitAll(do)
	for _, sub := range cmd.Commands() {
		visitFlags(sub, do)
	}
}

// ApplyEnv sets each setting that the command line does not set from its environment
// variable. The error joins those of all values that do not parse.
func ApplyEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		for _, name := range f.Annotations[variable] {
			value, ok := lookup(name)
			if f.Changed || !ok {
				continue
			}
			if err := flags.Set(f.Name, value); err != nil {
				faults = append(faults, fmt.Errorf("%s=%q: %w", name, value, err))
			}
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
	flags.StringVar(&s.Data, "data", DefaultData, "data directory of the running up whose stores are used without URLs")
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
		return nil, fmt.Errorf("no stores: start `companyscore up`, use its --data or %s (now %s), or set CLICKHOUSE_URL and "+
			"REDIS_URL", EnvName("data"), s.Data)
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
