package source

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/publicsuffix"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring"
)

// goldenUpdate reports whether golden files are to be written; the flag is that of
// the package's other tests.
func goldenUpdate() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// wantGolden compares a text with a golden file.
func wantGolden(t *testing.T, path, got string) {
	t.Helper()
	if goldenUpdate() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-golden +now):\n%s", path, diff)
	}
}

// obj is a JSON object.
type obj = map[string]any

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// reply is the answer of a fake server.
type reply struct {
	status int
	kind   string
	body   string
}

// serve makes a fake server answer by "path?query" or by path, and with 404 to everything else.
// It returns the requests so far, as "endpoint path".
func serve(network *fakenet.Network, endpoint string, answers map[string]string) *[]string {
	asked := new([]string)
	network.Endpoint(endpoint, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RequestURI())
		body, ok := answers[r.URL.Path+"?"+r.URL.RawQuery]
		if !ok {
			body, ok = answers[r.URL.Path]
		}
		if !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message":"Not Found"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, body)
	}))
	return asked
}

// claimOf is one statement of an item, with pairs of a qualifier and its value.
func claimOf(rank string, value any, qualifiers ...any) obj {
	c := obj{"rank": rank, "mainsnak": obj{"snaktype": "value", "datavalue": obj{"value": value}}}
	if value == nil {
		c["mainsnak"] = obj{"snaktype": "novalue"}
	}
	q := obj{}
	for i := 0; i+1 < len(qualifiers); i += 2 {
		q[qualifiers[i].(string)] = []obj{{"datavalue": obj{"value": qualifiers[i+1]}}}
	}
	if len(q) > 0 {
		c["qualifiers"] = q
	} else {
		c["qualifiers"] = []any{} // as the server writes an empty object
	}
	return c
}

func wdItem(id string) obj { return obj{"entity-type": "item", "id": id} }
func wdDate(date string, precision int) obj {
	return obj{"time": "+" + date + "T00:00:00Z", "precision": precision}
}
func wdAmount(n, unit string) obj {
	if unit != "1" {
		unit = "http://www.wikidata.org/entity/" + unit
	}
	return obj{"amount": n, "unit": unit}
}
func wdLabel(text string) obj { return obj{"en": obj{"language": "en", "value": text}} }

// sparql is an answer with items and their numbers of sitelinks.
func sparql(pairs ...any) string {
	bindings := []obj{}
	for i := 0; i+1 < len(pairs); i += 2 {
		bindings = append(bindings, obj{"item": obj{"type": "uri", "value": "http://www.wikidata.org/entity/" + pairs[i].(string)},
			"n": obj{"type": "literal", "value": fmt.Sprint(pairs[i+1])}})
	}
	return toJSON(obj{"results": obj{"bindings": bindings}})
}

// fact is one line of companyfacts.
func fact(start, end, filed, form string, val float64) obj {
	f := obj{"end": end, "val": val, "form": form, "filed": filed, "fy": 2025, "fp": "FY"}
	if start != "" {
		f["start"] = start
	}
	return f
}

func yearsOf(values ...float64) []obj {
	var all []obj
	for i, v := range values {
		year := 2025 - i
		all = append(all, fact(fmt.Sprintf("%d-01-01", year), fmt.Sprintf("%d-12-31", year), fmt.Sprintf("%d-02-20", year+1), "10-K", v))
	}
	return all
}

func daysOf(values ...float64) []obj {
	all := yearsOf(values...)
	for _, f := range all {
		delete(f, "start")
	}
	return all
}

func concepts(of map[string][]obj) string {
	gaap := obj{}
	for name, facts := range of {
		gaap[name] = obj{"label": name, "units": obj{"USD": facts}}
	}
	gaap["AnotherConcept"] = obj{"units": obj{"shares": []obj{{"end": "x"}}}}
	return toJSON(obj{"cik": 900111, "entityName": "X",
		"facts": obj{"dei": obj{"EntityCommonStockSharesOutstanding": obj{"units": obj{"shares": []obj{}}}}, "us-gaap": gaap}})
}

// viewsOf is an answer of pageviews: so many a day in the last year, and so many before.
func viewsOf(lastYear, before int) string {
	items := []obj{}
	last := instant.Truncate(24*time.Hour).AddDate(0, 0, -2)
	for ago := 459; ago >= 0; ago-- {
		n := lastYear
		if ago >= 365 {
			n = before
		}
		if n > 0 {
			items = append(items, obj{"project": "en.wikipedia", "timestamp": last.AddDate(0, 0, -ago).Format("20060102") + "00",
				"views": n})
		}
	}
	return toJSON(obj{"items": items})
}

