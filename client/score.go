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
	"time"
)

const (
	// firstPoll is the pause before the first poll of a job, pollInterval the pause before each later one, unless the service
	// names another.
	firstPoll    = time.Second
	pollInterval = 5 * time.Second
	// waitMax bounds the wait for a job.
	waitMax = 180 * time.Second
	// rereadPause is the pause before an older score than that of the job is read again, and readsMax the maximum number of reads. A
	// server has the score within a second, without announcements within 30.
	rereadPause = time.Second
	readsMax    = 40
	// batchMax is the number of companies that the service accepts in one batch.
	batchMax = 1000
)

// Score is the newest score of a company.
type Score struct {
	Response Response `json:"-"`
	// Mode is "sandbox" in answers to a test key, empty in all others.
	Mode     string    `json:"mode"`
	Domain   string    `json:"domain"`
	ScoredAt time.Time `json:"scored_at"`
	// Rating is the grade, from SVC-5 (lowest) to SVC-1+ (highest).
	Rating string `json:"svc_rating"`
	// Composite is the score from 0 to 100. It includes Premium, the points for scale from 0 to 12.
	Composite float64 `json:"composite_score"`
	Premium   float64 `json:"scale_premium"`
	Buckets   Buckets `json:"buckets"`
	// Rank is nil if the score was made under another pipeline version than the statistics.
	Rank *Rank `json:"rank"`
	// Evidence is nil unless the call has [WithEvidence].
	Evidence *Evidence `json:"evidence"`
	Caller   Caller    `json:"x_svc"`
}

// Buckets are the scores of the four groups of signals, 0 to 100.
type Buckets struct {
	Team     float64 `json:"team_structure"`
	Market   float64 `json:"market_position"`
	Momentum float64 `json:"momentum_tailwinds"`
	Finance  float64 `json:"financial_health"`
}

// Rank is the place of a company among all companies.
type Rank struct {
	// Percentile is the share of the other companies with a lower composite, 0 to 100.
	Percentile int   `json:"percentile"`
	CohortSize int64 `json:"cohort_size"`
}

// Caller is what applies to the account of the API key.
type Caller struct {
	Tier                 string  `json:"tier"`
	CacheStatus          string  `json:"cache_status"`
	FreshnessWindowHours float64 `json:"freshness_window_hours"`
}

