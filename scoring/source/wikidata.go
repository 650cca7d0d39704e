package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// Wikidata is the source of a company's Wikidata item: the one in the imported facts, else the one
// with the company's official website. The item has facts, and the exact keys of other sources.
type Wikidata struct{ live }

// NewWikidata returns the source.
func NewWikidata(c *fetch.Client) *Wikidata {
	return &Wikidata{newLive(c, "wikidata", scoring.FactsSource)}
}

var _ Source = (*Wikidata)(nil)

// Bounds of the requests.
const (
	candidatesMax = 5
	linkedMax     = 50 // items per request
)

var (
	hostText = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)
	qidText  = regexp.MustCompile(`^Q[0-9]{1,12}$`)
	leiText  = regexp.MustCompile(`^[A-Z0-9]{20}$`)
	cikText  = regexp.MustCompile(`^[0-9]{1,10}$`)
)

// Fetch finds the item of a domain and reads it.
func (w *Wikidata) Fetch(ctx context.Context, req Request) (Result, error) {
	if !hostText.MatchString(req.Registrable) {
		return Result{}, &Error{Code: fetch.CodeParse, Err: fmt.Errorf("%q is not a host name", req.Registrable)}
	}
	if item, found, err := w.imported(ctx, req); found || err != nil {
		if err != nil {
			return Result{}, err
		}
		linked, err := w.linked(ctx, item)
		return item.observe(linked, req), err
	}
	candidates, err := fetch.Get(ctx, w.client, fetch.Request{
		Source: "wikidata", Endpoint: "wikidata.query", Path: "/sparql", Query: url.Values{"format": {"json"},
			"query": {websiteQuery(req.Registrable)}},
		Accept: "application/sparql-results+json",
	}, func(res *fetch.Response) ([]wikidataCandidate, error) { return parseCandidates(res.Body) })
	if err != nil {
		return Result{}, err
	}
	if len(candidates) == 0 {
		return wikidataItem{}.observe(nil, req), nil
	}
	var items []wikidataItem
	if len(candidates) == 1 {
		items, err = w.items(ctx, "/wiki/Special:EntityData/"+candidates[0].QID+".json", nil)
	} else {
		var ids []string
		for _, c := range candidates {
			ids = append(ids, c.QID)
		}
		items, err = w.items(ctx, "/w/api.php", url.Values{
			"action": {"wbgetentities"}, "ids": {strings.Join(ids, "|")}, "props": {"labels|claims|sitelinks"}, "languages": {"en|mul"},
			"format": {"json"}, "maxlag": {"5"},
		})
	}
	if err != nil {
		return Result{}, err
	}
	for i := range items {
		items[i].Dissolved = items[i].Dissolved && !items[i].DissolvedOn.After(req.Now)
	}
	item, found := chooseItem(items, candidates)
	if !found {
		item, found = mostTelling(items, candidates) // all are dissolved
	}
	if !found {
		return wikidataItem{}.observe(nil, req), nil
	}
	linked, err := w.linked(ctx, item)
	return item.observe(linked, req), err
}

// imported returns the item that the imported facts name, false if there is none or if it is about something else.
func (w *Wikidata) imported(ctx context.Context, req Request) (wikidataItem, bool, error) {
	claim, ok := req.Company.Best(QID)
	if !ok || claim.Source != scoring.FactsSource || !qidText.MatchString(claim.Value) {
		return wikidataItem{}, false, nil
	}
	items, err := w.items(ctx, "/wiki/Special:EntityData/"+claim.Value+".json", nil)
	if fetch.IsNotFound(err) {
		return wikidataItem{}, false, nil
	}
	if err != nil || len(items) != 1 || !items[0].isOf(req) {
		return wikidataItem{}, false, err
	}
	items[0].Dissolved = items[0].Dissolved && !items[0].DissolvedOn.After(req.Now)
	return items[0], true, nil
}

func (w *Wikidata) items(ctx context.Context, path string, query url.Values) ([]wikidataItem, error) {
	return fetch.Get(ctx, w.client, fetch.Request{Source: "wikidata", Endpoint: "wikidata.entity", Path: path, Query: query},
		func(res *fetch.Response) ([]wikidataItem, error) { return parseItems(res.Body) })
}

