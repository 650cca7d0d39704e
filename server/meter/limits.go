package meter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/scoring"
)

// Tier holds the limits of one tier. A nil number means unmetered.
type Tier struct {
	// FreshnessWindow is the age up to which a stored score is served without a cold run.
	FreshnessWindow     time.Duration
	CachedCallsIncluded *int64
	ColdCallsIncluded   *int64
}

// Limits holds everything that can be set in the file given by --tiers.
type Limits struct {
	// Tiers has an entry for every tier.
	Tiers    map[account.Tier]Tier
	Breakers Breakers
	// JobTTL is the lifetime of a job.
	JobTTL time.Duration
	// RunDeadline bounds one attempt at a cold run.
	RunDeadline time.Duration
	// Lanes has a weight for every lane of waiting runs.
	Lanes queue.Weights
}

// Breakers stop bursts of cold calls within sliding windows.
type Breakers struct {
	// ColdPerKey limits the cold calls of one key within any window.
	ColdPerKey struct {
		Limit  int64
		Window time.Duration
	}
	// ColdPerAccount limits the cold calls of one account within any window to a multiple
	// of its monthly budget. It does not apply to an unmetered tier.
	ColdPerAccount struct {
		BudgetMultiple int64
		Window         time.Duration
	}
}

// DefaultLimits returns the limits without a file.
func DefaultLimits() Limits {
	tier := func(window time.Duration, cached, cold int64) Tier {
		return Tier{FreshnessWindow: window, CachedCallsIncluded: &cached, ColdCallsIncluded: &cold}
	}
	l := Limits{
		Tiers: map[account.Tier]Tier{
			account.Free:       tier(7*24*time.Hour, 1_000, 0),
			account.Starter:    tier(24*time.Hour, 10_000, 100),
			account.Growth:     tier(6*time.Hour, 100_000, 1_000),
			account.Scale:      tier(time.Hour, 1_000_000, 10_000),
			account.Enterprise: {FreshnessWindow: 15 * time.Minute},
		},
		JobTTL:      30 * 24 * time.Hour,
		RunDeadline: 90 * time.Second,
		Lanes:       queue.DefaultWeights(),
	}
	l.Breakers.ColdPerKey.Limit, l.Breakers.ColdPerKey.Window = 200, time.Hour
	l.Breakers.ColdPerAccount.BudgetMultiple, l.Breakers.ColdPerAccount.Window = 2, 24*time.Hour
	return l
}

// LoadLimits reads limits from a YAML file. Limits that the file does not set keep their
// defaults. An empty path returns the defaults. The error joins all faults with their line
// numbers.
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
		return Limits{}, fmt.Errorf("read limits in %s:\n%w", path, err)
	}
	return l, nil
}

// Upper bounds of the values. Products of them stay within the integers that Lua represents
// exactly.
const (
	largestCount    = 1_000_000_000_000
	largestMultiple = 1000
	largestWeight   = 1000
	longestDuration = 10 * 365 * 24 * time.Hour
)

func parseLimits(text []byte) (Limits, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return DefaultLimits(), nil
	} else if err != nil {
		return Limits{}, err
	}
	l := DefaultLimits()
	var r limitsReader
	r.limits(document.Content[0], &l)
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.fault(&second, "", "the file must hold one document")
	}
	if len(r.faults) > 0 {
		return Limits{}, errors.Join(r.faults...)
	}
	return l, nil
}

// limitsReader reads limits from YAML nodes and collects all faults.
type limitsReader struct{ faults []error }

// field reads the value of one field. path is the dotted path of the field.
type field func(node *yaml.Node, path string)

