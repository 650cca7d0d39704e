package fakesources_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"companyscore/internal/test/fakesources"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

var program = flag.String("program", "", "companyscore binary to run against the fakes; without it the test is skipped")

// Figures that the demo must reach.
const (
	companies    = 200
	inFlightMin  = 50
	concurrency  = 96
	memoryMaxMB  = 300
	runsPatience = wait.Max
)

// TestDemoSources runs the program against the fakes: `up` with a worker whose sources take a
// second for each answer and fail for one company in ten. It prints a line for each figure.
func TestDemoSources(t *testing.T) {
	if *program == "" {
		t.Skip("no -program is given")
	}
	dir := t.TempDir()
	cfg := fakesources.Config{
		Companies: companies, Seed: *seed, Latency: time.Second, Faults: 0.1, Hangs: true, Ranked: 1_000_000, Dir: dir, Scale: 10_000,
		Now: time.Now(),
	}
	fakes, err := fakesources.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer fakes.Close()
	overrides, err := yaml.Marshal(fakes.Overrides())
	if err != nil {
		t.Fatal(err)
	}
	var domains bytes.Buffer
	for _, c := range fakes.Companies {
		fmt.Fprintln(&domains, c.Domain)
	}
	for name, text := range map[string][]byte{"sources.yaml": overrides, "domains.txt": domains.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	worker := start(t, dir, data)

	before := peakMemory(t, worker)
	began := time.Now()
	run := exec.CommandContext(t.Context(), *program, "run", "start", "--data", data, "--quiet", "--wait", "--from",
		filepath.Join(dir, "domains.txt"))
	watchdog := time.AfterFunc(runsPatience, func() { _ = run.Process.Kill() })
	out, err := run.CombinedOutput()
	watchdog.Stop()
	took := time.Since(began)
	if err != nil {
		t.Errorf("run start: %v\n%s", err, out)
	}
	peak := peakMemory(t, worker)

	outcomes := outcomes(t, data)
	var signals, warned, injected, wrong int
	for _, c := range fakes.Companies {
		for _, code := range outcomes[c.Domain].warnings {
			if code != scoring.WarningDefunct {
				warned++
			}
		}
		injected += len(fakes.Injected(c.Domain))
	}
	for domain, want := range undisturbed(t, cfg, outcomes) {
		faults := outcomes[domain].differences(want)
		if wrong += len(faults); len(faults) > 0 && wrong < 20 {
			t.Logf("%s: %s", domain, strings.Join(faults, "\n"))
		}
		signals += len(outcomes[domain].signals)
	}
	// verdict prints a figure, and fails the test if it is missed.
	verdict := func(ok bool, format string, args ...any) {
		mark := "ok  "
		if !ok {
			mark = "FAIL"
			t.Fail()
		}
		fmt.Printf("%s  %s\n", mark, fmt.Sprintf(format, args...))
	}
	verdict(len(outcomes) == companies, "%d of %d runs made a record, in %.1f s", len(outcomes), companies, took.Seconds())
	verdict(warned == injected && injected > 0, "%d sources failed as injected, %d warnings were recorded", injected, warned)
	verdict(wrong == 0 && signals == companies*scoring.SignalCount,
		"%d signals compared with those of a client without load, with completeness and warnings: %d differences", signals, wrong)
	verdict(peak > 0 && peak < memoryMaxMB, "the worker's memory peaked at %.0f MB, with a list of 1,000,000 traffic ranks three times, "+
		"and at %.0f MB before the first run (limit %d MB)", peak, before, memoryMaxMB)
	exchanges, err := recordAndReplay(t, fakes, dir)
	verdict(err == nil, "a recording of 2 companies with %d exchanges gave the same observations after the fakes were stopped", exchanges)
	verdict(fakes.InFlight() >= inFlightMin, "%d runs were in flight at once in one worker (at least %d)", fakes.InFlight(), inFlightMin)
}

// recordAndReplay records two companies with the program, stops the fakes, and replays the recording.
// It returns the number of exchanges.
func recordAndReplay(t *testing.T, fakes *fakesources.Fakes, dir string) (exchanges int, err error) {
	t.Helper()
	to := filepath.Join(dir, "recording")
	out, err := exec.CommandContext(t.Context(), *program, "source", "record", fakes.Companies[0].Domain, fakes.Companies[1].Domain,
		"--to", to, "--sources-at", filepath.Join(dir, "sources.yaml"), "--contact", "operator@example.com").CombinedOutput()
	if err == nil {
		err = fakes.Close()
	}
	if err == nil {
		out, err = exec.CommandContext(t.Context(), *program, "source", "replay", to).CombinedOutput()
	}
	if err != nil {
		t.Logf("%s", out)
		return 0, err
	}
	lines, err := os.ReadFile(filepath.Join(to, "exchanges.jsonl"))
	return bytes.Count(lines, []byte("\n")), err
}

// start starts the program with all its parts and returns the process id of its
// worker, once that has its lists of traffic ranks. The program ends with the test.
func start(t *testing.T, dir, data string) (worker int) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "up.log"))
	if err != nil {
		t.Fatal(err)
	}
	up := exec.Command(*program, "up", "--data", data, "--listen", "127.0.0.1:0", "--sources", "all", "--contact", "operator@example.com",
		"--sources-at", filepath.Join(dir, "sources.yaml"), "--log-level", "error")
	up.Env = append(os.Environ(), "COMPANYSCORE_CONCURRENCY="+strconv.Itoa(concurrency))
	up.Stderr = log
	stdout, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		if err := up.Wait(); err != nil {
			t.Errorf("up: %v", err)
		}
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() && len(text) > 0 {
			t.Logf("up said:\n%.5000s", text)
		}
	})
	lines := bufio.NewScanner(stdout)
	ready := make(chan bool, 1)
	go func() {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				ready <- true
			}
		}
		close(ready)
	}()
	if !<-ready {
		t.Fatal("up ended before it was ready")
	}
	var runtime struct {
		Processes map[string]int `json:"processes"`
	}
	text, err := os.ReadFile(filepath.Join(data, "runtime.json"))
	if err == nil {
		err = json.Unmarshal(text, &runtime)
	}
	if worker = runtime.Processes["worker"]; err != nil || worker == 0 {
		t.Fatalf("there is no worker: %v\n%s", err, text)
	}
	wait.Until(t, "the worker has its lists of traffic ranks", func() bool {
		files, _ := filepath.Glob(filepath.Join(data, "ranks", "ranking-*.csv"))
		return len(files) == 3
	})
	return worker
}

