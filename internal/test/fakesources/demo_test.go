package fakesources_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
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
	fakes, err := fakesources.Start(fakesources.Config{
		Companies: companies, Seed: *seed, Latency: time.Second, Faults: 0.1, Hangs: true, Ranked: 1_000_000, Dir: dir, Scale: 10_000,
	})
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
		got, ok := outcomes[c.Domain]
		if !ok {
			continue
		}
		faults := fakes.Check(c, got)
		if len(faults) > 0 && wrong < 20 {
			t.Log(strings.Join(faults, "\n"))
		}
		wrong += len(faults)
		signals += len(got.Signals)
		for _, code := range got.Warnings {
			if code != scoring.WarningDefunct {
				warned++
			}
		}
		injected += len(fakes.Injected(c.Domain))
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
		"%d signals compared with the companies' data, with completeness and warnings: %d differences", signals, wrong)
	verdict(peak > 0 && peak < memoryMaxMB, "the worker's memory peaked at %.0f MB, with a list of 1,000,000 traffic ranks three times, "+
		"and at %.0f MB before the first run (limit %d MB)", peak, before, memoryMaxMB)
	verdict(fakes.InFlight() >= inFlightMin, "%d runs were in flight at once in one worker (at least %d)", fakes.InFlight(), inFlightMin)
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

// outcomes reads what came out of all runs, as an operator can.
func outcomes(t *testing.T, data string) map[string]fakesources.Outcome {
	t.Helper()
	ask := func(query string) *bufio.Scanner {
		out, err := exec.CommandContext(t.Context(), *program, "sql", "--operator", "--data", data, "--format", "JSONEachRow",
			query).Output()
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return bufio.NewScanner(bytes.NewReader(out))
	}
	found := make(map[string]fakesources.Outcome)
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
		o := fakesources.Outcome{ScoredAt: time.UnixMilli(row.At).UTC(), CompletenessPct: row.Pct,
			Signals: make(map[string]fakesources.Seen), Warnings: make(map[string]string)}
		for i, source := range row.Sources {
			o.Warnings[source] = row.Codes[i]
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
		found[row.Domain].Signals[row.Signal] = fakesources.Seen{State: row.State, Raw: row.Raw, Reason: row.Reason}
	}
	return found
}
