package contract

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

var (
	randomFor  = flag.Duration("random.for", 3*time.Second, "how long to make random requests")
	randomSeed = flag.Uint64("random.seed", 0, "seed of the random requests; 0 for one of the day")
)

// chance generates random requests from the OpenAPI document. Each value is valid, a known
// edge case of its parameter, or noise.
type chance struct {
	*rand.Rand
	known map[string][]string // values by name of parameter
}

func (c *chance) of(values ...string) string { return values[c.IntN(len(values))] }

func (c *chance) noise() string {
	b := make([]byte, c.IntN(40))
	for i := range b {
		b[i] = byte(c.IntN(256))
	}
	return string(b)
}

// text returns a value of a parameter or a string of a body.
func (c *chance) text(name string, schema *openapi3.Schema) string {
	switch known := c.known[name]; {
	case c.IntN(10) == 0:
		return c.noise()
	case len(schema.Enum) > 0 && c.IntN(2) == 0:
		return fmt.Sprint(schema.Enum[c.IntN(len(schema.Enum))])
	case schema.Type.Is("integer") && c.IntN(2) == 0:
		return strconv.Itoa(int(*schema.Min) + c.IntN(int(*schema.Max-*schema.Min)+1))
	case name == "domain" && c.IntN(8) == 0:
		return fmt.Sprintf("made-up-%d.com", c.IntN(1000))
	case len(known) > 0:
		return c.of(known...)
	}
	return c.of("", "0", "-1", "null", "true", "{}", "%00", "../..", "1e999", "Ω", strings.Repeat("a", 300))
}

// value returns a random JSON value for a body.
func (c *chance) value(name string, schema *openapi3.Schema, depth int) any {
	if c.IntN(12) == 0 {
		return []any{nil, true, 1.5, -1, "x", []any{}, map[string]any{"a": 1}}[c.IntN(7)]
	}
	switch {
	case schema.Type.Is("boolean"):
		return c.IntN(2) == 0
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return c.IntN(2000) - 1000
	case schema.Type.Is("array") && depth < 3:
		list := make([]any, c.IntN(4))
		for i := range list {
			list[i] = c.value(name, schema.Items.Value, depth+1)
		}
		return list
	case schema.Type.Is("object") && depth < 3:
		body := make(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
			if c.IntN(4) > 0 {
				body[field] = c.value(field, schema.Properties[field].Value, depth+1)
			}
		}
		if c.IntN(4) == 0 {
			body[c.noise()] = c.noise()
		}
		return body
	}
	return c.text(name, schema)
}

// request returns a random request of an operation.
func (c *chance) request(path string, op *openapi3.Operation) (target, body string, headers []string) {
	query := url.Values{}
	for _, p := range op.Parameters {
		name, schema := p.Value.Name, p.Value.Schema.Value
		switch p.Value.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(c.text(name, schema)))
		case "query":
			for range c.IntN(3) - c.IntN(2) { // sometimes none, sometimes two
				query.Add(name, c.text(name, schema))
			}
		case "header":
			if value := c.text(name, schema); c.IntN(3) == 0 &&
				!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				headers = append(headers, name, value)
			}
		}
	}
	if op.RequestBody != nil {
		// never fails for these values
		b, _ := json.Marshal(c.value("", op.RequestBody.Value.Content.Get("application/json").Schema.Value, 0))
		switch body = string(b); c.IntN(12) {
		case 0:
			body = body[:c.IntN(len(body))] + c.noise() + " "
		case 1:
			body = c.of("{", "[]", "null", `"x"`, "1", strings.Repeat("[", 9999), "\ufeff{}",
				`{"domain":"random-company.com","domain":"acme.test"}`)
		}
	}
	if c.IntN(8) == 0 {
		headers = append(headers, "Accept-Encoding", c.of("gzip", "br", "deflate", "*", "identity;q=0", "gzip;q=0"))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, body, headers
}

// TestRandomRequests sends random requests of the OpenAPI document. Every answer must match
// the document and must not be a 5xx.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "")}
	customers := []customer{s.customer(t, "enterprise"), s.customer(t, "starter"), s.customer(t, "free")}
	s.scored(t, customers[0].live, "random-company.com")
	job := s.score(t, customers[0].live, "pending-company.com").text("job_id")
	seed := *randomSeed
	if seed == 0 {
		seed = uint64(time.Now().Unix() / 86400)
	}
	c := &chance{Rand: rand.New(rand.NewPCG(seed, 0)), known: map[string][]string{
		"domains": {"random-company.com", "acme.test", "never-scored.org", "localhost", ""},
		"domain": {
			"random-company.com", "acme.test", "cohort.test", "other.test", "never-scored.org", "https://www.random-company.com/a?b",
			"RANDOM-company.com.", "localhost",
			"10.0.0.1", "[::1]", "bücher.de", "xn--", "a..b", "", ".", "..", "%", "co.uk", "a/b", "http://", "user@random-company.com",
			"random-company.com:99999999",
			"pending-company.com", "{cold}", strings.Repeat("a.", 200) + "com",
		},
		"job_id": {job, "01a1fc94-05cf-764e-800e-9c3462621484", "x", "{cold}:run:1", "*", " "},
		"limit":  {"1", "500", "0", "501", "-1", "1.5", "1e2", "99999999999999999999", "", "0x10", "１"},
		"cursor": {
			s.get(t, "/v1/score/acme.test/history?limit=1", customers[0].test).text("next_cursor"), "", "AQ", "AQAAAAAAAAAAAAAAAA", "////",
			strings.Repeat("A", 5000),
		},
		"window":          {"7d", "30d", "90d", "1d", "", "7D", "7d,30d"},
		"If-None-Match":   {"*", `"x"`, `W/"`, ",,,", `"a","b"`, ""},
		"X-Request-Id":    {"a", "sane-request-id", "Ω", `"'<>`, strings.Repeat("a", 128)},
		"Idempotency-Key": {"a", "b", "c", " ", "%%%", strings.Repeat("k", 256), "Ω"},
	}}
	keys := []string{"", "svc_live_x", "nonsense"}
	for _, customer := range customers {
		for range 5 {
			keys = append(keys, customer.live, customer.test)
		}
	}
	type described struct {
		method, path string
		op           *openapi3.Operation
	}
	var all []described
	operations(t, func(path, method string, op *openapi3.Operation) { all = append(all, described{method, path, op}) })
	slices.SortFunc(all, func(a, b described) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	s.rule("7", "requests made up from the description bring no 5xx, and no answer outside of it", func(t *testing.T) {
		requests, statuses := 0, make(map[int]int)
		for end := time.Now().Add(*randomFor); time.Now().Before(end); requests++ {
			o := all[c.IntN(len(all))]
			target, body, headers := c.request(o.path, o.op)
			if *composed && strings.Contains(target, "%00") {
				continue // nginx refuses it with an error that the description does not have
			}
			method := o.method
			if c.IntN(20) == 0 {
				method = c.of("PUT", "DELETE", "PATCH", "GET", "POST", "OPTIONS", "HEAD")
			}
			r := s.call(t, method, target, c.of(keys...), body, headers...)
			if statuses[r.status]++; r.status >= 500 || t.Failed() {
				t.Fatalf("request %d of seed %d: %s %s %q %q: %d %s", requests, seed, method, target, body, headers, r.status, r.raw)
			}
		}
		t.Logf("%d requests of seed %d: %v", requests, seed, statuses)
	})
}
