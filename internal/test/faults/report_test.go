package faults

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// outcome returns the result of a fault as text.
func (f *doneFault) outcome() string {
	switch {
	case f.ready > 0 && f.failed == 0:
		return fmt.Sprintf(", ready again after %.2f s", f.ready.Seconds())
	case f.failed > 0:
		return fmt.Sprintf(", %d starts FAILED, ready again after %.2f s", f.failed, f.ready.Seconds())
	}
	return ""
}

// report prints the figures and the differences. It writes all differences to a file
// as well.
func (e *experiment) report(out io.Writer) error {
	l := e.ledger
	fmt.Fprintf(out, "\nseed %d: %.0f s of load, %d faults; all jobs settled %.1f s after the load, all copies equal after %.1f s\n",
		*seed, e.loaded.Seconds(), len(e.target.done), e.settled.Seconds(), e.equal.Seconds())
	e.reportFaults(out)
	e.reportCalls(out)
	if e.stored != nil {
		e.reportAccounts(out)
		e.reportJobs(out)
	}
	return errorsOf(l.close(), e.reportDifferences(out))
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// table prints rows whose cells are separated by tabs.
func table(out io.Writer, title string, rows func(w io.Writer)) {
	fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows(w)
	w.Flush()
}

// spread returns the distribution of durations as text.
func spread(list []time.Duration) string {
	if len(list) == 0 {
		return "\t\t"
	}
	slices.Sort(list)
	at := func(share float64) float64 {
		return list[min(int(share*float64(len(list))), len(list)-1)].Seconds() * 1000
	}
	return fmt.Sprintf("%.1f\t%.1f\t%.1f", at(0.5), at(0.99), at(1))
}

func (e *experiment) reportFaults(out io.Writer) {
	table(out, "Faults (ms until up is ready again, or the child is)", func(w io.Writer) {
		fmt.Fprintln(w, "fault\tdone\tback at the first try\tmedian\tp99\tmost\t")
		for _, kind := range kinds {
			n, first := 0, 0
			var back []time.Duration
			for _, f := range e.target.done {
				if f.kind == kind.kind && f.victim == kind.victim {
					n++
					if f.ready > 0 && f.failed == 0 {
						first++
						back = append(back, f.ready)
					}
				}
			}
			tries := fmt.Sprint(first)
			switch {
			case kind.kind == freeze:
				tries = ""
			case kind.victim != "up" && e.deaths != nil:
				back = e.deaths.back[logName(kind.victim)]
				tries = fmt.Sprint(e.deaths.killed[logName(kind.victim)])
			}
			fmt.Fprintf(w, "%s %s\t%d\t%s\t%s\t\n", kind.kind, kind.victim, n, tries, spread(back))
		}
	})
	if e.deaths != nil {
		fmt.Fprintf(out, "ended as a store was away, and started again: worker %d, batch %d\n", e.deaths.exits["work"],
			e.deaths.exits["batch"])
	}
}

func (e *experiment) reportCalls(out io.Writer) {
	l := e.ledger
	outcomes := make(map[string]bool)
	for _, counts := range l.calls {
		for outcome := range counts {
			outcomes[outcome] = true
		}
	}
	columns := slices.Sorted(maps.Keys(outcomes))
	table(out, "Calls by outcome (none: no answer; refused: up was not there)", func(w io.Writer) {
		fmt.Fprintln(w, "\t"+strings.Join(columns, "\t")+"\t")
		for _, operation := range slices.Sorted(maps.Keys(l.calls)) {
			fmt.Fprint(w, operation, "\t")
			for _, outcome := range columns {
				fmt.Fprint(w, l.calls[operation][outcome], "\t")
			}
			fmt.Fprintln(w)
		}
	})
	table(out, "Answers to reads of companies in memory, ms", func(w io.Writer) {
		fmt.Fprintln(w, "while\tanswers\tmedian\tp99\tmost\t")
		for _, phase := range slices.Sorted(maps.Keys(l.answers)) {
			fmt.Fprintf(w, "%s\t%d\t%s\t\n", phase, len(l.answers[phase]), spread(l.answers[phase]))
		}
	})
	fmt.Fprintf(out, "\nstatements of the analyst: %s\n", counts(l.analyst))
}

// counts prints a map of counts.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

func (e *experiment) reportAccounts(out io.Writer) {
	l := e.ledger
	table(out, "Accounts (unsure: calls whose caller does not know whether they were charged)", func(w io.Writer) {
		fmt.Fprintln(w, "account\tbudget\tacknowledged\tunsure\tcharged\tcached: answered\tunsure\tcounted\t")
		for _, a := range l.accounts {
			acknowledged, unsure := 0, 0
			for _, op := range l.operations {
				if op.Account == a {
					acknowledged += len(op.Jobs)
					unsure += op.mayCost()
				}
			}
			budget := "none"
			if a.Budget != unmetered {
				budget = fmt.Sprint(a.Budget)
			}
			used, cached := e.stored.usage[a.ID], l.cached[a]
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", a.Name, budget, acknowledged, unsure, used.cold, len(cached.answered),
				cached.unknown, used.cached)
		}
	})
}

