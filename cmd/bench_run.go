package cmd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/bench"
	"companyscore/bench/load"
	"companyscore/bench/report"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
	"companyscore/internal/seed"
	"companyscore/up"
)

// benchFlags are the flags of `bench run` that are not in bench.Config.
type benchFlags struct {
	url, data    string
	keysFile     string
	domainsFile  string
	domains      int
	arrivals     string
	slos         []string
	pids         []string
	jsonTo, html string
	quiet        bool
	saturate     bool
	priority     string
}

func (c *benchCommands) run() *cobra.Command {
	var cfg bench.Config
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Send one kind of load and measure the answers",
		Long: `Send one kind of load at a fixed rate and measure the latency of answers from when each
request was due. Answers are classified by the store that answered. Exits 1 if the verdict
is not VALID or an SLO of --slo is missed. docs/bench.md explains every figure.

Scenarios:
` + scenarioList(),
		Example: `  companyscore bench run --domains-file examples/companies.csv --rate 20000 --duration 30s --slo 'p99<2ms'
  companyscore bench run --scenario zipf --saturate --json before.json
  companyscore bench run --scenario null --saturate`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.runLoad(cmd, cfg, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Scenario, "scenario", "hot", "kind of load; see above")
	flags.StringVar(&f.url, "url", "",
		"address of the service, http://host:port (default: of the running up of --data, else http://127.0.0.1:8080)")
	flags.StringVar(&f.data, "data", config.DefaultData, "data directory of a running up, for its address, demo key and processes")
	flags.StringArrayVar(&cfg.Keys, "key", nil,
		"API key; several are used in turn; prefer the variable or --keys-file, because other users can see arguments")
	flags.StringVar(&f.keysFile, "keys-file", "", "file of API keys, one per line, as written by bench seed --keys")
	flags.StringVar(&f.domainsFile, "domains-file", "",
		`file of domains: column "domain" of a .csv file, or one per line; - for standard input`)
	flags.IntVar(&f.domains, "domains", 0, "number of companies of the universe that bench seed generated from --seed")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the universe and of all random numbers")
	flags.Float64Var(&cfg.Rate, "rate", 1000, "requests per second")
	flags.BoolVar(&f.saturate, "saturate", false, "send as fast as possible (closed loop), to measure the throughput")
	flags.StringVar(&f.arrivals, "arrivals", string(load.Constant), "arrivals of requests: constant or poisson")
	flags.DurationVar(&cfg.Duration, "duration", 10*time.Second, "duration of the measurement")
	flags.DurationVar(&cfg.Warmup, "warmup", 2*time.Second, "duration of the same load before it")
	flags.DurationVar(&cfg.Timeout, "timeout", 10*time.Second, "timeout of a request")
	flags.DurationVar(&cfg.Drain, "drain", 10*time.Second, "wait for answers and runs at the end")
	flags.IntVar(&cfg.Connections, "connections", 64, "number of connections")
	flags.IntVar(&cfg.Pipeline, "pipeline", 1, "maximum number of requests in flight per connection")
	flags.IntVar(&cfg.Threads, "threads", max(1, runtime.NumCPU()/4), "number of sending threads; each uses a core when busy")
	flags.StringVar(&f.priority, "priority", "",
		"priority of these threads, if permitted: normal, high or real-time (default high, normal with --saturate)")
	flags.Float64Var(&cfg.ColdShare, "cold-share", 0.01, "share of companies without a score, for scenario mixed")
	flags.DurationVar(&cfg.PollEvery, "poll-every", 5*time.Second, "interval between polls of a job")
	flags.IntVar(&cfg.BatchSize, "batch-size", 100, "companies per call, for scenario batch")
	flags.StringArrayVar(&f.slos, "slo", nil,
		`latency limit such as p99<2ms, max<1s or "score redis:p99<5ms"; without a class for the headline class`)
	flags.Float64Var(&cfg.ErrorsMax, "errors-max", 0, "share of failed requests above which --slo is missed")
	flags.BoolVar(&cfg.FindMax, "find-max", false, "search the highest rate that meets --slo, starting with --rate")
	flags.StringArrayVar(&f.pids, "pid", nil, "process to watch, NAME=PID (default: those of the running up)")
	flags.StringVar(&f.jsonTo, "json", "", "write the report as JSON to this file; - for standard output, instead of text")
	flags.StringVar(&f.html, "html", "", "write the report as an HTML page to this file")
	flags.BoolVar(&f.quiet, "quiet", false, "show no progress")
	var scenarios []string
	for _, s := range bench.Scenarios {
		scenarios = append(scenarios, s.Name)
	}
	cli.Complete(cmd, "scenario", scenarios...)
	cli.Complete(cmd, "arrivals", string(load.Constant), string(load.Poisson))
	cli.Complete(cmd, "priority", "normal", "high", "real-time")
	return cmd
}