// threeCompanies is a fake network with three invented companies. Quillworks is large and listed,
// Brindleworks young and growing, Tarnfold small and in no register.
func threeCompanies(t testing.TB) *fakenet.Network {
	network := fakenet.New(t)
	label := func(id, text string, claims obj) obj { return obj{"id": id, "labels": wdLabel(text), "claims": claims} }
	year := func(y int) obj { return wdDate(fmt.Sprintf("%d-12-31", y), 11) }
	item := obj{"entities": obj{"Q900111": obj{
		"id": "Q900111", "labels": wdLabel("Quillworks"),
		"sitelinks": obj{"enwiki": obj{"title": "Quillworks Corp"}, "dewiki": obj{"title": "Quillworks"},
			"frwiki": obj{"title": "Quillworks"}, "commonswiki": obj{"title": "Quillworks"}, "enwikiquote": obj{"title": "Q"}},
		"claims": obj{
			"P1128": []obj{claimOf("normal", wdAmount("+30000", "1"), "P585", year(2022)), claimOf("normal", wdAmount("+42000", "1"),
				"P585", year(2024)), claimOf("deprecated", wdAmount("+99999", "1"), "P585", year(2025))},
			"P2139": []obj{claimOf("preferred", wdAmount("+9000000000", "Q4916"), "P585", year(2024)),
				claimOf("normal", wdAmount("+8000000000", "Q4916"), "P585", year(2023))},
			"P2295": []obj{claimOf("normal", wdAmount("+900000000", "Q4916"), "P585", year(2024))},
			"P3362": []obj{claimOf("normal", wdAmount("+1350000000", "Q4916"), "P585", year(2024))},
			"P2403": []obj{claimOf("normal", wdAmount("+1000000000000", "Q8146"), "P585", year(2024))},
			"P571":  []obj{claimOf("normal", wdDate("1991-00-00", 9))}, "P452": []obj{claimOf("normal", wdItem("Q7397"))},
			"P159": []obj{claimOf("normal", wdItem("Q1490"))}, "P17": []obj{claimOf("normal", wdItem("Q30"))},
			"P414": []obj{claimOf("normal", wdItem("Q82059"), "P249", "QLWK")}, "P5531": []obj{claimOf("normal", "0000900111")},
			"P1278": []obj{claimOf("normal", "5299000QUILLWORKS001")}, "P2037": []obj{claimOf("normal", "quillworks")},
			"P169": []obj{claimOf("preferred", wdItem("Q901"), "P580", year(2020)), claimOf("normal", wdItem("Q902"), "P582", year(2020))},
			"P112": []obj{claimOf("normal", wdItem("Q902")), claimOf("normal", nil)},
			"P355": []obj{claimOf("normal", wdItem("Q911")), claimOf("normal", wdItem("Q912")), claimOf("normal", wdItem("Q913"), "P582",
				year(2020))},
			"P856": []obj{claimOf("normal", "https://www.quillworks.com/")}, "P9999": []obj{{"mainsnak": "something new"}},
		},
	}}}
	serve(network, "wikidata.query", map[string]string{
		"/sparql?" + sparqlQuery("quillworks.com"): sparql("Q900111", 41), "/sparql?" + sparqlQuery("brindleworks.com"): sparql(),
		"/sparql?" + sparqlQuery("tarnfold.de"): sparql(),
	})
	serve(network, "wikidata.entity", map[string]string{
		"/wiki/Special:EntityData/Q900111.json": toJSON(item),
		"/w/api.php?" + linkQuery("Q1490", "Q30", "Q7397", "Q901", "Q902"): toJSON(obj{"entities": obj{
			"Q1490": label("Q1490", "Tokyo", obj{"P17": []obj{claimOf("preferred", wdItem("Q17"))}}),
			"Q30":   label("Q30", "United States", obj{"P297": []obj{claimOf("normal", "US")}}),
			"Q7397": label("Q7397", "software", obj{}), "Q901": obj{"id": "Q901", "labels": obj{"mul": obj{"value": "Ada Quill"}},
				"claims": []any{}}, "Q902": obj{"id": "Q902", "labels": []any{}, "claims": obj{}},
		}}),
		"/w/api.php?" +
			linkQuery("Q17"): toJSON(obj{"entities": obj{"Q17": label("Q17", "Japan", obj{"P297": []obj{claimOf("normal", "JP")}})}}),
	})
	serve(network, "sec.www",
		map[string]string{"/files/company_tickers.json": `{"0":{"cik_str":900111,"ticker":"QLWK","title":"QUILLWORKS CORP"},"1":{"cik_str":900222,"ticker":"BRND","title":"Brindle Works, Inc."},"2":{"cik_str":900333,"ticker":"TARN","title":"TARNFOLD INC"}}`})
	serve(network, "sec.data", map[string]string{
		"/submissions/CIK0000900111.json": `{"cik":"900111","name":"QUILLWORKS CORP","sic":"7372","tickers":["QLWK"],"website":"https://www.quillworks.com","addresses":{"business":{"stateOrCountry":"M0"}},
			"filings":{"recent":{"form":["10-K","8-K","8-K","NT 10-K","424B5","4","10-K"],"filingDate":["2026-02-20","2026-01-05","2025-06-05","2025-03-02","2024-11-11","2024-11-01","2025-03-09"],"items":["","2.02,9.01","1.01, 4.02","","","",""]}}}`,
		"/api/xbrl/companyfacts/CIK0000900111.json": concepts(map[string][]obj{
			"Revenues": append(yearsOf(10e9, 8e9, 7e9), fact("2025-10-01", "2025-12-31", "2026-02-20", "10-K", 3e9),
				fact("2024-01-01", "2024-12-31", "2026-02-20", "10-K", 8.5e9)),
			"SalesRevenueNet": yearsOf(1), "NetIncomeLoss": yearsOf(1e9, -2e8, 5e8, 4e8), "OperatingIncomeLoss": yearsOf(2e9),
			"NetCashProvidedByUsedInOperatingActivities": yearsOf(2.5e9), "PaymentsToAcquirePropertyPlantAndEquipment": yearsOf(5e8),
			"Assets": daysOf(20e9), "StockholdersEquity": daysOf(8e9), "AssetsCurrent": daysOf(9e9), "LiabilitiesCurrent": daysOf(4.5e9),
			"CashAndCashEquivalentsAtCarryingValue": daysOf(3e9),
		}),
		"/submissions/CIK0000900222.json":           `{"cik":"900222","name":"Brindle Works, Inc.","sic":"","tickers":["BRND"],"addresses":{"business":{"stateOrCountry":"CA"}},"filings":{"recent":{"form":["D"],"filingDate":["2025-07-13"],"items":[""]}}}`,
		"/submissions/CIK0000900333.json":           `{"cik":"900333","name":"TARNFOLD INC","sic":"3711","tickers":["TARN"],"addresses":{"business":{"stateOrCountry":"TX"}},"filings":{"recent":{"form":[],"filingDate":[],"items":[]}}}`,
		"/api/xbrl/companyfacts/CIK0000900333.json": concepts(nil),
	})
	record := func(lei, name, country, category, status, registration string) obj {
		return obj{"id": lei, "attributes": obj{"lei": lei, "entity": obj{"legalName": obj{"name": name},
			"headquartersAddress": obj{"country": country}, "category": category, "status": status},
			"registration": obj{"status": registration}}}
	}
	serve(network, "gleif", map[string]string{
		"/api/v1/lei-records/5299000QUILLWORKS001": toJSON(obj{"data": record("5299000QUILLWORKS001",
			"QUILLWORKS CORP.", "JP", "GENERAL", "ACTIVE", "ISSUED")}),
		"/api/v1/lei-records/5299000QUILLWORKS001/direct-child-relationships": `{"data":[],"meta":{"pagination":{"total":17}}}`,
		"/api/v1/lei-records?" + nameQuery("Brindle Works, Inc."): toJSON(obj{"data": []obj{
			record("5299000BRINDLEFUND01", "Brindle Works Inc.", "US", "FUND", "ACTIVE", "ISSUED"),
			record("5299000BRINDLEWORKS1", "BRINDLE WORKS INCORPORATED", "US", "GENERAL", "ACTIVE", "LAPSED"),
			record("5299000BRINDLESON001", "Brindle Works and Sons Inc.", "US", "GENERAL", "ACTIVE", "ISSUED"),
		}}),
		"/api/v1/lei-records?" +
			nameQuery("Tarnfold"): toJSON(obj{"data": []obj{record("5299000TARNFOLDUS001", "Tarnfold Ltd", "US", "GENERAL", "ACTIVE",
			"ISSUED")}}),
	})
	serve(network, "github", map[string]string{
		"/orgs/quillworks":         `{"login":"quillworks","blog":"","followers":9000,"is_verified":true}`,
		"/orgs/quillworks/repos":   `[{"stargazers_count":5000,"pushed_at":"2026-03-09T12:00:00Z","created_at":"2020-01-01T00:00:00Z"},{"stargazers_count":70,"pushed_at":"2024-03-09T12:00:00Z","created_at":"2024-01-01T00:00:00Z"},{"stargazers_count":7,"pushed_at":"2019-03-09T12:00:00Z","created_at":"2019-01-01T00:00:00Z","archived":true},{"stargazers_count":100000,"pushed_at":"2026-03-10T00:00:00Z","created_at":"2026-01-01T00:00:00Z","fork":true}]`,
		"/orgs/Brindle-Labs":       `{"login":"Brindle-Labs","blog":"www.brindleworks.com/","followers":12}`,
		"/orgs/Brindle-Labs/repos": `[{"stargazers_count":30,"pushed_at":null,"created_at":"2026-01-01T00:00:00Z"}]`,
		"/orgs/tarnfold":           `{"login":"tarnfold","blog":"https://tarnfold.io","followers":12}`,
	})
	var roles []obj
	for i, title := range []string{"Vault Designer", "Baker", "Baker", "Data Steward"} {
		roles = append(roles, obj{"title": title, "updated_at": "2026-03-01T10:00:00-05:00",
			"first_published": []string{"2026-03-01T10:00:00-05:00", "2025-01-01T10:00:00Z"}[i/2], "content": strings.Repeat("x", 100),
			"location":    obj{"name": []string{"Tokyo, Japan", "Portland, OR", "Remote - Europe", "Remote (US)"}[i]},
			"departments": []obj{{"name": []string{"Design ", "Bakery", "bakery", "No Department"}[i]}}})
	}
	serve(network, "jobs.greenhouse", map[string]string{"/v1/boards/quillworks/jobs": toJSON(obj{"jobs": roles, "meta": obj{"total": 4}})})
	serve(network, "jobs.ashby",
		map[string]string{"/posting-api/job-board/Brindle": `{"apiVersion":"1","jobs":[{"title":"Engineer","department":"Platform","location":"Berlin","isListed":true,"publishedAt":"2026-02-20T16:21:55.393+00:00"},{"title":"Ghost","isListed":false},{"title":"Seller","department":"Sales","location":"Berlin","isListed":true,"publishedAt":"2025-02-20T16:21:55.393+00:00"}]}`})
	views := map[string]string{}
	const views30 = "/api/rest_v1/metrics/pageviews/per-article/en.wikipedia/all-access/user/%s/daily/2024120400/2026030800"
	views[fmt.Sprintf(views30, "Quillworks_Corp")] = viewsOf(100, 50)
	views[fmt.Sprintf(views30, "Software_as_a_service")] = viewsOf(300, 200)
	views[fmt.Sprintf(views30, "Cloud_computing")] = viewsOf(100, 200)
	serve(network, "wikipedia", views)
	network.Site("quillworks.com", "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://www.quillworks.com"+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	network.Site("www.quillworks.com", "", siteOf(map[string]reply{
		"/robots.txt": {200, "text/plain",
			"User-agent: *\nDisallow: /customers\nSitemap: https://www.quillworks.com/maps/index.xml\n"},
		"/": {200, "text/html; charset=utf-8", quillworksHome},
		"/.well-known/security.txt": {200, "text/plain; charset=utf-8",
			"Contact: mailto:security@quillworks.com\nExpires: 2027-01-01T00:00:00Z\n"},
		"/maps/index.xml": {200, "application/xml", sitemapIndex("https://www.quillworks.com/maps/pages.xml",
			"https://www.quillworks.com/maps/more.xml", "https://www.quillworks.com/maps/blog.xml",
			"https://www.quillworks.com/maps/rest.xml")},
		"/maps/blog.xml":  {200, "application/xml", sitemapOf(40, "blog/", "2026-03-0%d")},
		"/maps/pages.xml": {200, "application/xml", sitemapOf(20, "p/", "")},
		"/maps/more.xml":  {200, "application/xml", sitemapOf(10, "customers/", "")},
		"/blog/feed.xml": {200, "application/rss+xml",
			`<rss><channel><item><pubDate>Mon, 09 Mar 2026 12:00:00 GMT</pubDate></item><item><pubDate>Sun, 08 Mar 2026 12:00:00 GMT</pubDate></item></channel></rss>`},
		"/about-us": {200, "text/html",
			`<script type="application/ld+json">{"@type":"Organization","name":"Quillworks","url":"https://www.quillworks.com/","member":[{"@type":"Person","name":"Cy Orrin"}]}</script>`},
		"/careers": {200, "text/html", `<iframe src="https://boards.greenhouse.io/embed/job_board?for=quillworks"></iframe>`},
		"/pricing": {200, "text/html", `<p>$12.50 per user, paid yearly</p>`},
		"/trust":   {200, "text/html", `<p>We are careful</p>`},
	}))
	network.Site("brindleworks.com", "", siteOf(map[string]reply{
		"/": {200, "text/html",
			`<html lang="en"><title>Brindle Works – Oven telemetry</title><script type="application/ld+json">[{"@type":"Organization","name":"Brindle Works","legalName":"Brindle Works, Inc.","url":"https://brindleworks.com","foundingDate":"2021-05","numberOfEmployees":{"minValue":11,"maxValue":49},"address":{"addressCountry":"US"},"sameAs":["https://github.com/Brindle-Labs","https://www.linkedin.com/company/brindle"]}]</script><h1>Platform for analytics of ovens</h1><a href="https://jobs.ashbyhq.com/Brindle">We are hiring</a><a href="/pricing">Pricing</a><a href="/docs">Docs</a><a href=/team>Team</a>` + strings.Repeat("<p>Words about ovens.</p>", 20)},
		"/pricing": {404, "text/html", "gone"},
		"/docs":    {200, "text/html", "docs"},
		"/team":    {200, "text/html", "team"},
		"/feed": {200, "application/atom+xml",
			`<feed xmlns="http://www.w3.org/2005/Atom"><entry><published>2025-03-10T12:00:00Z</published></entry></feed>`},
	}))
	network.Site("tarnfold.de", "", siteOf(map[string]reply{
		"/": {200, "text/html; charset=iso-8859-1", "<title>Tarnfold</title><h1>B\xe4ckerei</h1><p>Wir backen. " +
			strings.Repeat("Brot und K\xe4se. ", 30) + "<a href=/karriere>Karriere</a>"}, "/karriere": {200, "text/html", "Komm zu uns"},
	}))
	return network
}

const quillworksHome = `<html lang="en"><head><title>Quillworks: payments</title><meta property="og:site_name" content="Quillworks"><meta name="description" content="Software for bakeries">
<link rel="alternate" hreflang="de" href="/de/"><link rel="alternate" hreflang="fr" href="/fr/"><link rel="alternate" type="application/rss+xml" href="/blog/feed.xml"><script src="https://js.stripe.com/v3"></script>
<script type="application/ld+json">{"@context":"https://schema.org","@type":"Corporation","name":"Quillworks","url":"https://www.quillworks.com","numberOfEmployees":41000,"foundingDate":"1990","sameAs":["https://www.linkedin.com/company/quillworks"],"founder":{"@type":"Person","name":"ada quill"}}</script></head>
<body><h1>Payments for bakeries</h1><p>We move money for bakers all over the world, every morning, before the first bread is sold. Bakers trust us with their tills, their card readers and their books, and they have done so for thirty-five years in eighty countries.</p>
<a href="/about-us">About us</a><a href="/careers">Careers</a><a href="/pricing">Pricing</a><a href="/customers">Customers</a><a href="https://docs.quillworks.com/">Docs</a><a href="/blog">Blog</a><a href="/trust">Trust</a>
<a href="/products/till">Products</a><a href="/partners">Partners</a><a href="https://app.quillworks.com/">Log in</a><a href="https://quillworks.statuspage.io">Status</a><a href="/contact-sales">Contact sales</a>
<footer><a href="https://x.com/quillworks">X</a><a href="https://github.com/quillworks">GitHub</a></footer></body></html>`

func siteOf(pages map[string]reply) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", page.kind)
		w.Header().Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
		w.WriteHeader(page.status)
		fmt.Fprint(w, page.body)
	})
}

