package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"companyscore/bench"
	"companyscore/bench/load"
	"companyscore/bench/peer"
	"companyscore/bench/report"
	"companyscore/internal/test/wait"
)

// live is a running `up` with some scored companies.
type live struct{ binary, data, companies string }

// liveLimit bounds the start of the `up`, and each command.
const liveLimit = wait.Max

// startLive starts an `up` that ends with the test.
func startLive(t *testing.T) *live {
	t.Helper()
	// Paths of unix sockets must be short, so t.TempDir does not suit.
	dir, err := os.MkdirTemp("", "cs-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &live{data: filepath.Join(dir, "data"), companies: filepath.Join(dir, "companies.txt")}
	if l.binary, err = binary(); err != nil {
		t.Fatal(err)
	}
	up := exec.Command(l.binary, "up", "--data", l.data, "--listen", "127.0.0.1:0", "--sources", "facts", "--log-level", "error")
	var log bytes.Buffer
	up.Stderr = &log
	stdout, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		watchdog := time.AfterFunc(liveLimit, func() { _ = up.Process.Kill() })
		defer watchdog.Stop()
		if err := up.Wait(); err != nil || t.Failed() {
			t.Errorf("up ended with %v:\n%s", err, &log)
		}
	})
	watchdog := time.AfterFunc(liveLimit, func() { _ = up.Process.Kill() })
	defer watchdog.Stop()
	for lines := bufio.NewScanner(stdout); lines.Scan() && !strings.HasPrefix(lines.Text(), "ready "); {
	}
	names := []string{"one-bench.com", "two-bench.com", "three-bench.com", "four-bench.com"}
	if err := os.WriteFile(l.companies, []byte(strings.Join(names, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := l.call(t, "run", "start", "--from", l.companies, "--wait", "--quiet"); code != exitDone {
		t.Fatalf("companies are not scored:\n%s", out)
	}
	return l
}

// call runs a command with the `up` and returns its exit code and output.
func (l *live) call(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.binary, append(args, "--data", l.data)...)
	cmd.WaitDelay = liveLimit
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestBenchOnALiveServer runs every scenario briefly. It checks what does not depend on the
// speed of the machine: the classes of answers, and that none is unexpected.
func TestBenchOnALiveServer(t *testing.T) {
	t.Parallel()
	l := startLive(t)
	dir := filepath.Dir(l.data)
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("bench", "report", "report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys")
	if code, out := l.call(t, "bench", "seed", "--keys", "2", "--keys-file", keys); code != exitDone {
		t.Fatalf("no keys:\n%s", out)
	}
	for scenario, want := range map[string][]string{
		"hot": {"score l1"}, "zipf": {"score l1"}, "uniform-miss": {"score l1"}, "not-found": {"score 404"}, "conditional": {"score 304"},
		"batch":          {"batch l1"},
		"history-paging": {"history l1"}, "signals": {"signals l1"},
		"analytics": {"distribution table", "movers table", "cohort l1"}, "cold-start": {"post 202"},
		"mixed": {"score l1", "post 202"}, "resident": {"score l1"}, "null": {"score l1"},
	} {
		path := filepath.Join(dir, scenario+".json")
		rate := "100"
		if scenario == "cold-start" {
			rate = "20"
		}
		code, out := l.call(t, "bench", "run", "--scenario", scenario, "--keys-file", keys, "--domains-file", l.companies, "--rate", rate,
			"--duration", "500ms", "--warmup", "200ms",
			"--cold-share", "0.2", "--poll-every", "50ms", "--drain", "1m", "--timeout", "1m", "--connections", "8", "--json", path,
			"--html", path+".html", "--quiet")
		run, err := report.Read(path)
		if err != nil {
			t.Fatalf("%s: %v\n%s", scenario, err, out)
		}
		for _, class := range want {
			if run.ClassNamed(class) == nil {
				t.Errorf("%s has no %s:\n%s", scenario, class, out)
			}
		}
		// Follow-ups are added to the requests of the rate.
		if run.Load.Unexpected != 0 || run.Load.Answered != run.Load.Planned || run.Load.Planned < int64(run.Settings.Rate/2) {
			t.Errorf("%s: %d of %d answered, %d unexpected:\n%s", scenario, run.Load.Answered, run.Load.Planned, run.Load.Unexpected, out)
		}
		if valid := run.Verdict.Status == report.Valid; valid != (code == exitDone) || valid != strings.Contains(out, ": p50 ") {
			t.Errorf("%s: exit %d with verdict %s:\n%s", scenario, code, run.Verdict.Status, out)
		}
		if run.Server == nil || len(run.Server.Processes) == 0 {
			t.Errorf("%s: no process was watched", scenario)
		}
		if run.Jobs != nil && (run.Jobs.Started == 0 || run.Jobs.Complete != run.Jobs.Started) {
			t.Errorf("%s: %+v, want all complete", scenario, *run.Jobs)
		}
		if run.Fill != nil && run.Fill.Found != 4 {
			t.Errorf("%s: %d companies were found, want 4", scenario, run.Fill.Found)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", scenario, err)
		}
		for _, key := range strings.Fields(readFile(t, keys)) {
			if bytes.Contains(text, []byte(key)) {
				t.Errorf("%s: the report holds a key", scenario)
			}
		}
	}
	if code, out := l.call(t, "bench", "run", "--domains-file", l.companies, "--rate", "100", "--duration", "300ms", "--slo",
		"p50<1ns"); code != exitFailed || !strings.Contains(out, "MISSED") {
		t.Errorf("a promise that cannot be kept: exit %d\n%s", code, out)
	}
	code, out := l.call(t, "bench", "run", "--domains-file", l.companies, "--rate", "64", "--duration", "300ms", "--warmup", "0s", "--slo",
		"p50<1ns", "--find-max", "--json", "-")
	var run report.Run
	if err := json.Unmarshal([]byte(out), &run); err != nil || code != exitFailed || run.FindMax == nil || run.FindMax.Best != 0 ||
		len(run.FindMax.Steps) < 2 {
		t.Errorf("a search for what cannot be kept: exit %d, %v\n%s", code, err, out)
	}
	comparePeers(t, l)
}

func comparePeers(t *testing.T, l *live) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.binary, "bench", "peers", "--rounds", "1", "--each", "200ms", "--connections", "4",
		"--domain", "one-bench.com", "--data", l.data, "--json", "-")
	cmd.WaitDelay = liveLimit
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.Output() // the result of the targets depends on the machine
	var result peer.Result
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%v\n%s%s", err, out, &errs)
	}
	var names []string
	for _, p := range result.Peers {
		names = append(names, p.Name)
		if len(p.PerSecond) != 1 || p.PerSecond[0] <= 0 || p.Throughput.Median <= 0 {
			t.Errorf("%s was not measured: %+v", p.Name, p)
		}
	}
	for _, want := range []string{peer.Ours, peer.BareFiber, "net/http", "Fiber with Redis", "ClickHouse over HTTP"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing among %q, left out: %q", want, names, result.Skipped)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBenchSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "list")
	if err := os.WriteFile(list, []byte("example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := []string{"--data", filepath.Join(dir, "none")}
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"everything at once": {[]string{"bench", "run", "--scenario", "dance", "--slo", "fast", "--rate", "-1", "--url", "ftp://x"},
			exitUsage, []string{"dance", "hot", "p99<2ms", "rate", "http://host:port", "--key"}},
		"no companies": {[]string{"bench", "run", "--key", "k"}, exitUsage, []string{"--domains-file", "--seed"}},
		"two universes": {[]string{"bench", "run", "--key", "k", "--domains", "5", "--domains-file", list}, exitUsage,
			[]string{"not both"}},
		"a search for nothing": {[]string{"bench", "run", "--key", "k", "--domains-file", list, "--find-max"}, exitUsage,
			[]string{"--slo"}},
		"an unknown class": {[]string{"bench", "run", "--key", "k", "--domains-file", list, "--slo", "post 202:p99<1s"}, exitUsage,
			[]string{"post 202", "score"}},
		"a pid that is none": {[]string{"bench", "run", "--key", "k", "--domains-file", list, "--pid", "api"}, exitUsage,
			[]string{"NAME=PID"}},
		"nobody answers": {[]string{"bench", "run", "--key", "k", "--domains-file", list, "--url", "http://127.0.0.1:1", "--quiet"},
			exitFailed, []string{"127.0.0.1:1", "refused"}},
		"no such report":   {[]string{"bench", "report", filepath.Join(dir, "none.json")}, exitFailed, []string{"none.json"}},
		"no report at all": {[]string{"bench", "compare", list, list}, exitFailed, []string{list}},
		"no rounds":        {[]string{"bench", "peers", "--rounds", "0"}, exitUsage, []string{"rounds"}},
	} {
		if c.args[1] == "run" {
			c.args = append(c.args, data...)
		}
		code, stdout, stderr := command(t, "", c.args...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s%s", name, code, c.code, stdout, stderr)
		}
		for _, text := range c.says {
			if !strings.Contains(stdout+stderr, text) {
				t.Errorf("%s: %q is not said: %s%s", name, text, stdout, stderr)
			}
		}
	}
}

func TestBenchHelpNamesAllScenarios(t *testing.T) {
	t.Parallel()
	_, stdout, _ := command(t, "", "bench", "run", "--help")
	docs := readFile(t, filepath.Join("docs", "bench.md"))
	for _, s := range bench.Scenarios {
		if !strings.Contains(stdout, s.Name) || !strings.Contains(docs, "| `"+s.Name+"` |") {
			t.Errorf("%s is not explained", s.Name)
		}
	}
}

func TestReportsAreComparedByExitCode(t *testing.T) {
	t.Parallel()
	sample := filepath.Join("bench", "report", "testdata", "mixed.json")
	if code, stdout, stderr := command(t, "", "bench", "compare", sample, sample); code != exitDone {
		t.Errorf("the same twice: exit %d: %s%s", code, stdout, stderr)
	}
	slower := filepath.Join(t.TempDir(), "slower.json")
	run, err := report.Read(sample)
	if err != nil {
		t.Fatal(err)
	}
	run.Classes[0].Latency.P99 *= 3
	if err := report.WriteFile(slower, run.JSON); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := command(t, "", "bench", "compare", sample, slower); code != exitFailed || !strings.Contains(stdout, "WORSE") {
		t.Errorf("three times slower: exit %d: %s", code, stdout)
	}
	if code, stdout, _ := command(t, "", "bench", "compare", "--tolerance", "250", sample, slower); code != exitDone {
		t.Errorf("three times slower, and that is tolerated: exit %d: %s", code, stdout)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if code, _, stderr := command(t, "", "bench", "report", sample, "--html", page); code != exitDone ||
		!strings.Contains(readFile(t, page), "<svg") {
		t.Errorf("no page: exit %d: %s", code, stderr)
	}
}

func TestLiveViewSumsFailures(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	show := liveView(&shown)
	for second, measured := range []bool{false, true, true} {
		show(bench.Progress{Total: 3 * time.Second, Interval: load.Interval{At: time.Duration(second+1) * time.Second, Measured: measured,
			Answered: 1000, Failed: 2, P99: 2_710_000, P99SoFar: int64(second) * 2_900_000}})
	}
	lines := strings.Split(shown.String(), "\r\033[K")
	want := []string{"", "warm-up 1 s of 3 s: 1,000 answers/s, p99 2.71 ms, waiting 0, failed 0",
		"measuring 2 s of 3 s: 1,000 answers/s, p99 2.71 ms (2.90 ms so far), waiting 0, failed 2",
		"measuring 3 s of 3 s: 1,000 answers/s, p99 2.71 ms (5.80 ms so far), waiting 0, failed 4"}
	if !slices.Equal(lines, want) {
		t.Errorf("shown are %q", lines)
	}
}
