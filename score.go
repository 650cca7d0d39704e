package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
)

const (
	pollEvery = 5 * time.Second
	pollMax   = 180 * time.Second
)

func (c *program) score() *cobra.Command {
	var key, base, data string
	var asJSON, force bool
	cmd := &cobra.Command{
		Use:   "score DOMAIN...",
		Short: "Ask the service for the scores of companies",
		Long: `Ask the service for the scores of companies, as a customer does: post each domain, poll
its job if a run was started, print the score. The single argument "-" reads domains
from standard input, one to a line. Exits 1 when any company got no score.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domains := args
			if len(args) == 1 && args[0] == "-" {
				var err error
				if domains, err = domainname.ReadFile("-", cmd.InOrStdin()); err != nil {
					return err
				}
			}
			if base == "" {
				base = "http://127.0.0.1:8080"
				if rt, err := config.ReadRuntime(data); err == nil {
					base = rt.BaseURL
				}
			}
			if key == "" {
				return cli.Usage(errors.New("give an API key with --key or COMPANYSCORE_KEY"))
			}
			client := customer{base: base, key: key, http: &http.Client{Timeout: 30 * time.Second}, progress: io.Discard}
			if cli.IsTerminal(cmd.ErrOrStderr()) {
				client.progress = cmd.ErrOrStderr()
			}
			failed := false
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
			if !asJSON {
				fmt.Fprintln(w, "DOMAIN\tRATING\tSCORE\tPREMIUM\tTEAM\tMARKET\tMOMENTUM\tFINANCE\tSCORED AT\t")
			}
			for _, domain := range domains {
				body, err := client.score(cmd.Context(), domain, force)
				if err != nil {
					failed = true
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", domain, err)
					continue
				}
				if asJSON {
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n", bytes.TrimSpace(body))
					continue
				}
				var s scoreAnswer
				if err := json.Unmarshal(body, &s); err != nil {
					return fmt.Errorf("read score of %s: %w", domain, err)
				}
				fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", s.Domain, s.Rating, s.Composite, s.Premium,
					s.Buckets.Team, s.Buckets.Market, s.Buckets.Momentum, s.Buckets.Finance, s.ScoredAt.Format(time.DateTime))
			}
			if !asJSON {
				if err := w.Flush(); err != nil {
					return err
				}
			}
			if failed {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "API key")
	cmd.Flags().StringVar(&base, "url", "", "address of the service; without it the running `up` of --data, else http://127.0.0.1:8080")
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of a running `up`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each score as the service sent it, one to a line")
	cmd.Flags().BoolVar(&force, "force-fresh", false, "have it scored again even if there is a fresh score (enterprise tier)")
	return cmd
}

// scoreAnswer is the part of a score that is printed.
type scoreAnswer struct {
	Domain    string    `json:"domain"`
	Rating    string    `json:"svc_rating"`
	Composite float64   `json:"composite_score"`
	Premium   float64   `json:"scale_premium"`
	ScoredAt  time.Time `json:"scored_at"`
	Buckets   struct {
		Team     float64 `json:"team_structure"`
		Market   float64 `json:"market_position"`
		Momentum float64 `json:"momentum_tailwinds"`
		Finance  float64 `json:"financial_health"`
	} `json:"buckets"`
}

// customer talks to the service as any client would.
type customer struct {
	base, key string
	http      *http.Client
	progress  io.Writer
}

// score returns the body of a score, after waiting for a run if need be.
func (c customer) score(ctx context.Context, domain string, force bool) ([]byte, error) {
	request, err := json.Marshal(map[string]any{"domain": domain, "force_fresh": force})
	if err != nil {
		return nil, err
	}
	status, body, err := c.call(ctx, http.MethodPost, "/v1/score", request)
	if err != nil || status == http.StatusOK {
		return body, err
	}
	var accepted struct {
		PollURL string `json:"poll_url"`
		Domain  string `json:"domain"`
	}
	if err := json.Unmarshal(body, &accepted); err != nil {
		return nil, fmt.Errorf("read accepted job: %w", err)
	}
	scoreURL, err := c.poll(ctx, accepted.Domain, accepted.PollURL)
	if err != nil {
		return nil, err
	}
	_, body, err = c.call(ctx, http.MethodGet, scoreURL, nil)
	return body, err
}

// poll waits until a job is settled and returns where its score is. The first
// look comes after a second, as a run can be over that soon.
func (c customer) poll(ctx context.Context, domain, path string) (string, error) {
	began, pause := time.Now(), time.Second
	defer fmt.Fprint(c.progress, "\r\033[K")
	for {
		fmt.Fprintf(c.progress, "\r\033[K%s: scoring, %d s", domain, int(time.Since(began).Seconds()))
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause):
		}
		pause = pollEvery
		_, body, err := c.call(ctx, http.MethodGet, path, nil)
		if err != nil {
			return "", err
		}
		var job struct {
			Status   string `json:"status"`
			ScoreURL string `json:"score_url"`
			Reason   string `json:"failure_reason"`
		}
		if err := json.Unmarshal(body, &job); err != nil {
			return "", fmt.Errorf("read job: %w", err)
		}
		switch job.Status {
		case "complete":
			return job.ScoreURL, nil
		case "failed":
			return "", fmt.Errorf("the run failed: %s", job.Reason)
		}
		if time.Since(began) > pollMax {
			return "", fmt.Errorf("not scored within %s; look again later at %s%s", pollMax, c.base, path)
		}
	}
}

// answerMaxBytes bounds what is read of an answer.
const answerMaxBytes = 1 << 20

// call makes one request. A status other than 200 and 202 is an error that says
// what the service said.
func (c customer) call(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-Key", c.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("reach the service: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMaxBytes))
	if err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusAccepted {
		return res.StatusCode, text, nil
	}
	var problem struct{ Error, Message, Reason string }
	if json.Unmarshal(text, &problem) != nil || problem.Error == "" {
		return 0, nil, fmt.Errorf("the service answered %s", res.Status)
	}
	said := problem.Error
	if problem.Reason != "" {
		said += " (" + problem.Reason + ")"
	}
	if problem.Message != "" {
		said += ": " + problem.Message
	}
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		said += fmt.Sprintf(" Room again in %s.", time.Duration(after)*time.Second)
	}
	return 0, nil, errors.New(said)
}