// Evidence is how much of a score rests on data.
type Evidence struct {
	PipelineVersion string `json:"pipeline_version"`
	RunID           string `json:"run_id"`
	// Band is high, medium, low, directional, or none if nothing is known about the company.
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

// Job is a run that the account asked for.
type Job struct {
	Response Response `json:"-"`
	ID       string   `json:"job_id"`
	// Status is pending, complete or failed.
	Status string `json:"status"`
	Domain string `json:"domain"`
	// CreatedAt is zero in the job of [Client.Start].
	CreatedAt time.Time `json:"created_at"`
	// CompletedAt is nil while the job is pending.
	CompletedAt *time.Time `json:"completed_at"`
	// Result identifies the record of a complete job. It is nil for others.
	Result   *Result `json:"result_ref"`
	PollURL  string  `json:"poll_url"`
	ScoreURL string  `json:"score_url"`
	// FailureReason is sfn_failed, sfn_timed_out, sfn_aborted or scoring_completed_no_record in a failed job.
	FailureReason string `json:"failure_reason"`
	// Progress is how far the run is, some seconds old. It is nil while the run waits and once the job is settled.
	Progress *Progress `json:"progress"`
}

// Progress is how far a run is.
type Progress struct {
	SourcesDone  int `json:"sources_done"`
	SourcesTotal int `json:"sources_total"`
}

// Result identifies the record of a complete job.
type Result struct {
	Domain   string    `json:"domain"`
	ScoredAt time.Time `json:"scored_at"`
}

// ReadOption is an option of calls that read scores.
type ReadOption interface{ applyRead(*readOptions) }

// StartOption is an option of calls that may start a run.
type StartOption interface{ applyStart(*startOptions) }

// ManyOption is an option of [Client.StartMany].
type ManyOption interface{ applyMany(*manyOptions) }

type readOptions struct{ evidence bool }

type startOptions struct {
	readOptions
	forceFresh     bool
	idempotencyKey string
}

type manyOptions struct {
	startOptions
	partial, dryRun bool
}

// Option is a [ReadOption], a [StartOption] and a [ManyOption].
type Option func(*readOptions)

func (o Option) applyRead(r *readOptions)   { o(r) }
func (o Option) applyStart(s *startOptions) { o(&s.readOptions) }
func (o Option) applyMany(m *manyOptions)   { o(&m.readOptions) }

// RunOption is both a [StartOption] and a [ManyOption].
type RunOption func(*startOptions)

func (o RunOption) applyStart(s *startOptions) { o(s) }
func (o RunOption) applyMany(m *manyOptions)   { o(&m.startOptions) }

type manyOption func(*manyOptions)

func (o manyOption) applyMany(m *manyOptions) { o(m) }

// WithEvidence asks for the evidence of each score.
func WithEvidence() Option { return func(r *readOptions) { r.evidence = true } }

// ForceFresh starts a run even if a fresh score is stored. The service ignores it unless the tier is enterprise.
func ForceFresh() RunOption { return func(s *startOptions) { s.forceFresh = true } }

// IdempotencyKey names the request, with at most 255 printable ASCII characters, so that repeats within 24 hours, also by another
// process, are charged once. Without it the client makes a new key for each call.
func IdempotencyKey(key string) RunOption { return func(s *startOptions) { s.idempotencyKey = key } }

// Partial starts as many runs as the limits allow, instead of all or none.
func Partial() ManyOption { return manyOption(func(m *manyOptions) { m.partial = true }) }

// DryRun asks what the call would do and cost. It starts, counts and charges nothing.
func DryRun() ManyOption { return manyOption(func(m *manyOptions) { m.dryRun = true }) }

func readOptionsOf(options []ReadOption) readOptions {
	var r readOptions
	for _, o := range options {
		o.applyRead(&r)
	}
	return r
}

// query returns the query of the options, with the question mark.
func (r readOptions) query() string {
	if r.evidence {
		return "?include=evidence"
	}
	return ""
}

// include returns the field include of a body.
func (r readOptions) include() []string {
	if r.evidence {
		return []string{"evidence"}
	}
	return nil
}

// Score reads the newest stored score of a company, of any age. It never starts a run. The error is ErrNotScored if the company was
// never scored.
func (c *Client) Score(ctx context.Context, domain string, options ...ReadOption) (Score, error) {
	var s Score
	err := c.get(ctx, "/v1/score/"+url.PathEscape(domain)+readOptionsOf(options).query(), &s, &s.Response)
	return s, err
}

// Started is what a call of [Client.Start] returns: either a score or a job.
type Started struct {
	// Score is a stored score within the freshness window of the tier, nil if a run was started.
	Score *Score
	// Job is the pending job, nil if there is a score.
	Job *Job
}

// ScoreAt reads the newest score of a company that was stored at an instant, without a rank. The error is ErrNotScored if it had
// none yet.
func (c *Client) ScoreAt(ctx context.Context, domain string, at time.Time, options ...ReadOption) (Score, error) {
	query := url.Values{"as_of": {at.UTC().Format(time.RFC3339Nano)}}
	if readOptionsOf(options).evidence {
		query.Set("include", "evidence")
	}
	var score Score
	err := c.get(ctx, "/v1/score/"+url.PathEscape(domain)+"?"+query.Encode(), &score, &score.Response)
	return score, err
}

// ScoreSignals are all signals of one score, in the order of the manifest.
type ScoreSignals struct {
	Response        Response  `json:"-"`
	Mode            string    `json:"mode"`
	Domain          string    `json:"domain"`
	ScoredAt        time.Time `json:"scored_at"`
	PipelineVersion string    `json:"pipeline_version"`
	Composite       float64   `json:"composite_score"`
	Premium         float64   `json:"scale_premium"`
	// Base is the sum of the contributions, nil for a score of another pipeline version.
	Base    *float64      `json:"base_score"`
	Signals []ScoreSignal `json:"signals"`
}

// ScoreSignal is one signal of a score.
type ScoreSignal struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Bucket string `json:"bucket"`
	// State is ok, absent, missing or not_applicable.
	State string `json:"state"`
	// Value is in Unit; nil unless a value was observed.
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	// Score is 0 to 100, 50 if the signal is missing or not applicable.
	Score float64 `json:"score"`
	// Weight is the share of the bucket and Contribution the points of the base, nil for a score of another pipeline version.
	Weight       *float64 `json:"weight"`
	Contribution *float64 `json:"contribution"`
	Source       string   `json:"source"`
	// Origin is that of imported facts.
	Origin string `json:"origin"`
	// Reason says why the signal is missing.
	Reason string `json:"reason"`
	// ObservedAt is nil if the signal is missing or not applicable. AgeDays is the age when the score was made.
	ObservedAt *time.Time `json:"observed_at"`
	AgeDays    *float64   `json:"age_days"`
}

