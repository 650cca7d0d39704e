package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// jobsMax bounds the jobs of one poll. The service reads a thousand at once, but a proxy in front of it may
// refuse such a long address.
const jobsMax = 200

// StartedMany is the answer to [Client.StartMany].
type StartedMany struct {
	Response Response
	DryRun   bool
	Summary  ManySummary
	// Items are in the order of the call.
	Items []StartedItem
}

// ManySummary counts the companies of a call for many.
type ManySummary struct {
	// Stored were answered with a stored score, a cached call each.
	Stored int `json:"stored"`
	// Started have a job, a cold call each.
	Started int `json:"started"`
	// Refused were refused by a limit and not charged.
	Refused int `json:"refused"`
}

// StartedItem is one company of a call for many. It has a score, a job or an error. In a dry run it has only the error.
type StartedItem struct {
	// Domain is canonical.
	Domain string
	// Status is 200 for a stored score, 202 for a job and 429 if a limit refused the company.
	Status int
	Started
	// Err is nil or an *Error, such as ErrMonthlyCap.
	Err error
}

// Jobs returns the jobs of the items.
func (s StartedMany) Jobs() []Job {
	var jobs []Job
	for _, item := range s.Items {
		if item.Job != nil {
			jobs = append(jobs, *item.Job)
		}
	}
	return jobs
}

// StartMany is [Client.Start] for up to 1,000 companies. The service starts runs for all of those without a score that is fresh enough, or
// for none: then the error is that of the limit. With [Partial] it starts as many as the limits allow.
func (c *Client) StartMany(ctx context.Context, domains []string, options ...ManyOption) (StartedMany, error) {
	var o manyOptions
	for _, option := range options {
		option.applyMany(&o)
	}
	if o.idempotencyKey == "" {
		o.idempotencyKey = rand.Text()
	}
	body := struct {
		Domains    []string `json:"domains"`
		Partial    bool     `json:"partial,omitempty"`
		DryRun     bool     `json:"dry_run,omitempty"`
		ForceFresh bool     `json:"force_fresh,omitempty"`
		Include    []string `json:"include,omitempty"`
	}{domains, o.partial, o.dryRun, o.forceFresh, o.include()}
	a, err := c.call(ctx, request{method: http.MethodPost, path: "/v1/scores", body: body, key: o.idempotencyKey})
	if err != nil {
		return StartedMany{}, err
	}
	var answered struct {
		DryRun  bool        `json:"dry_run"`
		Summary ManySummary `json:"summary"`
		Results []struct {
			Domain string          `json:"domain"`
			Status int             `json:"status"`
			Score  json.RawMessage `json:"score"`
			Job    *Job            `json:"job"`
			Error  problem         `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal(a.Body, &answered); err != nil {
		return StartedMany{}, fmt.Errorf("read answer of POST /v1/scores: %w", err)
	}
	if len(answered.Results) != len(domains) {
		return StartedMany{}, errors.New("read answer of POST /v1/scores: it has another number of companies than the request")
	}
	many := StartedMany{Response: a.Response, DryRun: answered.DryRun, Summary: answered.Summary, Items: make([]StartedItem, len(domains))}
	for i, r := range answered.Results {
		item := StartedItem{Domain: r.Domain, Status: r.Status, Started: Started{Job: r.Job}}
		if item.Err = r.Error.of(r.Status, a.Response.RequestID); r.Score != nil {
			item.Score = &Score{Response: Response{RequestID: a.Response.RequestID, Quotas: a.Response.Quotas, Body: r.Score}}
			if err := json.Unmarshal(r.Score, item.Score); err != nil {
				return StartedMany{}, fmt.Errorf("read score of %s: %w", r.Domain, err)
			}
		}
		many.Items[i] = item
	}
	return many, nil
}

// JobItem is one job of a poll of many.
type JobItem struct {
	ID string
	// Job is nil if there is an error.
	Job *Job
	// Err is nil or an *Error, such as ErrJobNotFound.
	Err error
}

// Jobs reads the states of jobs, in the order of ids. It sends one request for each 200.
func (c *Client) Jobs(ctx context.Context, ids ...string) ([]JobItem, error) {
	items, _, err := c.pollMany(ctx, ids)
	return items, err
}

// pollMany reads jobs and the pause before the next poll.
func (c *Client) pollMany(ctx context.Context, ids []string) (items []JobItem, pause time.Duration, err error) {
	pause = pollInterval
	for part := range slices.Chunk(ids, jobsMax) {
		path := "/v1/jobs?" + url.Values{"ids": {strings.Join(part, ",")}}.Encode()
		a, err := c.call(ctx, request{method: http.MethodGet, path: path})
		if err != nil {
			return items, 0, err
		}
		var answered struct {
			Jobs []struct {
				ID     string  `json:"job_id"`
				Status int     `json:"status"`
				Job    *Job    `json:"job"`
				Error  problem `json:"error"`
			} `json:"jobs"`
		}
		if err := json.Unmarshal(a.Body, &answered); err != nil {
			return items, 0, fmt.Errorf("read jobs: %w", err)
		}
		for _, r := range answered.Jobs {
			items = append(items, JobItem{ID: r.ID, Job: r.Job, Err: r.Error.of(r.Status, a.Response.RequestID)})
		}
		if a.pollAfter > 0 {
			pause = a.pollAfter
		}
	}
	return items, pause, nil
}

// WaitMany polls jobs together until none is pending, and returns them in order. It ends with ctx. After an error the jobs have the
// states of the last poll. A failed run is no error: its job has the reason.
func (c *Client) WaitMany(ctx context.Context, jobs []Job) ([]Job, error) {
	jobs, pause := slices.Clone(jobs), firstPoll
	for {
		var ids []string
		var places []int
		for i, job := range jobs {
			if job.Status == "pending" {
				ids, places = append(ids, job.ID), append(places, i)
			}
		}
		if len(ids) == 0 {
			return jobs, nil
		}
		if err := c.sleep(ctx, pause); err != nil {
			return jobs, fmt.Errorf("wait for %d jobs: %w", len(ids), err)
		}
		items, next, err := c.pollMany(ctx, ids)
		for i, item := range items {
			if item.Err != nil {
				err = errors.Join(err, item.Err)
			} else {
				jobs[places[i]] = *item.Job
			}
		}
		if err != nil {
			return jobs, fmt.Errorf("wait for %d jobs: %w", len(ids), err)
		}
		pause = next
	}
}
