package main

import (
	"context"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, page, err string
		want            []block
	}{
		{name: "a script", page: "Text.\n\n```sh\nls\npwd\n```\n", want: []block{{line: 4, lang: "sh", text: "ls\npwd"}}},
		{name: "a fence within a longer one", page: "````sh\n```\n````", want: []block{{line: 2, lang: "sh", text: "```"}}},
		{
			name: "a reason not to run", page: "<!-- docs-test: not run: needs Docker -->\n\n```sh\ndocker ps\n```",
			want: []block{{line: 4, lang: "sh", text: "docker ps", reason: "needs Docker"}},
		},
		{
			name: "a failure, for one block only", page: "<!-- docs-test: fails -->\n```sh\nfalse\n```\n```sh\ntrue\n```",
			want: []block{{line: 3, lang: "sh", text: "false", fails: true}, {line: 6, lang: "sh", text: "true"}},
		},
		{
			name: "a setup", page: "<!-- docs-test: setup\ntrue\n-->\nText.",
			want: []block{{line: 2, lang: "sh", text: "true", setup: true}},
		},
		{name: "a continued line of a list", page: "1. First.\n\n    More.\n"},
		{name: "no language", page: "```\nls\n```", err: "1: the block has no language"},
		{name: "indented", page: "Text.\n\n    ls\n", err: "3: an indented block has no language"},
		{name: "no end", page: "```sh\nls\n", err: "1: the block has no end"},
		{name: "unknown comment", page: "<!-- docs-test: skip -->\n", err: `1: unknown comment "skip"`},
		{name: "a reason without a block", page: "<!-- docs-test: not run: later -->\nText.",
			err: "2: a comment of docs-test is not followed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(test.page)
			if (err == nil) != (test.err == "") || (err != nil && !strings.HasPrefix(err.Error(), test.err)) {
				t.Fatalf("parse: error %v, want %q", err, test.err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("parse = %+v, want %+v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("block %d = %+v, want %+v", i, got[i], test.want[i])
				}
			}
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, want, got, difference string }{
		{"equal", "a\nb\n", "a\nb\n", ""},
		{"nothing", "", "\n", ""},
		{"a part that varies", "score 64.1 (... ago)\n", "score 64.1 (12s ago)\n", ""},
		{"lines left out", "first\n...\nlast\n", "first\nx\ny\nlast\n", ""},
		{"no lines left out", "first\n...\nlast\n", "first\nlast\n", ""},
		{"a rest left out", "first\n...\n", "first\nx\n", ""},
		{"ids, keys and times by their form",
			"01a1fc21-b0bf-794c-8639-d9982dfa5ad8 svc_live_Cv0ZkGWdbCos7GtnVhnmY21f3Hibzh 2026-11-21T03:23:48.799Z in 0.5 s",
			"01a1fc21-b0bf-794c-8639-000000000000 svc_live_000000000000000000000000000000 2027-01-01T03:23:48.799Z in 12 s", ""},
		{"a number", "score 64.1\n", "score 64.2\n", "want\n\tscore 64.1\ngot\n\tscore 64.2"},
		{"a dot is a dot", "64.1\n", "6401\n", "want\n\t64.1\ngot\n\t6401"},
		{"too little", "a\nb\n", "a\n", "want\n\tb\ngot no more output"},
		{"too much", "a\n", "a\nb\n", "not shown on the page:\n\tb"},
		{"never there", "...\nz\n", "a\nb\n", "want a line\n\tz\ngot\n\ta\n\tb"},
		{"a key of the other mode", "svc_live_Cv0ZkGWdbCos7GtnVhnmY21f3Hibzh", "svc_test_Cv0ZkGWdbCos7GtnVhnmY21f3Hibzh",
			"want\n\tsvc_live_(key)\ngot\n\tsvc_test_(key)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := compare(test.want, test.got); got != test.difference {
				t.Errorf("compare(%q, %q) = %q, want %q", test.want, test.got, got, test.difference)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	got, err := commands(block{line: 10, text: "$ echo a \\\n    b\na b\n$ true\n$ echo c\nc"})
	want := []command{{10, "echo a \\\n    b", "a b\n"}, {13, "true", ""}, {14, "echo c", "c\n"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("commands = %+v, %v, want %+v", got, err, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("command %d = %+v, want %+v", i, got[i], want[i])
		}
	}
	if _, err := commands(block{line: 3, text: "a\n$ b"}); err == nil {
		t.Error("a console block that begins with output: no error")
	}
}

// TestShellKeepsVariables runs scripts one after the other, and one that does not end.
func TestShellKeepsVariables(t *testing.T) {
	t.Parallel()
	s, err := newShell(t.TempDir(), t.TempDir(), []string{"PATH=/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	for _, step := range []struct {
		script, output string
		status         int
	}{{"key=secret", "", 0}, {"echo $key; echo to stderr >&2", "secret\nto stderr\n", 0}, {"false", "", 1}} {
		if output, status, err := s.run(t.Context(), step.script); output != step.output || status != step.status || err != nil {
			t.Errorf("run(%q) = %q, %d, %v, want %q, %d", step.script, output, status, err, step.output, step.status)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.run(ctx, "sleep 600"); err == nil {
		t.Error("a script beyond its time: no error")
	}
}

func TestProgramJoinsPartsOfPage(t *testing.T) {
	t.Parallel()
	got := program("a.md", block{line: 9, lang: "go", text: "log.Print(x)"}, []block{{line: 3, lang: "go", text: "x := 1"},
		{line: 6, lang: "sh", text: "ls"}})
	want := "package main\nimport \"log\"\nimport \"context\"\nfunc main() {\nctx := context.Background()\n_ = ctx\n" +
		"//line a.md:3\nx := 1\n//line a.md:9\nlog.Print(x)\n}\n"
	if got != want {
		t.Errorf("program = %q, want %q", got, want)
	}
}
