package fakesources

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring"
)

// The formats below follow the providers' documentation. They share no code with the parsers
// under test.

type object = map[string]any
type list = []any

func page(v any) reply {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of literals and strings only
	}
	return reply{kind: "application/json; charset=utf-8", body: text}
}

// known returns the handler of a known server.
func (fakes *Fakes) known(endpoint string) http.Handler {
	source, _, _ := strings.Cut(endpoint, ".")
	answer := map[string]func(r *http.Request) (*Company, func() reply){
		"rdap.bootstrap": func(*http.Request) (*Company, func() reply) {
			return nil, func() reply {
				return page(object{"services": list{list{list{"com"}, list{"https://" + registry + "/"}}}})
			}
		},
		"ct.crtsh":        fakes.logs,
		"ct.certspotter":  fakes.issuances,
		"wikidata.query":  fakes.websites,
		"wikidata.entity": fakes.entities,
		"wikipedia":       fakes.pageviews,
		"sec.www":         fakes.tickers,
		"sec.data":        fakes.edgar,
		"gleif":           fakes.gleif,
		"github":          fakes.github,
		"jobs.greenhouse": fakes.greenhouse,
		"jobs.lever":      fakes.lever,
		"jobs.ashby":      fakes.ashby,
		"wayback":         fakes.archive,
		"hn":              fakes.links,
		"gdelt":           fakes.news,
		"tranco":          fakes.tranco,
	}[endpoint]
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if answer == nil {
			http.NotFound(rw, r)
			return
		}
		c, create := answer(r)
		if create == nil {
			create = func() reply { return nothing }
		}
		fakes.give(rw, r, c, source, create)
	})
}

func (fakes *Fakes) logs(r *http.Request) (*Company, func() reply) {
	c := fakes.byDomain[strings.TrimPrefix(r.URL.Query().Get("q"), "%.")]
	if c == nil {
		return nil, nil
	}
	return c, func() reply {
		rows := list{}
		for i := range c.Hosts {
			host := fmt.Sprintf("h%d.%s", i, c.Domain)
			rows = append(rows, object{
				"issuer_name": "C=ZZ, O=Fake Authority", "common_name": host, "name_value": "*." + host + "\n" + host, "id": i,
				"entry_timestamp": "2025-10-24T18:07:24.655", "not_before": "2025-10-24T17:08:54",
				"not_after": fakes.now.Add(60 * day).Format("2006-01-02T15:04:05"),
			})
		}
		return page(rows)
	}
}

// issuances always fails: the client uses it only after the other log search failed.
func (fakes *Fakes) issuances(r *http.Request) (*Company, func() reply) {
	c := fakes.byDomain[r.URL.Query().Get("domain")]
	return c, func() reply { return page(list{}) }
}

func (fakes *Fakes) websites(r *http.Request) (*Company, func() reply) {
	_, rest, _ := strings.Cut(r.URL.Query().Get("query"), "<https://")
	domain, _, _ := strings.Cut(rest, ">")
	c := fakes.byDomain[strings.TrimSuffix(domain, "/")]
	if c == nil {
		return nil, nil
	}
	return c, func() reply {
		rows := list{}
		if c.QID != "" {
			rows = append(rows, object{
				"item": object{"type": "uri", "value": "http://www.wikidata.org/entity/" + c.QID},
				"n":    object{"type": "literal", "value": fmt.Sprint(c.Editions)},
			})
		}
		return page(object{"head": object{"vars": list{"item", "n"}}, "results": object{"bindings": rows}})
	}
}

// Items that the items of companies refer to.
const (
	seatItem, countryItem = "Q990000901", "Q990000902"
	industryItems         = 990_001_000
	personItems           = 990_002_000
)

func claim(value any, qualifiers object) object {
	return object{"rank": "normal", "mainsnak": object{"snaktype": "value", "datavalue": object{"value": value}}, "qualifiers": qualifiers}
}

func item(qid string) object { return object{"entity-type": "item", "id": qid} }

func moment(at time.Time) object {
	return object{"time": at.Format("+2006-01-02T00:00:00Z"), "precision": 11, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}
}

