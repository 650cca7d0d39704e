package source

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// wikidataSays returns a company with claims of Wikidata, as pairs of kind and value.
func wikidataSays(pairs ...string) Company {
	var all []Claim
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, Claim{Kind: Kind(pairs[i]), Value: pairs[i+1], Source: "wikidata"})
	}
	return NewCompany(all...)
}

func TestGLEIFNames(t *testing.T) {
	t.Parallel()
	record := func(lei, name, country, category string) obj {
		return obj{"attributes": obj{"lei": lei, "entity": obj{"legalName": obj{"name": name},
			"headquartersAddress": obj{"country": country}, "category": category, "status": "INACTIVE"},
			"registration": obj{"status": "RETIRED"}}}
	}
	f := func(name string, company Company, found []obj, want string) {
		t.Helper()
		network := fakenet.New(t)
		serve(network, "gleif", map[string]string{"/api/v1/lei-records": toJSON(obj{"data": append([]obj{}, found...)})})
		req := requestFor("brindleworks.com")
		req.Company = company
		got, err := NewGLEIF(network.Client()).Fetch(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantSpoken(t, got, want)
	}
	const nobody = "legal_entity_registered absent, corporate_group_size +0"
	const unsure = "legal_entity_registered unresolved_identity, corporate_group_size +0unresolved_identity"
	const matched = "legal_entity_registered 0, corporate_group_size +0" // nobody knows of children
	f("no name", Company{}, nil, unsure)
	f("an identifier that nobody has", wikidataSays("lei", "5299000BRINDLEWORKS1"), nil, nobody)
	f("no such entity", wikidataSays("name", "Brindle Works"), nil, nobody)
	f("names that are alike only", wikidataSays("name", "Brindle Works"),
		[]obj{record("5299000BRINDLEWORKS1", "Brindle Works Ovens Inc", "US", "GENERAL")}, nobody)
	f("a fund of the name", wikidataSays("name", "Brindle Works"), []obj{record("5299000BRINDLEWORKS1", "Brindle Works", "US", "FUND")},
		nobody)
	f("one of the name", wikidataSays("name", "Brindle \"Works\""),
		[]obj{record("5299000BRINDLEWORKS1", "BRINDLE WORKS LLC", "US", "GENERAL")}, matched)
	f("two of the name", wikidataSays("name", "Brindle Works"), []obj{record("5299000BRINDLEWORKS1", "Brindle Works LLC", "US", "GENERAL"),
		record("5299000BRINDLEWORKS2", "Brindle Works Inc", "US", "GENERAL")}, unsure)
	f("one word, another country", wikidataSays("name", "Brindleworks", "country", "DE"),
		[]obj{record("5299000BRINDLEWORKS1", "Brindleworks", "US", "GENERAL")}, unsure)
	f("one word, the same country", wikidataSays("name", "Brindleworks", "country", "US"),
		[]obj{record("5299000BRINDLEWORKS1", "Brindleworks", "US", "GENERAL")}, matched)
}

func TestGLEIFChoice(t *testing.T) {
	t.Parallel()
	r := func(lei, name, country, category, status, registration string) leiRecord {
		return leiRecord{LEI: lei, LegalName: name, Country: country, Category: category, Status: status, Registration: registration}
	}
	f := func(name, asked, country, want string, candidates int, records ...leiRecord) {
		t.Helper()
		got, n := chooseRecord(records, asked, country)
		if got.LEI != want || n != candidates {
			t.Errorf("%s: chose %q of %d, want %q of %d", name, got.LEI, n, want, candidates)
		}
	}
	inc := r("1", "BRINDLE WORKS INC", "US", "GENERAL", "ACTIVE", "ISSUED")
	llc := r("2", "Brindle Works LLC", "US", "GENERAL", "ACTIVE", "ISSUED")
	gmbh := r("3", "Brindle Works GmbH", "DE", "GENERAL", "ACTIVE", "ISSUED")
	gone := r("4", "Brindle Works Corp", "US", "GENERAL", "INACTIVE", "RETIRED")
	person := r("5", "BRINDLE WORKS", "US", "SOLE_PROPRIETOR", "ACTIVE", "ISSUED")
	double := r("6", "Brindle Works Inc", "US", "GENERAL", "ACTIVE", "DUPLICATE")
	other := r("7", "Brindle Works Ovens Inc", "US", "GENERAL", "ACTIVE", "ISSUED")
	f("nothing", "Brindle Works", "", "", 0)
	f("others only", "Brindle Works", "", "", 0, other, person, double)
	f("one among others", "Brindle Works", "", "1", 1, other, person, double, inc)
	f("the country decides", "Brindle Works", "DE", "3", 1, inc, llc, gmbh)
	f("two countries, none known", "Brindle Works", "", "", 2, inc, gmbh)
	f("two countries, another known", "Brindle Works", "FR", "", 2, inc, gmbh)
	f("the legal form decides", "Brindle Works Inc", "", "1", 1, inc, llc)
	f("the legal form is not known", "Brindle Works", "US", "", 2, inc, llc)
	f("the active one", "Brindle Works", "US", "1", 1, gone, inc)
	f("the only one is gone", "Brindle Works", "US", "4", 1, gone)
	f("a person by one word", "Ada", "US", "", 0, r("8", "ADA", "US", "SOLE_PROPRIETOR", "ACTIVE", "ISSUED"))
	f("one word and no country", "Brindle", "", "", 2, r("9", "Brindle", "US", "GENERAL", "ACTIVE", "ISSUED"))
}

// The name of a person is not stored, wherever the record came from.
func TestGLEIFPersons(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	asked := serve(network, "gleif", map[string]string{"/api/v1/lei-records/5299000BRINDLEWORKS1": toJSON(obj{"data": obj{"attributes": obj{
		"lei": "5299000BRINDLEWORKS1", "entity": obj{"legalName": obj{"name": "ADA PERSON"}, "category": "SOLE_PROPRIETOR",
			"headquartersAddress": obj{"country": "IN"}, "status": "ACTIVE"}, "registration": obj{"status": "ISSUED"}}}})})
	req := requestFor("brindleworks.com")
	req.Company = wikidataSays("lei", "5299000BRINDLEWORKS1")
	got, err := NewGLEIF(network.Client()).Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantSpoken(t, got, "legal_entity_registered 1, corporate_group_size +0")
	if text := toJSON(got); strings.Contains(text, "ADA") || !strings.Contains(text, `"IN"`) {
		t.Errorf("the result is %s", text)
	}
	req.Company = wikidataSays("name", "Brindle Works")
	if _, err = NewGLEIF(network.Client()).Fetch(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if last := (*asked)[len(*asked)-1]; !strings.Contains(last, "page%5Bsize%5D=20") {
		t.Errorf("asked %s", last)
	}
}

func TestRepositoriesIdentity(t *testing.T) {
	t.Parallel()
	f := func(name string, company Company, org, want string) {
		t.Helper()
		network := fakenet.New(t)
		asked := serve(network, "github", map[string]string{"/orgs/brindleworks": org, "/orgs/brindleworks/repos": "[]"})
		req := requestFor("app.brindleworks.com")
		req.Company = company
		got, err := NewRepositories(network.Client()).Fetch(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if said := spoken(got)["github_followers"]; said != want {
			t.Errorf("%s: %q followers, want %q; asked %v", name, said, want, *asked)
		}
		if len(got.Observations) != len(githubSignals) {
			t.Errorf("%s: %d signals are spoken about, want %d", name, len(got.Observations), len(githubSignals))
		}
	}
	org := func(blog string) string {
		return toJSON(obj{"login": "brindleworks", "blog": blog, "followers": 7})
	}
	linked := NewCompany(Claim{Kind: GitHub, Value: "brindleworks", Source: "web"})
	f("named by Wikidata", wikidataSays("github", "brindleworks"), org("https://elsewhere.com"), "7")
	f("linked, and leads back", linked, org("https://www.brindleworks.com/about"), "7")
	f("linked, and leads back to the host", linked, org("http://APP.brindleworks.com"), "7")
	f("linked, and leads elsewhere", linked, org("https://brindleworks.com.evil.com"), "unresolved_identity")
	f("linked, and leads nowhere", linked, org(""), "unresolved_identity")
	f("guessed, and leads back", Company{}, org("brindleworks.com"), "7")
	f("guessed, and leads elsewhere", Company{}, org("brindleworks.io"), "unresolved_identity")
	f("a name that is none", wikidataSays("github", "../users/x"), org("brindleworks.com"), "7") // the domain's own instead
	f("a person", wikidataSays("github", "ada"), org(""), "not_found")
}

func TestRepositoriesLimit(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	network.Endpoint("github", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
		w.WriteHeader(http.StatusForbidden)
	}))
	req := requestFor("brindleworks.com")
	_, err := NewRepositories(network.Client()).Fetch(t.Context(), req)
	if code := WarningCode(err); code != fetch.CodeRateLimited {
		t.Errorf("got %q (%v), want %q", code, err, fetch.CodeRateLimited)
	}
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	f := func(name, body, want string) {
		t.Helper()
		repos, err := parseRepos(strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := builder{source: "github"}
		observeRepos(&s, repos, instant)
		wantSpoken(t, s.result, want)
	}
	f("none", `[]`, "github_stars_total 0, github_new_repos_365d 0, github_push_recency_days absent, github_active_repo_share_90d absent")
	f("forks only", `[{"fork":true,"stargazers_count":9,"pushed_at":"2026-03-10T00:00:00Z","created_at":"2026-03-10T00:00:00Z"}]`,
		"github_stars_total 0, github_new_repos_365d 0, github_push_recency_days absent, github_active_repo_share_90d absent")
	f("archived only", `[{"archived":true,"stargazers_count":9,"pushed_at":"2026-03-09T12:00:00Z","created_at":"2020-03-10T00:00:00Z"}]`,
		"github_stars_total 9, github_new_repos_365d 0, github_push_recency_days 1, github_active_repo_share_90d absent")
	for _, body := range []string{"", "{}", "null", `[{"pushed_at":"soon"}]`, `[{"stargazers_count":1},`, `[[[`, "<html>"} {
		if got, err := parseRepos(strings.NewReader(body)); err == nil {
			t.Errorf("repositories in %q: %v", body, got)
		}
	}
	for _, body := range []string{"", "{}", `{"login":"a/b","followers":1}`, `{"login":"a"}`, `{"login":"a","followers":-1}`} {
		if got, err := parseOrg(strings.NewReader(body)); err == nil {
			t.Errorf("an organisation in %q: %v", body, got)
		}
	}
}

func TestPageviews(t *testing.T) {
	t.Parallel()
	first := instant.Truncate(24*time.Hour).AddDate(0, 0, -461)
	f := func(name string, perDay func(ago int) int, want string) {
		t.Helper()
		items := []obj{}
		for ago := range viewDays {
			if n := perDay(ago); n > 0 {
				items = append(items, obj{"timestamp": instant.AddDate(0, 0, -2-ago).Format("20060102") + "00", "views": n})
			}
		}
		v, err := parseViews(strings.NewReader(toJSON(obj{"items": items})), first)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := builder{source: "wikipedia"}
		v.observe(&s)
		wantSpoken(t, s.result, want)
	}
	f("steady", func(int) int { return 10 }, "wikipedia_pageviews_30d 300, pageviews_trend_30d 0, pageviews_trend_365d 0")
	f("twice as many last month", func(ago int) int {
		return 10 + 10*((459-ago)/430)
	}, fmt.Sprintf("wikipedia_pageviews_30d 600, pageviews_trend_30d %g, pageviews_trend_365d %g", round4(math.Log(630./330)),
		round4(math.Log(1290./990))))
	f("a new article", func(ago int) int {
		return 40 / (ago + 1)
	}, "wikipedia_pageviews_30d 148, pageviews_trend_30d insufficient_history, pageviews_trend_365d insufficient_history")
	f("half a year old", func(ago int) int {
		return 1 - ago/200
	}, "wikipedia_pageviews_30d 30, pageviews_trend_30d 0, pageviews_trend_365d insufficient_history")
	f("nobody reads it", func(int) int {
		return 0
	}, "wikipedia_pageviews_30d 0, pageviews_trend_30d insufficient_history, pageviews_trend_365d insufficient_history")
	for _, body := range []string{"", "{}", "[]", `{"items":[{"timestamp":"soon","views":1}]}`,
		`{"items":[{"timestamp":"2026030100","views":-1}]}`, `{"items":[{"timestamp":"2026030100"`, `{"title":"Not found."}`} {
		if got, err := parseViews(strings.NewReader(body), first); err == nil {
			t.Errorf("views in %q: %v", body, got.span(30, 0))
		}
	}
}

func round4(x float64) float64 { return math.Round(x*1e4) / 1e4 }

func TestPageviewsTitles(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	asked := serve(network, "wikipedia", nil)
	req := requestFor("brindleworks.com")
	req.Company = wikidataSays("wikipedia", "de:AC/DC_&_Söhne?")
	got, err := NewPageviews(network.Client()).Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := "/api/rest_v1/metrics/pageviews/per-article/de.wikipedia/all-access/user/AC%2FDC_&_S%C3%B6hne%3F/daily/2024120400/2026030800"
	if len(*asked) != 1 || (*asked)[0] != want {
		t.Errorf("asked %q, want %q", *asked, want)
	}
	wantSpoken(t, got, "wikipedia_pageviews_30d not_found, pageviews_trend_30d not_found, pageviews_trend_365d not_found, "+
		"sector_attention_trend_365d unresolved_identity")
	req.Answered = []string{"wikidata", "web"}
	got, err = NewPageviews(network.Client()).Fetch(t.Context(), req)
	if said := spoken(got)["sector_attention_trend_365d"]; err != nil || said != string(scoring.ReasonNotApplicable) {
		t.Errorf("sector attention without a sector: %q, %v", said, err)
	}
	req.Company, req.Answered = Company{}, nil
	got, err = NewPageviews(network.Client()).Fetch(t.Context(), req)
	if said := spoken(got)["wikipedia_pageviews_30d"]; err != nil || said != string(scoring.ReasonUnresolvedIdentity) {
		t.Errorf("without Wikidata: %q, %v", said, err)
	}
}

// visitTo serves a site and reads it.
func visitTo(t *testing.T, domain string, prepare func(network *fakenet.Network)) (Result, error) {
	t.Helper()
	network := fakenet.New(t)
	prepare(network)
	got, err := NewWeb(network.Client()).Fetch(t.Context(), requestFor(domain))
	wantValid(t, got)
	return got, err
}

func home(body string) map[string]reply { return map[string]reply{"/": {200, "text/html", body}} }

func TestWebStates(t *testing.T) {
	t.Parallel()
	f := func(name, body string, want map[string]string) {
		t.Helper()
		got, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", siteOf(home(body)))
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said := spoken(got)
		for signal, value := range want {
			if said[signal] != value {
				t.Errorf("%s: %s = %q, want %q", name, signal, said[signal], value)
			}
		}
		// The source reports every signal.
		for _, signal := range scoring.Manifest() {
			if slices.Contains(signal.Sources, "web") && said[signal.ID] == "" {
				t.Errorf("%s: nothing is said of %s", name, signal.ID)
			}
		}
	}
	f("parked",
		`<title>brindleworks.com</title><p>This domain is for sale</p><a href="/pricing">Pricing</a><a href="https://jobs.lever.co/x">Jobs</a>`,
		map[string]string{"product_surface": "absent", "ats_in_use": "absent", "security_program": "+0", "careers_page_present": "absent",
			"content_freshness_days": "absent"})
	f("needs scripts", strings.Repeat(`<script src="/a.js"></script>`, 4)+`<a href="/pricing"></a>`,
		map[string]string{"product_surface": "not_applicable", "ats_in_use": "not_applicable", "security_program": "+0not_applicable",
			"content_freshness_days": "not_applicable", "site_language_count": "not_applicable",
			"leadership_disclosure": "+0not_applicable"})
	f("a page of text", `<p>`+strings.Repeat("Words about ovens. ", 30),
		map[string]string{"product_surface": "absent", "ats_in_use": "absent", "security_program": "+1", "content_freshness_days": "absent",
			"site_language_count": "absent", "leadership_disclosure": "+0"})
	f("a board linked from the home page", `<a href="https://jobs.lever.co/brindle">x</a>`,
		map[string]string{"ats_in_use": "1", "careers_page_present": "1", "team_page_present": "absent"})
	f("a system that cannot be read", `<a href="https://brindle.wd3.myworkdayjobs.com/x">x</a>`, map[string]string{"ats_in_use": "1",
		"careers_page_present": "1"})
	f("organisations that are others",
		`<script type="application/ld+json">[{"@type":"Organization","name":"A","url":"https://evilbrindleworks.com","numberOfEmployees":5},{"@type":"Organization","name":"B","numberOfEmployees":6},{"@type":"Organization","name":"C","numberOfEmployees":7}]</script>`,
		map[string]string{"employee_count": "absent"})
	f("the only organisation",
		`<script type="application/ld+json">{"@type":"Organization","name":"B","numberOfEmployees":6,"foundingDate":"2030"}</script>`,
		map[string]string{"employee_count": "6", "organization_age_years": "absent"})
}

func TestWebFailures(t *testing.T) {
	t.Parallel()
	f := func(name, code string, prepare func(network *fakenet.Network)) {
		t.Helper()
		got, err := visitTo(t, "brindleworks.com", prepare)
		if WarningCode(err) != code || len(got.Observations) > 0 {
			t.Errorf("%s: %q (%v) with %d observations, want %q with none", name, WarningCode(err), err, len(got.Observations), code)
		}
	}
	status := func(code int) func(network *fakenet.Network) {
		return func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", siteOf(map[string]reply{"/": {code, "text/html", "<p>Checking your browser"}}))
		}
	}
	f("no such name", fetch.CodeDNS, func(*fakenet.Network) {})
	f("refused", fetch.CodeHTTP, status(403))
	f("gone", fetch.CodeHTTP, status(404))
	f("too many requests", fetch.CodeHTTP, status(429))
	f("challenged", fetch.CodeHTTP, status(503))
	f("forbidden by robots.txt", fetch.CodeRobots, func(network *fakenet.Network) {
		network.Site("brindleworks.com", "", siteOf(map[string]reply{"/robots.txt": {200, "text/plain", "User-agent: *\nDisallow: /"},
			"/": {200, "text/html", "hello"}}))
	})
	f("no page", fetch.CodeParse, func(network *fakenet.Network) {
		network.Site("brindleworks.com", "", siteOf(map[string]reply{"/": {200, "application/pdf", "%PDF"}}))
	})
	f("a private address", fetch.CodeAddress, func(network *fakenet.Network) {
		network.Records("brindleworks.com", "brindleworks.com. 300 IN A 10.0.0.7")
	})
}

func TestWebMoves(t *testing.T) {
	t.Parallel()
	moveTo := func(target string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target+r.URL.Path, http.StatusFound) })
	}
	f := func(name string, prepare func(network *fakenet.Network), moved, companyName, surface string) {
		t.Helper()
		got, err := visitTo(t, "brindleworks.com", prepare)
		company := NewCompany(got.Claims...)
		if err != nil || company.Get(Redirected) != moved || company.Get(Name) != companyName || spoken(got)["product_surface"] != surface {
			t.Errorf("%s: moved to %q as %q with product surface %q, %v; want %q, %q, %q", name, company.Get(Redirected), company.Get(Name),
				spoken(got)["product_surface"], err, moved, companyName, surface)
		}
	}
	page := siteOf(home(`<title>Ovenly</title><a href="/products">Products</a><script type="application/ld+json">{"@type":"Organization","name":"Ovenly","url":"https://ovenly.com"}</script>`))
	f("to its own www", func(network *fakenet.Network) {
		network.Site("brindleworks.com", "", moveTo("https://www.brindleworks.com"))
		network.Site("www.brindleworks.com", "", page)
	}, "", "Ovenly", "1")
	f("to another name: the pages count, who is named there is another", func(network *fakenet.Network) {
		network.Site("brindleworks.com", "", moveTo("https://www.ovenly.com"))
		network.Site("www.ovenly.com", "", page)
	}, "ovenly.com", "", "1")
	f("to a seller of names", func(network *fakenet.Network) {
		network.Site("brindleworks.com", "", moveTo("https://www.hugedomains.com"))
		network.Site("www.hugedomains.com", "", page)
	}, "hugedomains.com", "", "absent")
	f("only the www has an address", func(network *fakenet.Network) { network.Site("www.brindleworks.com", "", page) }, "", "Ovenly", "1")
}

