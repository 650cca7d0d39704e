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
// value and the score; "absent" is an absence and "-" is missing.
const exampleTable = `
# team_structure
employee_count                   48000  92.96       180  39.38         -  50.00
open_roles                         620 100.00        26  64.32    absent  25.00
hiring_intensity_pct           1.29167  52.19   14.4444  80.40    absent  30.00
department_breadth                  14 100.00         8  71.64    absent  22.00
technical_role_share              0.42  80.00      0.46  80.00         -  50.00
hiring_location_count               45 100.00         5  60.49    absent  25.00
leadership_disclosure                6 100.00         3  56.00    absent  12.00
team_page_present                    1  75.00         1  75.00         1  75.00
careers_page_present                 1  75.00         1  75.00    absent  15.00
ats_in_use                           1  75.00         1  75.00    absent  25.00
legal_entity_registered              1  80.00    absent  36.00    absent  36.00
corporate_group_size                40  93.27    absent  32.00    absent  32.00
organization_age_years              31  88.23       6.4  55.00       4.2  44.00
github_org_verified                  1  80.00         1  80.00         -  50.00
email_auth_maturity                  5  95.00         4  85.00         2  48.00
security_program                     5  95.00         3  75.00         1  35.00
saas_tooling_breadth                18  90.61         9  70.80         2  27.81
# market_position
traffic_rank                       850  93.86     96000  39.15    absent   4.00
wikipedia_pageviews_30d         310000  88.56    absent  10.00    absent  10.00
wikipedia_language_count            62 100.00    absent  15.00    absent  15.00
news_volume_90d                   4200  97.79        46  40.59         -  50.00
news_tone_90d                      0.8  58.00       1.6  66.00         -  50.00
hn_mentions_365d                   140  89.31        11  53.63    absent  20.00
hn_engagement_365d                9000  98.92       420  67.47    absent  22.00
github_followers                  9000  89.47       640  66.36         -  50.00
github_stars_total               85000  93.95      7200  76.50         -  50.00
product_surface                      6  92.00         5  85.00         1  28.00
customer_proof                       3  85.00         2  72.00         0  12.00
site_language_count                 18  97.47    absent  28.00    absent  28.00
site_size_urls                   42000  98.30       900  60.74        40  30.32
social_profile_breadth               5  84.17         4  68.33         2  36.67
subdomain_breadth                  430  97.41        38  55.66         -  50.00
public_listing                       1  90.00    absent  38.00    absent  38.00
web_presence_years                  27  88.00         6  53.20       3.5  42.20
# momentum_tailwinds
traffic_rank_change_30d           0.05  52.50      0.22  61.00    absent  30.00
traffic_rank_change_90d            0.1  53.33      0.55  68.33    absent  30.00
pageviews_trend_30d               0.06  54.29         -  50.00         -  50.00
pageviews_trend_365d              0.12  56.00         -  50.00         -  50.00
news_volume_trend_30d              0.2  58.33      0.45  68.75         -  50.00
hn_mentions_trend_90d             0.15  57.50      0.35  67.50    absent  35.00
github_push_recency_days             0  90.00       0.5  89.43         -  50.00
github_active_repo_share_90d      0.45  62.81       0.6  78.75         -  50.00
github_new_repos_365d               38  92.19         9  67.57         -  50.00
fresh_role_share_30d              0.38  71.40       0.5  87.00    absent  22.00
open_roles_change_90d             0.12  56.00         -  50.00         -  50.00
content_freshness_days               1  86.86         4  83.43       260  30.81
content_cadence_90d                 55  98.30        14  71.56         0  20.00
homepage_change_rate_365d          0.9  92.20       0.7  76.60       0.1  29.80
archive_capture_trend_365d        0.05  52.50       0.3  65.00      -0.2  40.00
revenue_growth_yoy                0.14  62.27         -  50.00         -  50.00
sector_attention_trend_365d        0.1  60.00       0.1  60.00     -0.05  45.00
# financial_health
revenue_latest_usd              2.1e10  89.83         -  50.00         -  50.00
net_margin                        0.22  83.73         -  50.00         -  50.00
operating_margin                  0.27  86.53         -  50.00         -  50.00
free_cash_flow_margin             0.29  89.20         -  50.00         -  50.00
current_ratio                      1.9  77.60         -  50.00         -  50.00
liabilities_to_assets             0.48  69.40         -  50.00         -  50.00
cash_runway_months                  60  92.00         -  50.00         -  50.00
total_assets_usd                5.4e10  83.70         -  50.00         -  50.00
profitable_years_5                   5  90.00         -  50.00         -  50.00
filing_timeliness                    0  75.00         -  50.00         -  50.00
distress_events_24m                  0  72.00         -  50.00         -  50.00
capital_raise_recency_days         410  72.03       240  79.41         -  50.00
lei_registration_standing            2  75.00         -  50.00         -  50.00
domain_renewal_runway_days        1800  84.83       500  63.70       120  40.40
commercial_infrastructure            4  84.00         3  72.00         1  32.00
monetization_evidence                4  85.00         3  75.00         0  12.00
`

