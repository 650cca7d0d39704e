package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"companyscore/internal/country"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// SEC is the source of filings with the United States Securities and Exchange Commission:
// notices, events and audited numbers.
type SEC struct {
	live

	mu     sync.Mutex
	filers *filerIndex
	read   time.Time // start of the run that read filers
}

// NewSEC returns the source.
func NewSEC(c *fetch.Client) *SEC { return &SEC{live: newLive(c, "sec", "wikidata", "web")} }

var _ Source = (*SEC)(nil)

// factSignals derive from audited numbers, filingSignals from the list of filings.
var (
	factSignals = []string{
		"revenue_growth_yoy", "revenue_latest_usd", "net_margin", "operating_margin", "free_cash_flow_margin", "current_ratio",
		"liabilities_to_assets",
		"cash_runway_months", "total_assets_usd", "profitable_years_5",
	}
	filingSignals = []string{"public_listing", "distress_events_24m", "capital_raise_recency_days"}
)

// Fetch reads the filings of a company by its Central Index Key, or by a name that one filer has.
func (s *SEC) Fetch(ctx context.Context, req Request) (Result, error) {
	cik, via, err := s.resolve(ctx, req.Company)
	if err != nil {
		return Result{}, err
	}
	out := builder{source: "sec"}
	nobody := func() (Result, error) {
		out.missing(scoring.ReasonUnresolvedIdentity, slices.Concat(factSignals, filingSignals)...)
		return out.result, nil
	}
	if cik == "" {
		return nobody()
	}
	number := strings.Repeat("0", 10-len(cik)) + cik
	filer, err := fetch.Get(ctx, s.client, fetch.Request{Source: "sec", Endpoint: "sec.data", Path: "/submissions/CIK" + number + ".json"},
		func(res *fetch.Response) (secFiler, error) { return parseFiler(res.Body) })
	if fetch.IsNotFound(err) {
		return nobody()
	}
	if err != nil {
		return Result{}, err
	}
	// A name of one word counts only if the countries are equal.
	if via == "name" && !sameCompany(PlainName(filer.Name), req.Company.Get(Country), filer.Country) {
		return nobody()
	}
	filer.observe(&out, req.Now)
	filer.claim(&out, cik, via, req)
	facts, err := fetch.Get(ctx, s.client, fetch.Request{Source: "sec", Endpoint: "sec.data", Path: "/api/xbrl/companyfacts/CIK" + number +
		".json"},
		func(res *fetch.Response) (secFacts, error) { return parseSECFacts(res.Body) })
	if err != nil && !fetch.IsNotFound(err) {
		return out.result, err
	}
	facts.observe(&out, req.Now)
	return out.result, nil
}

// resolve returns the Central Index Key of a company: a claim, or the filer with its ticker and
// name, or the only filer with its name. via is key or name.
func (s *SEC) resolve(ctx context.Context, company Company) (cik, via string, err error) {
	if cik := company.Get(CIK); cikText.MatchString(cik) {
		return cik, "key", nil
	}
	names := slices.Concat(company.All(LegalName), company.All(Name))
	if len(names) == 0 {
		return "", "", nil
	}
	filers, err := s.index(ctx)
	if err != nil {
		return "", "", err
	}
	for _, ticker := range company.All(Ticker) {
		// Other exchanges use the same symbols for other companies.
		if f, ok := filers.byTicker[ticker]; ok && slices.ContainsFunc(names, func(name string) bool {
			return PlainName(name) == PlainName(f.Title)
		}) {
			return f.CIK, "key", nil
		}
	}
	for _, name := range names {
		plain := PlainName(name)
		if found := filers.byName[plain]; len(found) == 1 && (words(plain) >= 2 || company.Get(Country) != "") {
			return found[0], "name", nil
		}
	}
	return "", "", nil
}

// filersTTL is how long the list of all filers is used.
const filersTTL = day

// filerIndex is an index of all filers.
type filerIndex struct {
	byName   map[string][]string // plain names to the keys with that name
	byTicker map[string]filer
}

// index returns all filers with tickers. It reads them at most once a day, and stores them here
// since they are too large to decode in each run.
func (s *SEC) index(ctx context.Context) (*filerIndex, error) {
	s.mu.Lock()
	filers, read := s.filers, s.read
	s.mu.Unlock()
	if filers != nil && time.Since(read) < filersTTL {
		return filers, nil
	}
	list, err := fetch.Get(ctx, s.client, fetch.Request{Source: "sec", Endpoint: "sec.www", Path: "/files/company_tickers.json", TTL: -1},
		func(res *fetch.Response) ([]filer, error) { return parseFilers(res.Body) })
	if err != nil {
		return nil, err
	}
	filers = newFilerIndex(list)
	s.mu.Lock()
	s.filers, s.read = filers, time.Now()
	s.mu.Unlock()
	return filers, nil
}