func sitemapIndex(files ...string) string {
	return "<sitemapindex><sitemap><loc>" + strings.Join(files, "</loc></sitemap><sitemap><loc>") + "</loc></sitemap></sitemapindex>"
}

func sitemapOf(n int, path, changed string) string {
	var b strings.Builder
	b.WriteString("<urlset>")
	for i := range n {
		fmt.Fprintf(&b, "<url><loc>https://www.quillworks.com/%s%d</loc>", path, i)
		if changed != "" {
			b.WriteString("<lastmod>" + fmt.Sprintf(changed, 1+i%9) + "</lastmod>")
		}
		b.WriteString("</url>")
	}
	return b.String() + "</urlset>"
}

// requestFor returns a request for an unknown domain.
func requestFor(domain string) Request {
	registrable, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		panic(err)
	}
	return Request{Domain: domain, Registrable: registrable, Now: instant}
}

// ask runs sources in order, each with the results of the sources in its plan.
func ask(t *testing.T, req Request, sources ...Source) map[string]Result {
	t.Helper()
	results := map[string]Result{}
	for _, s := range sources {
		var claims []Claim
		own := req
		for _, name := range s.Plan().After {
			r, ok := results[name]
			if !ok && name != scoring.FactsSource {
				t.Fatalf("%s is asked before %s", s.Name(), name)
			}
			claims = append(claims, r.Claims...)
			own.Observed = append(own.Observed, r.Observations...)
			own.Answered = append(own.Answered, name)
			if r.Site.Title != "" {
				own.Site = r.Site
			}
		}
		own.Company = NewCompany(claims...)
		got, err := s.Fetch(t.Context(), own)
		if err != nil {
			t.Errorf("%s of %s: %v", s.Name(), req.Domain, err)
		}
		wantValid(t, got)
		results[s.Name()] = got
	}
	return results
}

