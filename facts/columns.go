package facts

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/internal/country"
	"companyscore/internal/domainname"
	"companyscore/internal/spelling"
	"companyscore/scoring"
)

// Column is a column of an import file.
type Column struct {
	// Name is the name of the column in the file.
	Name string
	// Doc is the meaning, unit and bounds of the values.
	Doc string
	set func(row *scoring.CompanyFacts, text string) error
}

// signalPrefix is the prefix of the columns with raw values of a signal.
const signalPrefix = "signal:"

// Columns lists all columns of import files except signal:<id>, one per signal of the
// manifest.
var Columns = []Column{
	{"domain", "Domain of the company; required. Scheme, www., path and case do not matter.",
		func(r *scoring.CompanyFacts, s string) (err error) {
			r.Domain, err = domainname.Parse(s)
			return err
		}},
	{"company_name", "Name of the company.", text(func(r *scoring.CompanyFacts) *string { return &r.CompanyName })},
	{"country", "Country of the headquarters: ISO 3166-1 code of two or three letters, or an English name such as Germany.", setCountry},
	{"region", "State or region of the headquarters.", text(func(r *scoring.CompanyFacts) *string { return &r.Region })},
	{"city", "City of the headquarters.", text(func(r *scoring.CompanyFacts) *string { return &r.City })},
	{"industry", "Industry, in English; decides the sector together with the categories.",
		text(func(r *scoring.CompanyFacts) *string { return &r.Industry })},
	{"categories", "Further industry labels, most specific first, separated by |.", func(r *scoring.CompanyFacts, s string) error {
		for label := range strings.SplitSeq(s, "|") {
			if label = strings.TrimSpace(label); label != "" {
				r.Categories = append(r.Categories, label)
			}
		}
		return nil
	}},
	{"sic", "Standard Industrial Classification code, 100 to 9999.", whole(func(r *scoring.CompanyFacts) *int { return &r.SIC }, 100,
		9999)},
	{"founded_year", "Year of foundation, 1000 to 2100; gives the age.", whole(func(r *scoring.CompanyFacts) *int { return &r.FoundedYear },
		1000, 2100)},
	{"status", "Status, such as operating, exited or dead. Dead, defunct, dissolved, closed, inactive, bankrupt, liquidated, shut down " +
		"and parked companies score at most 30.", text(func(r *scoring.CompanyFacts) *string { return &r.Status })},
	{"employees", "Headcount, 0 to 1e9.", number(func(r *scoring.CompanyFacts) **float64 { return &r.Employees }, scoring.CountRange)},
	{"revenue_usd", "Annual revenue in US dollars, 0 to 1e15.", number(func(r *scoring.CompanyFacts) **float64 { return &r.RevenueUSD },
		scoring.MoneyRange)},
	{"total_assets_usd", "Total assets in US dollars, 0 to 1e15.",
		number(func(r *scoring.CompanyFacts) **float64 { return &r.TotalAssetsUSD }, scoring.MoneyRange)},
	{"ebitda_usd", "Annual EBITDA in US dollars, -1e15 to 1e15; with the revenue it bounds the operating margin.",
		number(func(r *scoring.CompanyFacts) **float64 { return &r.EBITDAUSD }, profit)},
	{"market_cap_usd", "Market capitalisation in US dollars, 0 to 1e15; its presence means listed.",
		number(func(r *scoring.CompanyFacts) **float64 { return &r.MarketCapUSD }, scoring.MoneyRange)},
	{"market_cap_class", "Class of market value, if the amount is not known: nano (below 50 million USD), micro (to 300 million), small " +
		"(to 2 billion), mid (to 10 billion), large (to 200 billion) or mega.", func(r *scoring.CompanyFacts, s string) error {
		if _, ok := scoring.MarketCapClasses[s]; !ok {
			return errors.New("not one of nano, micro, small, mid, large, mega")
		}
		r.MarketCapClass = s
		return nil
	}},
	{"pe_ratio", "Price over earnings, -1e9 to 1e9; with price_sales it gives the net margin.",
		number(func(r *scoring.CompanyFacts) **float64 { return &r.PERatio }, signedPrice)},
	{"price_sales", "Price over sales, 0 to 1e9.", number(func(r *scoring.CompanyFacts) **float64 { return &r.PriceSales }, price)},
	{"price_book", "Price over book value, -1e9 to 1e9; with market_cap_usd it bounds the total assets.",
		number(func(r *scoring.CompanyFacts) **float64 { return &r.PriceBook }, signedPrice)},
	{"funding_total_usd", "Total venture funding in US dollars, 0 to 1e15.",
		number(func(r *scoring.CompanyFacts) **float64 { return &r.FundingTotalUSD }, scoring.MoneyRange)},
	{"funding_rounds", "Number of funding rounds, 0 to 1e9.", number(func(r *scoring.CompanyFacts) **float64 { return &r.FundingRounds },
		scoring.CountRange)},
	{"last_funding_date", "Day of the last funding round, YYYY-MM-DD.",
		setDay(func(r *scoring.CompanyFacts) *time.Time { return &r.LastFundingDate })},
	{"founders", "Number of founders, 0 to 1e9.", number(func(r *scoring.CompanyFacts) **float64 { return &r.Founders },
		scoring.CountRange)},
	{"hiring_regions", "Number of world regions in which the company hires, 0 to 6; three count towards a global scope.",
		whole(func(r *scoring.CompanyFacts) *int { return &r.HiringRegions }, 0, 6)},
	{"listed", "Whether shares are traded on an exchange: true or false.", func(r *scoring.CompanyFacts, s string) error {
		listed, err := strconv.ParseBool(strings.ToLower(s))
		if err != nil {
			return errors.New("neither true nor false")
		}
		r.Listed = &listed
		return nil
	}},
	{"ticker", "Stock symbol, such as AAPL.", identifier(func(r *scoring.CompanyFacts) *string { return &r.Ticker }, strings.ToUpper,
		`^[A-Z0-9][A-Z0-9.^=&/ -]{0,19}$`, "not a stock symbol")},
	{"exchange", "Exchange of the symbol, such as NYSE.", text(func(r *scoring.CompanyFacts) *string { return &r.Exchange })},
	{"cik", "Central Index Key of a filer with the SEC, up to ten digits.", identifier(
		func(r *scoring.CompanyFacts) *string { return &r.CIK }, func(s string) string { return strings.TrimLeft(s, "0") }, `^[0-9]{1,10}$`, "not a Central Index Key")},
	{"lei", "Legal Entity Identifier, 20 letters and digits.", identifier(func(r *scoring.CompanyFacts) *string { return &r.LEI },
		strings.ToUpper, `^[A-Z0-9]{18}[0-9]{2}$`, "not a Legal Entity Identifier")},
	{"isin", "International Securities Identification Number.", identifier(func(r *scoring.CompanyFacts) *string { return &r.ISIN },
		strings.ToUpper, `^[A-Z]{2}[A-Z0-9]{9}[0-9]$`, "not an ISIN")},
	{"github", "Login of the organisation on GitHub.", identifier(func(r *scoring.CompanyFacts) *string { return &r.GitHub },
		strings.ToLower, `^[a-z0-9](-?[a-z0-9])*-?$`, "not a login on GitHub")},
	{"wikidata", "Item in Wikidata, such as Q312.", identifier(func(r *scoring.CompanyFacts) *string { return &r.Wikidata },
		strings.ToUpper, `^Q[1-9][0-9]*$`, "not an item of Wikidata")},
	{"source", "Where the row came from; its origin, unless the import names one.",
		text(func(r *scoring.CompanyFacts) *string { return &r.Source })},
	{"as_of", "Day on which the row was true, YYYY-MM-DD, not in the future; that of the import if empty. Maximum ages of signals " +
		"count from it.",
		setDay(func(r *scoring.CompanyFacts) *time.Time { return &r.AsOf })},
}

