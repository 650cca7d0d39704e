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

// Direction says which way a signal is better.
type Direction string

// The directions. Band means that the best values lie in the middle.
const (
	DirectionHigher Direction = "higher"
	DirectionLower  Direction = "lower"
	DirectionBand   Direction = "band"
)

// Signal is one row of the manifest: what is measured and how it is scored.
type Signal struct {
	// ID names the signal in observations, records and the API. It never changes.
	ID     string
	Bucket Bucket
	// Name is for readers.
	Name string
	// Sources are the keys of the sources that can know the signal, most trusted first.
	Sources   []string
	Unit      string
	Direction Direction
	// Normalization is the text of the rule that Normalizer was parsed from.
	Normalization string
	Normalizer    Normalizer
	// Lo and Hi are the raw values between which the score moves.
	Lo, Hi float64
	// Weight is the share in the bucket; the weights of a bucket sum to 1.
	Weight float64
}

//go:embed signals.csv
var manifestCSV string

// A manifest that does not hold together must stop the program at its start.
var (
	manifest    = must(parseManifest(manifestCSV))
	signalIndex = indexSignals(manifest)
)

// Manifest returns the 67 signals in their fixed order, bucket by bucket. The
// slice is the caller's; the Sources inside it are shared and must not be changed.
func Manifest() []Signal { return slices.Clone(manifest) }

// Lookup returns the signal with the given id. Its Sources must not be changed.
func Lookup(id string) (Signal, bool) {
	i, ok := signalIndex[id]
	if !ok {
		return Signal{}, false
	}
	return manifest[i], true
}

// indexOf returns the place of a signal that the formulas name. It panics when
// the manifest has no such signal.
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

// parseManifest reads the manifest and refuses one that is not complete.
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
			return nil, fmt.Errorf("manifest: signal %q stands twice", s.ID)
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

// parseSignal reads one row that has all the columns.
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
