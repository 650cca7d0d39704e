package source

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/scoring"
)

// Verdict is one value in the facts of a company, and whether it counts among them. Live sources may
// have newer ones.
type Verdict struct {
	// Fact is a signal, or a column of import files such as country.
	Fact string `json:"fact"`
	// Value is a number, or a text.
	Value any `json:"value"`
	// Unit is that of the signal, empty for a text.
	Unit   string `json:"unit,omitempty"`
	Origin string `json:"origin"`
	// Day is the day for which the value is valid, YYYY-MM-DD.
	Day    string `json:"as_of"`
	Counts bool   `json:"counts"`
	// Why is why the value counts or not.
	Why string `json:"why"`
}

// textFacts are the facts that are no signals.
var textFacts = []struct {
	name  string
	value func(*scoring.CompanyFacts) string
}{
	{"company_name", func(f *scoring.CompanyFacts) string { return f.CompanyName }},
	{"country", func(f *scoring.CompanyFacts) string { return f.Country }},
	{"region", func(f *scoring.CompanyFacts) string { return f.Region }},
	{"city", func(f *scoring.CompanyFacts) string { return f.City }},
	{"industry", func(f *scoring.CompanyFacts) string { return f.Industry }},
	{"categories", func(f *scoring.CompanyFacts) string { return strings.Join(f.Categories, " | ") }},
	{"sic", func(f *scoring.CompanyFacts) string { return known(f.SIC) }},
	{"status", func(f *scoring.CompanyFacts) string { return f.Status }},
	{"hiring_regions", func(f *scoring.CompanyFacts) string { return known(f.HiringRegions) }},
	{"ticker", func(f *scoring.CompanyFacts) string { return f.Ticker }},
	{"exchange", func(f *scoring.CompanyFacts) string { return f.Exchange }},
	{"cik", func(f *scoring.CompanyFacts) string { return f.CIK }},
	{"lei", func(f *scoring.CompanyFacts) string { return f.LEI }},
	{"isin", func(f *scoring.CompanyFacts) string { return f.ISIN }},
	{"github", func(f *scoring.CompanyFacts) string { return f.GitHub }},
	{"wikidata", func(f *scoring.CompanyFacts) string { return f.Wikidata }},
}

func known(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Verdicts returns every value in the layers of a company, those of one fact together and the one that
// counts first: texts, then signals in manifest order.
func Verdicts(layers []scoring.CompanyFacts, prefer scoring.Preference) []Verdict {
	layers = slices.SortedFunc(slices.Values(layers), prefer.CompareLayers)
	var all []Verdict
	for _, text := range textFacts {
		first := -1
		for i := range layers {
			value := text.value(&layers[i])
			if value == "" {
				continue
			}
			v := Verdict{Fact: text.name, Value: value, Origin: layers[i].Origin, Day: dayOf(layers[i].AsOf), Counts: first < 0,
				Why: "the only one"}
			if first < 0 {
				first = len(all)
			} else {
				all[first].Why = "newest, or most trusted of its day"
				v.Why = lost(v.Day, all[first])
			}
			all = append(all, v)
		}
	}
	observed := make(map[string][]scoring.Observation)
	for _, o := range FromFacts(layers, prefer).Observations {
		observed[o.Signal] = append(observed[o.Signal], o)
	}
	for _, s := range scoring.Manifest() {
		all = append(all, verdictsOf(s, observed[s.ID], prefer)...)
	}
	return all
}

// verdictsOf returns the verdicts about observations of one signal.
func verdictsOf(s scoring.Signal, observed []scoring.Observation, prefer scoring.Preference) []Verdict {
	best, found := prefer.Choose(s.ID, observed)
	var chosen Verdict
	var others []Verdict
	for _, o := range observed {
		v := Verdict{Fact: s.ID, Value: o.Raw, Unit: s.Unit, Origin: o.Origin, Day: dayOf(o.At)}
		switch {
		case found && o == best:
			v.Counts, v.Why = true, "the only one"
			chosen = v
			continue
		case !o.At.IsZero() && prefer.Now.Sub(o.At) > s.MaxAge:
			v.Why = fmt.Sprintf("older than %d days, the maximum age", int(s.MaxAge.Hours()/24))
		}
		others = append(others, v)
	}
	slices.SortStableFunc(others, func(a, b Verdict) int { return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Origin, b.Origin)) })
	for i := range others {
		if others[i].Why == "" {
			chosen.Why, others[i].Why = "newest, or most trusted of its day", lost(others[i].Day, chosen)
		}
	}
	if found {
		return append([]Verdict{chosen}, others...)
	}
	return others
}

// lost returns why a value of a day does not count beside the one that does.
func lost(day string, best Verdict) string {
	if day == best.Day {
		return best.Origin + " comes first in the order of trust"
	}
	return best.Origin + " is newer"
}

func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}
