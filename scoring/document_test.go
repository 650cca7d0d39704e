package scoring

import (
	"fmt"
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
	text, err := os.ReadFile(scorePage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, table := range map[string]string{
		"signals": signalTable(t), "populations": populationTable(), "measures": measureTable(), "sectors": sectorTable(), "regions": regionTable(),
		"example": exampleOfPage(t),
	} {
		begin, end := fmt.Sprintf("<!-- table %s -->\n", name), "<!-- end of table -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("the page has no place for the table %s", name)
		}
		page = before + begin + "\n" + table + "\n" + end + after
	}
	golden.Compare(t, scorePage, page)
}

func tableOf(head ...string) *strings.Builder {
	b := new(strings.Builder)
	rowOf(b, head...)
	rowOf(b, slices.Repeat([]string{"---"}, len(head))...)
	return b
}

func rowOf(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func signalTable(t *testing.T) string {
	page, err := os.ReadFile(scorePage)
	if err != nil {
		t.Fatal(err)
	}
	_, developers, _ := strings.Cut(string(page), "audience of developers: ")
	developers, _, _ = strings.Cut(developers, ".")
	b := tableOf("signal", "bucket", "weight", "unit", "curve", "absent", "max age, days", "not for", "sources")
	for _, s := range Manifest() {
		curve, absent, _ := strings.Cut(s.Normalization, ";absent=")
		curve = strings.ReplaceAll(strings.Replace(curve, ":", ": ", 1), "|", ", ")
		notFor := strings.Join(s.NotFor, ", ")
		if notFor == developers {
			notFor = "developers"
		}
		rowOf(b, "`"+s.ID+"`", string(s.Bucket), plain(s.Weight), s.Unit, curve, absent, strconv.Itoa(int(s.MaxAge/(24*time.Hour))), notFor, strings.Join(s.Sources, ", "))
	}
	return b.String()
}

func populationTable() string {
	b := tableOf("signal", "population", "basis of the percentiles")
	for _, s := range Manifest() {
		rowOf(b, "`"+s.ID+"`", s.Population, s.Basis)
	}
	return b.String()
}

func measureTable() string {
	b := tableOf("signal", "from", "to", "weight")
	for _, m := range measures {
		rowOf(b, "`"+manifest[m.signal].ID+"`", plain(m.from), plain(m.to), plain(m.weight))
	}
	return b.String()
}

func sectorTable() string {
	b := tableOf("sector", "SIC codes", "phrases of labels", "keywords of labels and sites")
	for _, s := range sectors {
		var codes []string
		for _, r := range s.sic {
			codes = append(codes, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
		rowOf(b, "`"+s.name+"`", strings.Join(codes, ", "), strings.Join(s.labels, "; "), strings.Join(s.keywords, "; "))
	}
	return b.String()
}

func regionTable() string {
	b := tableOf("region", "countries")
	for _, region := range []string{GeoNorthAmerica, GeoEurope, GeoAsiaPacific, GeoLatinAmerica, GeoMiddleEastAfrica} {
		rowOf(b, "`"+region+"`", regions[region])
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
	b := tableOf("step", "result")
	for _, s := range x.Signals {
		if s.State == StateOK || s.State == StateAbsent {
			rowOf(b, "`"+s.ID+"`", fmt.Sprintf("score %.4f, adds %.4f × %.4f × %.2f = %.4f to the base", s.Score, s.Score, s.Weight, s.Bucket.Weight(), s.Contribution))
		}
	}
	rowOf(b, "other signals", "50 each")
	for _, p := range x.Buckets {
		rowOf(b, "bucket `"+string(p.Bucket)+"`", fmt.Sprintf("%.4f, known %.1f %%", p.Score, p.CompletenessPct))
	}
	rowOf(b, "base", fmt.Sprintf("%.4f", rec.Base))
	rowOf(b, "scale", fmt.Sprintf("%.4f", x.Premium.Scale))
	rowOf(b, "premium", fmt.Sprintf("%.1f", rec.ScalePremium))
	rowOf(b, "composite", fmt.Sprintf("%.1f, %s", rec.Composite, rec.Rating))
	rowOf(b, "interval", fmt.Sprintf("%.1f to %.1f", rec.Interval.Low, rec.Interval.High))
	rowOf(b, "expected composite", fmt.Sprintf("%.1f", rec.ExpectedComposite))
	rowOf(b, "profile", string(rec.Profile))
	rowOf(b, "completeness", fmt.Sprintf("%.1f %%, %s", rec.CompletenessPct, rec.Confidence))
	return b.String()
}