func scenarioList() string {
	var b strings.Builder
	for _, s := range bench.Scenarios {
		fmt.Fprintf(&b, "  %-15s %s\n", s.Name, s.About)
	}
	return b.String()
}

func (c *benchCommands) runLoad(cmd *cobra.Command, cfg bench.Config, f benchFlags) error {
	if err := c.prepare(cmd, &cfg, &f); err != nil {
		return err
	}
	if cfg.Scenario == "null" {
		null, pid, address, err := startNull(cmd.Context(), c)
		if err != nil {
			return err
		}
		defer stopChild(cmd.Context(), null)
		cfg.Address, cfg.PIDs = address, func() map[string]int { return map[string]int{"null": pid} }
	}
	if w := cli.Control(cmd.ErrOrStderr()); cli.IsTerminal(w) && !f.quiet {
		cfg.Live = liveView(w)
		defer fmt.Fprint(w, "\r\033[K")
	}
	out, err := bench.Run(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	if cfg.Live != nil {
		fmt.Fprint(cli.Control(cmd.ErrOrStderr()), "\r\033[K")
	}
	switch f.jsonTo {
	case "":
	case "-":
		if err := out.JSON(cmd.OutOrStdout()); err != nil {
			return err
		}
	default:
		if err := report.WriteFile(f.jsonTo, out.JSON); err != nil {
			return err
		}
	}
	if f.html != "" {
		if err := report.WriteFile(f.html, out.HTML); err != nil {
			return err
		}
	}
	if f.jsonTo != "-" {
		if err := out.Text(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if out.Verdict.Status != report.Valid || !out.Met() {
		return cli.ErrReported
	}
	return nil
}

// prepare sets cfg from the flags.
func (c *benchCommands) prepare(cmd *cobra.Command, cfg *bench.Config, f *benchFlags) error {
	var faults []error
	cfg.Command = commandLine()
	cfg.Arrivals = load.Arrivals(f.arrivals)
	switch cfg.Priority = load.Priority(f.priority); {
	case f.priority == "" && f.saturate:
		cfg.Priority = load.Normal // a closed loop has no due times
	case f.priority == "":
		cfg.Priority = load.High
	case !slices.Contains(load.Priorities, cfg.Priority):
		faults = append(faults, fmt.Errorf("priority %q: use normal, high or real-time", f.priority))
	}
	if f.saturate {
		cfg.Rate = 0
	} else if cfg.Rate <= 0 {
		faults = append(faults, errors.New("--rate must be positive; for maximum throughput use --saturate"))
	}
	for _, text := range f.slos {
		slo, err := bench.ParseSLO(text)
		faults = append(faults, err)
		cfg.SLO = append(cfg.SLO, slo)
	}
	if f.keysFile != "" {
		keys, err := readBenchKeys(f.keysFile)
		faults = append(faults, err)
		cfg.Keys = append(cfg.Keys, keys...)
	}
	cfg.Universe = &bench.Universe{}
	var err error
	switch {
	case f.domainsFile != "" && f.domains != 0:
		faults = append(faults, errors.New("use --domains-file or --domains, not both"))
	case f.domains != 0:
		names := seed.NewNames(cfg.Seed)
		cfg.Universe, err = bench.MakeUniverse(f.domains, func(dst []byte, i int) []byte { return names.AppendDomain(dst, uint64(i)) })
		faults = append(faults, err)
	case f.domainsFile != "":
		cfg.Universe, err = readUniverse(f.domainsFile, cmd.InOrStdin())
		faults = append(faults, err)
	}
	if cfg.Scenario == "null" {
		cfg.Keys = []string{"none"}
		if cfg.Universe, err = bench.MakeUniverse(1, func(dst []byte, _ int) []byte { return append(dst, "example.com"...) }); err != nil {
			return err
		}
	} else {
		faults = append(faults, aimBench(cfg, f))
	}
	if err := errors.Join(append(faults, cfg.Validate())...); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// readUniverse reads companies from a file, or from standard input.
func readUniverse(path string, stdin io.Reader) (*bench.Universe, error) {
	raw, err := domainname.ReadFile(path, stdin)
	if err != nil {
		return &bench.Universe{}, err
	}
	domains, err := domainname.ParseAll(raw)
	if err != nil {
		return &bench.Universe{}, err
	}
	return bench.MakeUniverse(len(domains), func(dst []byte, i int) []byte { return append(dst, domains[i]...) })
}

// aimBench sets address, keys and processes of the server.
func aimBench(cfg *bench.Config, f *benchFlags) error {
	rt, err := config.ReadRuntime(f.data)
	running := err == nil
	if f.url == "" {
		f.url = "http://127.0.0.1:8080"
		if running {
			f.url = rt.BaseURL
		}
	} else {
		running = running && strings.TrimSuffix(f.url, "/") == rt.BaseURL
	}
	parsed, err := url.Parse(f.url)
	if err != nil || parsed.Scheme != "http" || parsed.Host == "" || strings.Trim(parsed.Path, "/") != "" {
		return fmt.Errorf("url %q: use http://host:port; TLS is not supported, so measure the server behind the proxy", f.url)
	}
	cfg.Address = parsed.Host
	if parsed.Port() == "" {
		cfg.Address = net.JoinHostPort(parsed.Hostname(), "80")
	}
	if len(cfg.Keys) == 0 && running {
		if d, err := up.ReadDemo(f.data); err == nil {
			cfg.Keys = []string{d.LiveKey}
		}
	}
	pids := make(map[string]int)
	for _, text := range f.pids {
		name, number, found := strings.Cut(text, "=")
		pid := 0
		if _, err := fmt.Sscanf(number, "%d", &pid); !found || name == "" || err != nil || pid < 1 {
			return fmt.Errorf("pid %q: use NAME=PID", text)
		}
		pids[name] = pid
	}
	cfg.Versions = make(map[string]string)
	switch {
	case len(pids) > 0:
		cfg.PIDs = func() map[string]int { return pids }
	case running:
		data := f.data
		cfg.PIDs = func() map[string]int { return upProcesses(data, rt) }
		if version := bench.ProcessVersion(rt.PID); version != "" {
			cfg.Versions["server"] = version
		}
	}
	if version := bench.ToolVersion("redis-server", "--version"); running && version != "" {
		cfg.Versions["redis-server"] = version
	}
	return nil
}

// upProcesses returns the processes of a running `up` by name.
func upProcesses(data string, last *config.Runtime) map[string]int {
	if rt, err := config.ReadRuntime(data); err == nil {
		last = rt
	}
	pids := map[string]int{"api": last.PID}
	for name, pid := range last.Processes {
		pids[name] = pid
	}
	return pids
}

// commandLine returns the command line without keys.
func commandLine() string {
	args := slices.Clone(os.Args)
	for i := range args {
		if name, _, found := strings.Cut(args[i], "="); found && name == "--key" {
			args[i] = "--key=..."
		} else if i > 0 && args[i-1] == "--key" {
			args[i] = "..."
		}
	}
	args[0] = filepath.Base(args[0])
	return strings.Join(args, " ")
}

// linesMaxBytes bounds a file of keys.
const linesMaxBytes = 1 << 20

func readBenchKeys(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, linesMaxBytes))
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	var lines []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("read keys from %s: the file has none", path)
	}
	return lines, nil
}

// liveView writes a line and replaces it every second.
func liveView(w io.Writer) func(bench.Progress) {
	failed := int64(0)
	return func(p bench.Progress) {
		phase := p.Phase
		if phase == "" {
			if phase = "measuring"; !p.Measured {
				phase = "warm-up"
			}
		}
		total := ""
		if p.Total > 0 {
			total = fmt.Sprintf(" of %.0f s", p.Total.Seconds())
		}
		if p.Measured {
			failed += p.Failed
		}
		text := fmt.Sprintf("%s %.0f s%s: %s answers/s, p99 %s", phase, p.At.Seconds(), total, report.Count(float64(p.Answered)),
			report.Duration(float64(p.P99)/1000))
		if p.P99SoFar > 0 {
			text += fmt.Sprintf(" (%s so far)", report.Duration(float64(p.P99SoFar)/1000))
		}
		text += fmt.Sprintf(", waiting %s, failed %s", report.Count(float64(p.Waiting)), report.Count(float64(failed)))
		names := make([]string, 0, len(p.Resident))
		for name := range p.Resident {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			text += fmt.Sprintf(", %s %s", name, report.Size(p.Resident[name]))
		}
		fmt.Fprintf(w, "\r\033[K%s", text)
	}
}

func (c *benchCommands) compare() *cobra.Command {
	var percent float64
	var anyway bool
	cmd := &cobra.Command{
		Use:   "compare BEFORE.json AFTER.json",
		Short: "Compare two reports",
		Long: `Compare the second report with the first. Exits 1 when a latency rose by more than the
tolerance and 50 µs, when throughput fell or CPU for each answer rose by more than the
tolerance, when more answers were unexpected, or when the two cannot be compared.

Runs whose verdict is not VALID are not compared. With --anyway their ratios are printed, each
marked as not valid, and the command still exits 1.`,
		Example: "  companyscore bench compare before.json after.json --tolerance 5\n" +
			"  companyscore bench compare before.json after.json --anyway",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(percent >= 0 && percent <= 1000) {
				return cli.Usage(fmt.Errorf("tolerance %g: use a percentage", percent))
			}
			before, err := report.Read(args[0])
			if err != nil {
				return err
			}
			after, err := report.Read(args[1])
			if err != nil {
				return err
			}
			comparison := report.Compare(before, after, percent/100, anyway)
			if err := comparison.Text(cmd.OutOrStdout()); err != nil {
				return err
			}
			if comparison.Worse() {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().Float64Var(&percent, "tolerance", 10, "tolerated worsening of a figure in percent")
	cmd.Flags().BoolVar(&anyway, "anyway", false, "print ratios of runs that are not VALID")
	return cmd
}

func (c *benchCommands) report() *cobra.Command {
	var html string
	cmd := &cobra.Command{
		Use:     "report RUN.json",
		Short:   "Print a report as text or as an HTML page",
		Example: "  companyscore bench report run.json\n  companyscore bench report run.json --html run.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := report.Read(args[0])
			if err != nil {
				return err
			}
			if html == "" {
				return run.Text(cmd.OutOrStdout())
			}
			return report.WriteFile(html, run.HTML)
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write an HTML page to this file instead of text")
	return cmd
}

// nullServer runs the server of scenario null in its own process.
func (c *benchCommands) nullServer() *cobra.Command {
	return &cobra.Command{
		Use: "null-server", Short: "Answer every request with the same bytes", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			null, err := load.ListenNull()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ready http://%s\n", null.Address)
			return null.Serve(cmd.Context())
		},
	}
}
