package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"
)

// secFacts are the statements of a filer by currency.
type secFacts map[string]statements

// statements are the values of concepts in one currency, oldest first.
type statements map[string][]secValue

// secValue is the value of a concept for the fiscal year or the day that ends on End.
type secValue struct {
	End   time.Time
	Value float64
	// Filed is the filing date; a later filing restates the value.
	Filed time.Time
	// Annual is true if an annual report has the value.
	Annual bool
}

// valuesMax bounds the values of one concept in one currency.
const valuesMax = 60

// currencyText matches the units that are read; others are shares, and amounts per share.
var currencyText = regexp.MustCompile(`^[A-Z]{3}$`)

// parseSECFacts parses the numbers of a filer. The body can be 40 MiB; it decodes one fact at a
// time.
func parseSECFacts(body io.Reader) (secFacts, error) {
	facts := secFacts{}
	seen := false
	err := eachMember(body, func(key string, d *json.Decoder) error {
		if key != "facts" {
			return skip(d)
		}
		seen = true
		return members(d, func(taxonomy string) error {
			if taxonomy != "us-gaap" && taxonomy != "ifrs-full" {
				return skip(d)
			}
			return members(d, func(concept string) error {
				if _, read := conceptsRead[concept]; !read {
					return skip(d)
				}
				return facts.parseConcept(d, concept)
			})
		})
	})
	if err == nil && !seen {
		err = errors.New("the answer has no facts")
	}
	for _, s := range facts {
		s.addBankRevenue()
	}
	return facts, err
}

// parseConcept adds the values of one concept to f, in each currency.
func (f secFacts) parseConcept(d *json.Decoder, concept string) error {
	return members(d, func(key string) error {
		if key != "units" {
			return skip(d)
		}
		return members(d, func(unit string) error {
			if !currencyText.MatchString(unit) {
				return skip(d)
			}
			values, err := parseValues(d, conceptsRead[concept], f[unit][concept])
			if len(values) > 0 {
				if f[unit] == nil {
					f[unit] = statements{}
				}
				f[unit][concept] = values
			}
			return err
		})
	})
}

// parseValues parses the facts of one concept in one currency. It returns the newest, with those that
// are known from the other taxonomy.
func parseValues(d *json.Decoder, year bool, known []secValue) ([]secValue, error) {
	byEnd := make(map[time.Time]secValue)
	for _, v := range known {
		byEnd[v.End] = v
	}
	err := elements(d, func() (bool, error) {
		v, ok, err := parseFact(d, year)
		if !ok {
			return true, err
		}
		if other, has := byEnd[v.End]; has {
			annual := v.Annual || other.Annual
			if !v.Filed.After(other.Filed) {
				v = other
			}
			v.Annual = annual
		}
		byEnd[v.End] = v
		return true, nil
	})
	values := byTime(byEnd)
	return values[max(0, len(values)-valuesMax):], err
}

// parseFact parses one fact. ok is true for a fiscal year of an annual report, and if year is false
// for a day of an annual or interim report.
func parseFact(d *json.Decoder, year bool) (v secValue, ok bool, err error) {
	var fact struct {
		Start string  `json:"start"`
		End   string  `json:"end"`
		Val   float64 `json:"val"`
		Form  string  `json:"form"`
		Filed string  `json:"filed"`
	}
	if err := d.Decode(&fact); err != nil {
		return v, false, err
	}
	v = secValue{Value: fact.Val, Annual: isAnnual(fact.Form)}
	if !v.Annual && (year || !isInterim(fact.Form)) {
		return v, false, nil
	}
	if v.End, err = time.Parse(time.DateOnly, fact.End); err != nil {
		return v, false, fmt.Errorf("fact of %.30q: not a date", fact.End)
	}
	if v.Filed, err = time.Parse(time.DateOnly, fact.Filed); err != nil {
		return v, false, fmt.Errorf("fact filed %.30q: not a date", fact.Filed)
	}
	if !year {
		return v, true, nil
	}
	start, err := time.Parse(time.DateOnly, fact.Start)
	if err != nil {
		return v, false, fmt.Errorf("fact from %.30q: not a date", fact.Start)
	}
	return v, isYear(v.End.Sub(start)), nil
}

// isYear reports whether a time is that of a fiscal year, of 52 weeks or more.
func isYear(length time.Duration) bool { return length >= 330*day && length <= 400*day }

// byTime returns values, oldest first.
func byTime(byEnd map[time.Time]secValue) []secValue {
	return slices.SortedFunc(maps.Values(byEnd), func(a, b secValue) int { return a.End.Compare(b.End) })
}

// addBankRevenue adds the revenue of banks that have no total.
func (s statements) addBankRevenue() {
	other := s.history(otherIncomeFigure)
	for _, v := range s.history(netInterestFigure) {
		if income, ok := at(other, v.End); ok {
			v.Value += income
			s[bankRevenue] = append(s[bankRevenue], v)
		}
	}
}

// history returns the values of a figure, oldest first. Each end has the largest value of the first
// group that has one. Investments can have either sign, so the largest is the one furthest from 0.
func (s statements) history(f figure) []secValue {
	byEnd := make(map[time.Time]secValue)
	for _, group := range f {
		largest := make(map[time.Time]secValue)
		for _, concept := range group {
			for _, v := range s[concept] {
				if other, ok := largest[v.End]; !ok || math.Abs(v.Value) > math.Abs(other.Value) {
					largest[v.End] = v
				}
			}
		}
		for end, v := range largest {
			if _, ok := byEnd[end]; !ok {
				byEnd[end] = v
			}
		}
	}
	return byTime(byEnd)
}

// at returns the value that ends on a day.
func at(history []secValue, end time.Time) (float64, bool) {
	i := slices.IndexFunc(history, func(v secValue) bool { return v.End.Equal(end) })
	if i < 0 {
		return 0, false
	}
	return history[i].Value, true
}

// factAgeMax is the age beyond which a number of a filer is not used.
const factAgeMax = 913 * day // 30 months

// newestValue returns the newest value that is not too old and that a test accepts.
func newestValue(history []secValue, now time.Time, accepts func(secValue) bool) (secValue, bool) {
	for _, v := range slices.Backward(history) {
		if age := now.Sub(v.End); age >= 0 && age <= factAgeMax && accepts(v) {
			return v, true
		}
	}
	return secValue{}, false
}

// anyValue accepts all values.
func anyValue(secValue) bool { return true }

// dollar is the currency of signals that are amounts.
const dollar = "USD"

// currency returns the currency in which the filer reports: the one with the newest fiscal year,
// then the newest day, then the most values. Translations for the convenience of readers are into
// dollars, so another currency with as many values comes before the dollar.
func (f secFacts) currency(now time.Time) string {
	type use struct {
		year, day time.Time
		values    int
	}
	var best string
	var most use
	for _, currency := range slices.Sorted(maps.Keys(f)) {
		var u use
		for concept, values := range f[currency] {
			newest := &u.day
			if conceptsRead[concept] {
				newest = &u.year
			}
			for _, v := range values {
				if v.End.After(now) {
					continue
				}
				if u.values++; v.End.After(*newest) {
					*newest = v.End
				}
			}
		}
		order := cmp.Or(u.year.Compare(most.year), u.day.Compare(most.day), cmp.Compare(u.values, most.values))
		if best == "" || order > 0 || order == 0 && best == dollar {
			best, most = currency, u
		}
	}
	return best
}
