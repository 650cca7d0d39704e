package source_test

import (
	"fmt"
	"testing"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

func TestVerdictsNameWhatCountsAndWhy(t *testing.T) {
	t.Parallel()
	day := func(years int) time.Time { return now.AddDate(-years, 0, 0) }
	layers := []scoring.CompanyFacts{
		{Origin: "old", AsOf: day(7), Employees: ptr(10.0), Status: "dead"},
		{Origin: "crm", AsOf: day(1), Employees: ptr(120.0), Country: "US"},
		{Origin: "list", AsOf: day(1), Employees: ptr(130.0), RevenueUSD: ptr(5e6)},
	}
	want := []string{
		"country US crm true the only one",
		"status dead old true the only one",
		"employee_count 130 list true newest, or most trusted of its day",
		"employee_count 120 crm false list comes first in the order of trust",
		"employee_count 10 old false older than 2190 days, the maximum age",
		"revenue_latest_usd 5e+06 list true the only one",
	}
	got := source.Verdicts(layers, scoring.Preference{Now: now, Trust: []string{"list"}})
	if len(got) != len(want) {
		t.Fatalf("%d verdicts, want %d: %+v", len(got), len(want), got)
	}
	for i, v := range got {
		if line := fmt.Sprintf("%s %v %s %t %s", v.Fact, v.Value, v.Origin, v.Counts, v.Why); line != want[i] {
			t.Errorf("verdict %d is %q, want %q", i, line, want[i])
		}
	}
}
