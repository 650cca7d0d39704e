package bench

import (
	"strings"
	"testing"
	"time"

	"companyscore/bench/load"
)

func TestParseSLO(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SLO{
		"p99<2ms":               {"", 99, 2 * time.Millisecond},
		" p99.9 < 10ms ":        {"", 99.9, 10 * time.Millisecond},
		"max<1s":                {"", 100, time.Second},
		"score redis:p50<500us": {"score redis", 50, 500 * time.Microsecond},
	} {
		if got, err := ParseSLO(text); err != nil || got != want {
			t.Errorf("ParseSLO(%q) is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "p99", "99<2ms", "p<2ms", "p0<2ms", "p100<1ms", "pNaN<1ms", "p99<2", "p99<-1ms", "p99<0s", ":p99<1ms",
		"min<1ms", "p99>2ms"} {
		if got, err := ParseSLO(text); err == nil || !strings.Contains(err.Error(), "p99<2ms") {
			t.Errorf("ParseSLO(%q) is %v, %v; want an error that shows how", text, got, err)
		}
	}
}

func FuzzParseSLO(f *testing.F) {
	for _, text := range []string{"p99<2ms", "max<1s", "score redis:p99.9<5ms", "p1e1<1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slo, err := ParseSLO(text)
		if err != nil {
			return
		}
		if !(slo.Percentile > 0 && slo.Percentile <= 100) || slo.Limit <= 0 {
			t.Fatalf("ParseSLO(%q) is %v", text, slo)
		}
		again, err := ParseSLO(slo.String())
		if slo.Class = ""; err != nil || again != slo {
			t.Fatalf("ParseSLO(%q) is %v, %v; want %v", slo.String(), again, err, slo)
		}
	})
}

// measured returns a result with one class of a hundred answers, the i-th after i milliseconds.
func measured(key load.Key) *load.Result {
	class := load.Class{Key: key, Latency: load.NewHistogram(), Service: load.NewHistogram()}
	for i := range 100 {
		_ = class.Latency.RecordValue(int64(i+1) * int64(time.Millisecond))
	}
	return &load.Result{Planned: 100, Answered: 100, Classes: []load.Class{class}}
}

func TestPromisesAreHeldAgainstTheirClass(t *testing.T) {
	t.Parallel()
	redis := load.Key{Op: "score", Outcome: "redis"}
	headline := []load.Key{{Op: "score", Outcome: "clickhouse"}, redis}
	for name, c := range map[string]struct {
		slo        string
		unexpected float64
		met        bool
		why        string
	}{
		"kept":                      {"p50<51ms", 0, true, ""},
		"missed":                    {"p99<99ms", 0, false, ""},
		"of a class by name":        {"score redis:max<101ms", 0, true, ""},
		"of a class without answer": {"score l1:p99<1h", 0, false, "no answer of this class"},
		"kept with few failures":    {"p50<51ms", 0.01, true, ""},
		"kept with many failures":   {"p50<51ms", 0.02, false, "2.00 %"},
	} {
		slo, err := ParseSLO(c.slo)
		if err != nil {
			t.Fatal(err)
		}
		got := checkSLOs([]SLO{slo}, headline, measured(redis), c.unexpected, 0.01)
		if len(got) != 1 || got[0].Met != c.met || !strings.Contains(got[0].Why, c.why) || (got[0].Why == "") != (c.why == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := checkSLOs([]SLO{{Percentile: 50, Limit: time.Hour}}, headline, &load.Result{}, 0, 0); got[0].Met {
		t.Errorf("a promise is kept without an answer: %+v", got)
	}
}
