package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"companyscore/internal/cli"
)

// executeBacktest runs the command.
func executeBacktest(args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := backtestCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--at", "2026-11-22"))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

// writeTestFile writes a file and returns its path.
func writeTestFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// backtestRows returns a file of companies with a rising number of employees and an outcome.
func backtestRows() string {
	var b strings.Builder
	b.WriteString("domain,employees,exit\n")
	for i := range 10 {
		fmt.Fprintf(&b, "c%d.com,%d,%s\n", i, 1000*(i+1), []string{"closed", "ipo"}[i/5])
	}
	return b.String()
}

func TestCommandPrintsJSONAndWritesPage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.html")
	stdout, stderr, err := executeBacktest(writeTestFile(t, "a.csv", backtestRows()), "--outcome", "exit", "--good", "ipo,acquired",
		"--bad", "closed", "--output", "json", "--html", page)
	if err != nil || stderr != "" {
		t.Fatalf("%v: %s", err, stderr)
	}
	var report struct {
		Companies int
		Outcomes  []struct {
			Given    struct{ AUC struct{ Value float64 } }
			Withheld *struct{}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.Companies != 10 || len(report.Outcomes) != 1 || report.Outcomes[0].Given.AUC.Value != 1 ||
		report.Outcomes[0].Withheld != nil {
		t.Errorf("report = %+v", report)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.HasSuffix(string(text), "</html>\n") {
		t.Errorf("page of %d bytes, %v", len(text), err)
	}
}

func TestCommandFailsOnMissedLimit(t *testing.T) {
	t.Parallel()
	stdout, _, err := executeBacktest(writeTestFile(t, "a.csv", backtestRows()), "--outcome", "employees", "--limits",
		writeTestFile(t, "limits.json", `{"ties_pct":{"max":50},"grades_used":{"min":7}}`))
	if !errors.Is(err, cli.ErrReported) || !strings.Contains(stdout, "ok   ties_pct") || !strings.Contains(stdout, "FAIL grades_used") {
		t.Errorf("%v:\n%s", err, stdout)
	}
}

func TestCommandReportsInvalidRows(t *testing.T) {
	t.Parallel()
	stdout, stderr, err := executeBacktest(writeTestFile(t, "a.csv", backtestRows()+"bad.com,many,ipo\n"), "--outcome", "employees")
	if !errors.Is(err, cli.ErrReported) || !strings.Contains(stderr, "line 12, column 9 (employees)") ||
		!strings.Contains(stdout, "1 of 11 rows are invalid; ignored columns: exit") {
		t.Errorf("%v:\n%s%s", err, stdout, stderr)
	}
}

func TestCommandNamesBadInput(t *testing.T) {
	t.Parallel()
	path := writeTestFile(t, "a.csv", backtestRows())
	for want, args := range map[string][]string{
		`no column "status"`:      {path, "--outcome", "status"},
		"holds no numbers":        {path, "--outcome", "exit"},
		"none.csv":                {"none.csv", "--outcome", "exit"},
		"none.json":               {path, "--outcome", "employees", "--limits", "none.json"},
		`unknown figure "beauty"`: {path, "--outcome", "employees", "--limits", writeTestFile(t, "limits.json", `{"beauty":{"min":1}}`)},
		"10 companies are good (closed, ipo, ) and": {path, "--outcome", "exit", "--good", "closed,ipo,", "--bad", "sold"},
	} {
		var usage *cli.UsageError
		if stdout, _, err := executeBacktest(args...); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) || stdout != "" {
			t.Errorf("%v: %v, want a usage error with %q; output %q", args, err, want, stdout)
		}
	}
	if _, err := backtestDay("31.01.2026"); err == nil || !strings.Contains(err.Error(), "--at") {
		t.Errorf("--at 31.01.2026: %v", err)
	}
}
