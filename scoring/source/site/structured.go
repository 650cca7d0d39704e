package site

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/internal/country"
)

// Bounds of structured data.
const (
	organizationsMax = 32
	structuredNodes  = 20_000
	namesMax         = 64 // people of one organisation
)

// Organization is one organisation in structured data. A zero field is unknown.
type Organization struct {
	Name, LegalName, URL string
	SameAs               []string
	// Founded is the founding date; a year alone is its first of July.
	Founded time.Time
	// Employees is 0 if unknown.
	Employees float64
	// Country is an ISO 3166-1 alpha-2 code.
	Country string
	// People are the distinct names of founders, employees and members.
	People []string
	// Top is true for an organisation that is not nested in another object.
	Top bool
}

// Structured is the content of one JSON-LD script.
type Structured struct {
	Organizations []Organization
	// Reviewed is true if the script has reviews or ratings.
	Reviewed bool
	// Text is the names and descriptions in the script.
	Text string
}

// ParseStructured parses one JSON-LD script: an object, a list, or a @graph, with organisations
// at any depth. It follows references within the script. The result is empty if the script is not
// JSON.
func ParseStructured(script []byte) Structured {
	if len(script) > structuredMax {
		return Structured{}
	}
	var root any
	if json.Unmarshal(script, &root) != nil {
		return Structured{}
	}
	r := structuredReader{byID: map[string]map[string]any{}, nodes: structuredNodes}
	r.index(root)
	r.nodes = structuredNodes
	r.walk(root, true)
	r.found.Text = squeeze(r.text.String(), headingsBytesMax)
	return r.found
}

type structuredReader struct {
	byID  map[string]map[string]any
	nodes int // number of nodes that may still be visited
	found Structured
	text  strings.Builder
}

// index indexes the nodes that have an @id and other properties.
func (r *structuredReader) index(v any) {
	if r.nodes--; r.nodes < 0 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.index(e)
		}
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) > 1 {
			if _, known := r.byID[id]; !known {
				r.byID[id] = v
			}
		}
		for _, key := range sortedKeys(v) {
			r.index(v[key])
		}
	}
}

// others are properties whose value is an organisation other than the page's own.
var others = []string{
	"parentOrganization", "subOrganization", "department", "memberOf", "worksFor", "alumniOf", "affiliation", "sponsor", "funder",
	"author", "itemReviewed", "reviewedBy", "customer", "seller", "manufacturer", "brand", "hiringOrganization", "recognizedBy",
	"member", "members", "founder", "founders", "employee", "employees", "review", "reviews", "provider", "organizer", "performer",
}

func (r *structuredReader) walk(v any, top bool) {
	if r.nodes--; r.nodes < 0 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.walk(e, top)
		}
	case map[string]any:
		types := typesOf(v)
		if slices.Contains(types, "review") || slices.Contains(types, "aggregaterating") {
			r.found.Reviewed = true
		}
		for _, key := range []string{"name", "description", "keywords", "slogan", "applicationCategory"} {
			if text := str(v[key]); text != "" && r.text.Len() < headingsBytesMax {
				r.text.WriteString(squeeze(text, 500))
				r.text.WriteByte('\n')
			}
		}
		if slices.ContainsFunc(types, isOrganization) && len(r.found.Organizations) < organizationsMax {
			if org := r.organization(v); org.Name != "" || org.LegalName != "" || org.URL != "" {
				org.Top = top
				r.found.Organizations = append(r.found.Organizations, org)
			}
		}
		for _, key := range sortedKeys(v) {
			switch {
			case key == "@graph" || key == "mainEntity" || key == "publisher" || key == "about":
				r.walk(v[key], top)
			case slices.Contains(others, key):
				r.reviewed(key)
			default:
				if key == "aggregateRating" {
					r.found.Reviewed = true
				}
				r.walk(v[key], false)
			}
		}
	}
}

func (r *structuredReader) reviewed(key string) {
	if key == "review" || key == "reviews" {
		r.found.Reviewed = true
	}
}

// sortedKeys returns the keys in an order that does not depend on the map.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// typesOf returns the types of a node in lower case, without vocabulary prefix.
func typesOf(node map[string]any) []string {
	var types []string
	for _, t := range strs(node["@type"]) {
		if i := strings.LastIndexAny(t, "/:#"); i >= 0 {
			t = t[i+1:]
		}
		types = append(types, strings.ToLower(t))
	}
	return types
}

// organizationTypes are subtypes of Organization whose names do not end like it.
var organizationTypes = []string{
	"airline", "consortium", "cooperative", "fundingagency", "librarysystem", "ngo", "onlinestore", "politicalparty", "collegeoruniversity",
	"school", "hospital", "bankorcreditunion", "insuranceagency", "attorney", "notary", "hotel", "resort", "restaurant", "store",
	"realestateagent", "travelagency",
	"employmentagency", "professionalservice", "financialservice", "legalservice", "accountingservice", "autodealer", "electronicsstore",
	"clothingstore", "onlinebusiness",
	"brand",
}

