package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"companyscore/client"
	"companyscore/internal/cli"
	"companyscore/internal/domainname"
)

// scoreParallelMax bounds --parallel: the client keeps so many connections open.
const scoreParallelMax = 64

// scoreCommand returns the command.
func scoreCommand() *cobra.Command {
	var from service
	var format cli.Output
	var force bool
	var parallel int
	cmd := &cobra.Command{
		Use:   "score DOMAIN...",
		Short: "Get scores of companies from the service",
		Long: `Get scores of companies from the service as a customer: post each domain, poll the job if
a run was started, print the score with its evidence. The argument "-" reads domains from standard input,
one per line. Exits 1 if any company has no score, and names each of them on standard error. After an answer
429 no further company is begun. Give the key in COMPANYSCORE_KEY: every user of the machine can see arguments.

CSV, JSON, and a table on a terminal have the scores as they come, not in the order of the domains.
--output json prints the JSON of the service, one score per line.`,
		Example: `  export COMPANYSCORE_KEY=svc_live_...
  companyscore score apple.com zapier.com
  companyscore score - --output csv < domains.txt > scores.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if parallel < 1 || parallel > scoreParallelMax {
				return cli.Usage(fmt.Errorf("--parallel %d: use 1 to %d", parallel, scoreParallelMax))
			}
			domains := args
			if len(args) == 1 && args[0] == "-" {
				var err error
				if domains, err = domainname.ReadFile("-", cmd.InOrStdin()); err != nil {
					return err
				}
				if len(domains) == 0 {
					return cli.Usage(errors.New("standard input has no domains: give one per line"))
				}
			}
			service, err := from.client()
			if err != nil {
				return err
			}
			from.describeSources(cmd.Context(), cmd.ErrOrStderr())
			options := []client.StartOption{client.WithEvidence()}
			if force {
				options = append(options, client.ForceFresh())
			}
			call := scoreCall{
				from: &from, domains: domains, parallel: parallel, out: newScorePrinter(cmd.OutOrStdout(), format, domains),
				errs: cmd.ErrOrStderr(), progress: newScoreProgress(cmd.ErrOrStderr(), domains),
				score: func(ctx context.Context, domain string) (client.Score, error) {
					return service.ScoreAndWait(ctx, domain, options...)
				},
			}
			return call.run(cmd.Context())
		},
	}
	from.flags(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force-fresh", false, "start a run even if a fresh score is stored (enterprise tier)")
	cmd.Flags().IntVar(&parallel, "parallel", 16, fmt.Sprintf("companies at a time, 1 to %d", scoreParallelMax))
	format.Flag(cmd)
	return cmd
}

// scoreCall is one call of the command `score`.
type scoreCall struct {
	from     *service
	domains  []string
	parallel int
	out      *scorePrinter
	errs     io.Writer
	progress *scoreProgress
	score    func(ctx context.Context, domain string) (client.Score, error)
}

// scored is the result for one company.
type scored struct {
	index int // in the domains of the call
	score client.Score
	err   error
}

// run scores the companies and prints each result. After a refusal of the key, an answer 429 or the end of ctx it begins no further one.
func (c *scoreCall) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan scored, c.parallel)
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	defer cancel()
	defer c.progress.close()
	begun, ended, complete := 0, 0, 0
	interrupted := ctx.Done()
	var stopped error // why no further company is begun
	for {
		for ; begun < len(c.domains) && begun-ended < c.parallel && stopped == nil; begun++ {
			index := begun
			inFlight.Go(func() {
				got, err := c.score(ctx, c.domains[index])
				results <- scored{index, got, err}
			})
		}
		if ended == begun {
			break
		}
		select {
		case <-interrupted:
			interrupted, stopped = nil, ctx.Err()
		case <-c.progress.tick:
			c.progress.show(ended)
		case r := <-results:
			ended++
			c.progress.clear()
			switch {
			case r.err == nil:
				complete++
				if err := c.out.print(r); err != nil {
					return err
				}
			case errors.Is(r.err, client.ErrUnauthorized) && errors.Is(stopped, client.ErrUnauthorized):
				fmt.Fprintf(c.errs, "%s: not scored either\n", c.domains[r.index])
			default:
				_ = c.from.report(c.errs, c.domains[r.index], r.err)
				if stopped == nil && endsScoring(r.err) {
					stopped = r.err
				}
			}
		}
	}
	for _, domain := range c.domains[begun:] {
		fmt.Fprintf(c.errs, "%s: not begun\n", domain)
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	if complete < len(c.domains) {
		return cli.ErrReported
	}
	return nil
}

// endsScoring reports whether an error is that of the key or of a limit, and so of the next companies too.
func endsScoring(err error) bool {
	return errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrMonthlyCap) || errors.Is(err, client.ErrRateLimited)
}

// scorePrinter prints scores as they come. A table that does not go to a terminal is printed at the end, in the order of the domains.
type scorePrinter struct {
	w    io.Writer
	rows *cli.Rows[client.Score] // nil unless rows are printed as they come
	json bool
	kept []scored
}

func newScorePrinter(w io.Writer, format cli.Output, domains []string) *scorePrinter {
	p := &scorePrinter{w: w, json: format == cli.JSON}
	if format == cli.CSV || !p.json && len(domains) > 1 && cli.IsTerminal(w) {
		columns := slices.Clone(scoreColumns)
		for _, domain := range domains {
			columns[0].Width = max(columns[0].Width, utf8.RuneCountInString(domain))
		}
		p.rows = cli.NewRows(w, format, columns)
	}
	return p
}

func (p *scorePrinter) print(r scored) error {
	switch {
	case p.json:
		_, err := fmt.Fprintf(p.w, "%s\n", bytes.TrimSpace(r.score.Response.Body))
		return err
	case p.rows != nil:
		return p.rows.Print(r.score)
	}
	p.kept = append(p.kept, r)
	return nil
}

// flush prints what is kept.
func (p *scorePrinter) flush() error {
	if p.rows != nil {
		return p.rows.Print() // the names of the columns, if there was no row
	}
	if len(p.kept) == 0 {
		return nil
	}
	slices.SortFunc(p.kept, func(a, b scored) int { return a.index - b.index })
	scores := make([]client.Score, len(p.kept))
	for i, r := range p.kept {
		scores[i] = r.score
	}
	return cli.PrintList(p.w, cli.Table, scores, scoreColumns)
}

// Widths of columns of scores on a terminal.
const (
	scoreWidth  = len("64.0, likely 52 to 76")
	bucketWidth = len("100.0")
)

var scoreColumns = []cli.Column[client.Score]{
	{Name: "domain", Value: func(s client.Score) any { return s.Domain }},
	{Name: "rating", Value: func(s client.Score) any { return s.Rating }},
	{Name: "score", Only: cli.Table, Width: scoreWidth, Value: func(s client.Score) any {
		switch e := s.Evidence; {
		case e == nil:
			return s.Composite
		case e.CompletenessPct == 0:
			return fmt.Sprintf("%.1f, nothing known", s.Composite)
		default:
			return fmt.Sprintf("%.1f, likely %.0f to %.0f", s.Composite, e.Interval.Low, e.Interval.High)
		}
	}},
	{Name: "completeness", Only: cli.Table, Value: func(s client.Score) any {
		if s.Evidence == nil {
			return nil
		}
		return completeness(s.Evidence.CompletenessPct)
	}},
	{Name: "composite", Only: cli.CSV, Value: func(s client.Score) any { return s.Composite }},
	{Name: "low", Only: cli.CSV, Value: func(s client.Score) any { return scoreEvidence(s).Interval.Low }},
	{Name: "high", Only: cli.CSV, Value: func(s client.Score) any { return scoreEvidence(s).Interval.High }},
	{Name: "data_completeness_pct", Only: cli.CSV, Value: func(s client.Score) any { return scoreEvidence(s).CompletenessPct }},
	{Name: "premium", Value: func(s client.Score) any { return s.Premium }},
	{Name: "team", Width: bucketWidth, Value: func(s client.Score) any { return s.Buckets.Team }},
	{Name: "market", Value: func(s client.Score) any { return s.Buckets.Market }},
	{Name: "momentum", Value: func(s client.Score) any { return s.Buckets.Momentum }},
	{Name: "finance", Value: func(s client.Score) any { return s.Buckets.Finance }},
	{Name: "scored_at", Value: func(s client.Score) any { return s.ScoredAt }},
}

// completeness returns a share of data as a cell of a table.
func completeness(percent float64) string { return fmt.Sprintf("%.1f %%", percent) }

// scoreEvidence returns the evidence of a score, the zero value if a service without evidence answered.
func scoreEvidence(s client.Score) client.Evidence {
	if s.Evidence == nil {
		return client.Evidence{}
	}
	return *s.Evidence
}

// scoreProgress shows on a terminal how many companies are scored, from one second after the begin.
type scoreProgress struct {
	w       io.Writer // nil if nothing is shown
	domains []string
	began   time.Time
	ticker  *time.Ticker
	tick    <-chan time.Time
	shown   bool
}

func newScoreProgress(w io.Writer, domains []string) *scoreProgress {
	if !cli.IsTerminal(w) {
		return &scoreProgress{}
	}
	p := &scoreProgress{w: cli.Control(w), domains: domains, began: time.Now(), ticker: time.NewTicker(time.Second)}
	p.tick = p.ticker.C
	return p
}

// show writes the line in the place of the one before.
func (p *scoreProgress) show(ended int) {
	fmt.Fprint(p.w, "\r\033[K", scoreProgressText(p.domains, ended, time.Since(p.began)))
	p.shown = true
}

// clear removes the line.
func (p *scoreProgress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\033[K")
		p.shown = false
	}
}

func (p *scoreProgress) close() {
	p.clear()
	if p.ticker != nil {
		p.ticker.Stop()
	}
}

// scoreProgressText returns the line of progress. The time left assumes that the other companies take as long as those before.
func scoreProgressText(domains []string, ended int, waited time.Duration) string {
	if len(domains) == 1 {
		return fmt.Sprintf("%s: scoring, %d s", cli.Printable(domains[0]), int(waited.Seconds()))
	}
	text := fmt.Sprintf("%d of %d", ended, len(domains))
	if ended == 0 {
		return text
	}
	left := waited / time.Duration(ended) * time.Duration(len(domains)-ended)
	unit, name := time.Second, "s"
	if left >= 100*time.Minute {
		unit, name = time.Hour, "h"
	} else if left >= 100*time.Second {
		unit, name = time.Minute, "min"
	}
	return fmt.Sprintf("%s, about %.0f %s left", text, float64(left)/float64(unit), name)
}
