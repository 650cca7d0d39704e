package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"companyscore/internal/test/openapicheck"
	"companyscore/server/openapi"
)

// answered has the kinds of answers seen so far, such as "GET /v1/usage 200".
var answered sync.Map

// described returns an error unless an answer matches the OpenAPI document. It accepts
// answers of addresses that are not in the document.
func described(req *http.Request, r reply) error {
	d, err := openapicheck.Load()
	if err != nil {
		return err
	}
	operation, err := d.Check(req, openapicheck.Answer{Status: r.status, Header: r.header, Body: []byte(r.raw)})
	if operation == "" {
		return nil
	}
	kind := fmt.Sprintf("%s %d", operation, r.status)
	answered.Store(kind, true)
	if r.text("error") != "" {
		answered.Store(kind+" "+r.text("error"), true)
	}
	return err
}

// operations calls do for every operation of the document.
func operations(t *testing.T, do func(path, method string, op *openapi3.Operation)) {
	t.Helper()
	d, err := openapicheck.Load()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range d.Paths.Map() {
		for method, op := range item.Operations() {
			do(path, method, op)
		}
	}
}

// rule runs one rule without a system.
func rule(t *testing.T, section, says string, check func(t *testing.T)) {
	t.Helper()
	tried.Store(section, true)
	if reason := seenBehindProxy(section + ": " + says); reason != "" {
		check = func(t *testing.T) { t.Skip(reason) }
	}
	t.Run(section+": "+says, check)
}