func isOrganization(t string) bool {
	return t != "brand" && (strings.HasSuffix(t, "organization") || strings.HasSuffix(t, "corporation") ||
		strings.HasSuffix(t, "business") || slices.Contains(organizationTypes, t))
}

func (r *structuredReader) organization(node map[string]any) Organization {
	org := Organization{
		Name: squeeze(str(node["name"]), 300), LegalName: squeeze(str(node["legalName"]), 300),
		URL:     squeeze(str(node["url"]), attributeMax),
		Founded: ParseYearOrDate(str(node["foundingDate"])), Employees: r.employees(node["numberOfEmployees"]), Country: r.country(node),
	}
	for _, profile := range strs(node["sameAs"]) {
		if len(org.SameAs) < namesMax && len(profile) <= attributeMax {
			org.SameAs = append(org.SameAs, strings.TrimSpace(profile))
		}
	}
	for _, key := range []string{"founder", "founders", "employee", "employees", "member", "members"} {
		r.people(node[key], &org.People)
	}
	return org
}

// people adds the names of persons to found. It skips organisations among founders and members.
func (r *structuredReader) people(v any, found *[]string) {
	var name string
	switch v := v.(type) {
	case []any:
		for _, e := range v[:min(len(v), 4*namesMax)] {
			r.people(e, found)
		}
		return
	case string:
		if strings.Contains(v, "://") || strings.HasPrefix(v, "#") {
			return
		}
		name = v
	case map[string]any:
		v = r.follow(v)
		types := typesOf(v)
		if slices.ContainsFunc(types, isOrganization) {
			return
		}
		name = str(v["name"])
		if slices.Contains(types, "organizationrole") || slices.Contains(types, "employeerole") || slices.Contains(types, "role") {
			for _, key := range []string{"member", "employee", "founder"} {
				if person, ok := v[key].(map[string]any); ok {
					name = str(r.follow(person)["name"])
				}
			}
		}
		if name == "" {
			name = strings.TrimSpace(str(v["givenName"]) + " " + str(v["familyName"]))
		}
	}
	name = squeeze(name, 200)
	same := func(known string) bool { return strings.EqualFold(known, name) }
	if name != "" && len(*found) < namesMax && !slices.ContainsFunc(*found, same) {
		*found = append(*found, name)
	}
}

// follow returns the node that a bare reference refers to, else the node itself.
func (r *structuredReader) follow(node map[string]any) map[string]any {
	if id, ok := node["@id"].(string); ok && len(node) == 1 {
		if target, known := r.byID[id]; known {
			return target
		}
	}
	return node
}

// employees reads a number, a numeric text, or a QuantitativeValue. A range is its middle.
func (r *structuredReader) employees(v any) float64 {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	if node, ok := v.(map[string]any); ok {
		node = r.follow(node)
		if n := number(node["value"]); n > 0 {
			return n
		}
		lo, hi := number(node["minValue"]), number(node["maxValue"])
		if lo > 0 && hi >= lo {
			return math.Round((lo + hi) / 2)
		}
		return 0
	}
	return number(v)
}

// number returns 0 for a text that is not a positive number below ten million.
func number(v any) float64 {
	var n float64
	switch v := v.(type) {
	case float64:
		n = v
	case string:
		text := strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(v), ",", ""), "+")
		parsed, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		n = parsed
	}
	if n > 0 && n < 1e7 {
		return n
	}
	return 0
}

func (r *structuredReader) country(node map[string]any) string {
	address := node["address"]
	if list, ok := address.([]any); ok && len(list) > 0 {
		address = list[0]
	}
	place, ok := address.(map[string]any)
	if !ok {
		return ""
	}
	place = r.follow(place)
	return country.Code(str(place["addressCountry"]))
}

// ParseYearOrDate parses a year, a year and month, or a date. A year is its first of July, a
// month its fifteenth. It returns zero for any other text, and for years up to 1000.
func ParseYearOrDate(text string) time.Time {
	text = strings.TrimSpace(text)
	if len(text) > 10 {
		text = text[:10]
	}
	for _, known := range []struct {
		layout string
		add    func(time.Time) time.Time
	}{
		{"2006-01-02", func(t time.Time) time.Time { return t }},
		{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 0, 14) }},
		{"2006", func(t time.Time) time.Time { return t.AddDate(0, 6, 0) }},
	} {
		if t, err := time.Parse(known.layout, text); err == nil && t.Year() > 1000 {
			return known.add(t)
		}
	}
	return time.Time{}
}

// str returns the text of a value: a string, a number, the first element of a list, or the name
// of an object.
func str(v any) string {
	all := strs(v)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// strs returns the text of a value, or of each element of a list.
func strs(v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []any:
		var all []string
		for _, e := range v[:min(len(v), 4*namesMax)] {
			if _, nested := e.([]any); !nested {
				all = append(all, strs(e)...)
			}
		}
		return all
	case map[string]any:
		for _, key := range []string{"@value", "name", "@id", "url"} {
			if text, ok := v[key].(string); ok && text != "" {
				return []string{text}
			}
		}
	}
	return nil
}
