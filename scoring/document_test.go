package scoring

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/golden"
)

const scorePage = "../docs/score.md"

// TestScorePageIsUpToDate compares the tables of docs/score.md with the program. -update writes
// them.
func TestScorePageIsUpToDate(t *testing.T) {
	t.Parallel()
	golden.CompareTables(t, scorePage, map[string]string{
		"signals": signalTable(t), "populations": populationTable(), "buckets": bucketTable(), "measures": measureTable(),
		"grades":  gradeTable(),
		"sectors": sectorTable(), "regions": regionTable(), "example": exampleOfPage(t),
	})
}

// TestGlossaryNamesEachReach checks that the glossary has the values of geo_scope.
func TestGlossaryNamesEachReach(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(page), "\n| reach |")
	row, _, _ = strings.Cut(row, "\n")
	for _, reach := range append(slices.Collect(maps.Keys(regions)), GeoGlobal, Unknown) {
		if !strings.Contains(row, "`"+reach+"`") {
			t.Errorf("the glossary does not name the reach %s", reach)
		}
	}
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func signalTable(t *testing.T) string {
	page, err := os.ReadFile(scorePage)
	if err != nil {
		t.Fatal(err)
	}
	_, developers, _ := strings.Cut(string(page), "audience of developers: ")
	developers, _, _ = strings.Cut(developers, ".")
	b := golden.NewTable("signal", "bucket", "weight", "unit", "curve", "absent", "max age, days", "not for", "sources")
	for _, s := range Manifest() {
		curve, absent, _ := strings.Cut(s.Normalization, ";absent=")
		curve = strings.ReplaceAll(strings.Replace(curve, ":", ": ", 1), "|", ", ")
		notFor := strings.Join(s.NotFor, ", ")
		if notFor == developers {
			notFor = "developers"
		}
		b.Row("`"+s.ID+"`", string(s.Bucket), plain(s.Weight), s.Unit, curve, absent, strconv.Itoa(int(s.MaxAge/(24*time.Hour))), notFor,
			strings.Join(s.Sources, ", "))
	}
	return b.String()
}

// populationTable has a row for each population and basis, in the order of the manifest.
func populationTable() string {
	type source struct{ population, basis string }
	var order []source
	signals := make(map[source][]string)
	for _, s := range Manifest() {
		from := source{s.Population, s.Basis}
		if signals[from] == nil {
			order = append(order, from)
		}
		signals[from] = append(signals[from], "`"+s.ID+"`")
	}
	b := golden.NewTable("population", "basis of the percentiles", "signals")
	for _, from := range order {
		b.Row(from.population, from.basis, strings.Join(signals[from], ", "))
	}
	return b.String()
}

func bucketTable() string {
	b := golden.NewTable("bucket", "weight")
	for _, bucket := range Buckets() {
		b.Row("`"+string(bucket)+"`", fmt.Sprintf("%.2f", bucket.Weight()))
	}
	return b.String()
}

// gradeTable has the limits of the grades, and the share of a normal distribution with mean 50
// and standard deviation 10 above each limit.
func gradeTable() string {
	b := golden.NewTable("grade", "composite from", "companies of the reference population at or above")
	for _, r := range Ratings() {
		from, share := RatingFrom(r), 1.0
		if from > 0 {
			share = math.Erfc((from-50)/10/math.Sqrt2) / 2
		}
		format := "%.0f %%"
		if share < 0.1 {
			format = "%.1f %%"
		}
		b.Row("`"+string(r)+"`", plain(from), fmt.Sprintf(format, 100*share))
	}
	return b.String()
}

func measureTable() string {
	b := golden.NewTable("signal", "from", "to", "weight", "without revenue")
	for _, m := range measures {
		b.Row("`"+manifest[m.signal].ID+"`", plain(m.from), plain(m.to), plain(m.weight), plain(m.withoutRevenue))
	}
	return b.String()
}

func sectorTable() string {
	b := golden.NewTable("sector", "SIC codes", "phrases of labels", "keywords of labels and sites")
	for _, s := range sectors {
		var codes []string
		for _, r := range s.sic {
			codes = append(codes, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
		b.Row("`"+s.name+"`", strings.Join(codes, ", "), strings.Join(s.labels, "; "), strings.Join(s.keywords, "; "))
	}
	return b.String()
}

func regionTable() string {
	b := golden.NewTable("region", "countries")
	for _, region := range []string{GeoNorthAmerica, GeoEurope, GeoAsiaPacific, GeoLatinAmerica, GeoMiddleEastAfrica} {
		b.Row("`"+region+"`", regions[region])
	}
	return b.String()
}

// exampleOfPage computes the worked example of the page.
func exampleOfPage(t *testing.T) string {
	rec := mustScore(t, Input{
		Domain: "example.com", Now: exampleNow, Identity: Identity{Industries: []string{"Enterprise Software"}},
		Observations: []Observation{
			{Signal: "employee_count", State: StateOK, Raw: 180, Source: "wikidata"},
			{Signal: "organization_age_years", State: StateOK, Raw: 6, Source: "web"},
			{Signal: "careers_page_present", State: StateOK, Raw: 1, Source: "web"},
			{Signal: "traffic_rank", State: StateAbsent, Source: "tranco"},
			{Signal: "news_volume_90d", State: StateMissing, Source: "gdelt", Reason: ReasonSourceTimeout},
		},
		Warnings: []Warning{{Source: "gdelt", Code: "timeout", At: exampleNow}},
	})
	x := Explain(rec)
	b := golden.NewTable("step", "result")
	for _, s := range x.Signals {
		if s.State == StateOK || s.State == StateAbsent {
			b.Row("`"+s.ID+"`", fmt.Sprintf("score %.4f, adds %.4f × %.4f × %.2f = %.4f to the base", s.Score, s.Score, s.Weight,
				s.Bucket.Weight(), s.Contribution))
		}
	}
	b.Row("other signals", "50 each")
	for _, p := range x.Buckets {
		b.Row("bucket `"+string(p.Bucket)+"`", fmt.Sprintf("%.4f, known %.1f %%", p.Score, p.CompletenessPct))
	}
	b.Row("base", fmt.Sprintf("%.4f", rec.Base))
	b.Row("scale", fmt.Sprintf("%.4f", x.Premium.Scale))
	b.Row("premium", fmt.Sprintf("%.1f", rec.ScalePremium))
	b.Row("composite", fmt.Sprintf("%.1f, %s", rec.Composite, rec.Rating))
	b.Row("interval", fmt.Sprintf("%.1f to %.1f", rec.Interval.Low, rec.Interval.High))
	b.Row("expected composite", fmt.Sprintf("%.1f", rec.ExpectedComposite))
	b.Row("profile", string(rec.Profile))
	b.Row("completeness", fmt.Sprintf("%.1f %%, %s", rec.CompletenessPct, rec.Confidence))
	return b.String()
}
