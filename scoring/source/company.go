package source

import (
	"cmp"
	"slices"
	"strconv"

	"companyscore/scoring"
)

// Kind is the kind of a claim.
type Kind = scoring.ClaimKind

// Claim is one statement about the company's identity, with its evidence.
type Claim = scoring.Claim

// The kinds of claims, with the form of the value.
const (
	Name        Kind = "name"         // the company's name, as found
	LegalName   Kind = "legal_name"   // the name in a register, as found
	Country     Kind = "country"      // of the headquarters, ISO 3166-1 alpha-2 in upper case
	Industry    Kind = "industry"     // a label in English
	SIC         Kind = "sic"          // four digits
	QID         Kind = "qid"          // Wikidata item, Q and digits
	CIK         Kind = "cik"          // SEC filer, digits without leading zeros
	Ticker      Kind = "ticker"       // stock symbol
	LEI         Kind = "lei"          // 20 characters
	GitHub      Kind = "github"       // login of an organisation
	JobBoard    Kind = "job_board"    // "provider/token", such as "greenhouse/example"; without a token for a provider that cannot be read
	CareersPage Kind = "careers_page" // URL of an existing page
	Wikipedia   Kind = "wikipedia"    // "wiki:Title", such as "en:Example_Corp"; the title with underscores
	Parked      Kind = "parked"       // evidence of a parked domain
	Dissolved   Kind = "dissolved"    // date of the dissolution, YYYY-MM-DD; "unknown"; or "inactive" in a register
	Redirected  Kind = "redirected"   // registrable domain that the home page redirects to
)

// trust is the order of trust: for each kind its origins, most trusted first. An origin is a
// source, or a source and Claim.Via. Origins that are not listed come last, by name.
//
// Imported facts come first. Wikidata comes before the site, since its item is found by the
// domain and has exact keys. The site's structured data comes before a register that was searched
// by name. The page title is the last resort.
var trust = map[Kind][]string{
	Name:     {scoring.FactsSource, "wikidata", "web/jsonld", "web/site_name", "sec", "gleif", "web/title", "rdap"},
	Country:  {scoring.FactsSource, "wikidata", "sec", "gleif", "web/jsonld", "rdap"},
	Industry: {scoring.FactsSource, "wikidata"},
	SIC:      {scoring.FactsSource, "sec"},
	CIK:      {scoring.FactsSource, "wikidata", "sec"},
	Ticker:   {scoring.FactsSource, "wikidata", "sec"},
	QID:      {scoring.FactsSource, "wikidata"},
	LEI:      {scoring.FactsSource, "wikidata", "gleif"},
	GitHub:   {scoring.FactsSource, "wikidata", "web"},
}

// Company is the identity of a company: claims in order of trust. The zero value has none.
type Company struct {
	claims []Claim
}

// NewCompany sorts claims of any number of sources by trust. The order of the arguments has no
// effect.
func NewCompany(claims ...Claim) Company {
	claims = slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool { return c.Value == "" })
	slices.SortStableFunc(claims, func(a, b Claim) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(distrust(a), distrust(b)),
			cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Via, b.Via),
		)
	})
	return Company{claims: claims}
}

// distrust returns the index of a claim's origin in trust.
func distrust(c Claim) int {
	order := trust[c.Kind]
	for i, place := range order {
		if place == c.Source || place == c.Source+"/"+c.Via {
			return i
		}
	}
	return len(order)
}

// Claims returns all claims by kind, the most trusted first. Callers must not change the slice.
func (c Company) Claims() []Claim { return c.claims }

// Get returns the most trusted value of a kind, or "".
func (c Company) Get(kind Kind) string {
	claim, _ := c.Best(kind)
	return claim.Value
}

// Best returns the most trusted claim of a kind, false if there is none.
func (c Company) Best(kind Kind) (Claim, bool) {
	for _, claim := range c.claims {
		if claim.Kind == kind {
			return claim, true
		}
	}
	return Claim{}, false
}

// All returns the distinct values of a kind, most trusted first.
func (c Company) All(kind Kind) []string {
	var values []string
	for _, claim := range c.claims {
		if claim.Kind == kind && !slices.Contains(values, claim.Value) {
			values = append(values, claim.Value)
		}
	}
	return values
}

// Identity returns the identity as scoring reads it.
func (c Company) Identity(site scoring.SiteText, hiringRegions int) scoring.Identity {
	sic, err := strconv.Atoi(c.Get(SIC))
	if err != nil {
		sic = 0
	}
	return scoring.Identity{
		Name: c.Get(Name), Country: c.Get(Country), Industries: c.All(Industry), SIC: sic, Site: site, HiringRegions: hiringRegions,
	}
}
