package source_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"companyscore/internal/test/hostile"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

var asked = source.Request{
	Domain: "brindleworks.com", Registrable: "brindleworks.com", Now: time.Date(2026, time.March, 10, 12, 0, 0, 0, time.UTC),
	Company: source.NewCompany(source.Claim{Kind: source.Name, Value: "Quill & Tarn Brindleworks", Source: "web"}),
}

func answers(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	})
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	cases := map[string]hostile.Case{
		"rdap": {
			Endpoints: map[string]http.Handler{
				"rdap.bootstrap": answers(`{"services":[[["com"],["https://rdap.registry-one.com/v1/"]]]}`),
				"rdap.fallback": answers(
					`{"ldhName":"brindleworks.com","events":[{"eventAction":"registration","eventDate":"2010-03-10T00:00:00Z"}]}`),
			},
			New:   func(c *fetch.Client) source.Source { return source.NewRDAP(c) },
			Spare: []string{"rdap.bootstrap", "rdap.fallback"},
			Sites: map[string]http.Handler{
				"rdap.registry-one.com": answers(
					`{"ldhName":"brindleworks.com","events":[{"eventAction":"registration","eventDate":"2010-03-10T00:00:00Z"}]}`),
			},
		},
		"rdap over plain http": {
			Endpoints: map[string]http.Handler{
				"rdap.bootstrap": answers(`{"services":[[["com"],["http://rdap.registry-one.com/v1/"]]]}`),
				"rdap.fallback": answers(
					`{"ldhName":"brindleworks.com","events":[{"eventAction":"registration","eventDate":"2010-03-10T00:00:00+0000"}]}`),
			},
			New:   func(c *fetch.Client) source.Source { return source.NewRDAP(c) },
			Spare: []string{"rdap.bootstrap", "rdap.fallback"},
			Codes: map[string][]string{"redirect in a circle": {fetch.CodeAddress}}, // no redirect to http
			Sites: map[string]http.Handler{
				"rdap.registry-one.com": answers(
					`{"ldhName":"brindleworks.com","events":[{"eventAction":"registration","eventDate":"2010-03-10T00:00:00+0000"}]}`),
			},
		},
		"ct": {
			Endpoints: map[string]http.Handler{
				"ct.crtsh":       answers(`[{"common_name":"brindleworks.com","name_value":"www.brindleworks.com\nbrindleworks.com","not_after":"2027-01-22T17:08:53"}]`),
				"ct.certspotter": answers(`[]`),
			},
			New:   func(c *fetch.Client) source.Source { return source.NewCT(c) },
			Spare: []string{"ct.crtsh", "ct.certspotter"},
		},
		"ct with one log search only": {
			Endpoints: map[string]http.Handler{
				"ct.crtsh": answers(`[{"common_name":"brindleworks.com","name_value":"www.brindleworks.com\nbrindleworks.com","not_after":"2027-01-22T17:08:53"}]`),
			},
			New: func(c *fetch.Client) source.Source { return source.NewCT(c) },
		},
		"wayback": {
			Endpoints: map[string]http.Handler{
				"wayback": answers(`[["timestamp","digest"],["20160310120000","A"],["20260210120000","B"]]`)},
			New: func(c *fetch.Client) source.Source { return source.NewWayback(c) },
		},
		"hn": {
			Endpoints: map[string]http.Handler{
				"hn": answers(`{"hits":[{"objectID":"1","url":"https://brindleworks.com/a","points":1,"num_comments":2,"created_at_i":1772000000}],"nbHits":1}`),
			},
			New: func(c *fetch.Client) source.Source { return source.NewHackerNews(c) },
		},
		"gdelt": {
			Endpoints: map[string]http.Handler{
				"gdelt": answers(`{"timeline":[{"series":"Article Count","data":[{"date":"20260301T000000Z","value":12,"norm":34567}]}]}`),
			},
			New: func(c *fetch.Client) source.Source { return source.NewGDELT(c) },
		},
	}
	for name, c := range cases {
		c.Request = asked
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostile.Run(t, c)
		})
	}
}
