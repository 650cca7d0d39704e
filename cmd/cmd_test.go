package cmd

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command runs a command line in this process.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "tiers.yaml")
	if err := os.WriteFile(bad, []byte("tiers:\n  gold: {}\nbreakers: {cold_per_key: {limit: -1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := []string{"--data", filepath.Join(dir, "none")}
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"help":            {[]string{"--help"}, exitDone, []string{"up", "serve", "facts", "score"}},
		"unknown command": {[]string{"dance"}, exitUsage, []string{"dance", "--help"}},
		"unknown flag":    {[]string{"up", "--dance"}, exitUsage, []string{"dance"}},
		"missing domain":  {[]string{"score"}, exitUsage, []string{"at least 1"}},
		"all faults": {[]string{"up", "--listen", "nonsense", "--tiers", bad, "--sources", "crystal-ball"}, exitUsage,
			[]string{"--listen", "gold", "limit", "crystal-ball"}},
		"young refresh": {append([]string{"batch", "--refresh-asked", "59s", "--refresh-others", "1m", "--sources", "crystal-ball"},
			nowhere...), exitUsage, []string{"refresh-asked 59s", "crystal-ball"}},
		"refresh of up": {[]string{"up", "--sources", "facts", "--refresh-others", "-1h", "--schedule-refresh", "often"}, exitUsage,
			[]string{"refresh-others -1h", "schedule-refresh"}},
		"no inbox": {append([]string{"batch", "--once", "inbox", "--refresh-asked", "1s"}, nowhere...), exitUsage,
			[]string{"--inbox DIR", "refresh-asked"}},
		"missing inbox":   {[]string{"up", "--sources", "facts", "--inbox", "nowhere"}, exitUsage, []string{"--inbox: stat nowhere"}},
		"no rate of rows": {[]string{"up", "--request-rows", "0"}, exitUsage, []string{"--request-rows 0", "use 1"}},
		"no request id":   {append([]string{"request", "show"}, nowhere...), exitUsage, []string{"accepts 1 arg"}},
		"unknown tier": {append([]string{"account", "create", "--name", "x", "--tier", "gold"}, nowhere...), exitUsage,
			[]string{"gold", "starter"}},
		"unknown mode": {append([]string{"key", "create", "--account", "x", "--mode", "both"}, nowhere...), exitUsage,
			[]string{"both", "live"}},
		"no key":       {append([]string{"score", "example.com"}, nowhere...), exitUsage, []string{"COMPANYSCORE_KEY", "key create"}},
		"nothing runs": {append([]string{"run", "list"}, nowhere...), exitFailed, []string{"COMPANYSCORE_DATA", "CLICKHOUSE_URL"}},
		"no outcome":   {[]string{"backtest", "examples/companies.csv"}, exitUsage, []string{"outcome"}},
		"bad outcome":  {[]string{"backtest", "examples/companies.csv", "--outcome", "exit"}, exitUsage, []string{`no column "exit"`}},
		"unknown format": {append([]string{"account", "list", "--output", "xml"}, nowhere...), exitUsage,
			[]string{"xml", "table, json, csv", "companyscore account list --help"}},
		"unknown state": {append([]string{"run", "list", "--state", "lost"}, nowhere...), exitUsage, []string{"lost", "timed_out"}},
		"wrong address": {[]string{"score", "a.com", "--key", "k", "--url", "127.0.0.1:1"}, exitUsage, []string{"127.0.0.1:1", "https://"}},
		"no service": {[]string{"score", "a.com", "--key", "k", "--url", "http://127.0.0.1:1"}, exitFailed,
			[]string{"refused", "companyscore up", "--url"}},
		"too many at once": {append([]string{"score", "a.com", "--parallel", "65"}, nowhere...), exitUsage,
			[]string{"--parallel 65", "1 to 64"}},
		"none at once":     {append([]string{"score", "a.com", "--parallel", "0"}, nowhere...), exitUsage, []string{"--parallel 0"}},
		"unknown window":   {append([]string{"movers", "8d"}, nowhere...), exitUsage, []string{"8d", "7d, 30d, 90d"}},
		"no key for usage": {append([]string{"usage"}, nowhere...), exitUsage, []string{"COMPANYSCORE_KEY"}},
		"history without a service": {[]string{"history", "a.com", "--key", "k", "--url", "http://127.0.0.1:1"}, exitFailed,
			[]string{"a.com: ", "refused", "--url"}},
		"no such file": {append([]string{"facts", "import", filepath.Join(dir, "none.csv")}, nowhere...), exitFailed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := command(t, "", c.args...)
			if code != c.code {
				t.Errorf("exit %d, want %d: %s%s", code, c.code, stdout, stderr)
			}
			for _, text := range c.says {
				if !strings.Contains(stdout+stderr, text) {
					t.Errorf("%q is not said: %s%s", text, stdout, stderr)
				}
			}
		})
	}
}

