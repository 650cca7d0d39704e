// Package openapicheck checks answers of the HTTP API against its OpenAPI document.
package openapicheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"companyscore/server/openapi"
)

// Document is the parsed OpenAPI document. The published document allows fields that it does
// not describe, for servers of later versions. The checks of this package refuse them, but for
// CheckPublished. It is safe for concurrent use.
type Document struct {
	*openapi3.T
	routes    routers.Router
	closed    schemas
	published schemas
}

// schemas compiles the schemas of one form of the document.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by JSON pointer
}

// Load returns the document of this version of the program. It parses it once.
var Load = sync.OnceValues(func() (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	d := &Document{T: doc}
	for form, change := range map[*schemas]func(any){&d.published: func(any) {}, &d.closed: closeObjects} {
		text, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Document()))
		if err != nil {
			return nil, err
		}
		change(text)
		form.compiled = make(map[string]*jsonschema.Schema)
		form.compiler = jsonschema.NewCompiler()
		form.compiler.DefaultDraft(jsonschema.Draft2020)
		form.compiler.AssertFormat()
		if err := form.compiler.AddResource("openapi.json", text); err != nil {
			return nil, err
		}
	}
	d.routes, err = gorillamux.NewRouter(doc)
	return d, err
})

// closeObjects adds "additionalProperties": false to every schema of an object in a document.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["properties"].(map[string]any); ok && node["type"] == "object" {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}

// Answer is an answer to a request, with its complete body.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Operation returns the operation of a request, such as "GET /v1/jobs/{job_id}", "" if the
// document has none.
func (d *Document) Operation(req *http.Request) string {
	route, _, err := d.routes.FindRoute(req)
	if err != nil {
		return ""
	}
	return route.Method + " " + route.Path
}

// Check returns the operation of a request, and an error unless the answer matches the document:
// status, headers, body, and the code of an error. It does not check requests without an
// operation.
func (d *Document) Check(req *http.Request, a Answer) (operation string, err error) {
	route, _, err := d.routes.FindRoute(req)
	if err != nil {
		return "", nil
	}
	return route.Method + " " + route.Path, d.check(route, a)
}

func (d *Document) check(route *routers.Route, a Answer) error {
	status := strconv.Itoa(a.Status)
	response := route.Operation.Responses.Value(status)
	if response == nil {
		return errors.New("the status is not described")
	}
	place := Place(response.Ref, "/paths", route.Path, strings.ToLower(route.Method), "responses", status)
	for name, header := range response.Value.Headers {
		if err := d.CheckHeader(Place(header.Ref, place, "headers", name), header.Value, a.Header.Values(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	media := response.Value.Content.Get("application/json")
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	switch {
	case kind != "application/json" && len(a.Body) > 0 && response.Value.Content[kind] != nil:
		return nil // a described text, which has no schema
	case media == nil && len(a.Body) > 0:
		return errors.New("it has a body")
	case media == nil:
		return nil
	case a.Header.Get("Content-Type") != "application/json":
		return fmt.Errorf("the body is %q", a.Header.Get("Content-Type"))
	case a.Header.Get("Content-Encoding") != "":
		return nil // the same body is also checked uncompressed
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err != nil {
		return err
	}
	if err := d.CheckValue(Place(media.Schema.Ref, place, "content", "application/json", "schema"), body); err != nil {
		return err
	}
	if a.Status < 400 {
		return nil
	}
	if codes := errorCodes(media); !slices.Contains(codes, errorCode(body)) {
		return fmt.Errorf("error and reason are none of %q", codes)
	}
	return nil
}

// CheckValue checks a value against the schema at a place. It refuses fields that are not
// described.
func (d *Document) CheckValue(place string, value any) error { return d.closed.check(place, value) }

// CheckPublished is CheckValue as a caller's validator does it: further fields are allowed.
func (d *Document) CheckPublished(place string, value any) error {
	return d.published.check(place, value)
}

func (s *schemas) check(place string, value any) error {
	s.mu.Lock()
	schema := s.compiled[place]
	if schema == nil {
		var err error
		if schema, err = s.compiler.Compile("openapi.json#" + place); err != nil {
			s.mu.Unlock()
			return fmt.Errorf("%s: %w", place, err)
		}
		s.compiled[place] = schema
	}
	s.mu.Unlock()
	return schema.Validate(value)
}

// CheckHeader checks the values of a header against the schema at a place.
func (d *Document) CheckHeader(place string, header *openapi3.Header, values []string) error {
	switch {
	case len(values) > 1:
		return fmt.Errorf("it is there %d times", len(values))
	case len(values) == 0 && header.Required:
		return errors.New("it is missing")
	case len(values) == 0:
		return nil
	case header.Schema.Value.Type.Is("integer"):
		if _, err := strconv.ParseUint(values[0], 10, 63); err != nil {
			return err
		}
		return d.CheckValue(place+"/schema", json.Number(values[0]))
	}
	return d.CheckValue(place+"/schema", values[0])
}

// Place returns the JSON pointer of an entry of the document. The entry can be a reference.
func Place(ref, place string, keys ...string) string {
	if ref != "" {
		return strings.TrimPrefix(ref, "#")
	}
	for _, key := range keys {
		place += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	}
	return place
}

// Examples returns all example bodies of an answer.
func Examples(media *openapi3.MediaType) (values []any) {
	if media.Example != nil {
		values = append(values, media.Example)
	}
	for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
		values = append(values, media.Examples[name].Value.Value)
	}
	return values
}

// errorCodes returns the error codes in the examples of an answer, each with its reason.
func errorCodes(media *openapi3.MediaType) (codes []string) {
	for _, example := range Examples(media) {
		codes = append(codes, errorCode(example))
	}
	return codes
}

func errorCode(body any) string {
	fields, _ := body.(map[string]any)
	code, _ := fields["error"].(string)
	if reason, ok := fields["reason"].(string); ok {
		code += ": " + reason
	}
	return code
}
