package source

import (
	"slices"
	"strings"
	"testing"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring"
)

// importedFacts returns the identity of a company from one layer of facts.
func importedFacts(layer scoring.CompanyFacts) Company {
	return NewCompany(FromFacts([]scoring.CompanyFacts{layer}, scoring.Preference{Now: instant}).Claims...)
}

// Sources ask for an imported identifier, and search nothing. The endpoints that search are not served.
func TestSourcesAskForImportedIdentifiers(t *testing.T) {
	t.Parallel()
	const lei = "5299000BRINDLEWOR123"
	f := func(name string, source func(*fakenet.Network) Source, layer scoring.CompanyFacts, endpoint, first string,
		pages map[string]string) {
		t.Helper()
		network := fakenet.New(t)
		asked := serve(network, endpoint, pages)
		req := requestFor("brindleworks.com")
		layer.CompanyName, layer.Country = "Brindle Works", "US"
		req.Company = importedFacts(layer)
		if _, err := source(network).Fetch(t.Context(), req); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(*asked) == 0 || (*asked)[0] != first {
			t.Errorf("%s: asked %v, want %s first", name, *asked, first)
		}
		if slices.ContainsFunc(*asked, func(path string) bool { return strings.Contains(path, "filter") }) {
			t.Errorf("%s: searched: %v", name, *asked)
		}
	}
	f("CIK", func(n *fakenet.Network) Source { return NewSEC(n.Client()) }, scoring.CompanyFacts{CIK: "900444"}, "sec.data",
		"/submissions/CIK0000900444.json", map[string]string{
			"/submissions/CIK0000900444.json": `{"cik":"900444","name":"BRINDLE WORKS","sic":"6331","filings":{"recent":{"form":[],
				"filingDate":[],"items":[]}}}`})
	f("LEI", func(n *fakenet.Network) Source { return NewGLEIF(n.Client()) },
		scoring.CompanyFacts{LEI: lei}, "gleif", "/api/v1/lei-records/"+lei,
		map[string]string{"/api/v1/lei-records/" + lei: toJSON(obj{"data": obj{"attributes": obj{"lei": lei, "entity": obj{
			"legalName": obj{"name": "Brindle Works"}, "status": "ACTIVE"}}}})})
	f("GitHub", func(n *fakenet.Network) Source { return NewRepositories(n.Client()) },
		scoring.CompanyFacts{GitHub: "brindle-labs"}, "github",
		"/orgs/brindle-labs", map[string]string{"/orgs/brindle-labs": toJSON(obj{"login": "brindle-labs", "blog": "", "followers": 7}),
			"/orgs/brindle-labs/repos": "[]"})
	f("Wikidata", func(n *fakenet.Network) Source { return NewWikidata(n.Client()) },
		scoring.CompanyFacts{Wikidata: "Q8"}, "wikidata.entity",
		"/wiki/Special:EntityData/Q8.json", map[string]string{"/wiki/Special:EntityData/Q8.json": toJSON(obj{"entities": obj{"Q8": obj{
			"id": "Q8", "labels": wdLabel("Brindle Works"), "claims": obj{"P1128": []obj{claimOf("normal", wdAmount("+12", "1"))}}}}})})
}

// An imported item counts if its website is the company's, or if it has none and is about a company. Else the item is searched.
func TestWikidataChecksImportedItem(t *testing.T) {
	t.Parallel()
	employees := []obj{claimOf("normal", wdAmount("+12", "1"))}
	f := func(name string, claims obj, searched bool) {
		t.Helper()
		network := fakenet.New(t)
		searches := serve(network, "wikidata.query", map[string]string{"/sparql": sparql()})
		serve(network, "wikidata.entity", map[string]string{"/wiki/Special:EntityData/Q8.json": toJSON(obj{"entities": obj{"Q8": obj{
			"id": "Q8", "labels": wdLabel("Brindle Works"), "claims": claims}}})})
		req := requestFor("app.brindleworks.com")
		req.Company = importedFacts(scoring.CompanyFacts{Wikidata: "Q8"})
		got, err := NewWikidata(network.Client()).Fetch(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if (len(*searches) > 0) != searched || (NewCompany(got.Claims...).Get(QID) == "Q8") == searched {
			t.Errorf("%s: searched %d times, claims %v", name, len(*searches), got.Claims)
		}
	}
	site := func(address string) []obj { return []obj{claimOf("normal", address)} }
	f("no website, a company", obj{"P1128": employees}, false)
	f("no website, nothing of a company", obj{}, true)
	f("its website", obj{"P856": site("https://www.BrindleWorks.com/en")}, false)
	f("a host of it", obj{"P856": site("https://about.brindleworks.com")}, false)
	f("another website", obj{"P856": site("https://brindleworks.com.example.org"), "P1128": employees}, true)
}