// written formats a result for golden files.
func written(r Result) string {
	var lines []string
	for signal, value := range spoken(r) {
		lines = append(lines, fmt.Sprintf("  %-28s %s", signal, value))
	}
	for _, c := range r.Claims {
		via := ""
		if c.Via != "" {
			via = " (" + c.Via + ")"
		}
		lines = append(lines, fmt.Sprintf("  is %-12s %s%s: %s", c.Kind, c.Value, via, c.Evidence))
	}
	for name, value := range r.Values {
		lines = append(lines, fmt.Sprintf("  keeps %s %g", name, value))
	}
	if r.Site.Title != "" {
		lines = append(lines, fmt.Sprintf("  site %q", r.Site))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestInventedCompanies(t *testing.T) {
	t.Parallel()
	network := threeCompanies(t)
	client := network.Client()
	var b strings.Builder
	for _, domain := range []string{"quillworks.com", "brindleworks.com", "tarnfold.de"} {
		req := requestFor(domain)
		req.Past = []Past{{At: instant.AddDate(0, 0, -90), Values: map[string]float64{"jobs.open_roles": 8}}}
		if domain == "tarnfold.de" {
			req.Past = nil
		}
		sources := []Source{NewWikidata(client), NewWeb(client), NewSEC(client), NewGLEIF(client), NewRepositories(client), NewJobs(client),
			NewPageviews(client)}
		results := ask(t, req, sources...)
		for _, s := range sources {
			said := spoken(results[s.Name()])
			for _, signal := range scoring.Manifest() {
				// Combine makes hiring_intensity_pct.
				if slices.Contains(signal.Sources, s.Name()) && said[signal.ID] == "" && signal.ID != "hiring_intensity_pct" {
					t.Errorf("%s says nothing of %s of %s", s.Name(), signal.ID, domain)
				}
			}
			fmt.Fprintf(&b, "%s of %s\n%s\n\n", s.Name(), domain, written(results[s.Name()]))
		}
	}
	wantGolden(t, "testdata/invented.golden", b.String())
}

func sparqlQuery(domain string) string {
	return encoded("format", "json", "query", websiteQuery(domain))
}
func linkQuery(ids ...string) string {
	return encoded("action", "wbgetentities", "format", "json", "ids", strings.Join(ids, "|"), "languages", "en|mul", "maxlag", "5",
		"props", "labels|claims")
}
func nameQuery(name string) string {
	return encoded("filter[entity.legalName]", name, "page[size]", "20")
}

func encoded(pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return query.Encode()
}
