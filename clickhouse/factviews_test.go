package clickhouse_test

import (
	"fmt"
	"testing"

	"companyscore/clickhouse"
)

func TestFactViews(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewFacts(db)
	importRows(t, store, "one.csv", "domain,employees,revenue_usd,country,founded_year,signal:open_roles,as_of\n"+
		"a.com,100,1000,US,1999,3,2026-01-01\nb.com,5,,,,,2026-01-01\n")
	importRows(t, store, "two.csv", "domain,employees,revenue_usd,country,founded_year,listed,as_of\n"+
		"a.com,>=104,3000,DE,1998,true,2026-01-01\n")
	importRows(t, store, "old.csv", "domain,employees,revenue_usd,as_of\na.com,60,1300,2024-01-01\n")
	f := func(query, want string) {
		t.Helper()
		if got := column(t, db, query); fmt.Sprint(got) != want {
			t.Errorf("%s\ngives %v, want %s", query, got, want)
		}
	}
	f(`SELECT concat(origin, ' ', fact, ' ', if(at_least, '>=', ''), ifNull(toString(number), text)) FROM v1_fact
		WHERE domain = 'a.com' AND fact IN ('employees', 'country', 'listed', 'signal:open_roles') ORDER BY fact, origin`,
		"[one country US two country DE old employees 60 one employees 100 two employees >=104 two listed 1 one signal:open_roles 3]")
	// 60 in 2024 and 100 in 2026 may both be true, as 1000 and 1300 may; 1000 and 3000 on one day may not.
	f(`SELECT concat(fact, ' ', origin, ' ', other_origin, ' ', ifNull(toString(round(factor, 2)), '-')) FROM v1_fact_conflict
		WHERE domain = 'a.com' ORDER BY fact, origin, other_origin`,
		"[country two one - revenue_usd two one 3]")
	f("SELECT concat(arrayStringConcat(origins, ','), ' ', state, ' ', toString(rows_matched), ' ', toString(layers_changed)) "+
		"FROM v1_import ORDER BY started_at, import_id", "[one done 2 2 two done 1 1 old done 1 1]")
}