func (e *experiment) reportJobs(out io.Writer) {
	l, s := e.ledger, e.stored
	status := make(map[string]int)
	var slowest time.Duration
	for _, j := range l.jobs {
		status[j.Status]++
		slowest = max(slowest, j.Took)
	}
	ended := make(map[string]int)
	retried := 0
	for _, r := range s.runs {
		ended[r.outcome]++
		if r.attempts > 1 {
			retried++
		}
	}
	keyed, named := 0, 0
	for _, op := range l.operations {
		if op.Key != "" {
			keyed++
			if len(op.Jobs) == 1 {
				named++
			}
		}
	}
	table(out, "Jobs and runs", func(w io.Writer) {
		fmt.Fprintf(w, "jobs acknowledged\t%d\t  %s; a poll saw the end after %.1f s at most\n", len(l.jobs), counts(status),
			slowest.Seconds())
		fmt.Fprintf(w, "runs\t%d\t  %s; more than one attempt %d\n", len(s.runs), counts(ended), retried)
		fmt.Fprintf(w, "records\t%d\t  of %d companies; copies not merged yet %d\n", len(s.records), len(s.latest), s.copies)
		fmt.Fprintf(w, "companies in the statistics\t%d\t\n", s.ranked)
		fmt.Fprintf(w, "runs left open\t%d\t\n", len(s.open))
		fmt.Fprintf(w, "Idempotency-Keys\t%d\t  naming one job %d; replays: %s\n", keyed, named, counts(l.replays))
		fmt.Fprintf(w, "own writes read\t%d\t\n", l.ownReads)
	})
}

const differencesShown = 5 // of each kind

// ids finds what log lines call a request, a job or a run.
var ids = regexp.MustCompile(`call-[0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (e *experiment) reportDifferences(out io.Writer) error {
	byKind := make(map[string][]difference)
	for _, d := range e.ledger.differences {
		byKind[d.kind] = append(byKind[d.kind], d)
	}
	if len(byKind) == 0 {
		fmt.Fprintln(out, "\ndifferences: 0")
		return nil
	}
	var all strings.Builder
	log := e.readLog()
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		for i, d := range byKind[kind] {
			text := fmt.Sprintf("\n%s\n    %s\n", kind, d.detail)
			for _, line := range around(log, d) {
				text += fmt.Sprintf("      log: %.600s\n", line)
			}
			all.WriteString(text)
			if i < differencesShown {
				fmt.Fprint(out, text)
			}
		}
	}
	fmt.Fprintf(out, "\ndifferences: %d\n", len(e.ledger.differences))
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		fmt.Fprintf(out, "  %4d  %s\n", len(byKind[kind]), kind)
	}
	fmt.Fprintf(out, "kept in %s: differences.txt, ledger.jsonl, log, data\n", e.dir)
	return os.WriteFile(filepath.Join(e.dir, "differences.txt"), []byte(all.String()), 0o600)
}

const linesShown = 8

// around returns the lines of the log that name what a difference names, or else those
// from just before it showed.
func around(log []logLine, d difference) (lines []string) {
	if d.kind == restartFailed {
		return nil // it has its log
	}
	named := ids.FindAllString(d.detail, 20)
	for _, line := range log {
		if slices.ContainsFunc(named, func(id string) bool { return strings.Contains(line.text, id) }) {
			lines = append(lines, line.text)
		}
	}
	if len(lines) == 0 && !d.at.IsZero() {
		for _, line := range log {
			if line.At.After(d.at.Add(-2*time.Second)) && line.At.Before(d.at.Add(time.Second)) {
				lines = append(lines, line.text)
			}
		}
	}
	return lines[max(0, len(lines)-linesShown):]
}
