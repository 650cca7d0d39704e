// Package client calls the HTTP API of companyscore.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	// firstPoll is the time before the first poll of a job.
	firstPoll = time.Second
	// pollInterval is the time between later polls.
	pollInterval = 5 * time.Second
	// pollTimeout bounds the wait for a job.
	pollTimeout = 180 * time.Second
	// requestTimeout bounds one request with its answer.
	requestTimeout = 30 * time.Second
	// answerMaxBytes bounds the bytes read of an answer.
	answerMaxBytes = 1 << 20
)

// Client calls one service with one API key. It is safe for concurrent use if Progress is.
type Client struct {
	// URL is the base of the service, without a trailing slash.
	URL string
	// Key is the API key.
	Key string
	// Evidence asks for the evidence of each score.
	Evidence bool
	// Progress is called before each wait for a run, with the time since the first wait began.
	// It may be nil.
	Progress func(domain string, waited time.Duration)
}

// Score is the newest score of a company.
type Score struct {
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
	// Evidence is nil unless the client asked for it.
	Evidence *Evidence `json:"evidence"`
	// Body is the raw body of the answer.
	Body []byte `json:"-"`
}

// Evidence is how much of a score rests on data.
type Evidence struct {
	PipelineVersion string `json:"pipeline_version"`
	RunID           string `json:"run_id"`
	// Band is high, medium, low or directional.
	Band string `json:"band"`
	// CompletenessPct is the weighted share of the applicable signals that rest on data, 0 to 100.
	CompletenessPct float64 `json:"data_completeness_pct"`
	// Interval is the likely range of the composite if all signals were known.
	Interval Interval `json:"interval"`
}

// Interval is a range of composites, 0 to 100.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Level is the probability of the range in percent.
	Level int `json:"level"`
}

// Error is an answer of the service that is neither a score nor a job.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the `error` of the body, empty if the body is not an error of the service.
	Code string
	// Reason is the code of the limit that was exceeded, empty for other errors.
	Reason string
	// Message explains the error.
	Message string
	// RetryAfter is the time to wait before a retry, zero if the answer has no Retry-After.
	RetryAfter time.Duration
}

// Error returns code, reason, message and RetryAfter, or the status if there is no code.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the service answered %d %s", e.Status, http.StatusText(e.Status))
	}
	text := e.Code
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" Room again in %s.", e.RetryAfter)
	}
	return text
}

// RunError is the error of a run that failed.
type RunError struct{ Reason string }

// Error returns the reason.
func (e *RunError) Error() string { return "the run failed: " + e.Reason }

// Score returns the score of a company. If the service answers with a job, Score polls it for up
// to three minutes. forceFresh starts a run even if there is a fresh score; the service ignores it
// unless the tier is enterprise. The error is an *Error, a *RunError, or an error of the network, of
// an unreadable answer, of the timeout or of ctx.
func (c *Client) Score(ctx context.Context, domain string, forceFresh bool) (Score, error) {
	fields := map[string]any{"domain": domain, "force_fresh": forceFresh}
	if c.Evidence {
		fields["include"] = []string{"evidence"}
	}
	request, err := json.Marshal(fields)
	if err != nil {
		return Score{}, err
	}
	status, body, err := c.call(ctx, http.MethodPost, "/v1/score", request)
	if err != nil {
		return Score{}, err
	}
	if status == http.StatusAccepted {
		if body, err = c.await(ctx, body); err != nil {
			return Score{}, err
		}
	}
	score := Score{Body: body}
	if err := json.Unmarshal(body, &score); err != nil {
		return Score{}, fmt.Errorf("read score of %s: %w", domain, err)
	}
	return score, nil
}

// await polls the job in the body of a 202 until it is settled and returns the body of its score.
func (c *Client) await(ctx context.Context, accepted []byte) ([]byte, error) {
	var job struct {
		PollURL string `json:"poll_url"`
		Domain  string `json:"domain"`
	}
	if err := json.Unmarshal(accepted, &job); err != nil {
		return nil, fmt.Errorf("read accepted job: %w", err)
	}
	began, pause := time.Now(), firstPoll
	for {
		if c.Progress != nil {
			c.Progress(job.Domain, time.Since(began))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		pause = pollInterval
		_, body, err := c.call(ctx, http.MethodGet, job.PollURL, nil)
		if err != nil {
			return nil, err
		}
		var polled struct {
			Status   string `json:"status"`
			ScoreURL string `json:"score_url"`
			Reason   string `json:"failure_reason"`
		}
		if err := json.Unmarshal(body, &polled); err != nil {
			return nil, fmt.Errorf("read job: %w", err)
		}
		switch polled.Status {
		case "complete":
			path := polled.ScoreURL
			if c.Evidence {
				path += "?include=evidence"
			}
			_, body, err := c.call(ctx, http.MethodGet, path, nil)
			return body, err
		case "failed":
			return nil, &RunError{polled.Reason}
		}
		if time.Since(began) > pollTimeout {
			return nil, fmt.Errorf("not scored within %s; poll %s%s later", pollTimeout, c.URL, job.PollURL)
		}
	}
}

// call makes one request. An answer with a status other than 200 and 202 is an *Error.
func (c *Client) call(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-Key", c.Key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
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
	failed := &Error{Status: res.StatusCode}
	var problem struct{ Error, Message, Reason string }
	if json.Unmarshal(text, &problem) == nil {
		failed.Code, failed.Message, failed.Reason = problem.Error, problem.Message, problem.Reason
	}
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		failed.RetryAfter = time.Duration(after) * time.Second
	}
	return 0, nil, failed
}