// linked reads the items that an item refers to: leaders, industries, places, and the country of
// its seat.
func (w *Wikidata) linked(ctx context.Context, item wikidataItem) (map[string]wikidataLink, error) {
	ids := slices.Concat([]string{item.Seat, item.Country}, item.Industries, item.Leaders)
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	ids = ids[:min(len(ids), linkedMax)]
	if len(ids) == 0 {
		return map[string]wikidataLink{}, nil
	}
	found, err := w.links(ctx, ids)
	if err != nil {
		return nil, err
	}
	// In most cases the country of the seat is already read.
	if country := found[item.Seat].Country; country != "" && country != item.Country {
		more, err := w.links(ctx, []string{country})
		if err != nil {
			return nil, err
		}
		for id, link := range more {
			found[id] = link
		}
	}
	return found, nil
}

func (w *Wikidata) links(ctx context.Context, ids []string) (map[string]wikidataLink, error) {
	return fetch.Get(ctx, w.client, fetch.Request{
		Source: "wikidata", Endpoint: "wikidata.entity", Path: "/w/api.php", Query: url.Values{
			"action": {"wbgetentities"}, "ids": {strings.Join(ids, "|")}, "props": {"labels|claims"}, "languages": {"en|mul"},
			"format": {"json"}, "maxlag": {"5"},
		},
	}, func(res *fetch.Response) (map[string]wikidataLink, error) { return parseLinks(res.Body) })
}

// websitePaths are usual paths of official websites, the most usual first. Paths of single countries
// are left out: they are often those of a subsidiary.
var websitePaths = strings.Fields("/en /en/ /global/en /global/en/ /global/en.html /en.html /global /global/ /home /en/home " +
	"/en/home.html /index.html /home.html /index.php /index.htm /home/ /en-us /en_us /group /group/en")

// websiteQueryMax bounds the query in bytes, so that its URL stays below 8 kB.
const websiteQueryMax = 3500

// websiteQuery returns a query for the items whose official website is the domain, without
// people. It looks up exact addresses, which costs the server little: those of the root first,
// then with as many usual paths as fit. The domain is a host name, so it needs no escaping.
func websiteQuery(domain string) string {
	var b strings.Builder
	b.WriteString("SELECT ?item ?n ?d WHERE { VALUES (?u ?d) {")
	add := func(depth int, paths ...string) {
		for _, scheme := range []string{"https://", "http://"} {
			for _, www := range []string{"", "www."} {
				for _, path := range paths {
					fmt.Fprintf(&b, " (<%s%s%s%s> %d)", scheme, www, domain, path, depth)
				}
			}
		}
	}
	add(0, "", "/")
	for _, path := range websitePaths {
		if b.Len()+4*(len("( <https://www.> 1)")+len(domain)+len(path)) > websiteQueryMax {
			break
		}
		add(1, path)
	}
	return b.String() + " } ?item wdt:P856 ?u ; wikibase:sitelinks ?n . " +
		"FILTER NOT EXISTS { ?item wdt:P31 wd:Q5 } } ORDER BY ?d DESC(?n) LIMIT 5"
}

// wikidataCandidate is an item whose official website is the domain.
type wikidataCandidate struct {
	QID       string
	Sitelinks int
}

