package backtest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"companyscore/scoring"
)

// CurveCount compares the percentiles of a signal in files with those of its curve. All raw values are of the worst tenth, the
// median and the best tenth, which score 20, 50 and 80.
type CurveCount struct {
	Signal    string     `json:"signal"`
	Companies int        `json:"companies"`
	Counted   [3]float64 `json:"counted"`
	Curve     [3]float64 `json:"curve"`
}

// revenueMin is the smallest revenue of a company that counts, in US dollars, if the file has the column revenue_usd.
const revenueMin = 1e6

// CountCurves counts the percentiles of the columns signal:<id> of CSV files, such as files of facts and results of recipes. A row
// is a company. It leaves out values that are empty or outside their unit. Its errors wrap ErrInput.
func CountCurves(paths []string) ([]CurveCount, error) {
	values := make(map[string][]float64)
	for _, path := range paths {
		if err := readSignals(path, values); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInput, path, err)
		}
	}
	var all []CurveCount
	for _, s := range scoring.Manifest() {
		rising := values[s.ID]
		if len(rising) == 0 || s.Curve.Share() {
			continue
		}
		slices.Sort(rising)
		count := CurveCount{Signal: s.ID, Companies: len(rising)}
		for i, score := range [...]float64{20, 50, 80} {
			share := [...]float64{0.1, 0.5, 0.9}[i]
			if s.Direction == scoring.DirectionLower {
				share = 1 - share
			}
			count.Counted[i], count.Curve[i] = quantile(rising, share), s.Curve.Raw(score)
		}
		all = append(all, count)
	}
	if len(all) == 0 {
		return nil, inputError("no values of signals with a curve in %s", strings.Join(paths, ", "))
	}
	return all, nil
}

// readSignals adds the values of a file by signal.
func readSignals(path string, values map[string][]float64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		return err
	}
	columns := make(map[int]scoring.Signal)
	revenue := -1
	for i, name := range head {
		if id, ok := strings.CutPrefix(name, "signal:"); ok {
			s, known := scoring.Lookup(id)
			if !known {
				return fmt.Errorf("unknown signal %q", id)
			}
			columns[i] = s
		} else if name == "revenue_usd" {
			revenue = i
		}
	}
	if len(columns) == 0 {
		return errors.New("no column signal:<id>")
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if revenue >= 0 && !(number64(row[revenue]) >= revenueMin) {
			continue
		}
		for i, s := range columns {
			if v := number64(row[i]); s.Range().Check(v) == nil {
				values[s.ID] = append(values[s.ID], v)
			}
		}
	}
}

// number64 returns a number, NaN for any other text.
func number64(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