// peakMemory is the greatest resident memory of a process until now, in MB.
func peakMemory(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Errorf("the worker is not the one that was started: %v", err)
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kB, err := strconv.ParseFloat(fields[1], 64)
			if err == nil {
				return math.Round(kB / 1024)
			}
		}
	}
	t.Error("the peak of memory is not told")
	return 0
}

// seen is the result of one signal.
type seen struct {
	state  scoring.State
	raw    float64
	reason scoring.Reason
}

// outcome is the result of one run.
type outcome struct {
	scoredAt     time.Time
	completeness float64
	signals      map[string]seen
	warnings     map[string]string // codes by source
}

// differences lists what is not as wanted.
func (o outcome) differences(want outcome) (faults []string) {
	if !maps.Equal(o.warnings, want.warnings) {
		faults = append(faults, fmt.Sprintf("warnings %v, want %v", o.warnings, want.warnings))
	}
	if math.Abs(o.completeness-want.completeness) > 0.05+1e-9 {
		faults = append(faults, fmt.Sprintf("completeness %.1f, want %.1f", o.completeness, want.completeness))
	}
	for id, w := range want.signals {
		got := o.signals[id]
		if got.state != w.state || got.reason != w.reason || math.Abs(got.raw-w.raw) > 1e-6*(1+math.Abs(w.raw)) {
			faults = append(faults, fmt.Sprintf("%s: %v, want %v", id, got, w))
		}
	}
	return faults
}

// undisturbed scores the same companies at the same instants with a client in this process, a few at
// a time, on fakes that fail in the same way and take no time. TestSignalsOfInventedCompanies holds
// the values of such a client.
func undisturbed(t *testing.T, cfg fakesources.Config, outcomes map[string]outcome) map[string]outcome {
	t.Helper()
	cfg.Latency, cfg.Ranked, cfg.Dir = 0, 2000, t.TempDir()
	fakes, err := fakesources.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer fakes.Close()
	wanted := make(map[string]outcome)
	at := func(c *fakesources.Company) time.Time {
		if o, ok := outcomes[c.Domain]; ok {
			return o.scoredAt
		}
		return cfg.Now // its run failed, and the test has
	}
	for _, rec := range scoreAll(t, fakes, time.Now, at, 8) {
		o := outcome{scoredAt: rec.ScoredAt, completeness: rec.CompletenessPct, signals: make(map[string]seen), warnings: warningsOf(rec)}
		for _, s := range rec.Signals {
			if s.Reason == scoring.ReasonSourceDisabled {
				continue // only facts have it, which the program also asks
			}
			o.signals[s.ID] = seen{s.State, s.Raw, s.Reason}
		}
		wantInjected(t, fakes, rec.Domain, o.warnings)
		wanted[rec.Domain] = o
	}
	return wanted
}

// outcomes reads what came out of all runs, as an operator can.
func outcomes(t *testing.T, data string) map[string]outcome {
	t.Helper()
	ask := func(query string) *bufio.Scanner {
		out, err := exec.CommandContext(t.Context(), *program, "sql", "--operator", "--data", data, "--format", "JSONEachRow",
			query).Output()
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return bufio.NewScanner(bytes.NewReader(out))
	}
	found := make(map[string]outcome)
	rows := ask("SELECT domain, toUnixTimestamp64Milli(scored_at) AS at, completeness_pct AS pct, `warning.source` AS sources, " +
		"`warning.code` AS codes FROM score_history FINAL" +
		" SETTINGS output_format_json_quote_64bit_integers = 0")
	for rows.Scan() {
		var row struct {
			Domain         string
			At             int64
			Pct            float64
			Sources, Codes []string
		}
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		o := outcome{scoredAt: time.UnixMilli(row.At).UTC(), completeness: row.Pct, signals: make(map[string]seen),
			warnings: make(map[string]string)}
		for i, source := range row.Sources {
			o.warnings[source] = row.Codes[i]
		}
		found[row.Domain] = o
	}
	rows = ask("SELECT domain, signal, state, ifNull(raw, 0) AS raw, reason FROM companyscore.v1_signal")
	for rows.Scan() {
		var row struct {
			Domain, Signal string
			State          scoring.State
			Raw            float64
			Reason         scoring.Reason
		}
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		found[row.Domain].signals[row.Signal] = seen{row.State, row.Raw, row.Reason}
	}
	return found
}
