package source

import (
	"strings"
	"testing"

	"companyscore/internal/test/fakenet"
)

func TestWikidataKnowsDissolvedCompanies(t *testing.T) {
	t.Parallel()
	f := func(name string, dissolved obj, on string) {
		t.Helper()
		network := fakenet.New(t)
		serve(network, "wikidata.query", map[string]string{"/sparql": sparql("Q5", 3)})
		serve(network, "wikidata.entity", map[string]string{"/wiki/Special:EntityData/Q5.json": itemWith(obj{"P576": []obj{dissolved}})})
		got, err := NewWikidata(network.Client()).Fetch(t.Context(), requestFor("brindleworks.com"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		claim, _ := NewCompany(got.Claims...).Best(Dissolved)
		if got.Defunct != (on != "") || claim.Value != on || got.Defunct && !strings.Contains(claim.Evidence, "P576") {
			t.Errorf("%s: defunct %v with claim %+v, want %q", name, got.Defunct, claim, on)
		}
	}
	without := func(kind string) obj {
		return obj{"rank": "normal", "mainsnak": obj{"snaktype": kind}}
	}
	f("in the past", claimOf("normal", wdDate("2019-05-01", 11)), "2019-05-01")
	f("in a year", claimOf("normal", wdDate("2019-00-00", 9)), "2019-07-01")
	f("in the future", claimOf("normal", wdDate("2090-05-01", 11)), "")
	f("at an unknown time", without("somevalue"), "unknown")
	f("never", without("novalue"), "")
	f("in error", claimOf("deprecated", wdDate("2019-05-01", 11)), "")
}

func TestWikidataPrefersLivingCompanies(t *testing.T) {
	t.Parallel()
	f := func(want string, defunct bool, second obj) {
		t.Helper()
		network := fakenet.New(t)
		serve(network, "wikidata.query", map[string]string{"/sparql": sparql("Q5", 9, "Q6", 2)})
		serve(network, "wikidata.entity", map[string]string{
			"/w/api.php?" + encoded("action", "wbgetentities", "format", "json", "ids", "Q5|Q6", "languages", "en|mul", "maxlag", "5",
				"props", "labels|claims|sitelinks"): toJSON(obj{"entities": obj{
				"Q5": obj{"id": "Q5", "labels": wdLabel("The old one"),
					"claims": obj{"P576": []obj{claimOf("normal", wdDate("2019-05-01", 11))},
						"P1128": []obj{claimOf("normal", wdAmount("+9", "1"))}}},
				"Q6": obj{"id": "Q6", "labels": wdLabel("The new one"), "claims": second},
			}}),
		})
		got, err := NewWikidata(network.Client()).Fetch(t.Context(), requestFor("brindleworks.com"))
		if err != nil {
			t.Fatal(err)
		}
		if name := NewCompany(got.Claims...).Get(Name); name != want || got.Defunct != defunct {
			t.Errorf("%q with defunct %v, want %q with %v", name, got.Defunct, want, defunct)
		}
	}
	f("The new one", false, obj{})
	f("The old one", true, obj{"P576": []obj{claimOf("normal", wdDate("2021-05-01", 11))}})
}

func TestParkedDomainIsDefunct(t *testing.T) {
	t.Parallel()
	f := func(body string, want bool) {
		t.Helper()
		got, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", siteOf(home(body)))
		})
		if err != nil {
			t.Fatal(err)
		}
		if claim, claimed := NewCompany(got.Claims...).Best(Parked); got.Defunct != want || claimed != want || want &&
			claim.Evidence == "" {
			t.Errorf("%s: defunct %v, claim %+v, want %v", body, got.Defunct, claim, want)
		}
	}
	f(`<title>brindleworks.com</title><p>This domain is for sale</p>`, true)
	f(`<title>Brindle Works</title><p>We sell ovens</p>`, false)
}

func TestInactiveEntityIsDefunct(t *testing.T) {
	t.Parallel()
	f := func(status string, want bool) {
		t.Helper()
		const lei = "5299000BRINDLEWORKS1"
		network := fakenet.New(t)
		serve(network, "gleif", map[string]string{
			"/api/v1/lei-records/" + lei: toJSON(obj{"data": obj{"attributes": obj{
				"lei": lei, "entity": obj{"legalName": obj{"name": "Brindle Works"}, "category": "GENERAL", "status": status},
				"registration": obj{"status": "LAPSED"},
			}}}),
		})
		req := requestFor("brindleworks.com")
		req.Company = NewCompany(Claim{Kind: LEI, Value: lei, Source: "wikidata"})
		got, err := NewGLEIF(network.Client()).Fetch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if _, claimed := NewCompany(got.Claims...).Best(Dissolved); got.Defunct != want || claimed != want {
			t.Errorf("%s: defunct %v, claimed %v, want %v", status, got.Defunct, claimed, want)
		}
	}
	f("INACTIVE", true)
	f("ACTIVE", false) // a lapsed registration alone is common
}