// parseCandidates parses the answer to websiteQuery. It skips duplicates, and items with a path in
// their website if there is one without.
func parseCandidates(body io.Reader) ([]wikidataCandidate, error) {
	var answer struct {
		Results *struct {
			Bindings []struct {
				Item, N, D struct {
					Value string `json:"value"`
				}
			} `json:"bindings"`
		} `json:"results"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return nil, err
	}
	if answer.Results == nil {
		return nil, errors.New("the answer has no results")
	}
	var roots, others []wikidataCandidate
	for _, b := range answer.Results.Bindings {
		qid := b.Item.Value[strings.LastIndexByte(b.Item.Value, '/')+1:]
		n, err := strconv.Atoi(b.N.Value)
		if !qidText.MatchString(qid) || err != nil {
			return nil, fmt.Errorf("%.100q with %.20q sitelinks is not an item", b.Item.Value, b.N.Value)
		}
		found := &roots
		if b.D.Value == "1" {
			found = &others
		}
		if !slices.ContainsFunc(*found, func(c wikidataCandidate) bool { return c.QID == qid }) && len(*found) < candidatesMax {
			*found = append(*found, wikidataCandidate{QID: qid, Sitelinks: n})
		}
	}
	if len(roots) > 0 {
		return roots, nil
	}
	return others, nil
}

// wikidataItem is the data of a company's item. Companies, places and people are item ids.
type wikidataItem struct {
	QID string
	// Label is the English label, else the one for all languages.
	Label string
	// Editions is the number of Wikipedia editions with an article. Article is the one whose
	// pageviews are read, as "en:Title".
	Editions int
	Article  string

	Employees, Revenue, NetProfit, OperatingIncome, Assets, MarketValue []wikidataAmount

	Founded time.Time
	// Dissolved is true if the item has a dissolution date. DissolvedOn is zero if the date is unknown or
	// less exact than a year.
	Dissolved                     bool
	DissolvedOn                   time.Time
	Listed                        bool
	Seat, Country                 string
	Industries, Leaders           []string
	Subsidiaries                  int
	Ticker, CIK, LEI, GitHub, Web string
	// Hosts are the hosts of all official websites, without www.
	Hosts []string
	// Telling is the number of its properties that only companies have.
	Telling int
}

// wikidataAmount is a number at some time.
type wikidataAmount struct {
	Amount float64
	// Unit is an item id, "" if there is none.
	Unit string
	// At is zero if the statement has no date.
	At        time.Time
	Preferred bool
}

// wikidataLink is the data of an item that another one refers to.
type wikidataLink struct {
	Label string
	// Country is the item id of a place's country, ISO the code of a country.
	Country, ISO string
}

// lenient decodes an object whose empty form is [].
type lenient[T any] map[string]T

// UnmarshalJSON decodes an empty list as an empty object.
func (m *lenient[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		*m = nil
		return nil
	}
	var plain map[string]T
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	*m = plain
	return nil
}

type wikidataEntity struct {
	ID        string                          `json:"id"`
	Missing   *string                         `json:"missing"`
	Labels    lenient[struct{ Value string }] `json:"labels"`
	Sitelinks lenient[struct{ Title string }] `json:"sitelinks"`
	Claims    wikidataClaims                  `json:"claims"`
}

// wikidataClaims is the statements of the properties that are read. Others are skipped.
type wikidataClaims map[string][]statement

var claimsRead = map[string]bool{
	"P1128": true, "P2139": true, "P2295": true, "P3362": true, "P2403": true, "P2226": true, "P571": true, "P576": true, "P452": true,
	"P159": true, "P17": true,
	"P414": true, "P249": true, "P169": true, "P112": true, "P488": true, "P3320": true, "P1037": true, "P355": true, "P5531": true,
	"P1278": true,
	"P2037": true, "P297": true, "P856": true,
}

// UnmarshalJSON decodes the properties that are read.
func (c *wikidataClaims) UnmarshalJSON(text []byte) error {
	var raw lenient[json.RawMessage]
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*c = wikidataClaims{}
	for property, value := range raw {
		if !claimsRead[property] {
			continue
		}
		var statements []statement
		if err := json.Unmarshal(value, &statements); err != nil {
			return fmt.Errorf("%s: %w", property, err)
		}
		(*c)[property] = slices.DeleteFunc(statements, func(s statement) bool { return s.Rank == "deprecated" })
	}
	return nil
}

type statement struct {
	Rank       string          `json:"rank"`
	Mainsnak   snak            `json:"mainsnak"`
	Qualifiers lenient[[]snak] `json:"qualifiers"`
}

type snak struct {
	// Type is value, somevalue for an unknown value, or novalue if there is none.
	Type      string `json:"snaktype"`
	Datavalue struct {
		Value json.RawMessage `json:"value"`
	} `json:"datavalue"`
}

// ended reports whether the statement has an end date.
func (s statement) ended() bool { return len(s.Qualifiers["P582"]) > 0 }

func (s snak) text() string {
	var text string
	_ = json.Unmarshal(s.Datavalue.Value, &text) // "" if it is not a text
	return strings.TrimSpace(text)
}

// item returns the item id of a snak, "" if there is none.
func (s snak) item() string {
	var v struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(s.Datavalue.Value, &v) != nil || !qidText.MatchString(v.ID) {
		return ""
	}
	return v.ID
}

// time returns a date, zero if it is less exact than a year. A year is its first of July, a month
// its fifteenth.
func (s snak) time() time.Time {
	var v struct {
		Time      string `json:"time"`
		Precision *int   `json:"precision"`
	}
	// +2024-12-31T00:00:00Z, with 00 for an unknown month or day.
	if json.Unmarshal(s.Datavalue.Value, &v) != nil || len(v.Time) < len("+2024-12-31") || v.Time[0] != '+' {
		return time.Time{}
	}
	precision := 11
	if v.Precision != nil {
		precision = *v.Precision
	}
	date := v.Time[1:len("+2024-12-31")]
	switch {
	case precision < 9:
		return time.Time{}
	case precision == 9 || date[5:7] == "00":
		date = date[:4] + "-07-01"
	case precision == 10 || date[8:] == "00":
		date = date[:7] + "-15"
	}
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return time.Time{}
	}
	return t
}

// amounts returns the numbers in statements.
func amounts(statements []statement) (all []wikidataAmount) {
	for _, s := range statements {
		var v struct{ Amount, Unit string }
		if json.Unmarshal(s.Mainsnak.Datavalue.Value, &v) != nil {
			continue
		}
		n, err := strconv.ParseFloat(v.Amount, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			continue
		}
		a := wikidataAmount{Amount: n, Preferred: s.Rank == "preferred"}
		if unit := v.Unit[strings.LastIndexByte(v.Unit, '/')+1:]; qidText.MatchString(unit) {
			a.Unit = unit
		}
		if dates := s.Qualifiers["P585"]; len(dates) > 0 {
			a.At = dates[0].time()
		}
		if all = append(all, a); len(all) == 100 {
			break
		}
	}
	return all
}

// best returns the preferred statements, or all if there are none.
func best(statements []statement) []statement {
	var preferred []statement
	for _, s := range statements {
		if s.Rank == "preferred" {
			preferred = append(preferred, s)
		}
	}
	if preferred != nil {
		return preferred
	}
	return statements
}

// itemsOf returns the distinct items in statements that have not ended, at most 1,000.
func itemsOf(statements []statement) (ids []string) {
	for _, s := range statements {
		if id := s.Mainsnak.item(); id != "" && !s.ended() && !slices.Contains(ids, id) && len(ids) < 1000 {
			ids = append(ids, id)
		}
	}
	return ids
}

// firstText returns the first text that matches a pattern.
func firstText(statements []statement, pattern *regexp.Regexp) string {
	for _, s := range best(statements) {
		if text := s.Mainsnak.text(); !s.ended() && pattern.MatchString(text) {
			return text
		}
	}
	return ""
}

var (
	loginText  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	tickerText = regexp.MustCompile(`^[A-Z0-9.-]{1,12}$`)
)

// wikis are the Wikipedias whose pageviews are read, in order of preference, with their projects.
var wikis = []string{"en", "de", "fr", "es", "ja", "zh", "pt", "it", "ru"}

// notEditions are wikis whose keys look like those of Wikipedias.
var notEditions = []string{"commonswiki", "specieswiki", "metawiki", "wikidatawiki", "mediawikiwiki", "sourceswiki", "wikimaniawiki",
	"outreachwiki", "incubatorwiki", "foundationwiki", "wikifunctionswiki"}

// telling are properties of companies that products and brands do not have.
var telling = []string{"P1128", "P2139", "P571", "P452", "P414", "P159"}

func parseEntities(body io.Reader) (map[string]wikidataEntity, error) {
	var answer struct {
		Error *struct {
			Code string `json:"code"`
			Info string `json:"info"`
		} `json:"error"`
		Entities map[string]wikidataEntity `json:"entities"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return nil, err
	}
	switch {
	case answer.Error != nil && (answer.Error.Code == "maxlag" || answer.Error.Code == "ratelimited"):
		return nil, &fetch.Error{Code: fetch.CodeRateLimited, Err: fmt.Errorf("rate limited: %.200q", answer.Error.Info)}
	case answer.Error != nil:
		return nil, fmt.Errorf("rejected: %.50q %.200q", answer.Error.Code, answer.Error.Info)
	case answer.Entities == nil:
		return nil, errors.New("the answer has no entities")
	}
	for id, e := range answer.Entities {
		if e.Missing != nil || !qidText.MatchString(id) {
			delete(answer.Entities, id)
		}
	}
	return answer.Entities, nil
}