func (fakes *Fakes) entities(r *http.Request) (*Company, func() reply) {
	if qid, ok := strings.CutPrefix(r.URL.Path, "/wiki/Special:EntityData/"); ok {
		c := fakes.byQID[strings.TrimSuffix(qid, ".json")]
		if c == nil || c.QID == "" {
			return nil, nil
		}
		return c, func() reply { return page(object{"entities": object{c.QID: fakes.entity(c)}}) }
	}
	ids := strings.Split(r.URL.Query().Get("ids"), "|")
	return nil, func() reply {
		found := object{}
		for _, id := range ids {
			found[id] = linked(id)
		}
		return page(object{"entities": found, "success": 1})
	}
}

func linked(id string) object {
	label := func(text string, claims object) object {
		return object{"id": id, "labels": object{"en": object{"language": "en", "value": text}}, "claims": claims}
	}
	n, _ := strconv.Atoi(id[1:])
	switch {
	case id == seatItem:
		return label("Zzington", object{"P17": list{claim(item(countryItem), nil)}})
	case id == countryItem:
		return label("United States", object{"P297": list{claim("US", nil)}})
	case n >= personItems && n < personItems+len(people):
		return label(people[n-personItems], object{})
	case n >= industryItems && n < industryItems+len(sectors):
		return label(sectors[n-industryItems].industry, object{})
	}
	return object{"id": id, "missing": ""}
}

func (fakes *Fakes) entity(c *Company) object {
	sitelinks := object{"commonswiki": object{"site": "commonswiki", "title": c.Name}}
	for i := range c.Editions {
		site := fmt.Sprintf("zz%c%cwiki", 'a'+rune(i/26), 'a'+rune(i%26))
		if i == 0 && c.Article {
			site = "enwiki"
		}
		sitelinks[site] = object{"site": site, "title": c.Name}
	}
	year := func(back int) time.Time {
		return time.Date(fakes.now.Year()-1-back, time.December, 31, 0, 0, 0, 0, time.UTC)
	}
	amount := func(value float64, back int) object {
		return claim(object{"amount": fmt.Sprintf("%+.2f", value), "unit": "http://www.wikidata.org/entity/Q4917"},
			object{"P585": list{object{"datavalue": object{"value": moment(year(back))}}}})
	}
	claims := object{
		"P571": list{claim(moment(c.Founded), nil)}, "P159": list{claim(item(seatItem), nil)}, "P17": list{claim(item(countryItem), nil)},
		"P452": list{claim(item(fmt.Sprintf("Q%d", industryItems+slices.IndexFunc(sectors,
			func(s sector) bool { return s.key == c.Sector.key }))), nil)},
		"P856": list{claim("https://"+c.Domain+"/", nil)},
	}
	if c.Employees > 0 {
		old := claim(object{"amount": "+7", "unit": "1"}, object{"P585": list{object{"datavalue": object{"value": moment(year(3))}}}})
		claims["P1128"] = list{old, claim(object{"amount": fmt.Sprintf("+%d", c.Employees), "unit": "1"},
			object{"P585": list{object{"datavalue": object{"value": moment(year(0))}}}})}
	}
	if c.Revenue > 0 {
		claims["P2139"], claims["P2295"] = list{amount(c.Before, 1), amount(c.Revenue, 0)}, list{amount(c.Net, 0)}
		claims["P3362"], claims["P2403"] = list{amount(c.Operating, 0)}, list{amount(c.Assets, 0)}
	}
	var leaders, subsidiaries list
	for _, name := range c.Leaders {
		leaders = append(leaders, claim(item(fmt.Sprintf("Q%d", personItems+slices.Index(people, name))), nil))
	}
	for i := range c.Subsidiaries {
		subsidiaries = append(subsidiaries, claim(item(fmt.Sprintf("Q%d", 990_003_000+i)), nil))
	}
	if len(leaders) > 0 {
		claims["P112"] = leaders
	}
	claims["P355"] = subsidiaries
	if c.Listed {
		claims["P414"] = list{claim(item("Q990000950"), nil)}
	}
	if c.KeyCIK && c.CIK != "" {
		claims["P5531"] = list{claim(fmt.Sprintf("%010s", c.CIK), nil)}
	}
	if c.KeyLEI && c.LEI != "" {
		claims["P1278"] = list{claim(c.LEI, nil)}
	}
	return object{"id": c.QID, "type": "item", "labels": object{"en": object{"language": "en", "value": c.Name}}, "claims": claims,
		"sitelinks": sitelinks}
}