func setDay(field func(*scoring.CompanyFacts) *time.Time) func(*scoring.CompanyFacts, string) error {
	return func(r *scoring.CompanyFacts, s string) error {
		day, err := time.Parse(time.DateOnly, s)
		if err != nil || day.Year() < 1900 || day.Year() > 2200 {
			return errors.New("not a date of the form YYYY-MM-DD")
		}
		*field(r) = day
		return nil
	}
}

// textMaxBytes is the maximum length of a value in bytes.
const textMaxBytes = 4096

func text(field func(*scoring.CompanyFacts) *string) func(*scoring.CompanyFacts, string) error {
	return func(r *scoring.CompanyFacts, s string) error {
		*field(r) = s
		return nil
	}
}

// identifier returns the setter of a text that has a form once normal has been applied.
func identifier(field func(*scoring.CompanyFacts) *string, normal func(string) string, form, fault string,
) func(*scoring.CompanyFacts, string) error {
	matcher := regexp.MustCompile(form)
	return func(r *scoring.CompanyFacts, s string) error {
		if s = normal(s); !matcher.MatchString(s) {
			return errors.New(fault)
		}
		*field(r) = s
		return nil
	}
}

// boundable are the columns, apart from raw values of signals, that may have lower bounds.
var boundable = []string{"employees", "revenue_usd", "total_assets_usd", "market_cap_usd", "funding_total_usd", "funding_rounds"}

