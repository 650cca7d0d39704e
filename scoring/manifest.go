package scoring

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Direction is which raw values are better.
type Direction string

// The directions. Band means that values in the middle are best.
const (
	DirectionHigher Direction = "higher"
	DirectionLower  Direction = "lower"
	DirectionBand   Direction = "band"
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
	// Normalization is the rule that Normalizer was parsed from.
	Normalization string
	Normalizer    Normalizer
	// Lo and Hi are the raw values between which the score changes.
	Lo, Hi float64
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
	"id", "bucket", "name", "source", "unit", "direction", "normalization", "lo", "hi", "weight",
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
	}
	if slices.Contains(row, "") || slices.Contains(s.Sources, "") {
		return s, errors.New("a column or a source is empty")
	}
	if s.Bucket.Weight() == 0 {
		return s, fmt.Errorf("unknown bucket %q", s.Bucket)
	}
	for i, number := range []*float64{&s.Lo, &s.Hi, &s.Weight} {
		var err error
		if *number, err = parseNumber(row[7+i]); err != nil {
			return s, fmt.Errorf("%s: %w", manifestColumns[7+i], err)
		}
	}
	if s.Weight <= 0 {
		return s, fmt.Errorf("weight %g is not positive", s.Weight)
	}
	var err error
	s.Normalizer, err = ParseNormalizer(s.Normalization, s.Direction, s.Lo, s.Hi)
	return s, err
}