// pageviews answers for the articles of companies and sectors. The title of a company's article
// is its name.
func (fakes *Fakes) pageviews(r *http.Request) (*Company, func() reply) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 12 {
		return nil, nil
	}
	title, from, to := parts[8], parts[10], parts[11]
	serve := func(level, trend float64) func() reply {
		return func() reply {
			first, err := time.Parse("2006010215", from)
			last, err2 := time.Parse("2006010215", to)
			if err != nil || err2 != nil {
				return reply{status: http.StatusBadRequest, kind: "application/json", body: []byte("{}")}
			}
			items := list{}
			for at := first; !at.After(last); at = at.Add(day) {
				items = append(items, object{"project": "en.wikipedia", "article": title, "timestamp": at.Format("2006010215"),
					"views": viewsOn(level, trend, at, fakes.now)})
			}
			return page(object{"items": items})
		}
	}
	for _, s := range sectors {
		if slices.Contains(scoring.SectorArticles(s.key), title) {
			return nil, serve(s.views, s.trend)
		}
	}
	c := fakes.byName[strings.ReplaceAll(title, "_", " ")]
	if c == nil || !c.Article {
		return c, nil
	}
	return c, serve(c.Views, c.ViewsTrend)
}

func (fakes *Fakes) tickers(*http.Request) (*Company, func() reply) {
	return nil, func() reply {
		all := object{"0": object{"cik_str": 1, "ticker": "ZZZZ", "title": "Zz Nobody Corp"}}
		for _, c := range fakes.Companies {
			if c.CIK != "" {
				cik, _ := strconv.Atoi(c.CIK)
				all[c.CIK] = object{"cik_str": cik, "ticker": fmt.Sprintf("ZZ%d", c.Number), "title": strings.ToUpper(c.Name) + " INC."}
			}
		}
		return page(all)
	}
}

func (fakes *Fakes) edgar(r *http.Request) (*Company, func() reply) {
	_, rest, _ := strings.Cut(r.URL.Path, "/CIK")
	c := fakes.byCIK[strings.TrimLeft(strings.TrimSuffix(rest, ".json"), "0")]
	if c == nil || c.CIK == "" {
		return nil, nil
	}
	if strings.HasPrefix(r.URL.Path, "/submissions/") {
		return c, func() reply {
			var forms, dates, items list
			for _, f := range c.Filings {
				forms, dates, items = append(forms, f.form), append(dates, f.on.Format(time.DateOnly)), append(items, f.items)
			}
			tickers := list{}
			if c.Ticker {
				tickers = list{fmt.Sprintf("ZZ%d", c.Number)}
			}
			return page(object{
				"cik": c.CIK, "name": strings.ToUpper(c.Name) + " INC.", "sic": fmt.Sprint(c.Sector.sic), "tickers": tickers, "website": "",
				"addresses": object{"business": object{"stateOrCountry": "CA", "stateOrCountryDescription": "CA"}},
				"filings":   object{"recent": object{"form": forms, "filingDate": dates, "items": items}},
			})
		}
	}
	if len(c.Books) == 0 {
		return c, nil
	}
	return c, func() reply {
		concepts := object{}
		add := func(name string, period bool, value func(books) float64) {
			var facts list
			for _, b := range c.Books {
				fact := object{"end": b.end.Format(time.DateOnly), "val": value(b), "form": "10-K", "fp": "FY",
					"filed": b.end.Add(50 * day).Format(time.DateOnly)}
				if period {
					fact["start"] = b.end.AddDate(-1, 0, 1).Format(time.DateOnly)
				}
				facts = append(facts, fact)
			}
			concepts[name] = object{"units": object{"USD": facts}}
		}
		add("Revenues", true, func(b books) float64 { return b.revenue })
		add("NetIncomeLoss", true, func(b books) float64 { return b.net })
		add("OperatingIncomeLoss", true, func(b books) float64 { return b.operating })
		add("NetCashProvidedByUsedInOperatingActivities", true, func(b books) float64 { return b.cashFlow })
		add("PaymentsToAcquirePropertyPlantAndEquipment", true, func(b books) float64 { return b.capex })
		add("Assets", false, func(b books) float64 { return b.assets })
		add("Liabilities", false, func(b books) float64 { return b.liabilities })
		add("AssetsCurrent", false, func(b books) float64 { return b.currentAssets })
		add("LiabilitiesCurrent", false, func(b books) float64 { return b.currentLiabilities })
		add("CashAndCashEquivalentsAtCarryingValue", false, func(b books) float64 { return b.cash })
		return page(object{"cik": c.CIK, "entityName": c.Name, "facts": object{"dei": object{}, "us-gaap": concepts}})
	}
}

