package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"time"

	"companyscore/internal/coalesce"
	"companyscore/scoring"
	"companyscore/sql"
)

var factsGet = sql.Query("facts_get")

// Facts stores and reads imported facts. It is safe for concurrent use.
type Facts struct {
	db      *DB
	lookups *coalesce.Coalescer[string, []scoring.CompanyFacts]
}

// NewFacts returns the store of facts in db.
func NewFacts(db *DB) *Facts {
	f := &Facts{db: db}
	f.lookups = coalesce.New(coalesce.Config[string, []scoring.CompanyFacts]{Query: f.GetMany, KeysMax: runPage, Pause: runPause,
		Timeout: runTimeout})
	return f
}

// Limits of coalesced lookups for runs. A run takes seconds, so a delay of 100 ms is
// acceptable; each query costs the engine some milliseconds for any number of companies.
const (
	runPause   = 100 * time.Millisecond
	runPage    = 200 // companies per query; they must fit into the URL of an HTTP request
	runTimeout = 15 * time.Second
)

// factsRow is a row of company_facts.
type factsRow struct {
	Domain          string             `ch:"domain"`
	Origin          string             `ch:"origin"`
	CompanyName     string             `ch:"company_name"`
	Country         string             `ch:"country"`
	Region          string             `ch:"region"`
	City            string             `ch:"city"`
	Industry        string             `ch:"industry"`
	Categories      []string           `ch:"categories"`
	SIC             *uint16            `ch:"sic"`
	FoundedYear     *uint16            `ch:"founded_year"`
	Status          string             `ch:"status"`
	Employees       *float64           `ch:"employees"`
	RevenueUSD      *float64           `ch:"revenue_usd"`
	TotalAssetsUSD  *float64           `ch:"total_assets_usd"`
	EBITDAUSD       *float64           `ch:"ebitda_usd"`
	MarketCapUSD    *float64           `ch:"market_cap_usd"`
	MarketCapClass  string             `ch:"market_cap_class"`
	PERatio         *float64           `ch:"pe_ratio"`
	PriceSales      *float64           `ch:"price_sales"`
	PriceBook       *float64           `ch:"price_book"`
	FundingTotalUSD *float64           `ch:"funding_total_usd"`
	FundingRounds   *float64           `ch:"funding_rounds"`
	LastFundingDate *time.Time         `ch:"last_funding_date"`
	Founders        *float64           `ch:"founders"`
	HiringRegions   *uint16            `ch:"hiring_regions"`
	Listed          *bool              `ch:"listed"`
	Ticker          string             `ch:"ticker"`
	Exchange        string             `ch:"exchange"`
	CIK             string             `ch:"cik"`
	LEI             string             `ch:"lei"`
	ISIN            string             `ch:"isin"`
	GitHub          string             `ch:"github"`
	Wikidata        string             `ch:"wikidata"`
	Signals         map[string]float64 `ch:"signal"`
	AtLeast         []string           `ch:"at_least"`
	Source          string             `ch:"source"`
	AsOf            time.Time          `ch:"as_of"`
	Removed         bool               `ch:"removed"`   // of rows read
	ImportID        string             `ch:"import_id"` // of rows staged
}

func (r *factsRow) facts() scoring.CompanyFacts {
	f := scoring.CompanyFacts{
		Domain: r.Domain, Origin: r.Origin, CompanyName: r.CompanyName, Country: r.Country, Region: r.Region, City: r.City,
		Industry: r.Industry, Categories: r.Categories, Status: r.Status,
		Employees: r.Employees, RevenueUSD: r.RevenueUSD, TotalAssetsUSD: r.TotalAssetsUSD, EBITDAUSD: r.EBITDAUSD,
		MarketCapUSD: r.MarketCapUSD, MarketCapClass: r.MarketCapClass, PERatio: r.PERatio, PriceSales: r.PriceSales,
		PriceBook:       r.PriceBook,
		FundingTotalUSD: r.FundingTotalUSD, FundingRounds: r.FundingRounds, Founders: r.Founders,
		Listed: r.Listed, Ticker: r.Ticker, Exchange: r.Exchange, CIK: r.CIK, LEI: r.LEI, ISIN: r.ISIN, GitHub: r.GitHub,
		Wikidata: r.Wikidata, Signals: maps.Clone(r.Signals), AtLeast: r.AtLeast, Source: r.Source, AsOf: r.AsOf.UTC(),
	}
	if r.SIC != nil {
		f.SIC = int(*r.SIC)
	}
	if r.FoundedYear != nil {
		f.FoundedYear = int(*r.FoundedYear)
	}
	if r.HiringRegions != nil {
		f.HiringRegions = int(*r.HiringRegions)
	}
	if r.LastFundingDate != nil {
		f.LastFundingDate = r.LastFundingDate.UTC()
	}
	return f
}

// factsRowOf returns the staged row of a layer. Unknown values are NULL.
func factsRowOf(c *scoring.CompanyFacts, importID string) *factsRow {
	row := &factsRow{
		Domain: c.Domain, Origin: c.Origin, CompanyName: c.CompanyName, Country: c.Country, Region: c.Region, City: c.City,
		Industry: c.Industry, Categories: c.Categories, Status: c.Status,
		Employees: c.Employees, RevenueUSD: c.RevenueUSD, TotalAssetsUSD: c.TotalAssetsUSD, EBITDAUSD: c.EBITDAUSD,
		MarketCapUSD: c.MarketCapUSD, MarketCapClass: c.MarketCapClass, PERatio: c.PERatio, PriceSales: c.PriceSales,
		PriceBook:       c.PriceBook,
		FundingTotalUSD: c.FundingTotalUSD, FundingRounds: c.FundingRounds, Founders: c.Founders,
		SIC: known(c.SIC), FoundedYear: known(c.FoundedYear), HiringRegions: known(c.HiringRegions),
		Listed: c.Listed, Ticker: c.Ticker, Exchange: c.Exchange, CIK: c.CIK, LEI: c.LEI, ISIN: c.ISIN, GitHub: c.GitHub,
		Wikidata: c.Wikidata, Signals: c.Signals, AtLeast: c.AtLeast, Source: c.Source, AsOf: c.AsOf, ImportID: importID,
	}
	if !c.LastFundingDate.IsZero() {
		row.LastFundingDate = &c.LastFundingDate
	}
	return row
}

// known returns n for a nullable column: nil for 0.
func known(n int) *uint16 {
	if n == 0 {
		return nil
	}
	v := uint16(n)
	return &v
}

// Get returns the facts of a company, one layer per origin. Callers may share the result and must not
// change it.
func (f *Facts) Get(ctx context.Context, domain string) ([]scoring.CompanyFacts, error) {
	layers, _, err := f.lookups.Get(ctx, domain)
	if err != nil {
		return nil, fmt.Errorf("facts of %s: %w", domain, err)
	}
	return layers, nil
}

// GetMany returns the facts of companies by domain. Companies without facts are not in the
// map.
func (f *Facts) GetMany(ctx context.Context, domains []string) (map[string][]scoring.CompanyFacts, error) {
	rows, err := listOf[factsRow](ctx, f.db, factsGet, domains)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]scoring.CompanyFacts, len(rows))
	for i := range rows {
		domain := rows[i].Domain
		found[domain] = append(found[domain], rows[i].facts())
	}
	return found, nil
}