// TestWebAsksLittle checks the bound of 14 requests, and their order.
func TestWebAsksLittle(t *testing.T) {
	t.Parallel()
	var links strings.Builder
	for i := range 200 {
		for _, path := range []string{"about", "careers", "pricing", "customers", "docs", "blog", "security"} {
			fmt.Fprintf(&links, `<a href="/%s?%d">x</a>`, path, i)
		}
	}
	asked := make(chan string, 1000)
	pages := siteOf(map[string]reply{
		"/": {200, "text/html", links.String()}, "/robots.txt": {200, "text/plain", "Sitemap: https://brindleworks.com/a.xml\n" +
			"Sitemap: https://brindleworks.com/b.xml\nSitemap: https://brindleworks.com/c.xml\nSitemap: https://brindleworks.com/d.xml\n" +
			"Sitemap: https://brindleworks.com/e.xml"},
	})
	_, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
		network.Site("brindleworks.com", "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Path
			pages.ServeHTTP(w, r)
		}))
	})
	close(asked)
	paths := slices.Collect(func(yield func(string) bool) {
		for path := range asked {
			if !yield(path) {
				return
			}
		}
	})
	if err != nil || len(paths) > 14 || paths[0] != "/robots.txt" || paths[1] != "/" {
		t.Errorf("asked %d times: %v, %v", len(paths), paths, err)
	}
	for _, path := range []string{"/.well-known/security.txt", "/feed", "/a.xml", "/about", "/careers", "/pricing", "/customers", "/docs",
		"/blog"} {
		if !slices.Contains(paths, path) {
			t.Errorf("%s was not asked for", path)
		}
	}
	slices.Sort(paths)
	if len(slices.Compact(paths)) != len(paths) {
		t.Error("a page was asked for twice")
	}
}

