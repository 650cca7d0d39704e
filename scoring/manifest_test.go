package scoring

import (
	"slices"
	"strings"
	"testing"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	signals := Manifest()
	if len(signals) != SignalCount {
		t.Fatalf("%d signals, want %d", len(signals), SignalCount)
	}
	perBucket := map[Bucket]int{}
	weights := map[Bucket]float64{}
	var order []Bucket
	for _, s := range signals {
		perBucket[s.Bucket]++
		weights[s.Bucket] += s.Weight
		if !slices.Contains(order, s.Bucket) {
			order = append(order, s.Bucket)
		} else if order[len(order)-1] != s.Bucket {
			t.Errorf("%s is outside of its bucket", s.ID)
		}
		if got, ok := Lookup(s.ID); !ok || got.ID != s.ID || got.Weight != s.Weight {
			t.Errorf("Lookup(%q) = %+v, %v", s.ID, got, ok)
		}
		if s.Population == "" || s.Basis == "" || s.MaxAge <= 0 {
			t.Errorf("%s: population %q, basis %q, max age %v", s.ID, s.Population, s.Basis, s.MaxAge)
		}
	}
	if !slices.Equal(order, Buckets()) {
		t.Errorf("the order of buckets is %v, want %v", order, Buckets())
	}
	for bucket, want := range map[Bucket]int{
		TeamStructure: 17, MarketPosition: 17, MomentumTailwinds: 17, FinancialHealth: 16,
	} {
		if perBucket[bucket] != want {
			t.Errorf("%s has %d signals, want %d", bucket, perBucket[bucket], want)
		}
		if !near(weights[bucket], 1, 1e-9) {
			t.Errorf("the weights of %s sum to %v, want 1", bucket, weights[bucket])
		}
	}
	if _, ok := Lookup("no_such_signal"); ok {
		t.Error("Lookup finds a signal that does not exist")
	}

	signals[0].ID = "changed"
	if Manifest()[0].ID == "changed" {
		t.Error("a caller can change the manifest")
	}
}

// Each curve scores 20, 50 and 80 at the percentiles that its rule gives, and a yes or no the middle
// of its part of the population.
func TestCurvesScorePercentiles(t *testing.T) {
	t.Parallel()
	for _, s := range Manifest() {
		rule, _, _ := strings.Cut(s.Normalization, ";")
		shape, values, _ := strings.Cut(rule, ":")
		if shape == "share" {
			share := number(t, values)
			no, yes := s.Curve.Score(0), s.Curve.Score(1)
			// The mean of the population is near 50. Between percentiles 10 and 90 it is not exactly 50.
			if mean := share*yes + (1-share)*no; no >= yes || !near(mean, 50, 3) {
				t.Errorf("%s scores %v and %v, mean %v", s.ID, no, yes, mean)
			}
			continue
		}
		raws := strings.Split(values, "|")
		for i, want := range []float64{0, 20, 50, 80, 100} {
			if got := s.Curve.Score(number(t, raws[i])); !near(got, want, 1e-9) {
				t.Errorf("%s: %s scores %v, want %v", s.ID, raws[i], got, want)
			}
		}
	}
}

func TestBucketWeights(t *testing.T) {
	t.Parallel()
	var sum float64
	for _, b := range Buckets() {
		sum += b.Weight()
	}
	if !near(sum, 1, 1e-12) {
		t.Errorf("the bucket weights sum to %v, want 1", sum)
	}
	if w := Bucket("other").Weight(); w != 0 {
		t.Errorf("an unknown bucket weighs %v, want 0", w)
	}
	f := func(buckets BucketScores, want float64) {
		t.Helper()
		if got := round1(buckets.weighted()); got != want {
			t.Errorf("the base of %v is %v, want %v", buckets, got, want)
		}
	}
	f(BucketScores{66.0, 63.0, 65.2, 65.5}, 64.8)
	f(BucketScores{74.0, 75.0, 70.4, 65.0}, 71.6)
	f(BucketScores{34.0, 29.0, 27.6, 40.0}, 32.1)
	f(BucketScores{46.0, 44.0, 42.8, 45.0}, 44.4)
}

func TestParseManifestRefuses(t *testing.T) {
	t.Parallel()
	const row = "open_roles,team_structure,Open roles,jobs,roles,higher,log:-0.5|1|8|80|2000;absent=42,30,,companies with a public job " +
		"board,judgement,0.08\n"
	if !strings.Contains(manifestCSV, row) {
		t.Fatal("the row to break is not in the manifest")
	}
	f := func(name, broken, reason string) {
		t.Helper()
		_, err := parseManifest(strings.Replace(manifestCSV, row, broken, 1))
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want it to say %q", name, err, reason)
		}
	}
	edit := func(old, changed string) string { return strings.Replace(row, old, changed, 1) }

	f("row lost", "", "66 signals")
	f("row twice", row+row, "68 signals")
	f("column lost", edit(",0.08", ""), "wrong number of fields")
	f("id twice", edit("open_roles", "employee_count"), "twice")
	f("no id", edit("open_roles,", ","), "id is empty")
	f("no population", edit("companies with a public job board", ""), "population is empty")
	f("no basis", edit("judgement", ""), "basis is empty")
	f("no source", edit("jobs", "jobs|"), "a source is empty")
	f("unknown bucket", edit("team_structure", "team"), "unknown bucket")
	f("unknown sector", edit("30,,", "30,listed|banks,"), `unknown sector "banks"`)
	f("no age", edit("30,,", "0,,"), "max_age_days")
	f("fraction of a day", edit("30,,", "1.5,,"), "max_age_days")
	f("bad weight", edit("0.08", "-0.08"), "not positive")
	f("weights off", edit("0.08", "0.09"), "sum to 1.01")
	f("bad rule", edit("log:", "lag:"), "unknown shape")
	f("bad direction", edit("higher", "up"), "unknown direction")

	if _, err := parseManifest(strings.Replace(manifestCSV, "id,bucket", "bucket,id", 1)); err == nil {
		t.Error("swapped columns are accepted")
	}
	if _, err := parseManifest(""); err == nil {
		t.Error("an empty manifest is accepted")
	}
}
