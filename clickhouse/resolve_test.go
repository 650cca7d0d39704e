package clickhouse_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/facts/resolve"
)

// Names and identifiers of all origins and the name of the newest score are known; those of removed origins are not.
func TestKnownCompanies(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewFacts(db)
	importRows(t, store, "list.csv", "domain,company_name,ticker,exchange,cik,as_of\nacme.com,Acme Inc,ACME,NYSE,42,2026-01-01\n")
	importRows(t, store, "crm.csv", "domain,company_name,ticker,lei,isin,as_of\n"+
		"acme.com,Acme,ACME,5299000BRINDLEWOR123,US0378331005,2026-02-01\nonly.com,,,,,2026-02-01\n")
	importRows(t, store, "gone.csv", "domain,company_name,as_of\nacme.com,Gone,2026-03-01\ngone.com,Gone,2026-03-01\n")
	if _, err := store.RemoveOrigin(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	written := scores(t, db)
	for i, name := range []string{"Old Name", "New Name"} {
		rec := record(t, "scored.com", noon.AddDate(0, i, 0))
		rec.CompanyName = name
		if err := written.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	var got []resolve.Company
	err := store.Known(t.Context(), func(c resolve.Company) error {
		for _, list := range [][]string{c.Names, c.Tickers, c.CIKs, c.LEIs, c.ISINs} {
			slices.Sort(list)
		}
		got = append(got, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b resolve.Company) int { return cmp.Compare(a.Domain, b.Domain) })
	none := []string{}
	want := []resolve.Company{
		{Domain: "acme.com", Name: "Acme", Names: []string{"Acme", "Acme Inc"}, Tickers: []string{":ACME", "NYSE:ACME"},
			CIKs: []string{"42"},
			LEIs: []string{"5299000BRINDLEWOR123"}, ISINs: []string{"US0378331005"}},
		{Domain: "only.com", Names: none, Tickers: none, CIKs: none, LEIs: none, ISINs: none},
		{Domain: "scored.com", Name: "New Name", Names: []string{"New Name"}, Tickers: none, CIKs: none, LEIs: none, ISINs: none},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("known companies:\n%s", diff)
	}
}