var exampleNow = time.Date(2026, 3, 2, 10, 30, 15, 123_456_789, time.UTC)

// example is a company of the table with its expected record.
type example struct {
	name   string
	column int
	input  Input

	buckets      BucketScores // unrounded
	base         float64
	profile      Profile
	premium      float64
	composite    float64
	rating       Rating
	momentum     float64
	completeness float64
	missing      int
	band         Band
	geo          string
}

var examples = []example{
	{
		name:   "large listed software company",
		column: 0,
		input: Input{
			Domain:   "large.example.com",
			Identity: Identity{Name: "Large Software, Inc.", Country: "US", SIC: 7372},
		},
		buckets:      BucketScores{88.2197, 91.5386, 66.3072, 82.4905},
		base:         82.5914,
		profile:      ProfileEstablished,
		premium:      10.8,
		composite:    93.4,
		rating:       RatingElite,
		momentum:     66.3,
		completeness: 100,
		missing:      0,
		band:         BandHigh,
		geo:          GeoGlobal,
	},
	{
		name:   "private growth software company",
		column: 1,
		input: Input{
			Domain:    "growth.de",
			Identity:  Identity{Industries: []string{"Enterprise Software"}},
			Reference: &Reference{ScoredAt: exampleNow.Add(-33 * 24 * time.Hour), Base: 56.1},
		},
		buckets:      BucketScores{62.9794, 49.7364, 65.8273, 54.7993},
		base:         58.0824,
		profile:      ProfileGrowth,
		premium:      0.2,
		composite:    58.3,
		rating:       Rating2Plus,
		momentum:     66.8,
		completeness: 76.7,
		missing:      16,
		band:         BandMedium,
		geo:          GeoEurope,
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
		buckets:      BucketScores{35.8606, 28.4654, 40.6188, 46.7200},
		base:         37.0035,
		profile:      ProfileUnclassified,
		premium:      0,
		composite:    37.0,
		rating:       Rating4,
		momentum:     40.6,
		completeness: 57.6,
		missing:      29,
		band:         BandLow,
		geo:          Unknown,
	},
}

// exampleInput returns the input of an example with the observations of the table.
func exampleInput(t testing.TB, e example) Input {
	t.Helper()
	in := e.input
	in.RunID = "run-" + strconv.Itoa(e.column+1)
	in.Now = exampleNow
	in.Observations, _ = exampleColumn(t, e.column)
	return in
}

// exampleColumn reads one company of the table: its observations and the scores of its signals.
func exampleColumn(t testing.TB, column int) (observations []Observation, scores map[string]float64) {
	t.Helper()
	scores = make(map[string]float64)
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
		switch raw := fields[1+2*column]; raw {
		case "-":
			o.State, o.Reason = StateMissing, ReasonNotFound
		case "absent":
			o.State = StateAbsent
		default:
			o.State, o.Raw = StateOK, number(t, raw)
		}
		observations = append(observations, o)
		scores[s.ID] = number(t, fields[2+2*column])
	}
	return observations, scores
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

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			rec := mustScore(t, exampleInput(t, e))
			_, scores := exampleColumn(t, e.column)

			var buckets BucketScores
			missing := 0
			for i, s := range Manifest() {
				got := rec.Signals[i]
				if want := scores[s.ID]; !near(got.Score, want, 0.01) {
					t.Errorf("%s scores %.4f, want %.2f", s.ID, got.Score, want)
				}
				*buckets.field(s.Bucket) += s.Weight * got.Score
				if got.State == StateMissing {
					missing++
				}
			}
			for _, b := range Buckets() {
				if got, want := buckets.Get(b), e.buckets.Get(b); !near(got, want, 1e-4) {
					t.Errorf("%s is %.4f, want %.4f", b, got, want)
				}
				if got, want := rec.Buckets.Get(b), round1(e.buckets.Get(b)); got != want {
					t.Errorf("%s is shown as %v, want %v", b, got, want)
				}
			}
			if !near(rec.Base, e.base, 1e-4) {
				t.Errorf("base is %.4f, want %.4f", rec.Base, e.base)
			}
			for _, c := range []struct {
				what      string
				got, want any
			}{
				{"profile", rec.Profile, e.profile},
				{"premium", rec.ScalePremium, e.premium},
				{"composite", rec.Composite, e.composite},
				{"rating", rec.Rating, e.rating},
				{"momentum index", rec.MomentumIndex, e.momentum},
				{"completeness", rec.CompletenessPct, e.completeness},
				{"missing signals", missing, e.missing},
				{"confidence", rec.Confidence, e.band},
				{"geo scope", rec.GeoScope, e.geo},
			} {
				if c.got != c.want {
					t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
				}
			}
		})
	}
}