func TestDocument(t *testing.T) {
	t.Parallel()
	rule(t, "9 rule 1", "every address begins with /v1, and the description is version 1.0.0", func(t *testing.T) {
		d, err := openapicheck.Load()
		if err != nil {
			t.Fatal(err)
		}
		if d.Info.Version != "1.0.0" || d.OpenAPI != "3.1.0" {
			t.Errorf("version %s of OpenAPI %s", d.Info.Version, d.OpenAPI)
		}
		for path := range d.Paths.Map() {
			if !strings.HasPrefix(path, "/v1/") {
				t.Errorf("%s", path)
			}
		}
	})
	rule(t, "6", "nothing is announced that the service would send by itself", func(t *testing.T) {
		operations(t, func(path, method string, op *openapi3.Operation) {
			name := method + " " + path
			if len(op.Callbacks) > 0 {
				t.Errorf("%s has callbacks", name)
			}
		})
		if strings.Contains(string(openapi.Document()), `"webhooks"`) {
			t.Error("there are webhooks")
		}
	})
	rule(t, "5 rule 1", "the description asks for X-API-Key everywhere, and for nothing else", func(t *testing.T) {
		d, err := openapicheck.Load()
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Components.SecuritySchemes) != 1 || len(d.Security) != 1 {
			t.Fatalf("schemes %v, required %v", d.Components.SecuritySchemes, d.Security)
		}
		for name, scheme := range d.Components.SecuritySchemes {
			if _, required := d.Security[0][name]; !required || scheme.Value.Type != "apiKey" || scheme.Value.In != "header" ||
				scheme.Value.Name != "X-API-Key" {
				t.Errorf("%s is %+v", name, scheme.Value)
			}
		}
		operations(t, func(path, method string, op *openapi3.Operation) {
			name := method + " " + path
			if op.Security != nil {
				t.Errorf("%s has keys of its own", name)
			}
		})
	})
	rule(t, "decided: description", "every example in the description is as the description says", func(t *testing.T) {
		d, err := openapicheck.Load()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		check := func(place string, media *openapi3.MediaType) {
			for i, value := range openapicheck.Examples(media) {
				n++
				if err := d.CheckValue(openapicheck.Place(media.Schema.Ref, place, "schema"), value); err != nil {
					t.Errorf("%s, example %d: %v", place, i, err)
				}
			}
		}
		operations(t, func(path, method string, op *openapi3.Operation) {
			place := openapicheck.Place("", "/paths", path, strings.ToLower(method))
			if op.RequestBody != nil {
				check(openapicheck.Place("", place, "requestBody", "content", "application/json"),
					op.RequestBody.Value.Content.Get("application/json"))
			}
			for status, response := range op.Responses.Map() {
				place := openapicheck.Place(response.Ref, place, "responses", status)
				for name, header := range response.Value.Headers {
					n++
					example, ok := header.Value.Example.(string)
					if !ok {
						example = fmt.Sprint(header.Value.Example)
					}
					if err := d.CheckHeader(openapicheck.Place(header.Ref, place, "headers", name), header.Value,
						[]string{example}); err != nil {
						t.Errorf("%s %s, example of %s: %v", path, status, name, err)
					}
				}
				media := response.Value.Content.Get("application/json")
				if media == nil {
					continue
				}
				check(openapicheck.Place("", place, "content", "application/json"), media)
				if len(openapicheck.Examples(media)) == 0 && op.OperationID != "getSignals" { // the manifest has no example
					t.Errorf("%s %s has no example", path, status)
				}
			}
		})
		if n < 60 {
			t.Errorf("%d examples were found", n)
		}
	})
	rule(t, "decided: description", "a body with fields of a later version is as the description says, and this test notices them",
		func(t *testing.T) {
			d, err := openapicheck.Load()
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			check := func(place string, media *openapi3.MediaType) {
				schema := openapicheck.Place(media.Schema.Ref, place, "schema")
				for i, value := range openapicheck.Examples(media) {
					for _, later := range withLaterFields(value) {
						n++
						if err := d.CheckPublished(schema, later); err != nil {
							t.Errorf("%s, example %d: %v", place, i, err)
						}
						if d.CheckValue(schema, later) == nil {
							t.Errorf("%s, example %d: an unknown field is not refused: %v", place, i, later)
						}
					}
				}
			}
			operations(t, func(path, method string, op *openapi3.Operation) {
				place := openapicheck.Place("", "/paths", path, strings.ToLower(method))
				if op.RequestBody != nil {
					check(openapicheck.Place("", place, "requestBody", "content", "application/json"),
						op.RequestBody.Value.Content.Get("application/json"))
				}
				for status, response := range op.Responses.Map() {
					if media := response.Value.Content.Get("application/json"); media != nil {
						check(openapicheck.Place("", openapicheck.Place(response.Ref, place, "responses", status), "content",
							"application/json"), media)
					}
				}
			})
			if n < 150 {
				t.Errorf("%d bodies were tried", n)
			}
			for _, closes := range []string{`"additionalProperties"`, `"unevaluatedProperties"`} {
				if strings.Contains(string(openapi.Document()), closes) {
					t.Errorf("the description has %s", closes)
				}
			}
		})
	rule(t, "decided: description", "operations, parameters, answers and fields of bodies are told about", func(t *testing.T) {
		operations(t, func(path, method string, op *openapi3.Operation) {
			name := method + " " + path
			if op.Summary == "" || op.OperationID == "" || len(op.Tags) != 1 {
				t.Errorf("%s has no summary, id or tag", name)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: nothing is said of %s", name, p.Value.Name)
				}
			}
			for status, response := range op.Responses.Map() {
				if response.Value.Description == nil || *response.Value.Description == "" {
					t.Errorf("%s: nothing is said of %s", name, status)
				}
				if n, _ := strconv.Atoi(status); n != http.StatusNotModified && response.Value.Headers["X-Request-Id"] == nil {
					t.Errorf("%s %s does not tell of X-Request-Id", name, status)
				}
				if status == "429" && response.Value.Headers["Retry-After"] == nil {
					t.Errorf("%s %s does not tell of Retry-After", name, status)
				}
			}
		})
	})
	rule(t, "decided: description", "the check notices a missing, an unknown and a wrong field, header and status", func(t *testing.T) {
		d, err := openapicheck.Load()
		if err != nil {
			t.Fatal(err)
		}
		media := d.Paths.Value("/v1/score/{domain}").Get.Responses.Status(200).Value.Content.Get("application/json")
		good, err := json.Marshal(openapicheck.Examples(media)[0])
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/score/example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{
			"Content-Type": {"application/json"}, "X-Request-Id": {"01a1fc94-05cf-764e-800e-9c3462621484"}, "Etag": {`"0123456789abcdef"`},
			"Cache-Control": {"private, max-age=30"}, "Server-Timing": {"redis"},
		}
		check := func(status int, body string, drop string) error {
			r := reply{status: status, header: header.Clone(), raw: body}
			r.header.Del(drop)
			if err := json.Unmarshal([]byte(body), &r.body); err != nil {
				return errors.New("the test's own body is no JSON")
			}
			return described(req, r)
		}
		if err := check(200, string(good), ""); err != nil {
			t.Fatalf("a good answer is refused: %v", err)
		}
		replaced := func(old, now string) string { return regexp.MustCompile(old).ReplaceAllString(string(good), now) }
		for what, err := range map[string]error{
			"missing field":        check(200, replaced(`"buckets"`, `"baskets"`), ""),
			"unknown field":        check(200, replaced(`^{`, `{"top_signals":[],`), ""),
			"composite over 100":   check(200, replaced(`"composite_score":[0-9.]+`, `"composite_score":100.1`), ""),
			"unknown rating":       check(200, replaced(`SVC-[^"]+`, `SVC-6`), ""),
			"unknown status":       check(200, replaced(`"cache_status":"cached"`, `"cache_status":"fresh"`), ""),
			"time without a zone":  check(200, replaced(`"scored_at":"[^"]+"`, `"scored_at":"yesterday"`), ""),
			"missing header":       check(200, string(good), "ETag"),
			"undescribed status":   check(418, string(good), ""),
			"unknown field inside": check(200, replaced(`"buckets":{`, `"buckets":{"later":1,`), ""),
			"undescribed error":    check(404, `{"error":"gone fishing","message":"Later."}`, ""),
			"error without text":   check(404, `{"error":"no score available for this domain"}`, ""),
		} {
			if err == nil {
				t.Errorf("not refused: %s", what)
			}
		}
	})
}

// withLaterFields returns copies of a value, each with a field that no description has in another
// one of its objects.
func withLaterFields(value any) (copies []any) {
	switch value := value.(type) {
	case map[string]any:
		more := maps.Clone(value)
		more["later_field"] = map[string]any{"a": 1.5}
		copies = append(copies, more)
		for key, child := range value {
			for _, changed := range withLaterFields(child) {
				more := maps.Clone(value)
				more[key] = changed
				copies = append(copies, more)
			}
		}
	case []any:
		for i, child := range value {
			for _, changed := range withLaterFields(child) {
				more := slices.Clone(value)
				more[i] = changed
				copies = append(copies, more)
			}
		}
	}
	return copies
}
