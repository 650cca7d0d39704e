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
	var order []Bucket
	for _, s := range signals {
		perBucket[s.Bucket]++
		if !slices.Contains(order, s.Bucket) {
			order = append(order, s.Bucket)
		} else if order[len(order)-1] != s.Bucket {
			t.Errorf("%s stands apart from its bucket", s.ID)
		}
		if got, ok := Lookup(s.ID); !ok || got.ID != s.ID || got.Weight != s.Weight {
			t.Errorf("Lookup(%q) = %+v, %v", s.ID, got, ok)
		}
	}
	if !slices.Equal(order, Buckets()) {
		t.Errorf("the buckets stand as %v, want %v", order, Buckets())
	}
	for bucket, want := range map[Bucket]int{
		TeamStructure: 17, MarketPosition: 17, MomentumTailwinds: 17, FinancialHealth: 16,
	} {
		if perBucket[bucket] != want {
			t.Errorf("%s has %d signals, want %d", bucket, perBucket[bucket], want)
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
	const row = "open_roles,team_structure,Open roles,jobs,roles,higher,log;floor=25;absent=0,1,500,0.08\n"
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
	f("no id", edit("open_roles,", ","), "empty")
	f("no source", edit("jobs", "jobs|"), "empty")
	f("unknown bucket", edit("team_structure", "team"), "unknown bucket")
	f("bad lo", edit("1,500", "one,500"), `lo: "one" is not a number`)
	f("bad hi", edit("1,500", "1,NaN"), "hi: ")
	f("bad weight", edit("0.08", "-0.08"), "not positive")
	f("weights off", edit("0.08", "0.09"), "sum to 1.01")
	f("bad rule", edit("log;", "lag;"), "unknown shape")
	f("bad direction", edit("higher", "up"), "unknown direction")

	if _, err := parseManifest(strings.Replace(manifestCSV, "id,bucket", "bucket,id", 1)); err == nil {
		t.Error("swapped columns are accepted")
	}
	if _, err := parseManifest(""); err == nil {
		t.Error("an empty manifest is accepted")
	}
}