func (fakes *Fakes) gleif(r *http.Request) (*Company, func() reply) {
	record := func(c *Company) object {
		return object{"id": c.LEI, "type": "lei-records", "attributes": object{
			"lei": c.LEI, "entity": object{
				"legalName": object{"name": strings.ToUpper(c.Name) + ", INC."}, "headquartersAddress": object{"country": "US"},
				"category": "GENERAL", "status": c.LEIStatus,
			},
			"registration": object{"status": c.LEIRenewed, "nextRenewalDate": "2027-08-01T00:00:00Z"},
		}}
	}
	api := func(v object) func() reply {
		return func() reply {
			p := page(v)
			p.kind = "application/vnd.api+json"
			return p
		}
	}
	lei, below, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/lei-records"), "/direct-child-relationships")
	if lei = strings.Trim(lei, "/"); lei == "" {
		c := fakes.byName[r.URL.Query().Get("filter[entity.legalName]")]
		if c == nil {
			return nil, api(object{"data": list{}, "meta": object{"pagination": object{"total": 0}}})
		}
		if c.LEI == "" {
			return c, api(object{"data": list{}, "meta": object{"pagination": object{"total": 0}}})
		}
		return c, api(object{"data": list{record(c)}, "meta": object{"pagination": object{"total": 1}}})
	}
	c := fakes.byLEI[lei]
	if c == nil || c.LEI == "" {
		return nil, nil
	}
	if strings.Contains(r.URL.Path, "/direct-child-relationships") && below == "" {
		return c, api(object{"data": list{}, "meta": object{"pagination": object{"total": c.Children}}})
	}
	return c, api(object{"data": record(c)})
}

func (fakes *Fakes) github(r *http.Request) (*Company, func() reply) {
	login, repos := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/orgs/"), "/repos")
	c := fakes.byLabel[login]
	switch {
	case c == nil || !c.Organization:
		return c, nil
	case !repos:
		return c, func() reply {
			return page(object{"login": c.Label, "name": c.Name, "blog": "https://" + c.Domain, "followers": c.Followers,
				"is_verified": c.Verified, "public_repos": len(c.Repos)})
		}
	}
	return c, func() reply {
		all := list{}
		for _, repo := range c.Repos {
			all = append(all, object{"stargazers_count": repo.stars, "pushed_at": repo.pushed.Format(time.RFC3339),
				"created_at": repo.created.Format(time.RFC3339), "archived": repo.archived, "fork": repo.fork})
		}
		return page(all)
	}
}

func (fakes *Fakes) greenhouse(r *http.Request) (*Company, func() reply) {
	token := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/boards/"), "/jobs")
	c := fakes.byLabel[token]
	return c, func() reply {
		jobs := list{}
		for _, role := range c.Roles {
			jobs = append(jobs, object{
				"title": role.title, "updated_at": fakes.now.Format(time.RFC3339), "first_published": role.published.Format(time.RFC3339),
				"location":    object{"name": role.location},
				"departments": list{object{"name": role.department}}, "content": "<p>long</p>",
			})
		}
		return page(object{"jobs": jobs, "meta": object{"total": len(jobs)}})
	}
}

