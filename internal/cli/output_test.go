package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// company is a row of the tests.
type company struct {
	Name     string     `json:"name"`
	Score    float64    `json:"score"`
	ScoredAt time.Time  `json:"scored_at"`
	Revoked  *time.Time `json:"revoked_at,omitempty"`
}

var companyColumns = []Column[company]{
	{Name: "name", Value: func(c company) any { return c.Name }},
	{Name: "status", Value: func(company) any { return Toned{"ok", Green} }},
	{Name: "score", Value: func(c company) any { return c.Score }},
	{Name: "exact", Value: func(c company) any { return c.Score }, Only: CSV},
	{Name: "shown", Value: func(company) any { return "yes" }, Only: Table},
	{Name: "scored_at", Value: func(c company) any { return c.ScoredAt }},
	{Name: "revoked_at", Value: func(c company) any { return c.Revoked }},
}

func companies() []company {
	at := time.Date(2026, 5, 1, 12, 0, 0, 500e6, time.UTC)
	return []company{{"Acme, \"Inc.\"", 61.44, at, &at}, {"evil\x1b[2J\nx", 9, time.Time{}, nil}}
}

func TestListInEachFormat(t *testing.T) {
	t.Parallel()
	for o, want := range map[Output]string{
		"": `NAME          STATUS  SCORE  SHOWN  SCORED AT            REVOKED AT
Acme, "Inc."  ok      61.4   yes    2026-05-01 12:00:00  2026-05-01 12:00:00
evil�[2J�x    ok      9.0    yes    -                    -
`,
		JSON: `[{"name":"Acme, \"Inc.\"","score":61.44,"scored_at":"2026-05-01T12:00:00.5Z","revoked_at":"2026-05-01T12:00:00.5Z"},{"name":"evil\u001b[2J\nx","score":9,"scored_at":"0001-01-01T00:00:00Z"}]
`,
		CSV: `name,status,score,exact,scored_at,revoked_at
"Acme, ""Inc.""",ok,61.44,61.44,2026-05-01T12:00:00.5Z,2026-05-01T12:00:00.5Z
"evil` + "\x1b" + `[2J
x",ok,9,9,,
`,
	} {
		var out bytes.Buffer
		if err := PrintList(&out, o, companies(), companyColumns); err != nil || out.String() != want {
			t.Errorf("%q: %v\n%s\nwant\n%s", o, err, out.String(), want)
		}
	}
	var out bytes.Buffer
	if err := PrintList(&out, JSON, []company(nil), companyColumns); err != nil || out.String() != "[]\n" {
		t.Errorf("no rows: %q, %v", out.String(), err)
	}
}

func TestRecordInEachFormat(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	if err := PrintRecord(&shown, Table, company{}, "made \x1b[2J\u202eAcme", nil); err != nil || shown.String() != "made �[2J�Acme\n" {
		t.Errorf("control characters: %q, %v", shown.String(), err)
	}
	for o, want := range map[Output]string{Table: "made Acme\n", JSON: `{"name":"Acme","score":1,"scored_at":"0001-01-01T00:00:00Z"}` +
		"\n", CSV: "name,score\nAcme,1\n"} {
		var out bytes.Buffer
		columns := []Column[company]{companyColumns[0], companyColumns[2]}
		if err := PrintRecord(&out, o, company{Name: "Acme", Score: 1}, "made Acme", columns); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", o, out.String(), err)
		}
	}
}

func TestOutputFlag(t *testing.T) {
	t.Parallel()
	f := func(want Output, fault string, args ...string) {
		t.Helper()
		var o Output
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
		o.Flag(cmd)
		o.JSONFlag(cmd)
		cmd.SetArgs(args)
		cmd.SetErr(io.Discard)
		err := cmd.Execute()
		if fault == "" && (err != nil || o != want) || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%v: %q, %v", args, o, err)
		}
	}
	f("", "")
	f(JSON, "", "--output", "json")
	f(CSV, "", "-o", "csv")
	f(JSON, "", "--json")
	f("", "", "--json=false")
	f("", "use table, json, csv", "--output", "xml")
	f("", "invalid syntax", "--json=perhaps")
}

func TestRowsComeOneByOne(t *testing.T) {
	t.Parallel()
	columns := slices.Clone(companyColumns[:5])
	columns[0].Width = 14
	var out bytes.Buffer
	f := func(o Output, want ...string) {
		t.Helper()
		out.Reset()
		rows := NewRows(&out, o, columns)
		for i, c := range companies() {
			if err := rows.Print(c); err != nil || out.String() != strings.Join(want[:i+1], "") {
				t.Errorf("%s, row %d: %v\n%s\nwant\n%s", o, i, err, &out, strings.Join(want[:i+1], ""))
			}
		}
	}
	f(Table, "NAME            STATUS  SCORE  SHOWN\nAcme, \"Inc.\"    ok      61.4   yes\n",
		"evil\uFFFD[2J\uFFFDx      ok      9.0    yes\n")
	f(CSV, "name,status,score,exact\n\"Acme, \"\"Inc.\"\"\",ok,61.44,61.44\n", "\"evil\x1b[2J\nx\",ok,9,9\n")
	out.Reset()
	if err := NewRows(&out, CSV, columns).Print(); err != nil || out.String() != "name,status,score,exact\n" {
		t.Errorf("without rows: %q, %v", out.String(), err)
	}
}
