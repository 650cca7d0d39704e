package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	facts.observe(&out, filer.SIC, req.Now)
	return out.result, nil
}

// resolve returns the Central Index Key of a company: a claim, or the filer with its ticker and a
// similar name, or the only filer with its name. via is key or name.
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
		// The list writes a class of shares as BRK-A.
		f, ok := filers.byTicker[strings.ReplaceAll(ticker, ".", "-")]
		if ok && slices.ContainsFunc(names, func(name string) bool { return similarNames(name, f.Title) }) {
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

// similarNames reports whether two names can be of one company, if their tickers are equal: they
// begin with the same word, differ in spaces only, or one is the initials of the other.
func similarNames(a, b string) bool {
	wordsA, wordsB := strings.Fields(PlainName(a)), strings.Fields(PlainName(b))
	if len(wordsA) == 0 || len(wordsB) == 0 {
		return false
	}
	joinedA, joinedB := strings.Join(wordsA, ""), strings.Join(wordsB, "")
	return wordsA[0] == wordsB[0] || joinedA == joinedB || joinedA == initials(wordsB) || joinedB == initials(wordsA)
}

// initials returns the first letters of at least two words, else nothing.
func initials(words []string) string {
	if len(words) < 2 {
		return ""
	}
	var letters []rune
	for _, word := range words {
		letters = append(letters, []rune(word)[0])
	}
	return string(letters)
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
			list = append(list, filer{CIK: strconv.FormatInt(f.CIK, 10), Ticker: strings.ToUpper(f.Ticker),
				Title: filerName(f.Title)})
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = errors.New("the list has no filers")
	}
	return list, err
}