func TestServerWritesNoControlCharactersToTerminal(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"body.domain invalid","message":"\u001b]0;title\u0007 not\u009b2J a domain\r"}`)
	}))
	defer service.Close()
	code, stdout, stderr := command(t, "", "score", "example.com", "--key", "k", "--url", service.URL)
	if control := strings.IndexFunc(stdout+stderr, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); code != exitFailed ||
		control >= 0 || !strings.Contains(stderr, " not") {
		t.Errorf("exit %d with %q and %q", code, stdout, stderr)
	}
}

func TestVariablesAreOfSettings(t *testing.T) {
	t.Parallel()
	f := func(flags string, bound bool, args ...string) {
		t.Helper()
		cmd, _, err := (&program{}).root().Find(args)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(flags) {
			flag := cmd.Flag(name)
			if flag == nil {
				t.Errorf("%v has no --%s", args, name)
			} else if got := strings.Contains(flag.Usage, "[$"); got != bound {
				t.Errorf("%v: --%s has a variable: %v", args, name, got)
			}
		}
	}
	f("data listen sources cache-mb schedule-count log-level inbox demo", true, "up")
	f("path password analyst-password listen", true, "clickhouse")
	f("data clickhouse-url redis-url tiers log-format", true, "run", "start")
	f("from wait quiet older-than", false, "run", "start")
	f("once", false, "batch")
	f("key url data", true, "score")
	f("output force-fresh", false, "score")
	f("data analyst-url", true, "sql")
	f("format operator timeout connection", false, "sql")
	f("name tier output json", false, "account", "create")
	f("account mode name", false, "key", "create")
	f("operator ttl account", false, "console", "link")
	f("key url data", true, "bench", "run")
	f("rate duration timeout json connections", false, "bench", "run")
	f("sources contact never-ask", true, "source", "check")
}

func TestEnvironmentSetsFlags(t *testing.T) {
	t.Setenv("COMPANYSCORE_LISTEN", "nonsense")
	if code, _, stderr := command(t, "", "serve"); code != exitUsage || !strings.Contains(stderr, "nonsense") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	t.Setenv("COMPANYSCORE_OPERATOR", "nonsense")
	t.Setenv("COMPANYSCORE_DATA", t.TempDir())
	if code, _, stderr := command(t, "", "console", "link"); code != exitUsage || strings.Contains(stderr, "nonsense") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// argumentNames lists what the help of a flag may call its argument.
var argumentNames = []string{"", "string", "int", "uint", "float", "duration", "strings", "stringArray", "format"}

func TestHelpNamesArgumentsByKind(t *testing.T) {
	t.Parallel()
	n := 0
	commands((&program{}).root(), func(cmd *cobra.Command) {
		cmd.InheritedFlags() // adds those of the parents to Flags
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			n++
			if name, usage := pflag.UnquoteUsage(flag); !slices.Contains(argumentNames, name) || strings.Contains(usage, "`") {
				t.Errorf("%s --%s %s: %s", cmd.CommandPath(), flag.Name, name, usage)
			}
		})
	})
	if n < 300 {
		t.Errorf("%d flags", n)
	}
}

// commands calls do for each command that can be run, without those that cobra adds.
func commands(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Runnable() && !cmd.Hidden {
		do(cmd)
	}
	for _, sub := range cmd.Commands() {
		commands(sub, do)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	n := 0
	commands((&program{}).root(), func(cmd *cobra.Command) {
		n++
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("the examples of %s do not call it: %q", cmd.CommandPath(), cmd.Example)
		}
		for line := range strings.Lines(cmd.Example) {
			if strings.Contains(line, "--key ") || strings.Contains(line, "--key=") {
				t.Errorf("an example of %s shows a key to all users of the machine: %s", cmd.CommandPath(), line)
			}
		}
	})
	if n < 25 {
		t.Errorf("%d commands", n)
	}
}

func TestOutputIsTheFormatEverywhere(t *testing.T) {
	t.Parallel()
	json := map[string]bool{"companyscore account create": true, "companyscore key create": true, "companyscore bench run": true,
		"companyscore bench peers": true}
	with := 0
	commands((&program{}).root(), func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("output") != nil {
			with++
		}
		if flag := cmd.Flags().Lookup("json"); flag != nil != json[cmd.CommandPath()] {
			t.Errorf("%s has --json: %v", cmd.CommandPath(), flag != nil)
		}
	})
	if with < 12 {
		t.Errorf("%d commands have --output", with)
	}
}

func TestShellCompletesValues(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := command(t, "", append([]string{cobra.ShellCompRequestCmd}, args...)...)
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("%v: exit %d, %q does not contain %q: %s", args, code, stdout, want, stderr)
		}
	}
	f("csv\n", "account", "list", "--output", "")
	f("enterprise\n", "account", "create", "--tier", "")
	f("enterprise\n", "account", "set-tier", "ID", "")
	f("test\n", "key", "create", "--mode", "")
	f("facts\n", "up", "--sources", "")
	f("facts,dns\n", "up", "--sources", "facts,")
	f("dns\n", "source", "check", "")
	f("movers\n", "batch", "--once", "")
	f("aborted\n", "run", "list", "--state", "")
	f("saturate", "bench", "run", "--sat")
	f("zipf\n", "bench", "run", "--scenario", "")
	f("30d\n", "movers", "")
	f("Parquet\n", "sql", "--format", "")
	f("debug\n", "serve", "--log-level", "")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, stdout, _ := command(t, "", "completion", shell); code != exitDone || len(stdout) < 1000 {
			t.Errorf("completion of %s: exit %d, %d bytes", shell, code, len(stdout))
		}
	}
}

func TestHelpBeginsWithWhatIsUsedMost(t *testing.T) {
	t.Parallel()
	f := func(args string, want ...string) {
		t.Helper()
		_, text, _ := command(t, "", strings.Fields(args)...)
		rest := text
		for _, part := range want {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s: %q is not there, or in another order:\n%s", args, part, text)
				return
			}
			rest = after
		}
	}
	f("--help", "Start here", "companyscore up", "companyscore score", "Roles:")
	f("up --help", "--data", "--listen", "--sources", "--contact", "--admin-listen", "--cache-mb", "--tiers", "--trust")
}