// ScoreSignals reads all signals of the newest score of a company that was stored at an instant; the zero time means now. The
// error is ErrNotScored if it had none.
func (c *Client) ScoreSignals(ctx context.Context, domain string, at time.Time) (ScoreSignals, error) {
	path := "/v1/score/" + url.PathEscape(domain) + "/signals"
	if !at.IsZero() {
		path += "?" + url.Values{"as_of": {at.UTC().Format(time.RFC3339Nano)}}.Encode()
	}
	var signals ScoreSignals
	err := c.get(ctx, path, &signals, &signals.Response)
	return signals, err
}

// Start returns a stored score that is fresh enough for the tier, or starts a run. A run counts as a cold call when it starts.
func (c *Client) Start(ctx context.Context, domain string, options ...StartOption) (Started, error) {
	var o startOptions
	for _, option := range options {
		option.applyStart(&o)
	}
	if o.idempotencyKey == "" {
		o.idempotencyKey = rand.Text()
	}
	body := struct {
		Domain     string   `json:"domain"`
		ForceFresh bool     `json:"force_fresh,omitempty"`
		Include    []string `json:"include,omitempty"`
	}{domain, o.forceFresh, o.include()}
	a, err := c.call(ctx, request{method: http.MethodPost, path: "/v1/score", body: body, key: o.idempotencyKey})
	if err != nil {
		return Started{}, err
	}
	var started Started
	if a.status == http.StatusAccepted {
		started.Job = &Job{Response: a.Response}
		err = json.Unmarshal(a.Body, started.Job)
	} else {
		started.Score = &Score{Response: a.Response}
		err = json.Unmarshal(a.Body, started.Score)
	}
	if err != nil {
		return Started{}, fmt.Errorf("read answer of POST /v1/score: %w", err)
	}
	return started, nil
}

// Job reads the state of a job. Any live key of the account may read it.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	j, _, err := c.poll(ctx, id)
	return j, err
}

// poll reads a job and the pause before the next poll.
func (c *Client) poll(ctx context.Context, id string) (Job, time.Duration, error) {
	a, err := c.call(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + url.PathEscape(id)})
	if err != nil {
		return Job{}, 0, err
	}
	j := Job{Response: a.Response}
	if err := json.Unmarshal(a.Body, &j); err != nil {
		return Job{}, 0, fmt.Errorf("read job %s: %w", id, err)
	}
	pause := a.pollAfter
	if pause == 0 {
		pause = pollInterval
	}
	return j, pause, nil
}

// Wait polls a job until it is complete, for up to three minutes. The error is a *RunError if the run failed and a *PendingError if the
// job is still pending.
func (c *Client) Wait(ctx context.Context, job Job) (Job, error) {
	began, pause := time.Now(), firstPoll
	for {
		if c.cfg.OnPoll != nil {
			c.cfg.OnPoll(job, time.Since(began))
		}
		if err := c.sleep(ctx, pause); err != nil {
			return job, &PendingError{job, err}
		}
		polled, next, err := c.poll(ctx, job.ID)
		if err != nil {
			return job, &PendingError{job, err}
		}
		job, pause = polled, next
		switch {
		case job.Status == "complete":
			return job, nil
		case job.Status == "failed":
			return job, &RunError{job}
		case time.Since(began) > waitMax:
			return job, &PendingError{Job: job}
		}
	}
}

