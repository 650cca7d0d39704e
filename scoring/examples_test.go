package scoring

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exampleTable has three companies: a large listed software company, a private one that grows,
// and a small local firm whose ct and gdelt timed out. For each signal and company it has the raw
// value; "absent" is an absence and "-" is missing.
const exampleTable = `
# team_structure
employee_count                   48000       180         -
open_roles                         620        26    absent
hiring_intensity_pct           1.29167   14.4444    absent
department_breadth                  14         8    absent
technical_role_share              0.42      0.46         -
hiring_location_count               45         5    absent
leadership_disclosure                6         3    absent
team_page_present                    1         1         1
careers_page_present                 1         1    absent
ats_in_use                           1         1    absent
legal_entity_registered              1    absent    absent
corporate_group_size                40    absent    absent
organization_age_years              31       6.4       4.2
github_org_verified                  1         1         -
email_auth_maturity                  5         4         2
security_program                     5         3         1
saas_tooling_breadth                18         9         2
# market_position
traffic_rank                       850     96000    absent
wikipedia_pageviews_30d         310000    absent    absent
wikipedia_language_count            62    absent    absent
news_volume_90d                   4200        46         -
news_tone_90d                      0.8       1.6         -
hn_mentions_365d                   140        11    absent
hn_engagement_365d                9000       420    absent
github_followers                  9000       640         -
github_stars_total               85000      7200         -
product_surface                      6         5         1
customer_proof                       3         2         0
site_language_count                 18    absent    absent
site_size_urls                   42000       900        40
social_profile_breadth               5         4         2
subdomain_breadth                  430        38         -
public_listing                       1    absent    absent
web_presence_years                  27         6       3.5
# momentum_tailwinds
traffic_rank_change_30d           0.05      0.22    absent
traffic_rank_change_90d            0.1      0.55    absent
pageviews_trend_30d               0.06         -         -
pageviews_trend_365d              0.12         -         -
news_volume_trend_30d              0.2      0.45         -
hn_mentions_trend_90d             0.15      0.35    absent
github_push_recency_days             0       0.5         -
github_active_repo_share_90d      0.45       0.6         -
github_new_repos_365d               38         9         -
fresh_role_share_30d              0.38       0.5    absent
open_roles_change_90d             0.12         -         -
content_freshness_days               1         4       260
content_cadence_90d                 55        14         0
homepage_change_rate_365d          0.9       0.7       0.1
funding_rounds                       -         3         -
revenue_growth_yoy                0.14         -         -
sector_attention_trend_365d        0.1       0.1     -0.05
# financial_health
revenue_latest_usd              2.1e10         -         -
net_margin                        0.22         -         -
operating_margin                  0.27         -         -
free_cash_flow_margin             0.29         -         -
current_ratio                      1.9         -         -
liabilities_to_assets             0.48         -         -
cash_runway_months                  60         -         -
total_assets_usd                5.4e10         -         -
profitable_years_5                   5         -         -
funding_total_usd                    -     4.5e7         -
distress_events_24m                  0         -         -
capital_raise_recency_days         410       240         -
market_value_usd                  6e10         -         -
domain_renewal_runway_days        1800       500       120
commercial_infrastructure            4         3         1
monetization_evidence                4         3         0
`

var exampleNow = time.Date(2026, 3, 2, 10, 30, 15, 123_456_789, time.UTC)

// example is a company of the table.
type example struct {
	name   string
	column int
	input  Input
}

var examples = []example{
	{
		name:   "large listed software company",
		column: 0,
		input: Input{
			Domain:   "large.example.com",
			Identity: Identity{Name: "Large Software, Inc.", Country: "US", SIC: 7372},
		},
	},
	{
		name:   "private growth software company",
		column: 1,
		input: Input{
			Domain:    "growth.de",
			Identity:  Identity{Industries: []string{"Enterprise Software"}},
			Reference: &Reference{ScoredAt: exampleNow.Add(-33 * 24 * time.Hour), Base: 56.1},
		},
	},
	{
		name:   "small local firm",
		column: 2,
		input: Input{
			Domain: "local.example.com",
			Warnings: []Warning{
				{Source: "ct", Code: "timeout", At: exampleNow.Add(20 * time.Second)},
				{Source: "gdelt", Code: "timeout", At: exampleNow.Add(40 * time.Second)},
			},
		},
	},
}

// exampleInput returns the input of an example with the observations of the table.
func exampleInput(t testing.TB, e example) Input {
	t.Helper()
	in := e.input
	in.RunID = "run-" + strconv.Itoa(e.column+1)
	in.Now = exampleNow
	for line := range strings.Lines(exampleTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		s, ok := Lookup(fields[0])
		if !ok {
			t.Fatalf("the table names the unknown signal %q", fields[0])
		}
		o := Observation{Signal: s.ID, Source: s.Sources[0]}
		switch raw := fields[1+e.column]; raw {
		case "-":
			o.State, o.Reason = StateMissing, ReasonNotFound
		case "absent":
			o.State = StateAbsent
		default:
			o.State, o.Raw = StateOK, number(t, raw)
		}
		in.Observations = append(in.Observations, o)
	}
	return in
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func mustScore(t testing.TB, in Input) Record {
	t.Helper()
	rec, err := Score(in)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }
