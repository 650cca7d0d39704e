package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"companyscore/internal/test/golden"
)

// sample is a report with all fields set.
func sample() *Run {
	random := rand.New(rand.NewPCG(1, 2))
	histogram := func(n int, middle float64) *hdrhistogram.Histogram {
		h := hdrhistogram.New(100, int64(2*time.Minute), 3)
		for range n {
			_ = h.RecordValue(int64(middle * (0.5 + random.ExpFloat64())))
		}
		return h
	}
	class := func(op, outcome string, expected bool, n int, middle float64) Class {
		h := histogram(n, middle)
		return Class{
			Name: op + " " + outcome, Op: op, Outcome: outcome, Expected: expected, Count: int64(n), Share: 0.25,
			PerSecond: float64(n) / 10, Bytes: int64(n) * 600,
			Latency: QuantilesOf(h), Service: QuantilesOf(histogram(n, middle/2)), Curve: CurveOf(h),
			Histogram: HistogramOf(h),
		}
	}
	r := &Run{
		Schema: Schema, StartedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		Settings: Settings{Scenario: "mixed", Rate: 1000, Arrivals: "poisson", Seed: 7, Duration: 10, Warmup: 2, Connections: 64,
			Pipeline: 1, Threads: 1, Keys: 4, Universe: 880, ColdShare: 0.01, PollEvery: 2},
		Verdict: Verdict{Status: Valid, Reasons: []string{}, Checks: []Check{{Name: "achieved", Value: 1, Limit: 0.99, OK: true},
			{Name: "steal", Value: 0.001, Limit: 0.05, OK: true}}},
		Load:     Load{Elapsed: 10, Planned: 10_000, Sent: 10_000, Answered: 9_999, Unexpected: 3, Achieved: 999.9, Reconnects: 1},
		Headline: []string{"score l1"},
		Classes: []Class{class("score", "l1", true, 9000, 80_000), class("score", "redis", true, 900, 600_000),
			class("post", "202", true, 97, 4_000_000), class("post", "429", false, 3, 900_000)},
		SLO: []SLO{{Text: "p99<2ms", Class: "score l1", Limit: 2000, Measured: 410.5, Met: true},
			{Text: "max<1ms", Class: "post 202", Limit: 1000, Measured: 21_000, Why: "of <everything>"}},
		Generator: Generator{
			Pacing: QuantilesOf(histogram(10_000, 20_000)), Waiting: QuantilesOf(histogram(10_000, 2_000)), CPU: 0.8, CPUShare: 0.08,
			Priority: "high",
		},
		Server: &Server{CPUPerRequest: 33.3, OtherFirst: 0.02, OtherLast: 0.03, Processes: []Process{}},
		Jobs: &Jobs{Started: 97, Complete: 95, Failed: 1, Unsettled: 1, ToScore: Quantiles{P50: 2_010_000, P99: 4_020_000,
			Max: 5_000_000}},
		Fill: &Fill{Companies: 880, Found: 879, Seconds: 1.5, RSSBefore: map[string]int64{"api": 40 << 20},
			RSSAfter: map[string]int64{"api": 44 << 20}},
		FindMax: &FindMax{Best: 1000, Limit: "slo", Steps: []Step{
			{Rate: 1000, Achieved: 999.9, Status: Valid, Met: true, P99: 410.5}, {Rate: 2000, Achieved: 1500, Status: ConditionsDrifted,
				P99: 90_000},
		}},
		Environment: Environment{
			Command: "companyscore bench run --key ... --slo p99<2ms", CPU: "Some <CPU>", Cores: 2, Memory: 24 << 30, Kernel: "6.1.0",
			Virtual: true, Go: "go1.26.0", Commit: "0123456789ab",
			Versions: map[string]string{"redis-server": "7.0.15"}, LoadBefore: "0.10 0.20 0.30", LoadAfter: "1.10 0.40 0.30",
			Priority: "high", Stops: Stops{3, 0.012, 8210},
		},
	}
	for second := range 12 {
		r.Intervals = append(r.Intervals, Interval{
			At: float64(second + 1), Measured: second >= 2, Sent: 1000, Answered: 1000 - int64(second), Failed: int64(second % 2),
			Waiting: int64(second), Headline: 900,
			P50: 70 + float64(second), P99: 300 + 10*float64(second), Max: 900 + 100*float64(second), PacingP99: 40,
		})
	}
	for _, name := range []string{"api", "clickhouse"} {
		p := Process{Name: name, CPU: 1.5, CPUShare: 0.15, RSSStart: 40 << 20, RSSThird: 41 << 20, RSSThirds: 41 << 20, RSSEnd: 42 << 20,
			Slope: -2 << 10}
		for second := range 10 {
			p.Samples = append(p.Samples, Sample{At: float64(second), RSS: 40<<20 + int64(second)<<18, CPU: 0.15})
		}
		r.Server.Processes = append(r.Server.Processes, p)
	}
	return r
}

func written(t *testing.T, write func(w io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReportsLookAsTheyDid(t *testing.T) {
	t.Parallel()
	golden.Compare(t, "testdata/mixed.txt", string(written(t, sample().Text)))
	golden.Compare(t, "testdata/mixed.html", string(written(t, sample().HTML)))
	golden.Compare(t, "testdata/mixed.json", string(written(t, sample().JSON)))
}

// A report that is not valid must not have headline figures.
func TestAnInvalidRunHasNoHeadline(t *testing.T) {
	t.Parallel()
	r := sample()
	headline := "score l1: p50"
	for _, write := range []func(io.Writer) error{r.Text, r.HTML} {
		if text := written(t, write); !bytes.Contains(text, []byte(headline)) {
			t.Fatalf("a valid run has no headline:\n%s", text)
		}
	}
	r.Verdict.Status, r.Verdict.Reasons = GeneratorSaturated, []string{"the generator was late"}
	for _, write := range []func(io.Writer) error{r.Text, r.HTML} {
		text := written(t, write)
		if bytes.Contains(text, []byte(headline)) || !bytes.Contains(text, []byte("the generator was late")) ||
			!bytes.Contains(text, []byte("GENERATOR_SATURATED")) {
			t.Errorf("an invalid run says:\n%s", text)
		}
	}
}

func TestJSONMatchesItsDescription(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	small := sample()
	small.Server, small.Jobs, small.Fill, small.FindMax = nil, nil, nil, nil
	for name, r := range map[string]*Run{"everything": sample(), "as little as can be": small} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(written(t, r.JSON)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := schema.Validate(map[string]any{"schema": 1}); err == nil {
		t.Error("the schema asks for nothing")
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var node map[string]any
	if err := json.Unmarshal(schema, &node); err != nil {
		t.Fatal(err)
	}
	var walk func(node map[string]any)
	walk = func(node map[string]any) {
		properties, _ := node["properties"].(map[string]any)
		for name, child := range properties {
			if !bytes.Contains(docs, []byte("`"+name+"`")) {
				t.Errorf("docs/bench.md does not explain `%s`", name)
			}
			walk(child.(map[string]any))
		}
		if items, ok := node["items"].(map[string]any); ok {
			walk(items)
		}
	}
	walk(node)
}

func TestReportSurvivesWriteAndRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	want := sample()
	if err := WriteFile(path, want.JSON); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{"": "EOF", "{}": "not a report", `{"schema":99,"settings":{"scenario":"hot"}}`: "99",
		"[1]": "cannot unmarshal"} {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", text, err, says)
		}
	}
}

func TestAFailedWriteLeavesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.json")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, func(io.Writer) error { return io.ErrShortWrite }); err == nil {
		t.Error("the error is lost")
	}
	files, err := os.ReadDir(dir)
	if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != "before" || len(files) != 1 {
		t.Errorf("the file holds %q, the directory %v", text, files)
	}
}

// The page must be self-contained.
func TestThePageAsksForNothing(t *testing.T) {
	t.Parallel()
	text := string(written(t, sample().HTML))
	for _, found := range regexp.MustCompile(`(?i)<script|\b(src|href|action|srcset)\s*=|url\(|@import|http://|https://`).
		FindAllString(text, -1) {
		t.Errorf("the page holds %q", found)
	}
	for _, raw := range []string{"<everything>", "<CPU>", "p99<2ms"} {
		if strings.Contains(text, raw) {
			t.Errorf("the page holds %q unescaped", raw)
		}
	}
	if n := strings.Count(text, "<svg"); n != 5 {
		t.Errorf("%d drawings, want 5", n)
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("a drawing has points that are none")
	}
}

func TestRunWithoutAnswersIsReported(t *testing.T) {
	t.Parallel()
	r := &Run{Schema: Schema, Settings: Settings{Scenario: "hot"}, Verdict: Verdict{Status: ConditionsDrifted},
		Headline: []string{"score l1"}}
	for _, write := range []func(io.Writer) error{r.Text, r.HTML, r.JSON} {
		if text := written(t, write); len(text) == 0 || bytes.Contains(text, []byte("NaN")) {
			t.Errorf("it says:\n%s", text)
		}
	}
}

func TestCurvesRise(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 9, 10, 1000, 100_000} {
		h := hdrhistogram.New(100, int64(time.Minute), 3)
		random := rand.New(rand.NewPCG(1, uint64(n)))
		for range n {
			_ = h.RecordValue(int64(random.ExpFloat64() * 1e6))
		}
		curve := CurveOf(h)
		for i := 1; i < len(curve); i++ {
			if curve[i].Percentile <= curve[i-1].Percentile || curve[i].Latency < curve[i-1].Latency {
				t.Errorf("%d values: %v follows %v", n, curve[i], curve[i-1])
			}
		}
		if first, last := curve[0], curve[len(curve)-1]; first.Percentile != 0 || last.Percentile != 100 ||
			last.Latency != QuantilesOf(h).Max {
			t.Errorf("%d values: the curve goes from %v to %v, the maximum is %v", n, first, last, QuantilesOf(h).Max)
		}
	}
}

func TestHistogramsHaveAllAnswers(t *testing.T) {
	t.Parallel()
	h := hdrhistogram.New(100, int64(2*time.Minute), 3)
	for _, us := range []int64{3, 4, 150, 190, 210, 4900, 110_000} {
		_ = h.RecordValue(us * 1000)
	}
	want := []Bin{{5, 2}, {10, 0}, {20, 0}, {50, 0}, {100, 0}, {200, 2}, {500, 1}, {1000, 0}, {2000, 0}, {5000, 1}, {10_000, 0},
		{20_000, 0}, {50_000, 0}, {100_000, 0}, {200_000, 1}}
	if got := HistogramOf(h); !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := HistogramOf(hdrhistogram.New(100, 1000, 3)); got != nil {
		t.Errorf("without answers: %v", got)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(after *Run)
		worse  bool
		says   string
	}{
		"the same":                        {func(*Run) {}, false, "+0.0 %"},
		"slower within the tolerance":     {func(r *Run) { r.Classes[1].Latency.P99 *= 1.09 }, false, "+9.0 %"},
		"slower":                          {func(r *Run) { r.Classes[1].Latency.P99 *= 1.2 }, true, "score redis p99"},
		"faster":                          {func(r *Run) { r.Classes[1].Latency.P99 /= 2 }, false, "-50.0 %"},
		"slower by less than clocks tell": {func(r *Run) { r.Classes[0].Latency.P50 += 40 }, false, "score l1 p50"},
		"fewer answers":                   {func(r *Run) { r.Load.Achieved /= 2 }, true, "answers"},
		"dearer":                          {func(r *Run) { r.Server.CPUPerRequest *= 1.5 }, true, "server CPU"},
		"more that was not expected":      {func(r *Run) { r.Load.Unexpected *= 2 }, true, "unexpected"},
		"another rate":                    {func(r *Run) { r.Settings.Rate = 500 }, false, "rate: 1000, then 500"},
		"another machine":                 {func(r *Run) { r.Environment.CPU = "other" }, false, "CPU: Some <CPU>, then other"},
		"a class that is gone":            {func(r *Run) { r.Classes = r.Classes[:3] }, false, "the second run has no post 429"},
		"another scenario":                {func(r *Run) { r.Settings.Scenario = "hot" }, true, "not comparable"},
		"not valid": {func(r *Run) { r.Verdict.Status = GeneratorSaturated }, true,
			"the second run is GENERATOR_SATURATED"},
		"a closed loop": {func(r *Run) { r.Settings.Rate = 0 }, true, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := sample()
			c.change(after)
			got := Compare(sample(), after, 0.10, false)
			text := written(t, got.Text)
			if got.Worse() != c.worse || !strings.Contains(string(text), c.says) {
				t.Errorf("worse is %v, want %v; want %q in:\n%s", got.Worse(), c.worse, c.says, text)
			}
		})
	}
}

func TestCompareAnywayMarksWhatIsNotValid(t *testing.T) {
	t.Parallel()
	after := sample()
	after.Classes[0].Latency.P99 *= 3
	if got := Compare(sample(), after, 0.10, true); !strings.Contains(string(written(t, got.Text)), "WORSE") {
		t.Errorf("valid runs: %s", written(t, got.Text))
	}
	after.Verdict.Status = ConditionsDrifted
	got := Compare(sample(), after, 0.10, true)
	text := string(written(t, got.Text))
	if !got.Worse() || strings.Contains(text, "WORSE") || !strings.Contains(text, "not valid: the second run is CONDITIONS_DRIFTED") {
		t.Errorf("worse is %v:\n%s", got.Worse(), text)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "score l1 p99 ") && (!strings.Contains(line, "3.00 x") || !strings.Contains(line, "not valid")) ||
			strings.Contains(line, " x ") && !strings.Contains(line, "not valid") {
			t.Errorf("a line is not marked: %s", line)
		}
	}
	if strings.Count(text, " x ") < 10 {
		t.Errorf("ratios are missing:\n%s", text)
	}
	after.Settings.Scenario = "hot"
	if got := Compare(sample(), after, 0.10, true); !got.Worse() || len(got.Differences) > 0 {
		t.Errorf("runs of two scenarios: %+v", got)
	}
}

func TestNumbersAreWrittenShort(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Duration(0): "0", Duration(0.25): "0.25 µs", Duration(12.34): "12.3 µs", Duration(999): "999 µs", Duration(1234): "1.23 ms",
		Duration(2e6): "2.00 s", Duration(9.996): "10.0 µs",
		Count(0): "0", Count(1234567): "1,234,567", Count(-1000): "-1,000", Count(5.25): "5.25", Count(86_400.4): "86,400",
		Size(1 << 10): "1.00 KB", Size(300 << 20): "300 MB", Size(-3 << 29): "-1.50 GB", Percent(0.5): "50.0 %", Percent(1): "100 %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func ExampleDuration() {
	fmt.Println(Duration(85.3), Duration(1950))
	// Output: 85.3 µs 1.95 ms
}
