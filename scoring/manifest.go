package scoring

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Direction is which raw values are better.
type Direction string

// The directions.
const (
	DirectionHigher Direction = "higher"
	DirectionLower  Direction = "lower"
)

// Signal is one row of the manifest: a measure and its normalisation.
type Signal struct {
	// ID is the id in observations, records and the API. It never changes.
	ID     string
	Bucket Bucket
	// Name is the display name.
	Name string
	// Sources are the keys of the sources of the signal, most trusted first.
	Sources   []string
	Unit      string
	Direction Direction
	// Normalization is the rule that Curve was parsed from.
	Normalization string
	Curve         Curve
	// MaxAge is the age until which a value counts: a fact from its day on, and an observation that is
	// carried forward while its source has no news.
	MaxAge time.Duration
	// NotFor are the companies for which the signal means nothing: sectors, or one of Listed and
	// Unlisted.
	NotFor []string
	// Population is the reference population of the curve. Basis is where its quantiles come from,
	// "judgement" if there is no published figure.
	Population, Basis string
	// Weight is the share in the bucket. The weights of a bucket sum to 1.
	Weight float64
}

//go:embed signals.csv
var manifestCSV string

// An invalid manifest stops the program at its start.
var (
	manifest    = must(parseManifest(manifestCSV))
	signalIndex = indexSignals(manifest)
)

// Manifest returns the 67 signals in their fixed order, by bucket. The caller owns the slice; it
// must not change the Sources in it.
func Manifest() []Signal { return slices.Clone(manifest) }

// SignalsFrom returns how many signals at least one of the sources can tell.
func SignalsFrom(sources ...string) int {
	n := 0
	for _, s := range manifest {
		if slices.ContainsFunc(s.Sources, func(name string) bool { return slices.Contains(sources, name) }) {
			n++
		}
	}
	return n
}

// Lookup returns the signal with an id. Callers must not change its Sources.
func Lookup(id string) (Signal, bool) {
	i, ok := signalIndex[id]
	if !ok {
		return Signal{}, false
	}
	return manifest[i], true
}

// indexOf returns the index of a signal. It panics if the manifest has no such signal.
func indexOf(id string) int {
	i, ok := signalIndex[id]
	if !ok {
		panic(fmt.Sprintf("scoring: the manifest has no signal %q", id))
	}
	return i
}

func indexSignals(signals []Signal) map[string]int {
	index := make(map[string]int, len(signals))
	for i, s := range signals {
		index[s.ID] = i
	}
	return index
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("scoring: " + err.Error())
	}
	return v
}

var manifestColumns = []string{
	"id", "bucket", "name", "source", "unit", "direction", "normalization", "max_age_days", "not_for", "population", "basis", "weight",
}

// parseManifest parses the manifest and rejects an incomplete one.
func parseManifest(text string) ([]Signal, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], manifestColumns) {
		return nil, fmt.Errorf("manifest: the columns must be %s", strings.Join(manifestColumns, ","))
	}
	rows = rows[1:]
	if len(rows) != SignalCount {
		return nil, fmt.Errorf("manifest: %d signals, want %d", len(rows), SignalCount)
	}

	signals := make([]Signal, len(rows))
	seen := make(map[string]bool, len(rows))
	var sums BucketScores
	for i, row := range rows {
		s, err := parseSignal(row)
		if err != nil {
			return nil, fmt.Errorf("manifest: signal %d %q: %w", i+1, row[0], err)
		}
		if seen[s.ID] {
			return nil, fmt.Errorf("manifest: signal %q is given twice", s.ID)
		}
		seen[s.ID] = true
		*sums.field(s.Bucket) += s.Weight
		signals[i] = s
	}
	for _, b := range Buckets() {
		if sum := sums.Get(b); math.Abs(sum-1) > 1e-9 {
			return nil, fmt.Errorf("manifest: the weights of %s sum to %g, want 1", b, sum)
		}
	}
	return signals, nil
}

// Listed and Unlisted are values of Signal.NotFor: companies that are known to be listed, and
// companies that are known not to be.
const (
	Listed   = "listed"
	Unlisted = "unlisted"
)

// parseSignal parses one row with all columns.
func parseSignal(row []string) (Signal, error) {
	s := Signal{
		ID:            row[0],
		Bucket:        Bucket(row[1]),
		Name:          row[2],
		Sources:       strings.Split(row[3], "|"),
		Unit:          row[4],
		Direction:     Direction(row[5]),
		Normalization: row[6],
		Population:    row[9],
		Basis:         row[10],
	}
	for i, column := range manifestColumns {
		if row[i] == "" && column != "not_for" {
			return s, fmt.Errorf("%s is empty", column)
		}
	}
	if slices.Contains(s.Sources, "") {
		return s, errors.New("a source is empty")
	}
	if s.Bucket.Weight() == 0 {
		return s, fmt.Errorf("unknown bucket %q", s.Bucket)
	}
	if _, known := ranges[s.Unit]; !known {
		return s, fmt.Errorf("unit %q has no range", s.Unit)
	}
	if row[8] != "" {
		s.NotFor = strings.Split(row[8], "|")
	}
	for _, of := range s.NotFor {
		if of != Listed && of != Unlisted && !isSector(of) {
			return s, fmt.Errorf("not_for: unknown sector %q", of)
		}
	}
	days, err := strconv.Atoi(row[7])
	if err != nil || days <= 0 {
		return s, fmt.Errorf("max_age_days %q is not a positive number", row[7])
	}
	s.MaxAge = time.Duration(days) * 24 * time.Hour
	if s.Weight, err = parseNumber(row[11]); err != nil {
		return s, fmt.Errorf("weight: %w", err)
	}
	if s.Weight <= 0 {
		return s, fmt.Errorf("weight %g is not positive", s.Weight)
	}
	s.Curve, err = ParseCurve(s.Normalization, s.Direction)
	return s, err
}
