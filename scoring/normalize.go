package scoring

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Normalizer converts a raw value to a score of 0 to 100. ParseNormalizer returns one. It is
// immutable and safe for concurrent use.
type Normalizer struct {
	shape shape
	// lo and span are the start and the length of the log and linear shapes: span is ln(hi/lo) or
	// hi-lo.
	lo, span, floor float64
	falling         bool
	// knots are the corners of the knots shape, or the two steps of the switch shape.
	knots []knot
	// absent is the raw value of an absence, nil if an absence counts as missing.
	absent *float64
}

type shape int

const (
	shapeLog shape = iota + 1
	shapeLinear
	shapeKnots
	shapeSwitch
)

type knot struct{ x, y float64 }

// ParseNormalizer parses a rule of the manifest. lo and hi are the raw values between which
// the score changes. The grammar is
//
//	rule   = shape { ";floor=" number } ";absent=" ( number | "missing" )
//	shape  = "log" | "linear" | "pw:" x "=" y { "|" x "=" y } | "bool:" no "|" yes
//
// log and linear rise from the floor (default 0) at lo to 100 at hi, or fall from 100 to the
// floor if lower is better. pw is piecewise linear between its corners and constant outside of
// them. bool is no below 0.5, else yes. Options are in any order, each at most once. floor is
// for log and linear only; absent is required. Scores are 0 to 100 and follow the direction.
func ParseNormalizer(rule string, direction Direction, lo, hi float64) (Normalizer, error) {
	parts := strings.Split(rule, ";")
	n := Normalizer{lo: lo, span: hi - lo, falling: direction == DirectionLower}
	err := n.parseShape(parts[0])
	if n.shape == shapeLog {
		n.span = math.Log(hi / lo)
	}
	if err == nil {
		err = n.parseOptions(parts[1:])
	}
	if err == nil {
		err = n.check(direction, lo, hi)
	}
	if err != nil {
		return Normalizer{}, fmt.Errorf("normalization %q: %w", rule, err)
	}
	return n, nil
}

func (n *Normalizer) parseShape(text string) (err error) {
	switch name, corners, _ := strings.Cut(text, ":"); {
	case text == "log":
		n.shape = shapeLog
	case text == "linear":
		n.shape = shapeLinear
	case name == "pw":
		n.shape = shapeKnots
		for corner := range strings.SplitSeq(corners, "|") {
			x, y, _ := strings.Cut(corner, "=")
			var k knot
			if k.x, err = parseNumber(x); err != nil {
				return err
			}
			if k.y, err = parseNumber(y); err != nil {
				return err
			}
			n.knots = append(n.knots, k)
		}
	case name == "bool":
		n.shape = shapeSwitch
		n.knots = []knot{{x: 0}, {x: 1}}
		no, yes, _ := strings.Cut(corners, "|")
		if n.knots[0].y, err = parseNumber(no); err != nil {
			return err
		}
		n.knots[1].y, err = parseNumber(yes)
	default:
		return fmt.Errorf("unknown shape %q", text)
	}
	return err
}

func (n *Normalizer) parseOptions(options []string) error {
	seen := map[string]bool{}
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		if seen[key] {
			return fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if option == "absent=missing" {
			continue
		}
		x, err := parseNumber(value)
		if err != nil {
			return fmt.Errorf("option %q: %w", option, err)
		}
		switch key {
		case "floor":
			n.floor = x
		case "absent":
			n.absent = &x
		default:
			return fmt.Errorf("unknown option %q", option)
		}
	}
	if !seen["absent"] {
		return errors.New("absent is required")
	}
	if seen["floor"] && n.knots != nil {
		return errors.New("a floor needs log or linear")
	}
	return nil
}

// check validates the parsed rule against the direction and the range.
func (n *Normalizer) check(direction Direction, lo, hi float64) error {
	switch direction {
	case DirectionHigher, DirectionLower:
	case DirectionBand:
		if n.shape != shapeKnots {
			return errors.New("a band needs corners")
		}
	default:
		return fmt.Errorf("unknown direction %q", direction)
	}
	if !positive(hi - lo) {
		return fmt.Errorf("hi %g is not above lo %g", hi, lo)
	}
	if n.shape == shapeLog && !(lo > 0 && positive(n.span)) {
		return fmt.Errorf("log needs 0 < lo < hi, not %g and %g", lo, hi)
	}
	if !(n.floor >= 0 && n.floor < 100) {
		return fmt.Errorf("floor %g is outside 0 to 100", n.floor)
	}
	if n.knots == nil {
		return nil
	}
	if first, last := n.knots[0].x, n.knots[len(n.knots)-1].x; first != lo || last != hi {
		return fmt.Errorf("the outer corners %g and %g are not lo %g and hi %g", first, last, lo, hi)
	}
	for i, k := range n.knots {
		if !(k.y >= 0 && k.y <= 100) {
			return fmt.Errorf("score %g is outside 0 to 100", k.y)
		}
		if i == 0 {
			continue
		}
		before := n.knots[i-1]
		if !positive(k.x - before.x) {
			return fmt.Errorf("corner %g does not follow %g", k.x, before.x)
		}
		if direction == DirectionHigher && k.y < before.y || direction == DirectionLower && k.y > before.y {
			return fmt.Errorf("the score at %g goes against the direction", k.x)
		}
	}
	return nil
}

// Score returns the score of a raw value, 0 to 100. An infinite value has the score of that end
// of the range, NaN has Neutral.
func (n Normalizer) Score(raw float64) float64 {
	if math.IsNaN(raw) {
		return Neutral
	}
	var t float64
	switch n.shape {
	case shapeLog:
		// The logarithm is undefined at 0 and below; these score as lo.
		if raw > 0 {
			t = math.Log(raw/n.lo) / n.span
		}
	case shapeLinear:
		t = (raw - n.lo) / n.span
	case shapeKnots:
		return n.interpolate(raw)
	case shapeSwitch:
		if raw < 0.5 {
			return n.knots[0].y
		}
		return n.knots[1].y
	}
	t = clamp(t, 0, 1)
	if n.falling {
		t = 1 - t
	}
	return min(n.floor+(100-n.floor)*t, 100)
}

// Absent returns the raw value of an absence. It returns false if an absence counts as missing.
func (n Normalizer) Absent() (raw float64, ok bool) {
	if n.absent == nil {
		return 0, false
	}
	return *n.absent, true
}

func (n Normalizer) interpolate(x float64) float64 {
	i := slices.IndexFunc(n.knots, func(k knot) bool { return x < k.x })
	switch i {
	case 0:
		return n.knots[0].y
	case -1:
		return n.knots[len(n.knots)-1].y
	}
	from, to := n.knots[i-1], n.knots[i]
	return clamp(from.y+(to.y-from.y)*((x-from.x)/(to.x-from.x)), 0, 100)
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
