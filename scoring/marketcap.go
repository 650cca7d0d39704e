package scoring

import "math"

// MarketCapClass is a range of market values in US dollars.
type MarketCapClass struct{ From, To float64 }

// Middle returns the geometric mean of the ends of the range.
func (c MarketCapClass) Middle() float64 { return math.Sqrt(c.From * c.To) }

// MarketCapClasses are the classes of market value by name. The ends of the open classes nano and
// mega are by judgement.
var MarketCapClasses = map[string]MarketCapClass{
	"nano":  {5e6, 5e7},
	"micro": {5e7, 3e8},
	"small": {3e8, 2e9},
	"mid":   {2e9, 1e10},
	"large": {1e10, 2e11},
	"mega":  {2e11, 2e12},
}
