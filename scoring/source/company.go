package source

import (
	"cmp"
	"slices"
	"strconv"

	"companyscore/scoring"
)

// Kind says what a claim is about.
type Kind = scoring.ClaimKind

// Claim is one statement about who the company is, with its evidence.
type Claim = scoring.Claim

// The kinds of claims. The form of the value is given with each.
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
	JobBoard    Kind = "job_board"    // "provider/token", such as "greenhouse/example"; another provider is given without a token
	CareersPage Kind = "careers_page" // URL of a page that was found
	Wikipedia   Kind = "wikipedia"    // "wiki:Title", such as "en:Example_Corp"; the title with underscores
	Parked      Kind = "parked"       // what shows that nobody runs a business here
	Redirected  Kind = "redirected"   // registrable domain that the home page leads to
)

// trust is the documented order of trust: for each kind the places where it can
// come from, most trusted first. A place is a source, or a source and the way in
// which it found the claim. Places that are not listed come last, in order of name.
//
// What the operator imported stands first. Wikidata stands before the site,
// since its entry was found by the domain and joins by exact keys; the site's
// structured data stands before a register that was found by name; the first
// part of a page's title is a last resort.
var trust = map[Kind][]string{
	Name:     {scoring.FactsSource, "wikidata", "web/jsonld", "web/site_name", "sec", "gleif", "web/title", "rdap"},
	Country:  {scoring.FactsSource, "wikidata", "sec", "gleif", "web/jsonld", "rdap"},
	Industry: {scoring.FactsSource, "wikidata"},
	SIC:      {scoring.FactsSource, "sec"},
	CIK:      {scoring.FactsSource, "wikidata", "sec"},
	LEI:      {scoring.FactsSource, "wikidata", "gleif"},
	GitHub:   {scoring.FactsSource, "wikidata", "web"},
}

// Company is what is known about who the company is: claims in order of trust.
// The zero value knows nothing.
type Company struct {
	claims []Claim
}

// NewCompany puts claims of any number of sources in their order of trust. It is
// the one place where they are merged; the order of the arguments has no effect.
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

// distrust is the place of a claim in the order of trust.
func distrust(c Claim) int {
	order := trust[c.Kind]
	for i, place := range order {
		if place == c.Source || place == c.Source+"/"+c.Via {
			return i
		}
	}
	return len(order)
}

// Claims returns all claims, by kind and then the most trusted first. The slice
// must not be changed.
func (c Company) Claims() []Claim { return c.claims }

// Get returns the most trusted value of a kind, or "".
func (c Company) Get(kind Kind) string {
	claim, _ := c.Best(kind)
	return claim.Value
}

// Best returns the most trusted claim of a kind, false when there is none.
func (c Company) Best(kind Kind) (Claim, bool) {
	for _, claim := range c.claims {
		if claim.Kind == kind {
			return claim, true
		}
	}
	return Claim{}, false
}

// All returns the different values of a kind, most trusted first.
func (c Company) All(kind Kind) []string {
	var values []string
	for _, claim := range c.claims {
		if claim.Kind == kind && !slices.Contains(values, claim.Value) {
			values = append(values, claim.Value)
		}
	}
	return values
}

// Identity returns what scoring reads of the company.
func (c Company) Identity(site scoring.SiteText, hiringRegions int) scoring.Identity {
	sic, err := strconv.Atoi(c.Get(SIC))
	if err != nil {
		sic = 0
	}
	return scoring.Identity{
		Name: c.Get(Name), Country: c.Get(Country), Industries: c.All(Industry), SIC: sic, Site: site, HiringRegions: hiringRegions,
	}
}
