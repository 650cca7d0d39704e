package source

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
)

const goodRegistration = `{"objectClassName":"domain","ldhName":"BRINDLEWORKS.COM","status":["client transfer prohibited"],
"events":[{"eventAction":"registration","eventDate":"2010-03-10T00:00:00Z"},{"eventAction":"last changed","eventDate":"2025-01-01T00:00:00Z"},
{"eventAction":"expiration","eventDate":"2027-03-10T12:00:00Z"}],"secureDNS":{"delegationSigned":true}}`

func TestRegistration(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"good", goodRegistration, "organization_age_years 16.0014, domain_renewal_runway_days 365"},
		{"no dates", `{"objectClassName":"domain","events":[]}`, "organization_age_years not_found, domain_renewal_runway_days not_found"},
		{
			"a redacted date is an unknown one",
			`{"ldhName":"x.com","events":[{"eventAction":"registration","eventDate":"REDACTED"},{"eventAction":"expiration","eventDate":""}]}`,
			"organization_age_years not_found, domain_renewal_runway_days not_found",
		},
		{
			"registered in the future is no age",
			`{"ldhName":"x.com","events":[{"eventAction":"registration","eventDate":"2030-01-01T00:00:00Z"}]}`,
			"organization_age_years not_found, domain_renewal_runway_days not_found",
		},
		{
			"an expired domain has less than no days",
			`{"ldhName":"x.com","events":[{"eventAction":"Expiration","eventDate":"2026-03-08 12:00:00"}]}`,
			"organization_age_years not_found, domain_renewal_runway_days -2",
		},
		{
			"the zone of registrars",
			`{"ldhName":"x.com","events":[{"eventAction":"registration","eventDate":"2016-03-10T14:00:00.000+0200"},` +
				`{"eventAction":"expiration","eventDate":"2026-03-11T12:00:00+0000"}]}`,
			"organization_age_years 9.9986, domain_renewal_runway_days 1",
		},
		{
			"of two the first counts",
			`{"ldhName":"x.com","events":[{"eventAction":"expiration","eventDate":"2026-03-20"},{"eventAction":"expiration","eventDate":"2029-03-20"}]}`,
			"organization_age_years not_found, domain_renewal_runway_days 9.5",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseRegistration(strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			wantSpoken(t, got.observe(instant), test.want)
		})
	}
}

func TestRegistrationThatIsNone(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty":     "",
		"truncated": goodRegistration[:len(goodRegistration)/2],
		"a page":    "<html>try later</html>",
		"a list":    "[]",
		"an error":  `{"errorCode":404,"title":"Not Found","ldhName":"x.com"}`,
		"nothing":   `{}`,
		"wrong":     `{"ldhName":"x.com","events":"none"}`,
	} {
		if got, err := parseRegistration(strings.NewReader(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func TestRegistries(t *testing.T) {
	t.Parallel()
	got, err := parseRegistries(strings.NewReader(`{"services":[
		[["com","NET"],["http://plain.example/","https://rdap.one.example/v1"]],
		[["co.uk"],["https://rdap.uk.example/"]],
		[["zz"],["https://user@evil.example/","ftp://x/","https://port.example:8443/rdap/"]],
		[["kk"],["http://rdap.plain.example"]],
		[["odd"]],[]
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	for domain, want := range map[string]string{
		"brindleworks.com": "https://rdap.one.example/v1/", "brindleworks.net": "https://rdap.one.example/v1/",
		"brindleworks.co.uk": "https://rdap.uk.example/", "brindleworks.uk": "", "brindleworks.zz": "", "brindleworks.odd": "",
		"brindleworks.kk": "http://rdap.plain.example/",
	} {
		if base, _ := got.of(domain); base != want {
			t.Errorf("registry of %s: got %q, want %q", domain, base, want)
		}
	}
	for _, body := range []string{"", "{}", `{"services":[]}`, `{"services":[[["com"],["https://x.example/"]]`, "<html>"} {
		if got, err := parseRegistries(strings.NewReader(body)); err == nil {
			t.Errorf("%q: got %v, want an error", body, got)
		}
	}
}

// A registry is asked for both media types, over plain http if it has nothing else. Such an answer
// is no proof that a domain does not exist.
func TestRegistryIsAsked(t *testing.T) {
	t.Parallel()
	f := func(name, base string, status int, want string, unregistered bool) {
		t.Helper()
		network := fakenet.New(t)
		serve(network, "rdap.bootstrap", map[string]string{"/rdap/dns.json": toJSON(obj{"services": [][][]string{{{"com"}, {base}}}})})
		network.Site("rdap.registry-one.com", "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			accept := r.Header.Get("Accept")
			if !strings.Contains(accept, "application/rdap+json") || !strings.Contains(accept, "application/json") {
				w.WriteHeader(http.StatusNotAcceptable)
				return
			}
			if want := strings.HasPrefix(base, "https"); (r.TLS != nil) != want {
				t.Errorf("%s: asked with TLS: %t", name, !want)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, goodRegistration)
		}))
		got, err := NewRDAP(network.Client()).Fetch(t.Context(), requestFor("brindleworks.com"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Unregistered != unregistered {
			t.Errorf("%s: unregistered is %t", name, got.Unregistered)
		}
		wantSpoken(t, got, want)
	}
	const known = "organization_age_years 16.0014, domain_renewal_runway_days 365"
	const unknown = "organization_age_years not_found, domain_renewal_runway_days not_found"
	f("https", "https://rdap.registry-one.com/v1/", 200, known, false)
	f("http", "http://rdap.registry-one.com/v1/", 200, known, false)
	f("https, not found", "https://rdap.registry-one.com/v1/", 404, unknown, true)
	f("http, not found", "http://rdap.registry-one.com/v1/", 404, unknown, false)
}

func TestYears(t *testing.T) {
	t.Parallel()
	at := func(year int) time.Time { return time.Date(year, time.July, 1, 0, 0, 0, 0, time.UTC) }
	for year, want := range map[int]float64{2020: 6, 1632: 394, 1263: 763, 1096: 930, 2030: -4} {
		if got := years(at(year), at(2026)); math.Abs(got-want) > 0.03 {
			t.Errorf("from %d to 2026: %g years, want %g", year, got, want)
		}
	}
}

func FuzzRegistration(f *testing.F) {
	f.Add(goodRegistration)
	f.Add(`{"ldhName":"x","events":[{"eventAction":"registration","eventDate":"0000-01-01T00:00:00Z"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if got, err := parseRegistration(strings.NewReader(body)); err == nil {
			wantValid(t, got.observe(instant))
		}
	})
}

func FuzzRegistries(f *testing.F) {
	f.Add(`{"services":[[["com","net"],["https://rdap.one.example/v1/"]]]}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, err := parseRegistries(strings.NewReader(body))
		if err != nil {
			return
		}
		for suffix, base := range got {
			if !strings.HasPrefix(base, "https://") && !strings.HasPrefix(base, "http://") || !strings.HasSuffix(base, "/") {
				t.Errorf("registry of %q is %q", suffix, base)
			}
		}
	})
}