func newFilerIndex(list []filer) *filerIndex {
	index := &filerIndex{byName: make(map[string][]string, len(list)), byTicker: make(map[string]filer, len(list))}
	for _, f := range list {
		index.byTicker[f.Ticker] = f
		if plain := PlainName(f.Title); plain != "" && !slices.Contains(index.byName[plain], f.CIK) {
			index.byName[plain] = append(index.byName[plain], f.CIK)
		}
	}
	return index
}

// filer is one entry of the list of filers with tickers.
type filer struct{ CIK, Ticker, Title string }

// filersMax bounds the list; it has about ten thousand entries.
const filersMax = 50_000

// parseFilers parses the list of filers, an object with numbers as names.
func parseFilers(body io.Reader) ([]filer, error) {
	var list []filer
	err := eachMember(body, func(_ string, d *json.Decoder) error {
		var f struct {
			CIK    int64  `json:"cik_str"`
			Ticker string `json:"ticker"`
			Title  string `json:"title"`
		}
		if err := d.Decode(&f); err != nil {
			return err
		}
		if f.CIK > 0 && len(list) < filersMax && len(f.Title) <= 300 {
			list = append(list, filer{CIK: strconv.FormatInt(f.CIK, 10), Ticker: strings.ToUpper(f.Ticker), Title: f.Title})
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = errors.New("the list has no filers")
	}
	return list, err
}

// secFiler is the submissions of a filer.
type secFiler struct {
	Name, Country, Website string
	SIC                    int
	Tickers                []string
	// Filings are those that signals use, newest first.
	Filings []filing
}

type filing struct {
	Form string
	On   time.Time
	// Distress is true if a report names a distress event.
	Distress bool
}

// distressItems are items of form 8-K: bankruptcy, acceleration of an obligation, notice of
// delisting, withdrawal of financial statements.
var distressItems = []string{"1.03", "2.04", "3.01", "4.02"}

// raiseForms offer securities, as do all forms that begin with 424B.
var raiseForms = []string{"D", "D/A", "S-1", "S-3", "F-1", "F-3"}

// periodicForms are annual reports with audited numbers.
var periodicForms = []string{"10-K", "20-F", "40-F", "10-K/A", "20-F/A", "40-F/A"}

func isRaise(form string) bool {
	return slices.Contains(raiseForms, form) || strings.HasPrefix(form, "424B")
}
func isLate(form string) bool     { return strings.HasPrefix(form, "NT ") }
func isPeriodic(form string) bool { return slices.Contains(periodicForms, form) }

// filingsMax bounds the filings of a company.
const filingsMax = 5000

func parseFiler(body io.Reader) (secFiler, error) {
	var answer struct {
		Name      string   `json:"name"`
		SIC       string   `json:"sic"`
		Tickers   []string `json:"tickers"`
		Website   string   `json:"website"`
		Addresses struct {
			Business struct {
				Code        string `json:"stateOrCountry"`
				Description string `json:"stateOrCountryDescription"`
			} `json:"business"`
		} `json:"addresses"`
		Filings *struct {
			Recent struct {
				Form  []string `json:"form"`
				Date  []string `json:"filingDate"`
				Items []string `json:"items"`
			} `json:"recent"`
		} `json:"filings"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return secFiler{}, err
	}
	if answer.Filings == nil || answer.Name == "" {
		return secFiler{}, errors.New("the answer has no filer")
	}
	sic, err := strconv.Atoi(answer.SIC)
	if err != nil {
		sic = 0 // some filers have none
	}
	filer := secFiler{Name: scoring.CleanName(answer.Name), SIC: sic, Website: answer.Website,
		Country: secCountry(answer.Addresses.Business.Code, answer.Addresses.Business.Description)}
	for _, ticker := range answer.Tickers[:min(len(answer.Tickers), 20)] {
		if ticker = strings.ToUpper(ticker); tickerText.MatchString(ticker) {
			filer.Tickers = append(filer.Tickers, ticker)
		}
	}
	recent := answer.Filings.Recent
	if len(recent.Form) != len(recent.Date) {
		return secFiler{}, fmt.Errorf("%d forms with %d dates", len(recent.Form), len(recent.Date))
	}
	for i, form := range recent.Form {
		f := filing{Form: form}
		if form == "8-K" || form == "8-K/A" {
			if i < len(recent.Items) && form == "8-K" {
				for item := range strings.SplitSeq(recent.Items[i], ",") {
					f.Distress = f.Distress || slices.Contains(distressItems, strings.TrimSpace(item))
				}
			}
		} else if !isRaise(form) && !isLate(form) && !isPeriodic(form) {
			continue
		}
		if f.On, err = time.Parse(time.DateOnly, recent.Date[i]); err != nil {
			return secFiler{}, fmt.Errorf("filing on %.30q: not a date", recent.Date[i])
		}
		if filer.Filings = append(filer.Filings, f); len(filer.Filings) == filingsMax {
			break
		}
	}
	slices.SortStableFunc(filer.Filings, func(a, b filing) int { return b.On.Compare(a.On) })
	return filer, nil
}

// Ages up to which filings count.
const (
	eventSpan    = 730 * day
	periodicSpan = 548 * day // 18 months
)

func (f secFiler) observe(s *builder, now time.Time) {
	if len(f.Tickers) > 0 {
		s.ok("public_listing", 1)
	} else {
		s.absent("public_listing")
	}
	var late, distress int
	reports := false
	raised := time.Time{}
	for _, filing := range f.Filings {
		age := now.Sub(filing.On)
		if age < 0 {
			continue
		}
		switch {
		case isLate(filing.Form) && age <= eventSpan:
			late++
		case isPeriodic(filing.Form) && age <= periodicSpan:
			reports = reports || strings.HasPrefix(filing.Form, "10-K")
		case strings.HasPrefix(filing.Form, "8-K") && age <= eventSpan:
			reports = true
			if filing.Distress {
				distress++
			}
		case isRaise(filing.Form) && filing.On.After(raised):
			raised = filing.On
		}
	}
	// Foreign issuers report events on another form, without items.
	if reports {
		s.ok("distress_events_24m", float64(distress+late))
	} else {
		s.missing(scoring.ReasonNotApplicable, "distress_events_24m")
	}
	if raised.IsZero() {
		s.absent("capital_raise_recency_days")
	} else {
		s.ok("capital_raise_recency_days", now.Sub(raised).Hours()/24)
	}
}

func (f secFiler) claim(s *builder, cik, via string, req Request) {
	why := "Central Index Key " + cik + " belongs to " + f.Name
	if via == "name" {
		why = "the name equals only that of filer " + cik + ", " + f.Name
	}
	if strings.Contains(strings.ToLower(f.Website), req.Registrable) {
		why += ", whose website is " + f.Website
	}
	s.claim(CIK, via, cik, why)
	s.claim(Name, via, titleCase(f.Name), why)
	s.claim(Country, via, f.Country, "business address of filer "+cik)
	if f.SIC > 0 {
		s.claim(SIC, via, fmt.Sprintf("%04d", f.SIC), "industry code of filer "+cik)
	}
	if len(f.Tickers) > 0 {
		s.claim(Ticker, via, f.Tickers[0], "ticker of filer "+cik)
	}
}

// titleCase returns a name in capitals with capital first letters only. It does not change a name
// with small letters.
func titleCase(name string) string {
	if strings.ContainsFunc(name, unicode.IsLower) {
		return name
	}
	words := strings.Fields(strings.ToLower(name))
	for i, word := range words {
		runes := []rune(word)
		runes[0] = unicode.ToUpper(runes[0])
		words[i] = string(runes)
	}
	return strings.Join(words, " ")
}

// secStates are the codes of US states and territories.
var secStates = strings.Fields("AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND " +
	"OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY PR GU VI AS X1")

// secCountries are the SEC's codes of countries; those of Canada are of provinces. Other
// countries are found by their description.
var secCountries = map[string]string{
	"A0": "CA", "A1": "CA", "A2": "CA", "A3": "CA", "A4": "CA", "A5": "CA", "A6": "CA", "A7": "CA", "A8": "CA", "A9": "CA", "B0": "CA",
	"Z4": "CA",
	"X0": "GB", "2M": "DE", "I0": "FR", "M0": "JP", "F4": "CN", "K3": "HK", "L3": "IL", "L2": "IE", "P7": "NL", "V8": "CH", "V7": "SE",
	"N4": "LU", "D0": "BM", "E9": "KY",
	"U0": "SG", "F5": "TW", "M5": "KR", "K7": "IN", "O5": "MX", "D5": "BR", "C3": "AU", "G7": "DK", "H9": "FI", "Q8": "NO", "L6": "IT",
	"U3": "ES", "C9": "BE", "C1": "AR",
}

func secCountry(code, description string) string {
	code = strings.ToUpper(strings.TrimSpace(code))
	if slices.Contains(secStates, code) {
		return "US"
	}
	return cmp.Or(secCountries[code], country.Code(description))
}

// secFacts are annual numbers in dollars, by concept.
type secFacts map[string]yearly

// yearly is a number per fiscal year, by its last day, oldest first.
type yearly []yearEnd

type yearEnd struct {
	End   time.Time
	Value float64
	// Filed is the filing date; a later filing restates the number.
	Filed time.Time
}

// The concepts of each number, in order of preference.
var (
	revenueConcepts = []string{"RevenueFromContractWithCustomerExcludingAssessedTax", "Revenues",
		"RevenueFromContractWithCustomerIncludingAssessedTax", "SalesRevenueNet"}
	netConcepts       = []string{"NetIncomeLoss", "ProfitLoss"}
	operatingConcepts = []string{"OperatingIncomeLoss"}
	cashFlowConcepts  = []string{"NetCashProvidedByUsedInOperatingActivities"}
	capexConcepts     = []string{"PaymentsToAcquirePropertyPlantAndEquipment"}
	investedConcepts  = []string{"ShortTermInvestments", "MarketableSecuritiesCurrent"}
)

// conceptsRead maps the concepts that are read to whether they cover a period, not a day.
var conceptsRead = func() map[string]bool {
	read := map[string]bool{}
	for _, concept := range slices.Concat(revenueConcepts, netConcepts, operatingConcepts, cashFlowConcepts, capexConcepts) {
		read[concept] = true
	}
	for _, concept := range append([]string{"Assets", "Liabilities", "StockholdersEquity", "AssetsCurrent", "LiabilitiesCurrent",
		"CashAndCashEquivalentsAtCarryingValue"}, investedConcepts...) {
		read[concept] = false
	}
	return read
}()

// yearsMax bounds the years of one concept.
const yearsMax = 60

// parseSECFacts parses the annual numbers of a filer. The body can be 40 MiB; it decodes one
// concept at a time.
func parseSECFacts(body io.Reader) (secFacts, error) {
	facts := secFacts{}
	seen := false
	err := eachMember(body, func(key string, d *json.Decoder) error {
		if key != "facts" {
			return skip(d)
		}
		seen = true
		return members(d, func(taxonomy string) error {
			if taxonomy != "us-gaap" {
				return skip(d)
			}
			return members(d, func(concept string) error {
				period, read := conceptsRead[concept]
				if !read {
					return skip(d)
				}
				years, err := parseConcept(d, period)
				if len(years) > 0 {
					facts[concept] = years
				}
				return err
			})
		})
	})
	if err == nil && !seen {
		err = errors.New("the answer has no facts")
	}
	return facts, err
}

func parseConcept(d *json.Decoder, period bool) (yearly, error) {
	var concept struct {
		Units struct {
			USD []struct {
				Start string  `json:"start"`
				End   string  `json:"end"`
				Val   float64 `json:"val"`
				Form  string  `json:"form"`
				Filed string  `json:"filed"`
			} `json:"USD"`
		} `json:"units"`
	}
	if err := d.Decode(&concept); err != nil {
		return nil, err
	}
	byEnd := map[time.Time]yearEnd{}
	for _, f := range concept.Units.USD {
		if !isPeriodic(f.Form) {
			continue
		}
		end, err := time.Parse(time.DateOnly, f.End)
		if err != nil {
			return nil, fmt.Errorf("fact of %.30q: not a date", f.End)
		}
		filed, err := time.Parse(time.DateOnly, f.Filed)
		if err != nil {
			return nil, fmt.Errorf("fact filed %.30q: not a date", f.Filed)
		}
		if period {
			start, err := time.Parse(time.DateOnly, f.Start)
			if err != nil {
				return nil, fmt.Errorf("fact from %.30q: not a date", f.Start)
			}
			if length := end.Sub(start); length < 330*day || length > 400*day {
				continue
			}
		}
		if known, ok := byEnd[end]; !ok || filed.After(known.Filed) {
			byEnd[end] = yearEnd{End: end, Value: f.Val, Filed: filed}
		}
	}
	var years yearly
	for _, year := range byEnd {
		years = append(years, year)
	}
	slices.SortFunc(years, func(a, b yearEnd) int { return a.End.Compare(b.End) })
	return years[max(0, len(years)-yearsMax):], nil
}

// factAgeMax is the age beyond which the latest number of a filer is not used.
const factAgeMax = 913 * day // 30 months

// latest returns the newest year of the first concept that is not too old.
func (f secFacts) latest(concepts []string, now time.Time) (yearEnd, yearly, bool) {
	for _, concept := range concepts {
		years := f[concept]
		for i := len(years) - 1; i >= 0; i-- {
			if years[i].End.After(now) {
				continue
			}
			if now.Sub(years[i].End) <= factAgeMax {
				return years[i], years[:i+1], true
			}
			break
		}
	}
	return yearEnd{}, nil, false
}

// at returns the number of the first concept that has the year that ends on a day.
func (f secFacts) at(concepts []string, end time.Time) (float64, bool) {
	for _, concept := range concepts {
		for _, year := range f[concept] {
			if year.End.Equal(end) {
				return year.Value, true
			}
		}
	}
	return 0, false
}

// freeCashFlow returns the free cash flow of the year that ends on a day. Missing investments
// count as 0.
func (f secFacts) freeCashFlow(end time.Time) (float64, bool) {
	flow, ok := f.at(cashFlowConcepts, end)
	capex, _ := f.at(capexConcepts, end)
	return flow - capex, ok
}

func (f secFacts) observe(s *builder, now time.Time) {
	give := func(signal string, value float64, ok bool) {
		if !ok || math.IsNaN(value) || math.IsInf(value, 0) {
			s.missing(scoring.ReasonNotFound, signal)
			return
		}
		s.ok(signal, value)
	}
	revenue, years, sold := f.latest(revenueConcepts, now)
	sold = sold && revenue.Value > 0
	give("revenue_latest_usd", revenue.Value, sold)
	var before yearEnd
	for _, year := range years {
		if apart := revenue.End.Sub(year.End); apart >= 330*day && apart <= 400*day {
			before = year
		}
	}
	give("revenue_growth_yoy", revenue.Value/before.Value-1, sold && before.Value > 0)
	net, ok := f.at(netConcepts, revenue.End)
	give("net_margin", net/revenue.Value, sold && ok)
	operating, ok := f.at(operatingConcepts, revenue.End)
	give("operating_margin", operating/revenue.Value, sold && ok)
	free, ok := f.freeCashFlow(revenue.End)
	give("free_cash_flow_margin", free/revenue.Value, sold && ok)

	current, _, ok := f.latest([]string{"AssetsCurrent"}, now)
	due, owes := f.at([]string{"LiabilitiesCurrent"}, current.End)
	give("current_ratio", current.Value/due, ok && owes && due > 0)

	assets, _, owns := f.latest([]string{"Assets"}, now)
	give("total_assets_usd", assets.Value, owns && assets.Value > 0)
	liabilities, known := f.at([]string{"Liabilities"}, assets.End)
	if equity, has := f.at([]string{"StockholdersEquity"}, assets.End); !known && has {
		liabilities, known = assets.Value-equity, true
	}
	give("liabilities_to_assets", liabilities/assets.Value, owns && known && assets.Value > 0)

	runway, ok := f.runway(now)
	give("cash_runway_months", runway, ok)
	f.observeProfits(s, now)
}

// runwayMax is the runway, in months, of a company with positive cash flow.
const runwayMax = 60

func (f secFacts) runway(now time.Time) (months float64, ok bool) {
	flow, _, ok := f.latest(cashFlowConcepts, now)
	if !ok {
		return 0, false
	}
	free, _ := f.freeCashFlow(flow.End)
	if free >= 0 {
		return runwayMax, true
	}
	cash, _, ok := f.latest([]string{"CashAndCashEquivalentsAtCarryingValue"}, now)
	invested, _ := f.at(investedConcepts, cash.End)
	return min(max(12*(cash.Value+invested)/-free, 0), runwayMax), ok
}

// Years whose profits count, and how many of them must be known.
const (
	profitYears    = 5
	profitYearsMin = 3
)

func (f secFacts) observeProfits(s *builder, now time.Time) {
	latest, years, ok := f.latest(netConcepts, now)
	if !ok {
		s.missing(scoring.ReasonNotFound, "profitable_years_5")
		return
	}
	known, profitable := 0, 0
	for _, year := range years {
		if latest.End.Sub(year.End) > (profitYears-1)*366*day+7*day {
			continue
		}
		known++
		if year.Value > 0 {
			profitable++
		}
	}
	if known < profitYearsMin {
		s.missing(scoring.ReasonInsufficientHistory, "profitable_years_5")
		return
	}
	s.ok("profitable_years_5", min(profitYears, float64(profitable)*profitYears/float64(min(known, profitYears))))
}