// ScoreAndWait returns a score that is fresh enough for the tier. If none is stored, it starts a run, waits for it for up to three
// minutes and reads its score, or a newer one. While another server still has an older one, it reads again, for 40 seconds at most. The
// errors are those of [Client.Start], [Client.Wait] and [Client.Score].
func (c *Client) ScoreAndWait(ctx context.Context, domain string, options ...StartOption) (Score, error) {
	started, err := c.Start(ctx, domain, options...)
	if err != nil {
		return Score{}, err
	}
	if started.Score != nil {
		return *started.Score, nil
	}
	job, err := c.Wait(ctx, *started.Job)
	if err != nil {
		return Score{}, err
	}
	var o startOptions
	for _, option := range options {
		option.applyStart(&o)
	}
	var of time.Time
	if job.Result != nil {
		of = job.Result.ScoredAt
	}
	for reads := 1; ; reads++ {
		var s Score
		err := c.get(ctx, "/v1/score/"+url.PathEscape(job.Domain)+o.query(), &s, &s.Response)
		older := err == nil && s.ScoredAt.Before(of)
		switch {
		case !older && !errors.Is(err, ErrNotScored):
			return s, err
		case reads == readsMax && older:
			return Score{}, fmt.Errorf("the newest score of %s is of %s, but job %s made one at %s", job.Domain, s.ScoredAt, job.ID, of)
		case reads == readsMax:
			return Score{}, err
		}
		if err := c.sleep(ctx, rereadPause); err != nil {
			return Score{}, err
		}
	}
}

// BatchItem is one company of a batch.
type BatchItem struct {
	// Domain is the canonical domain, or the text of the call if it is no domain.
	Domain string
	// Score is nil if there is an error. Its Response has the RequestID of the batch and the body of the score.
	Score *Score
	// Err is nil or an *Error, such as ErrNotScored.
	Err error
}

// Batch reads the newest stored scores of companies, in the order of domains. It never starts a run. More than 1,000 domains take one
// call for each 1,000. If a call fails, Batch returns the items before it and the error.
func (c *Client) Batch(ctx context.Context, domains []string, options ...ReadOption) ([]BatchItem, error) {
	items := make([]BatchItem, 0, len(domains))
	for part := range slices.Chunk(domains, batchMax) {
		more, err := c.batch(ctx, part, readOptionsOf(options))
		if err != nil {
			return items, err
		}
		items = append(items, more...)
	}
	return items, nil
}

func (c *Client) batch(ctx context.Context, domains []string, options readOptions) ([]BatchItem, error) {
	body := struct {
		Domains []string `json:"domains"`
		Include []string `json:"include,omitempty"`
	}{domains, options.include()}
	var answered struct {
		response Response
		Results  []struct {
			Domain string          `json:"domain"`
			Status int             `json:"status"`
			Score  json.RawMessage `json:"score"`
			Error  problem         `json:"error"`
		} `json:"results"`
	}
	if err := c.read(ctx, request{method: http.MethodPost, path: "/v1/scores/batch", body: body}, &answered,
		&answered.response); err != nil {
		return nil, err
	}
	if len(answered.Results) != len(domains) {
		return nil, errors.New("read batch: the answer has another number of companies than the request")
	}
	items := make([]BatchItem, len(domains))
	for i, r := range answered.Results {
		items[i].Domain = r.Domain
		if items[i].Err = r.Error.of(r.Status, answered.response.RequestID); items[i].Err != nil {
			continue
		}
		score := &Score{Response: Response{RequestID: answered.response.RequestID, Quotas: answered.response.Quotas, Body: r.Score}}
		if err := json.Unmarshal(r.Score, score); err != nil {
			return nil, fmt.Errorf("read score of %s: %w", r.Domain, err)
		}
		items[i].Score = score
	}
	return items, nil
}
