package backtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Limit bounds one figure of a report. A nil end is open.
type Limit struct {
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

// Limits are limits by the name of the figure. See Report.Figures.
type Limits map[string]Limit

// ReadLimits reads limits from a JSON file. Its errors wrap ErrInput.
func ReadLimits(path string) (Limits, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	defer f.Close()
	var limits Limits
	dec := json.NewDecoder(io.LimitReader(f, 1<<20))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&limits); err != nil {
		return nil, inputError("read limits %s: %v", path, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, inputError("read limits %s: something follows the object", path)
	}
	for name, limit := range limits {
		if limit.Min == nil && limit.Max == nil {
			return nil, inputError("read limits %s: %s has neither min nor max", path, name)
		}
	}
	if len(limits) == 0 {
		return nil, inputError("read limits %s: there are none", path)
	}
	return limits, nil
}

// Check is the comparison of one figure with its limit.
type Check struct {
	Figure string   `json:"figure"`
	Value  *float64 `json:"value"` // nil if there is none
	Limit  Limit    `json:"limit"`
	OK     bool     `json:"ok"`
}

// Check compares the figures with limits, by name. It fails on the name of an unknown figure.
func (r *Report) Check(limits Limits) ([]Check, error) {
	figures := r.Figures()
	checks := make([]Check, 0, len(limits))
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		value, ok := figures[name]
		if !ok {
			return nil, inputError("limit of an unknown figure %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(figures)),
				", "))
		}
		limit := limits[name]
		c := Check{Figure: name, Value: value, Limit: limit, OK: value != nil}
		if value != nil {
			c.OK = (limit.Min == nil || *value >= *limit.Min) && (limit.Max == nil || *value <= *limit.Max)
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// Figures returns the figures that can have a limit, by name. A figure is nil if there
// is none; see Figures.
func (r *Report) Figures() map[string]*float64 {
	lowered := 0.0
	for _, m := range r.Monotone {
		lowered += float64(m.Lowered)
	}
	used := float64(r.GradesUsed)
	figures := map[string]*float64{
		"ties_pct": &r.TiesPct, "grades_used": &used, "lowered": &lowered,
		"cliff_max": nil, "cliffs_above_3_pct": nil, "cliffs_above_5_pct": nil,
		"coverage_pct": nil, "coverage_width": nil, "interval_width": nil,
	}
	if r.Cliffs.Cases > 0 {
		figures["cliff_max"], figures["cliffs_above_3_pct"], figures["cliffs_above_5_pct"] = &r.Cliffs.Max, &r.Cliffs.Above3,
			&r.Cliffs.Above5
	}
	if r.Coverage.Cases > 0 {
		figures["coverage_pct"], figures["coverage_width"], figures["interval_width"] = &r.Coverage.SharePct, &r.Coverage.Width,
			&r.Coverage.FullWidth
	}
	for _, o := range r.Outcomes {
		add := func(suffix string, f Figures) {
			if o.Kind == Classes {
				figures[o.Column+".auc"+suffix] = estimated(f.AUC)
				figures[o.Column+".auc_large"+suffix] = estimated(f.AUCLarge)
				figures[o.Column+".auc_others"+suffix] = estimated(f.AUCOthers)
				return
			}
			figures[o.Column+".spearman"+suffix] = estimated(f.Spearman)
			figures[o.Column+".spearman_large"+suffix] = estimated(f.SpearmanLarge)
		}
		add("", o.Given)
		if o.Withheld != nil {
			add("_withheld", *o.Withheld)
		}
	}
	return figures
}

func estimated(e *Estimate) *float64 {
	if e == nil {
		return nil
	}
	return &e.Value
}

// String returns the check as one line.
func (c Check) String() string {
	verdict, value := "ok  ", "unknown"
	if !c.OK {
		verdict = "FAIL"
	}
	if c.Value != nil {
		value = strconv.FormatFloat(*c.Value, 'f', 3, 64)
	}
	var bounds []string
	if c.Limit.Min != nil {
		bounds = append(bounds, fmt.Sprintf("at least %v", *c.Limit.Min))
	}
	if c.Limit.Max != nil {
		bounds = append(bounds, fmt.Sprintf("at most %v", *c.Limit.Max))
	}
	return fmt.Sprintf("%s %s %s, %s", verdict, c.Figure, value, strings.Join(bounds, " and "))
}
