package scoring

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Curve converts a raw value to a score of 0 to 100, relative to a reference population. ParseCurve
// returns one. It is immutable and safe for concurrent use.
type Curve struct {
	log bool
	// xs are the raw values that score knotScores, on the scale of the curve; rising. They are nil for
	// the curve of a yes or no.
	xs []float64
	// falling is true if lower raw values are better. xs are then negated.
	falling bool
	// no and yes are the scores of a yes or no.
	no, yes float64
	// absent is the score of an absence, nil if an absence counts as missing.
	absent *float64
}

// knotScores are the scores at the knots of a curve. The inner three are those of the 10th, 50th
// and 90th percentile of the reference population.
var knotScores = [...]float64{0, 20, 50, 80, 100}

// ParseCurve parses a rule of the manifest. The grammar is
//
//	rule  = curve ";absent=" ( score | "missing" )
//	curve = ( "log" | "linear" ) ":" x0 "|" p10 "|" p50 "|" p90 "|" x100  |  "share:" share
//
// The five raw values of log and linear score 0, 20, 50, 80 and 100. Between them the score is linear in
// ln(1+x) or in x, outside of them it is constant. They rise, or fall if lower is better. share is
// for a yes or no (1 or 0): it is the share of the population with a yes, and both answers score the
// middle of their part of the population.
func ParseCurve(rule string, direction Direction) (Curve, error) {
	c, err := parseCurve(rule, direction)
	if err != nil {
		return Curve{}, fmt.Errorf("normalization %q: %w", rule, err)
	}
	return c, nil
}

func parseCurve(rule string, direction Direction) (c Curve, err error) {
	curve, absent, ok := strings.Cut(rule, ";absent=")
	if !ok {
		return c, errors.New("absent is required")
	}
	if absent != "missing" {
		score, err := parseNumber(absent)
		if err != nil || score < 0 || score > 100 {
			return c, fmt.Errorf("absent %q is neither missing nor a score", absent)
		}
		c.absent = &score
	}
	switch direction {
	case DirectionHigher, DirectionLower:
		c.falling = direction == DirectionLower
	default:
		return c, fmt.Errorf("unknown direction %q", direction)
	}
	shape, values, _ := strings.Cut(curve, ":")
	switch shape {
	case "share":
		share, err := parseNumber(values)
		if err != nil || !(share > 0 && share < 1) || c.falling {
			return c, errors.New("share needs a share between 0 and 1, and higher as direction")
		}
		c.no, c.yes = scoreOfPercentile(50*(1-share)), scoreOfPercentile(100-50*share)
	case "log", "linear":
		c.log = shape == "log"
		for value := range strings.SplitSeq(values, "|") {
			x, err := parseNumber(value)
			if err != nil {
				return c, err
			}
			if c.log && x <= -1 {
				return c, fmt.Errorf("%g is not above -1", x)
			}
			c.xs = append(c.xs, c.scaled(x))
		}
		if len(c.xs) != len(knotScores) {
			return c, fmt.Errorf("%d values, want %d", len(c.xs), len(knotScores))
		}
		for i := range c.xs[1:] {
			if !positive(c.xs[i+1] - c.xs[i]) {
				return c, fmt.Errorf("value %d goes against the direction %s", i+2, direction)
			}
		}
	default:
		return c, fmt.Errorf("unknown shape %q", shape)
	}
	return c, nil
}

// scaled converts a raw value to the scale of the curve, on which higher is better.
func (c Curve) scaled(raw float64) float64 {
	x := raw
	if c.log {
		x = math.Log1p(max(raw, math.Nextafter(-1, 0)))
	}
	if c.falling {
		x = -x
	}
	return x
}

// Score returns the score of a raw value, 0 to 100. An infinite value has the score of that end
// of the range, NaN has Neutral.
func (c Curve) Score(raw float64) float64 {
	switch {
	case math.IsNaN(raw):
		return Neutral
	case c.xs == nil && raw < 0.5:
		return c.no
	case c.xs == nil:
		return c.yes
	}
	return interpolate(c.xs, knotScores[:], c.scaled(raw))
}

// Raw returns the raw value with a score, which is limited to 0 to 100. For a yes or no it returns
// 1 from Neutral on, else 0.
func (c Curve) Raw(score float64) float64 {
	if c.xs == nil {
		if score < Neutral {
			return 0
		}
		return 1
	}
	x := interpolate(knotScores[:], c.xs, score)
	if c.falling {
		x = -x
	}
	if c.log {
		x = math.Expm1(x)
	}
	return x
}

// Share reports whether the curve is that of a yes or no.
func (c Curve) Share() bool { return c.xs == nil }

// Absent returns the score of an absence. It returns false if an absence counts as missing.
func (c Curve) Absent() (score float64, ok bool) {
	if c.absent == nil {
		return 0, false
	}
	return *c.absent, true
}

// scoreOfPercentile returns the score of a percentile of the reference population, 0 to 100.
func scoreOfPercentile(percentile float64) float64 {
	return interpolate([]float64{0, 10, 50, 90, 100}, knotScores[:], percentile)
}

// interpolate returns y at x, piecewise linear between the points (xs, ys) and constant outside of
// them. xs rise.
func interpolate(xs, ys []float64, x float64) float64 {
	i := slices.IndexFunc(xs, func(knot float64) bool { return x < knot })
	switch i {
	case 0:
		return ys[0]
	case -1:
		return ys[len(ys)-1]
	}
	return ys[i-1] + (ys[i]-ys[i-1])*((x-xs[i-1])/(xs[i]-xs[i-1]))
}

// parseNumber parses a finite number.
func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(x) {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return x, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// positive reports whether x is above zero and finite.
func positive(x float64) bool { return x > 0 && finite(x) }

func clamp(x, lo, hi float64) float64 { return max(lo, min(x, hi)) }

// round1 rounds to one decimal, halves away from zero.
func round1(x float64) float64 { return math.Round(x*10) / 10 }
