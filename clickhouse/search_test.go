package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/scoring"
)

func TestCompaniesAreFoundByPrefix(t *testing.T) {
	t.Parallel()
	db := open(t)
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { _ = scores.Close(t.Context()) })
	for _, c := range []struct{ domain, name string }{
		{"acme.com", "Acme"}, {"acme.com", "Acme"}, {"acmatic.io", "Matic"}, {"zeta.com", "ACME of Zürich"}, {"other.com", "Other"},
		{"per%cent.com", "100% Real"},
	} {
		rec, err := scoring.Score(scoring.Input{Domain: c.domain, Now: noon, Identity: scoring.Identity{Name: c.name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := scores.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		prefix string
		limit  int
		want   []string
	}{
		{"acm", 10, []string{"acmatic.io", "acme.com", "zeta.com"}},
		{"acm", 2, []string{"acmatic.io", "acme.com"}},
		{"acme of zür", 10, []string{"zeta.com"}},
		{"100%", 10, []string{"per%cent.com"}},
		{"%", 10, nil},
		{"nobody", 10, nil},
	} {
		found, err := scores.SearchCompanies(t.Context(), c.prefix, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var domains []string
		for _, rec := range found {
			domains = append(domains, rec.Domain)
		}
		if !slices.Equal(domains, c.want) {
			t.Errorf("search for %q finds %v, want %v", c.prefix, domains, c.want)
		}
	}
}

func TestFormerNameFindsNoCompany(t *testing.T) {
	t.Parallel()
	db := open(t)
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { _ = scores.Close(t.Context()) })
	for i, c := range []struct{ domain, name string }{
		{"twitter.com", "Twitter"}, {"twitter.com", "X"}, {"isbank.com.tr", "Isbank"}, {"isbank.com.tr", "Türkiye İş Bankası"},
		{"again.com", "First"}, {"again.com", "Second"}, {"again.com", "First"},
	} {
		at := noon.Add(time.Duration(i) * time.Hour)
		rec, err := scoring.Score(scoring.Input{Domain: c.domain, Now: at, Identity: scoring.Identity{Name: c.name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := scores.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, want := range map[string]string{
		"twitter": "X", "twitter.": "X", "x": "X", "twitter ": "", "first": "First", "second": "",
		"isbank": "Türkiye İş Bankası", "türkiye": "Türkiye İş Bankası",
	} {
		found, err := scores.SearchCompanies(t.Context(), prefix, 10)
		if err != nil {
			t.Fatal(err)
		}
		if (want == "" && len(found) > 0) || (want != "" && (len(found) != 1 || found[0].CompanyName != want)) {
			t.Errorf("search for %q finds %v, want %q", prefix, found, want)
		}
	}
}