func (fakes *Fakes) lever(r *http.Request) (*Company, func() reply) {
	c := fakes.byLabel[strings.TrimPrefix(r.URL.Path, "/v0/postings/")]
	return c, func() reply {
		jobs := list{}
		for _, role := range c.Roles {
			jobs = append(jobs, object{"text": role.title, "categories": object{"location": role.location, "department": role.department},
				"createdAt": role.published.UnixMilli()})
		}
		return page(jobs)
	}
}

func (fakes *Fakes) ashby(r *http.Request) (*Company, func() reply) {
	c := fakes.byLabel[strings.TrimPrefix(r.URL.Path, "/posting-api/job-board/")]
	return c, func() reply {
		jobs := list{object{"title": "Secret Engineer", "department": "Unlisted", "location": "Nowhere", "isListed": false,
			"publishedAt": fakes.now.Format(time.RFC3339)}}
		for _, role := range c.Roles {
			jobs = append(jobs, object{"title": role.title, "department": role.department, "location": role.location, "isListed": true,
				"publishedAt": role.published.Format("2006-01-02T15:04:05.000-07:00")})
		}
		return page(object{"apiVersion": "1", "jobs": jobs})
	}
}

func (fakes *Fakes) archive(r *http.Request) (*Company, func() reply) {
	c := fakes.byDomain[r.URL.Query().Get("url")]
	if c == nil {
		return nil, nil
	}
	return c, func() reply {
		rows := list{}
		if r.URL.Query().Get("fl") == "timestamp" {
			if !c.First.IsZero() {
				rows = list{list{"timestamp"}, list{c.First.Format("20060102150405")}}
			}
			return page(rows)
		}
		for _, capture := range c.Captures {
			if capture.at.Format("20060102") >= r.URL.Query().Get("from") {
				rows = append(rows, list{capture.at.Format("20060102150405"), capture.digest})
			}
		}
		if len(rows) > 0 {
			rows = append(list{list{"timestamp", "digest"}}, rows...)
		}
		return page(rows)
	}
}

func (fakes *Fakes) links(r *http.Request) (*Company, func() reply) {
	c := fakes.byDomain[r.URL.Query().Get("query")]
	if c == nil {
		return nil, nil
	}
	return c, func() reply {
		hits := list{object{"objectID": "other", "url": "https://not" + c.Domain + "/", "points": 9, "num_comments": 9,
			"created_at_i": fakes.now.Unix()}}
		for i, s := range c.Stories {
			host := c.Domain
			if s.sub {
				host = "blog." + host
			}
			hits = append(hits, object{"objectID": fmt.Sprint(i), "title": "t", "url": "https://" + host + "/a", "points": s.points,
				"num_comments": s.comments, "created_at_i": s.at.Unix()})
		}
		return page(object{"hits": hits, "nbHits": len(hits)})
	}
}

// newsDays is the number of days in the news timeline, today included.
const newsDays = 91

func (fakes *Fakes) news(r *http.Request) (*Company, func() reply) {
	c := fakes.byName[strings.Trim(r.URL.Query().Get("query"), `"`)]
	if c == nil {
		return nil, nil
	}
	return c, func() reply {
		tone := r.URL.Query().Get("mode") == "timelinetone"
		if c.News == 0 {
			return page(object{})
		}
		var data list
		today := fakes.now.Truncate(day)
		for back := newsDays - 1; back >= 0; back-- {
			at := today.Add(-time.Duration(back) * day)
			row := object{"date": at.Format("20060102T150405Z"), "value": c.newsOn(at), "norm": 34567}
			if tone {
				row = object{"date": row["date"], "value": c.toneOn(at)}
			}
			data = append(data, row)
		}
		return page(object{"timeline": list{object{"series": "Article Count", "data": data}}})
	}
}

func (fakes *Fakes) tranco(r *http.Request) (*Company, func() reply) {
	if r.URL.Path == "/daily_list_id" {
		return nil, func() reply {
			return reply{kind: "text/plain", body: []byte("D" + strings.ReplaceAll(r.URL.Query().Get("date"), "-", ""))}
		}
	}
	return nil, func() reply {
		id := strings.TrimPrefix(r.URL.Path, "/download_daily/D")
		if len(id) != 8 {
			return nothing
		}
		packed, err := fakes.ranks(id[:4] + "-" + id[4:6] + "-" + id[6:])
		if err != nil {
			return nothing
		}
		return reply{kind: "application/zip", body: packed}
	}
}