// bounded reports whether the column may have lower bounds, written as ">=5".
func (c Column) bounded() bool {
	return strings.HasPrefix(c.Name, signalPrefix) || slices.Contains(boundable, c.Name)
}

// The ranges of numbers that are not of a signal.
var (
	profit      = scoring.Range{Min: -1e15, Max: 1e15}
	price       = scoring.Range{Max: 1e9}
	signedPrice = scoring.Range{Min: -1e9, Max: 1e9}
)

func parseNumber(s string, allowed scoring.Range) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, errors.New("not a number")
	}
	return v, allowed.Check(v)
}

func number(field func(*scoring.CompanyFacts) **float64, allowed scoring.Range) func(*scoring.CompanyFacts, string) error {
	return func(r *scoring.CompanyFacts, s string) error {
		v, err := parseNumber(s, allowed)
		if err != nil {
			return err
		}
		*field(r) = &v
		return nil
	}
}

func whole(field func(*scoring.CompanyFacts) *int, least, most float64) func(*scoring.CompanyFacts, string) error {
	return func(r *scoring.CompanyFacts, s string) error {
		v, err := parseNumber(s, scoring.Range{Min: least, Max: most, Whole: true})
		if err != nil {
			return err
		}
		*field(r) = int(v)
		return nil
	}
}

func setCountry(r *scoring.CompanyFacts, s string) error {
	code := cmp.Or(country.Code(s), strings.ToUpper(s)) // EU is neither a country nor a name
	if scoring.RegionOf(code) == scoring.Unknown && code != "AQ" {
		return errors.New("neither an ISO 3166-1 code nor an English name of a country")
	}
	r.Country = code
	return nil
}

// Known reports whether a column of import files has the name.
func Known(name string) bool {
	_, err := columnOf(name, false)
	return err == nil
}

// columnOf returns the column with a name. An unknown column sets nothing if others is set. Else
// the error suggests the nearest name.
func columnOf(name string, others bool) (Column, error) {
	i := slices.IndexFunc(Columns, func(c Column) bool { return c.Name == name })
	if i >= 0 {
		return Columns[i], nil
	}
	if id, ok := strings.CutPrefix(name, signalPrefix); ok {
		if signal, known := scoring.Lookup(id); known {
			return Column{Name: name, set: func(r *scoring.CompanyFacts, s string) error {
				v, err := parseNumber(s, signal.Range())
				if err != nil {
					return err
				}
				r.Signals[id] = v
				return nil
			}}, nil
		}
	}
	if others {
		return Column{Name: name, set: func(*scoring.CompanyFacts, string) error { return nil }}, nil
	}
	return Column{}, fmt.Errorf("unknown column %q, maybe %q; docs/facts.md lists all columns", name, nearest(name))
}

// nearest returns the column name with the smallest edit distance to name.
func nearest(name string) string {
	best, cost := "", math.MaxInt
	consider := func(known string) {
		if d := spelling.Distance(name, known); d < cost {
			best, cost = known, d
		}
	}
	for _, c := range Columns {
		consider(c.Name)
	}
	for _, s := range scoring.Manifest() {
		consider(signalPrefix + s.ID)
	}
	return best
}
