package meter

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/scoring"
)

// PlanLimits holds the limits of one plan. A nil number means unmetered.
type PlanLimits struct {
	// FreshnessWindow is the age up to which a stored score is served without a cold run.
	FreshnessWindow     time.Duration `yaml:"freshness_window"`
	CachedCallsIncluded *int64        `yaml:"cached_calls_included"`
	ColdCallsIncluded   *int64        `yaml:"cold_calls_included"`
}

// Limits holds everything that can be set in the file given by --tiers.
type Limits struct {
	// Plans has an entry for every plan.
	Plans    map[account.Plan]PlanLimits `yaml:"-"`
	Breakers Breakers
	// JobTTL is the lifetime of a job.
	JobTTL time.Duration `yaml:"job_ttl"`
	// RunDeadline bounds one attempt at a cold run.
	RunDeadline time.Duration `yaml:"run_deadline"`
	// Lanes has a weight for every lane of waiting runs.
	Lanes queue.Weights
}

// Breakers stop bursts of cold calls within sliding windows.
type Breakers struct {
	// ColdPerKey limits the cold calls of one key within any window.
	ColdPerKey struct {
		Limit  int64
		Window time.Duration
	} `yaml:"cold_per_key"`
	// ColdPerAccount limits the cold calls of one account within any window to a multiple
	// of its monthly budget. It does not apply to an unmetered plan.
	ColdPerAccount struct {
		BudgetMultiple int64 `yaml:"budget_multiple"`
		Window         time.Duration
	} `yaml:"cold_per_account"`
}

//go:embed limits.yaml
var defaultLimits []byte

// DefaultLimits returns the limits without a file.
func DefaultLimits() Limits {
	l, err := parseLimits(nil)
	if err != nil {
		panic("meter: limits.yaml: " + err.Error())
	}
	return l
}

// LoadLimits reads limits from a YAML file. Limits that the file does not set keep their
// defaults. An empty path returns the defaults. The error joins all faults, each with its line or
// its field, and shows the defaults as an example.
func LoadLimits(path string) (Limits, error) {
	if path == "" {
		return DefaultLimits(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Limits{}, fmt.Errorf("read limits: %w", err)
	}
	l, err := parseLimits(text)
	if err != nil {
		return Limits{}, fmt.Errorf("read limits in %s:\n%w\nThe defaults are an example:\n%s", path, err, defaultLimits)
	}
	return l, nil
}

// limitsFile is the file of limits.
type limitsFile struct {
	Limits `yaml:",inline"`
	Tiers  tiers
}

type tiers struct{ Free, Starter, Growth, Scale, Enterprise PlanLimits }

func parseLimits(text []byte) (Limits, error) {
	var f limitsFile
	if err := errors.Join(f.read(defaultLimits), f.read(text)); err != nil {
		return Limits{}, err
	}
	f.Limits.Plans = map[account.Plan]PlanLimits{
		account.Free:       f.Tiers.Free,
		account.Starter:    f.Tiers.Starter,
		account.Growth:     f.Tiers.Growth,
		account.Scale:      f.Tiers.Scale,
		account.Enterprise: f.Tiers.Enterprise,
	}
	return f.Limits, f.validate()
}

// read sets what a text names. The text may be empty.
func (f *limitsFile) read(text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err := decoder.Decode(f)
	if errors.Is(err, io.EOF) {
		return nil
	}
	var values, second yaml.Node
	if err == nil && !errors.Is(decoder.Decode(&second), io.EOF) {
		err = errors.New("the file must hold one document")
	}
	_ = yaml.Unmarshal(text, &values) // the decoder returned the error
	return errors.Join(err, checkValues(&values))
}

// checkValues returns an error for values that the decoder ignores or truncates: null, but for the
// calls of a tier, and numbers that are not whole.
func checkValues(node *yaml.Node) (err error) {
	for i, value := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			name, tag := node.Content[i-1].Value, value.ShortTag()
			if tag == "!!float" || tag == "!!null" && !strings.HasSuffix(name, "_calls_included") {
				err = errors.Join(err, fmt.Errorf("line %d: %s must not be %q", value.Line, name, value.Value))
			}
		}
		err = errors.Join(err, checkValues(value))
	}
	return err
}

// Upper bounds of the values. Products of them stay within the integers that Lua represents
// exactly.
const (
	largestCount    = 1_000_000_000_000
	largestMultiple = 1000
	largestWeight   = 1000
	longestDuration = 10 * 365 * 24 * time.Hour
)

// validate returns an error for values out of bounds.
func (l *Limits) validate() error {
	var faults []error
	duration := func(field string, d time.Duration) {
		if d < time.Millisecond || d > longestDuration { // durations in Redis are in milliseconds
			faults = append(faults, fmt.Errorf("%s must be more than 0 and at most %.0fh, not %s", field, longestDuration.Hours(), d))
		}
	}
	count := func(field string, n, least, most int64) {
		if n < least || n > most {
			faults = append(faults, fmt.Errorf("%s must be a whole number of %d to %d, not %d", field, least, most, n))
		}
	}
	for _, name := range account.Plans {
		limits, field := l.Plans[name], "tiers."+string(name)
		duration(field+".freshness_window", limits.FreshnessWindow)
		if n := limits.CachedCallsIncluded; n != nil {
			count(field+".cached_calls_included", *n, 0, largestCount)
		}
		if n := limits.ColdCallsIncluded; n != nil {
			count(field+".cold_calls_included", *n, 0, largestCount)
		}
	}
	count("breakers.cold_per_key.limit", l.Breakers.ColdPerKey.Limit, 1, largestCount)
	duration("breakers.cold_per_key.window", l.Breakers.ColdPerKey.Window)
	count("breakers.cold_per_account.budget_multiple", l.Breakers.ColdPerAccount.BudgetMultiple, 1, largestMultiple)
	duration("breakers.cold_per_account.window", l.Breakers.ColdPerAccount.Window)
	duration("job_ttl", l.JobTTL)
	duration("run_deadline", l.RunDeadline)
	for _, lane := range scoring.Lanes {
		count("lanes."+string(lane), int64(l.Lanes[lane]), 0, largestWeight)
	}
	if err := l.Lanes.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("lanes: %w", err))
	}
	return errors.Join(faults...)
}

// LimitsFlag adds the flag of the file for LoadLimits.
func LimitsFlag(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "tiers", "", "YAML file that changes tiers, breakers and deadlines")
}