func (r *limitsReader) limits(node *yaml.Node, l *Limits) {
	r.mapping(node, "", map[string]field{
		"tiers": func(node *yaml.Node, path string) { r.tiers(node, path, l.Tiers) },
		"breakers": func(node *yaml.Node, path string) {
			r.mapping(node, path, map[string]field{
				"cold_per_key": func(node *yaml.Node, path string) {
					r.mapping(node, path, map[string]field{
						"limit":  r.count(&l.Breakers.ColdPerKey.Limit, 1, largestCount),
						"window": r.duration(&l.Breakers.ColdPerKey.Window),
					})
				},
				"cold_per_account": func(node *yaml.Node, path string) {
					r.mapping(node, path, map[string]field{
						"budget_multiple": r.count(&l.Breakers.ColdPerAccount.BudgetMultiple, 1, largestMultiple),
						"window":          r.duration(&l.Breakers.ColdPerAccount.Window),
					})
				},
			})
		},
		"job_ttl":      r.duration(&l.JobTTL),
		"run_deadline": r.duration(&l.RunDeadline),
		"lanes":        func(node *yaml.Node, path string) { r.lanes(node, path, l.Lanes) },
	})
}

func (r *limitsReader) lanes(node *yaml.Node, path string, weights queue.Weights) {
	fields := make(map[string]field, len(scoring.Lanes))
	for _, lane := range scoring.Lanes {
		fields[string(lane)] = func(node *yaml.Node, path string) {
			weight := int64(weights[lane])
			r.count(&weight, 0, largestWeight)(node, path)
			weights[lane] = int(weight)
		}
	}
	r.mapping(node, path, fields)
	if weights.Validate() != nil {
		r.fault(node, path, "must have a weight above 0 for at least one lane")
	}
}

func (r *limitsReader) tiers(node *yaml.Node, path string, tiers map[account.Tier]Tier) {
	fields := make(map[string]field, len(account.Tiers))
	for _, name := range account.Tiers {
		fields[string(name)] = func(node *yaml.Node, path string) {
			tier := tiers[name]
			r.mapping(node, path, map[string]field{
				"freshness_window":      r.duration(&tier.FreshnessWindow),
				"cached_calls_included": r.budget(&tier.CachedCallsIncluded),
				"cold_calls_included":   r.budget(&tier.ColdCallsIncluded),
			})
			tiers[name] = tier
		}
	}
	r.mapping(node, path, fields)
}

// mapping reads a mapping. An unknown or repeated field is a fault.
func (r *limitsReader) mapping(node *yaml.Node, path string, fields map[string]field) {
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		r.fault(node, path, "must be a mapping of "+known(fields))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		at := strings.TrimPrefix(path+"."+name.Value, ".")
		read, ok := fields[name.Value]
		switch {
		case !ok:
			r.fault(name, at, "is not known here: use one of "+known(fields))
		case seen[name.Value]:
			r.fault(name, at, "is given twice")
		default:
			seen[name.Value] = true
			read(resolve(value), at)
		}
	}
}

func (r *limitsReader) duration(into *time.Duration) field {
	return func(node *yaml.Node, path string) {
		d, err := time.ParseDuration(node.Value)
		if node.Kind != yaml.ScalarNode || err != nil {
			r.fault(node, path, "must be a duration such as 90s, 15m or 720h")
			return
		}
		// Durations in Redis are in milliseconds.
		if d < time.Millisecond || d > longestDuration {
			r.fault(node, path, fmt.Sprintf("must be more than 0 and at most %dh, not %s", int(longestDuration.Hours()), d))
			return
		}
		*into = d
	}
}

func (r *limitsReader) count(into *int64, least, most int64) field {
	return func(node *yaml.Node, path string) {
		n, err := strconv.ParseInt(strings.ReplaceAll(node.Value, "_", ""), 10, 64)
		if node.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
			r.fault(node, path, fmt.Sprintf("must be a whole number of %d to %d", least, most))
			return
		}
		*into = n
	}
}

// budget reads a count that may be null, which means unmetered.
func (r *limitsReader) budget(into **int64) field {
	return func(node *yaml.Node, path string) {
		if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
			*into = nil
			return
		}
		n := new(int64)
		before := len(r.faults)
		r.count(n, 0, largestCount)(node, path)
		if len(r.faults) == before {
			*into = n
		}
	}
}

func (r *limitsReader) fault(node *yaml.Node, path, message string) {
	place := strings.TrimSpace(path + " " + message)
	r.faults = append(r.faults, fmt.Errorf("line %d: %s", node.Line, place))
}

func known(fields map[string]field) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// LimitsFlag adds the flag of the file for LoadLimits.
func LimitsFlag(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "tiers", "", "YAML file that changes tiers, breakers and deadlines")
}
