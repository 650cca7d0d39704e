package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const scoreBody = `{"domain":"example.com","svc_rating":"A","composite_score":71.5,"scale_premium":2,"scored_at":"2026-05-01T12:00:00Z","buckets":{"team_structure":60}}`

// serve answers POST /v1/score with the status and body of the test, and the paths of a job.
func serve(t *testing.T, status int, header map[string]string, body, job string) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/score", func(w http.ResponseWriter, r *http.Request) {
		if request, _ := io.ReadAll(r.Body); r.Header.Get("X-API-Key") != "secret" || string(request) != `{"domain":"example.com","force_fresh":true}` {
			t.Errorf("request with key %q: %s", r.Header.Get("X-API-Key"), request)
		}
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	mux.HandleFunc("GET /v1/jobs/1", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, job) })
	mux.HandleFunc("GET /v1/score/example.com", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, scoreBody) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &Client{URL: server.URL, Key: "secret"}
}

func TestStoredScoreIsReturned(t *testing.T) {
	t.Parallel()
	score, err := serve(t, 200, nil, scoreBody, "").Score(t.Context(), "example.com", true)
	if err != nil || score.Rating != "A" || score.Composite != 71.5 || score.Buckets.Team != 60 || string(score.Body) != scoreBody {
		t.Errorf("score %+v, %v", score, err)
	}
}

func TestRunIsPolled(t *testing.T) {
	t.Parallel()
	c := serve(t, 202, nil, `{"poll_url":"/v1/jobs/1","domain":"example.com"}`, `{"status":"complete","score_url":"/v1/score/example.com"}`)
	var waits []string
	c.Progress = func(domain string, _ time.Duration) { waits = append(waits, domain) }
	score, err := c.Score(t.Context(), "example.com", true)
	if err != nil || score.Rating != "A" || len(waits) != 1 || waits[0] != "example.com" {
		t.Errorf("score %+v, %v after waits %v", score, err, waits)
	}
}

func TestEvidenceIsAskedForAndRead(t *testing.T) {
	t.Parallel()
	const evidence = `{"composite_score":65.7,"evidence":{"pipeline_version":"v1","run_id":"r","band":"low","data_completeness_pct":41.7,"interval":{"low":58.2,"high":70.9,"level":90}}}`
	for _, status := range []int{200, 202} {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /v1/score", func(w http.ResponseWriter, r *http.Request) {
			if request, _ := io.ReadAll(r.Body); string(request) != `{"domain":"example.com","force_fresh":false,"include":["evidence"]}` {
				t.Errorf("request %s", request)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, map[int]string{200: evidence, 202: `{"poll_url":"/v1/jobs/1","domain":"example.com"}`}[status])
		})
		mux.HandleFunc("GET /v1/jobs/1", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"complete","score_url":"/v1/score/example.com"}`)
		})
		mux.HandleFunc("GET /v1/score/example.com", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "include=evidence" {
				t.Errorf("query %q", r.URL.RawQuery)
			}
			_, _ = io.WriteString(w, evidence)
		})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		score, err := (&Client{URL: server.URL, Evidence: true}).Score(t.Context(), "example.com", false)
		want := Evidence{PipelineVersion: "v1", RunID: "r", Band: "low", CompletenessPct: 41.7, Interval: Interval{Low: 58.2, High: 70.9, Level: 90}}
		if err != nil || score.Evidence == nil || *score.Evidence != want || score.Composite != 65.7 {
			t.Errorf("%d: %+v, %v", status, score, err)
		}
	}
	score, err := serve(t, 200, nil, scoreBody, "").Score(t.Context(), "example.com", true)
	if err != nil || score.Evidence != nil {
		t.Errorf("evidence without include: %+v, %v", score.Evidence, err)
	}
}

func TestFailedRunIsAnError(t *testing.T) {
	t.Parallel()
	c := serve(t, 202, nil, `{"poll_url":"/v1/jobs/1","domain":"example.com"}`, `{"status":"failed","failure_reason":"unregistered_domain"}`)
	_, err := c.Score(t.Context(), "example.com", true)
	var failed *RunError
	if !errors.As(err, &failed) || failed.Reason != "unregistered_domain" || err.Error() != "the run failed: unregistered_domain" {
		t.Errorf("error %v", err)
	}
}

func TestRefusalIsATypedError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		retryAfter string
		body, text string
		want       Error
	}{
		{429, "90", `{"error":"rate_limited","reason":"cold_budget","message":"The budget is used."}`, "rate_limited (cold_budget): The budget is used. Room again in 1m30s.",
			Error{429, "rate_limited", "cold_budget", "The budget is used.", 90 * time.Second}},
		{401, "", `{"error":"unauthorized"}`, "unauthorized", Error{Status: 401, Code: "unauthorized"}},
		{502, "", `<html>`, "the service answered 502 Bad Gateway", Error{Status: 502}},
	} {
		_, err := serve(t, c.status, map[string]string{"Retry-After": c.retryAfter}, c.body, "").Score(t.Context(), "example.com", true)
		var got *Error
		if !errors.As(err, &got) || *got != c.want || err.Error() != c.text {
			t.Errorf("error %#v with text %q, want %#v with %q", err, err, c.want, c.text)
		}
	}
}