func records(texts ...string) (all []dns.RR) {
	for _, text := range texts {
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err) // the texts are literals
		}
		all = append(all, rr)
	}
	return all
}

// records returns the records of a name and type, and whether the name exists.
func (c *Company) records(name string, qtype uint16) (found []dns.RR, exists bool) {
	prefix := strings.TrimSuffix(strings.TrimSuffix(name, c.Domain), ".")
	var texts []string
	add := func(kind uint16, format string, args ...any) {
		if kind == qtype {
			texts = append(texts, name+". 300 IN "+dns.TypeToString[kind]+" "+fmt.Sprintf(format, args...))
		}
	}
	switch prefix {
	case "":
		add(dns.TypeA, address)
		switch c.Mail {
		case "hosted":
			add(dns.TypeMX, "10 aspmx.l.google.com.")
		case "own":
			add(dns.TypeMX, "10 mail.%s.", c.Domain)
		case "other":
			add(dns.TypeMX, "10 mx.zz-cheaphost.net.")
		}
		if c.SPF {
			terms := "v=spf1"
			for _, sender := range c.Senders {
				terms += " include:" + senders[sender]
			}
			add(dns.TypeTXT, "%q", terms+" ~all")
		}
		for _, token := range c.Tokens {
			add(dns.TypeTXT, "%q", tokens[token])
		}
		if c.Managed {
			add(dns.TypeNS, "ns-12.awsdns-34.org.")
		} else {
			add(dns.TypeNS, "ns1.zz-cheaphost.net.")
		}
		if c.CAA {
			add(dns.TypeCAA, `0 issue "letsencrypt.org"`)
		}
		if c.Signed {
			add(dns.TypeDS, "12345 13 2 %s", strings.Repeat("AB", 32))
		}
	case "www":
		add(dns.TypeA, address)
	case "_dmarc":
		if c.DMARC == "" {
			return nil, false
		}
		add(dns.TypeTXT, "%q", "v=DMARC1; p="+c.DMARC)
	case "_mta-sts":
		if !c.STS {
			return nil, false
		}
		add(dns.TypeTXT, "%q", "v=STSv1; id=20260101")
	case "_smtp._tls":
		if !c.Reports {
			return nil, false
		}
		add(dns.TypeTXT, "%q", "v=TLSRPTv1; rua=mailto:tls@"+c.Domain)
	default:
		return nil, false
	}
	return records(texts...), true
}

// site answers for all hosts: the registry and the companies' sites.
func (fakes *Fakes) site(rw http.ResponseWriter, r *http.Request) {
	host := strings.ToLower(r.Host)
	if host == registry {
		c := fakes.byDomain[strings.TrimPrefix(r.URL.Path, "/domain/")]
		if c == nil {
			http.NotFound(rw, r)
			return
		}
		fakes.give(rw, r, c, "rdap", func() reply {
			events := list{}
			if !c.Registered.IsZero() {
				events = list{object{"eventAction": "registration", "eventDate": c.Registered.Format(time.RFC3339)},
					object{"eventAction": "expiration", "eventDate": c.Expires.Format(time.RFC3339)}}
			}
			p := page(object{"objectClassName": "domain", "ldhName": strings.ToUpper(c.Domain), "events": events})
			p.kind = "application/rdap+json"
			return p
		})
		return
	}
	c := fakes.byDomain[strings.TrimPrefix(host, "www.")]
	if c == nil {
		http.NotFound(rw, r)
		return
	}
	// Only the home page fails, or robots.txt, without which no other page is read.
	planned, asked := fakes.faults[c.Domain]["web"], ""
	if planned == Robots && r.URL.Path == "/robots.txt" {
		defer fakes.asked(c)()
		fakes.fault(c, "web")
		fakes.wait(r.Context().Done(), fakes.cfg.Latency)
		http.Error(rw, "overloaded", http.StatusServiceUnavailable)
		return
	}
	if planned != Robots && r.URL.Path == "/" {
		asked = "web"
	}
	fakes.give(rw, r, c, asked, func() reply { return c.page(r.URL, fakes.now) })
}