func (e wikidataEntity) label() string {
	return cmp.Or(scoring.CleanName(e.Labels["en"].Value), scoring.CleanName(e.Labels["mul"].Value))
}

// parseItems parses items with labels, claims and sitelinks, sorted by id. A merged item has the
// id of its target.
func parseItems(body io.Reader) ([]wikidataItem, error) {
	entities, err := parseEntities(body)
	if err != nil {
		return nil, err
	}
	var items []wikidataItem
	for id, e := range entities {
		c := e.Claims
		item := wikidataItem{
			QID: id, Label: e.label(),
			Employees: amounts(c["P1128"]), Revenue: amounts(c["P2139"]), NetProfit: amounts(c["P2295"]),
			OperatingIncome: amounts(c["P3362"]), Assets: amounts(c["P2403"]), MarketValue: amounts(c["P2226"]),
			Industries: itemsOf(c["P452"]), Subsidiaries: len(itemsOf(c["P355"])),
			CIK: strings.TrimLeft(firstText(c["P5531"], cikText), "0"), LEI: firstText(c["P1278"], leiText),
			GitHub: firstText(c["P2037"], loginText), Ticker: firstText(c["P249"], tickerText),
			Web: firstText(c["P856"], regexp.MustCompile(`^https?://\S{1,200}$`)),
		}
		for _, s := range c["P856"] {
			if u, err := url.Parse(s.Mainsnak.text()); err == nil && u.Hostname() != "" {
				item.Hosts = append(item.Hosts, strings.TrimPrefix(strings.ToLower(u.Hostname()), "www."))
			}
		}
		for _, s := range best(c["P571"]) {
			if t := s.Mainsnak.time(); !t.IsZero() && (item.Founded.IsZero() || t.Before(item.Founded)) {
				item.Founded = t
			}
		}
		for _, s := range best(c["P576"]) {
			if s.Mainsnak.Type != "novalue" {
				item.Dissolved, item.DissolvedOn = true, s.Mainsnak.time()
				break
			}
		}
		for _, s := range c["P414"] {
			item.Listed = item.Listed || !s.ended()
			for _, q := range s.Qualifiers["P249"] {
				if ticker := q.text(); item.Ticker == "" && !s.ended() && tickerText.MatchString(ticker) {
					item.Ticker = ticker
				}
			}
		}
		if seats := itemsOf(best(c["P159"])); len(seats) > 0 {
			item.Seat = seats[0]
		}
		if countries := itemsOf(best(c["P17"])); len(countries) > 0 {
			item.Country = countries[0]
		}
		for _, property := range []string{"P169", "P488", "P3320", "P1037"} {
			item.Leaders = append(item.Leaders, itemsOf(c[property])...)
		}
		for _, s := range c["P112"] { // founders stay founders when they leave
			if id := s.Mainsnak.item(); id != "" {
				item.Leaders = append(item.Leaders, id)
			}
		}
		slices.Sort(item.Leaders)
		item.Leaders = slices.Compact(item.Leaders)
		item.Leaders = item.Leaders[:min(len(item.Leaders), 20)]
		item.Industries = item.Industries[:min(len(item.Industries), 10)]
		for _, property := range telling {
			if len(c[property]) > 0 {
				item.Telling++
			}
		}
		for site := range e.Sitelinks {
			if strings.HasSuffix(site, "wiki") && !slices.Contains(notEditions, site) {
				item.Editions++
			}
		}
		for _, wiki := range wikis {
			if link, ok := e.Sitelinks[wiki+"wiki"]; ok && link.Title != "" && len(link.Title) <= 255 {
				item.Article = wiki + ":" + strings.ReplaceAll(link.Title, " ", "_")
				break
			}
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b wikidataItem) int { return compareQID(a.QID, b.QID) })
	return items, nil
}