func FuzzLiveAnswers(f *testing.F) {
	f.Add(`{"data":[{"attributes":{"lei":"5299000BRINDLEWORKS1","entity":{"legalName":{"name":"B"},"status":"ACTIVE"}}}],"meta":{"pagination":{"total":3}}}`)
	f.Add(`{"login":"a","followers":1,"blog":"b.com"}`)
	f.Add(`[{"stargazers_count":1,"pushed_at":"2026-03-01T00:00:00Z","created_at":"2026-03-01T00:00:00Z","text":"Baker","createdAt":1}]`)
	f.Add(`{"items":[{"timestamp":"2026030100","views":1}],"jobs":[{"title":"Engineer","location":"Berlin","publishedAt":"2026-03-01T00:00:00Z"},{"title":"a","location":{"name":"Berlin"}}]}`)
	req := requestFor("brindleworks.com")
	f.Fuzz(func(t *testing.T, body string) {
		s := builder{source: "fuzz"}
		if records, err := parseRecords(strings.NewReader(body)); err == nil {
			for _, r := range records {
				r.observe(&s)
				r.claim(&s, "name")
				if got, n := chooseRecord(records, r.LegalName, r.Country); (n == 1) != (got.LEI != "") {
					t.Errorf("chose %q of %d", got.LEI, n)
				}
			}
		}
		if total, err := parseTotal(strings.NewReader(body)); err == nil && total < 0 {
			t.Error(total)
		}
		if org, err := parseOrg(strings.NewReader(body)); err == nil {
			org.observe(&s)
			org.leadsTo(req)
		}
		if repos, err := parseRepos(strings.NewReader(body)); err == nil {
			observeRepos(&s, repos, instant)
		}
		if v, err := parseViews(strings.NewReader(body), instant.AddDate(0, 0, -460)); err == nil {
			v.observe(&s)
		}
		for _, parse := range []func(string) ([]role, error){
			func(b string) ([]role, error) { return parseGreenhouse(strings.NewReader(b)) },
			func(b string) ([]role, error) { return parseLever(strings.NewReader(b)) },
			func(b string) ([]role, error) { return parseAshby(strings.NewReader(b)) },
		} {
			if roles, err := parse(body); err == nil {
				observeRoles(&s, roles, req)
			}
		}
		wantValid(t, s.result)
	})
}
