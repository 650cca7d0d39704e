package source_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"companyscore/internal/test/hostile"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

// routes answers by the first path that the request's path contains, else with 404.
func routes(pairs ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if strings.Contains(r.URL.Path+"?"+r.URL.RawQuery, pairs[i]) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, pairs[i+1])
				return
			}
		}
		http.NotFound(w, r)
	})
}

func claims(pairs ...string) source.Company {
	var all []source.Claim
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, source.Claim{Kind: source.Kind(pairs[i]), Value: pairs[i+1], Source: "wikidata"})
	}
	return source.NewCompany(all...)
}

// TestHostileServersOfIdentifiedCompanies tests the sources that need an identified company with
// the same faults.
func TestHostileServersOfIdentifiedCompanies(t *testing.T) {
	t.Parallel()
	const page = `<title>Brindleworks</title><h1>Ovens</h1><a href="/pricing">Pricing</a>`
	// An unreachable robots.txt disallows everything.
	site := map[string][]string{
		"429 with Retry-After": {fetch.CodeHTTP}, "500": {fetch.CodeRobots}, "503": {fetch.CodeRobots},
		"closed connection": {fetch.CodeRobots}, "redirect in a circle": {fetch.CodeRobots},
		"truncated": {fetch.CodeParse, fetch.CodeRobots, fetch.CodeHTTP}, "gzip bomb": {fetch.CodeParse},
		"100 MB body": {fetch.CodeParse, fetch.CodeTooLarge}, "other compression": {fetch.CodeParse, fetch.CodeRobots},
		"plain refusal with status 200": {""}, // a page like any other
	}
	// Objects are read only as far as they are valid, and a third try exceeds the quota.
	objects := map[string][]string{"gzip bomb": {fetch.CodeTooLarge, fetch.CodeParse}, "100 MB body": {fetch.CodeTooLarge, fetch.CodeParse},
		"503": {fetch.CodeHTTP, fetch.CodeRateLimited}}
	cases := map[string]hostile.Case{
		"web": {
			Sites: map[string]http.Handler{"brindleworks.com": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, page)
			})},
			New: func(c *fetch.Client) source.Source { return source.NewWeb(c) }, Codes: site,
		},
		"wikidata": {
			Endpoints: map[string]http.Handler{
				"wikidata.query": answers(
					`{"results":{"bindings":[{"item":{"value":"http://www.wikidata.org/entity/Q900111"},"n":{"value":"3"}}]}}`),
				"wikidata.entity": routes("/wiki/",
					`{"entities":{"Q900111":{"labels":{"en":{"value":"Brindleworks"}},"claims":{"P17":[{"rank":"normal","mainsnak":{"datavalue":{"value":{"id":"Q30"}}}}]}}}}`,
					"/w/api.php",
					`{"entities":{"Q30":{"labels":[],"claims":{"P297":[{"rank":"normal","mainsnak":{"datavalue":{"value":"US"}}}]}}}}`),
			},
			New: func(c *fetch.Client) source.Source { return source.NewWikidata(c) },
		},
		"wikipedia": {
			Endpoints: map[string]http.Handler{"wikipedia": answers(`{"items":[{"timestamp":"2026030100","views":12}]}`)},
			New:       func(c *fetch.Client) source.Source { return source.NewPageviews(c) },
			Request:   source.Request{Company: claims("wikipedia", "en:Brindleworks", "industry", "payments")},
		},
		"sec": {
			Endpoints: map[string]http.Handler{
				"sec.data": routes("/submissions/",
					`{"name":"Brindleworks","tickers":["BRND"],"filings":{"recent":{"form":["D"],"filingDate":["2025-07-13"],"items":[""]}}}`,
					"/api/xbrl/",
					`{"facts":{"us-gaap":{"Assets":{"units":{"USD":[{"end":"2025-12-31","val":5,"form":"10-K","filed":"2026-02-01"}]}}}}}`),
			},
			New: func(c *fetch.Client) source.Source { return source.NewSEC(c) }, Request: source.Request{Company: claims("cik", "900222")},
			Codes: objects,
		},
		"sec by name": {
			Endpoints: map[string]http.Handler{
				"sec.www": answers(`{"0":{"cik_str":900222,"ticker":"BRND","title":"Brindle Works Inc"}}`),
				"sec.data": routes("/submissions/",
					`{"name":"Brindle Works Inc","tickers":["BRND"],"filings":{"recent":{"form":[],"filingDate":[],"items":[]}}}`),
			},
			New: func(c *fetch.Client) source.Source {
				return source.NewSEC(c)
			}, Request: source.Request{Company: claims("name", "Brindle Works")}, Codes: objects,
		},
		"gleif": {
			Endpoints: map[string]http.Handler{"gleif": routes("direct-child", `{"meta":{"pagination":{"total":1}}}`,
				"/lei-records/",
				`{"data":{"attributes":{"lei":"5299000BRINDLEWORKS1","entity":{"legalName":{"name":"Brindleworks"},"status":"ACTIVE"},"registration":{"status":"ISSUED"}}}}`)},
			New: func(c *fetch.Client) source.Source {
				return source.NewGLEIF(c)
			}, Request: source.Request{Company: claims("lei", "5299000BRINDLEWORKS1")},
		},
		"github": {
			Endpoints: map[string]http.Handler{"github": routes("/repos",
				`[{"stargazers_count":3,"pushed_at":"2026-03-01T00:00:00Z","created_at":"2025-03-01T00:00:00Z"}]`, "/orgs/",
				`{"login":"brindleworks","followers":7}`)},
			New: func(c *fetch.Client) source.Source {
				return source.NewRepositories(c)
			}, Request: source.Request{Company: claims("github", "brindleworks")},
		},
	}
	for provider, body := range map[string]string{
		"greenhouse": `{"jobs":[{"title":"Baker","location":{"name":"Berlin"}}]}`,
		"ashby":      `{"jobs":[{"title":"Baker","location":"Berlin"}]}`,
		"lever":      `[{"text":"Baker","categories":{"location":"Berlin"}}]`,
		"lever_eu":   `[{"text":"Baker","categories":{"location":"Berlin"}}]`,
	} {
		cases[provider] = hostile.Case{
			Endpoints: map[string]http.Handler{"jobs." + provider: answers(body)},
			New: func(c *fetch.Client) source.Source {
				return source.NewJobs(c)
			}, Request: source.Request{Company: claims("job_board", provider+"/brindle")}, Codes: objects,
		}
	}
	for name, c := range cases {
		c.Request.Domain, c.Request.Registrable, c.Request.Now = asked.Domain, asked.Registrable, asked.Now
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostile.Run(t, c)
		})
	}
}