// isOf reports whether an item can be about the company: one of its websites is below the company's registrable domain, or it has no
// website, but a property of companies.
func (i wikidataItem) isOf(req Request) bool {
	if len(i.Hosts) == 0 {
		return i.Telling > 0
	}
	return slices.ContainsFunc(i.Hosts, func(host string) bool {
		return host == req.Registrable || strings.HasSuffix(host, "."+req.Registrable)
	})
}

func compareQID(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// parseLinks parses items with labels and claims.
func parseLinks(body io.Reader) (map[string]wikidataLink, error) {
	entities, err := parseEntities(body)
	if err != nil {
		return nil, err
	}
	links := make(map[string]wikidataLink, len(entities))
	for id, e := range entities {
		link := wikidataLink{Label: e.label()}
		if countries := itemsOf(best(e.Claims["P17"])); len(countries) > 0 {
			link.Country = countries[0]
		}
		if code := firstText(e.Claims["P297"], countryText); code != "" {
			link.ISO = code
		}
		links[id] = link
	}
	return links, nil
}

var countryText = regexp.MustCompile(`^[A-Z]{2}$`)

// chooseItem picks the company's item among those with its website that are not dissolved.
func chooseItem(items []wikidataItem, candidates []wikidataCandidate) (wikidataItem, bool) {
	return mostTelling(slices.DeleteFunc(slices.Clone(items), func(item wikidataItem) bool { return item.Dissolved }), candidates)
}

// mostTelling returns the item with the most company properties, then with the most articles, then
// the oldest; false if there are no items.
func mostTelling(items []wikidataItem, candidates []wikidataCandidate) (wikidataItem, bool) {
	if len(items) == 0 {
		return wikidataItem{}, false
	}
	sitelinks := func(item wikidataItem) int {
		for _, c := range candidates {
			if c.QID == item.QID {
				return c.Sitelinks
			}
		}
		return 0
	}
	return slices.MinFunc(items, func(a, b wikidataItem) int {
		return cmp.Or(cmp.Compare(b.Telling, a.Telling), cmp.Compare(sitelinks(b), sitelinks(a)), compareQID(a.QID, b.QID))
	}), true
}

// amountAgeMax is the age beyond which an amount is not used: the MaxAge of the signals.
const amountAgeMax = 6 * 365 * day

// newest returns the current amount: the newest of the preferred ones, false if none is from the
// last six years. An undated amount counts only if all are undated.
func newest(all []wikidataAmount, now time.Time) (wikidataAmount, bool) {
	preferred := slices.ContainsFunc(all, func(a wikidataAmount) bool { return a.Preferred })
	var found wikidataAmount
	ok := false
	for _, a := range all {
		if preferred && !a.Preferred || a.At.After(now) {
			continue
		}
		if !ok || a.At.After(found.At) {
			found, ok = a, true
		}
	}
	if !ok || !found.At.IsZero() && now.Sub(found.At) > amountAgeMax {
		return wikidataAmount{}, false
	}
	return found, true
}

// currencies are the units that can be converted.
var currencies = map[string]string{"Q4917": "USD", "Q4916": "EUR", "Q25224": "GBP", "Q8146": "JPY", "Q39099": "CNY"}

// usd converts an amount at the rate of its year.
func (a wikidataAmount) usd(now time.Time) (float64, bool) {
	at := a.At
	if at.IsZero() {
		at = now
	}
	return inUSD(a.Amount, currencies[a.Unit], at.Year())
}

// samePeriod returns the amount with the period and unit of another, false if there is none.
func samePeriod(all []wikidataAmount, of wikidataAmount) (wikidataAmount, bool) {
	for _, a := range all {
		if a.Unit == of.Unit && !of.At.IsZero() && a.At.Year() == of.At.Year() && a.At.Sub(of.At).Abs() <= 31*day {
			return a, true
		}
	}
	return wikidataAmount{}, false
}

// yearBefore returns the amount of the period before, false if there is none.
func yearBefore(all []wikidataAmount, of wikidataAmount) (wikidataAmount, bool) {
	for _, a := range all {
		apart := of.At.Sub(a.At)
		if a.Unit == of.Unit && !a.At.IsZero() && apart >= 330*day && apart <= 400*day {
			return a, true
		}
	}
	return wikidataAmount{}, false
}

// observe derives the signals from an item, as of the request's instant. The zero item means that
// there is none. If linked is nil, signals that need it are left out.
func (i wikidataItem) observe(linked map[string]wikidataLink, req Request) Result {
	s := builder{source: "wikidata"}
	if employees, ok := newest(i.Employees, req.Now); ok && employees.Amount >= 1 {
		s.okAt("employee_count", employees.Amount, employees.At)
	} else {
		s.absent("employee_count")
	}
	if i.Founded.IsZero() || i.Founded.After(req.Now) {
		s.absent("organization_age_years")
	} else {
		s.ok("organization_age_years", years(i.Founded, req.Now))
	}
	s.count("wikipedia_language_count", i.Editions)
	if i.Listed {
		s.ok("public_listing", 1)
	} else {
		s.absent("public_listing")
	}
	i.observeMoney(&s, req.Now)
	s.part("corporate_group_size", float64(i.Subsidiaries))
	if i.QID == "" {
		s.part("leadership_disclosure", 0)
		return s.result
	}
	if linked != nil {
		var names []string
		for _, leader := range i.Leaders {
			names = append(names, cmp.Or(linked[leader].Label, leader))
		}
		s.part("leadership_disclosure", 0, names...)
	}
	i.claim(&s, linked, req)
	return s.result
}

func (i wikidataItem) observeMoney(s *builder, now time.Time) {
	revenue, sold := newest(i.Revenue, now)
	s.money("revenue_latest_usd", revenue, sold, now)
	assets, owned := newest(i.Assets, now)
	s.money("total_assets_usd", assets, owned, now)
	value, traded := newest(i.MarketValue, now)
	s.money("market_value_usd", value, traded && now.Sub(value.At) <= marketValueAgeMax, now)
	ratio := func(signal string, over wikidataAmount, ok bool, at time.Time, value func(float64) float64) {
		if !sold || !ok || revenue.Amount <= 0 || over.Amount == 0 {
			s.absent(signal)
			return
		}
		s.okAt(signal, value(over.Amount), at)
	}
	net, ok := samePeriod(i.NetProfit, revenue)
	ratio("net_margin", net, ok, revenue.At, func(net float64) float64 { return net / revenue.Amount })
	operating, ok := samePeriod(i.OperatingIncome, revenue)
	ratio("operating_margin", operating, ok, revenue.At, func(operating float64) float64 { return operating / revenue.Amount })
	before, ok := yearBefore(i.Revenue, revenue)
	ratio("revenue_growth_yoy", before, ok && before.Amount > 0, time.Time{}, func(before float64) float64 {
		return revenue.Amount/before - 1
	})
}

// marketValueAgeMax is the age beyond which a market value is not used.
const marketValueAgeMax = 400 * day

// money adds an amount in dollars, or missing for a currency that cannot be converted.
func (s *builder) money(signal string, a wikidataAmount, found bool, now time.Time) {
	usd, known := a.usd(now)
	switch {
	case !found || a.Amount <= 0:
		s.absent(signal)
	case !known:
		s.missing(scoring.ReasonNotApplicable, signal)
	default:
		s.okAt(signal, usd, a.At)
	}
}

func (i wikidataItem) claim(s *builder, linked map[string]wikidataLink, req Request) {
	because := func(what string) string { return what + " of " + i.QID }
	evidence := "official website of " + i.QID + " is " + cmp.Or(i.Web, "the domain")
	if len(i.Hosts) == 0 && req.Company.Get(QID) != "" {
		evidence = "imported facts name " + req.Company.Get(QID)
	}
	s.claim(QID, "key", i.QID, evidence)
	s.claim(Name, "", i.Label, because("English label"))
	if i.Dissolved {
		s.result.Defunct = true
		on := "unknown"
		if !i.DissolvedOn.IsZero() {
			on = i.DissolvedOn.Format(time.DateOnly)
		}
		s.claim(Dissolved, "", on, because("dissolution date (P576)"))
	}
	s.claim(CIK, "key", i.CIK, because("Central Index Key (P5531)"))
	s.claim(LEI, "key", i.LEI, because("Legal Entity Identifier (P1278)"))
	s.claim(Ticker, "key", i.Ticker, because("ticker symbol (P249)"))
	s.claim(GitHub, "key", i.GitHub, because("GitHub name (P2037)"))
	s.claim(Wikipedia, "key", i.Article, because("sitelink"))
	if seat := linked[i.Seat]; seat.Country != "" && linked[seat.Country].ISO != "" {
		s.claim(Country, "", linked[seat.Country].ISO, because("country of the headquarters "+i.Seat+" (P159)"))
	} else {
		s.claim(Country, "", linked[i.Country].ISO, because("country "+i.Country+" (P17)"))
	}
	for _, industry := range i.Industries {
		s.claim(Industry, "", linked[industry].Label, because("industry "+industry+" (P452)"))
	}
}
