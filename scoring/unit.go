package scoring

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Range is the values that a unit allows. Both ends are included.
type Range struct {
	Min, Max float64
	// Whole means that only whole numbers are allowed.
	Whole bool
}

// The ranges of everything that is counted and of amounts in US dollars. Like all ends that no definition
// sets, theirs are far beyond what occurs.
var (
	CountRange = Range{Max: 1e9}
	MoneyRange = Range{Max: 1e15}
)

// ranges are the values of each unit of the manifest.
var ranges = map[string]Range{
	"boolean":    {Max: 1, Whole: true},
	"share 0..1": {Max: 1}, "points 0..3": {Max: 3}, "points 0..4": {Max: 4}, "points 0..5": {Max: 5}, "points 0..6": {Max: 6},
	"average tone": {Min: -100, Max: 100},
	"log2 ratio":   {Min: -100, Max: 100}, "ln ratio": {Min: -100, Max: 100},
	"fraction": {Min: -1e6, Max: 1e6}, "ratio": {Max: 1e6}, "% of headcount": {Max: 1e6},
	"USD": MoneyRange, "rank": {Min: 1, Max: 1e9},
	"years": {Max: 3000}, "months": {Max: 1e5}, "days": {Min: -1e6, Max: 1e6},
	"employees": CountRange, "roles": CountRange, "departments": CountRange, "locations": CountRange, "people": CountRange,
	"entities": CountRange,
	"vendors":  CountRange, "views": {Max: 1e12}, "editions": CountRange, "articles": CountRange, "stories": CountRange,
	"points+comments": CountRange,
	"followers":       CountRange, "stars": CountRange, "languages": CountRange, "URLs": {Max: 1e12}, "networks": CountRange,
	"host names":   CountRange,
	"repositories": CountRange, "items": CountRange, "rounds": CountRange, "events": CountRange,
}

// Range returns the values that the signal's unit allows.
func (s Signal) Range() Range { return ranges[s.Unit] }

// Check returns an error that names the allowed values if v is none of them.
func (r Range) Check(v float64) error {
	switch {
	case v >= r.Min && v <= r.Max && (!r.Whole || v == math.Trunc(v)):
		return nil
	case r.Whole:
		return errors.New("not a whole number from " + r.String())
	}
	return errors.New("not from " + r.String())
}

// String returns the ends, such as "0 to 1e15".
func (r Range) String() string { return decimal(r.Min) + " to " + decimal(r.Max) }

func decimal(v float64) string {
	if math.Abs(v) < 1e5 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.NewReplacer("e+0", "e", "e+", "e").Replace(strconv.FormatFloat(v, 'e', -1, 64))
}
