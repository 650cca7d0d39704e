package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// scoreService is an HTTP API that answers a POST for a domain with what answer writes.
func scoreService(t *testing.T, answer func(w http.ResponseWriter, domain string)) (url string) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Domain string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer(w, body.Domain)
	}))
	t.Cleanup(service.Close)
	return service.URL
}

// writeScore answers with a score that rests on a percentage of the data.
func writeScore(w http.ResponseWriter, domain string, completeness float64) {
	fmt.Fprintf(w, `{"domain":%q,"scored_at":"2026-11-01T12:00:00Z","svc_rating":"SVC-3","composite_score":50,"scale_premium":0,`+
		`"buckets":{"team_structure":50,"market_position":50,"momentum_tailwinds":50,"financial_health":50},`+
		`"evidence":{"data_completeness_pct":%v,"interval":{"low":37,"high":63,"level":90}}}`, domain, completeness)
}

func TestScoresSeveralCompaniesAtATime(t *testing.T) {
	t.Parallel()
	var inFlight, most, asked atomic.Int64
	full := make(chan struct{})
	url := scoreService(t, func(w http.ResponseWriter, domain string) {
		n := inFlight.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if asked.Add(1) == 3 {
			close(full)
		}
		<-full // the first three are answered together
		inFlight.Add(-1)
		writeScore(w, domain, 10)
	})
	var domains []string
	for i := range 12 {
		domains = append(domains, fmt.Sprintf("c%02d.com", i))
	}
	code, stdout, stderr := command(t, strings.Join(domains, "\n"), "score", "-", "--parallel", "3", "--key", "k", "--url", url)
	if code != exitDone || stderr != "" || most.Load() != 3 || asked.Load() != 12 {
		t.Errorf("exit %d, %d at a time of %d: %s", code, most.Load(), asked.Load(), stderr)
	}
	var got []string
	for line := range strings.Lines(stdout) {
		got = append(got, strings.Fields(line)[0])
	}
	if !slices.Equal(got, append([]string{"DOMAIN"}, domains...)) {
		t.Errorf("the table has %v", got)
	}
}

func TestScoreTableShowsHowMuchIsKnown(t *testing.T) {
	t.Parallel()
	url := scoreService(t, func(w http.ResponseWriter, domain string) {
		writeScore(w, domain, map[string]float64{"known.com": 14.4, "unknown.com": 0}[domain])
	})
	_, stdout, _ := command(t, "", "score", "known.com", "unknown.com", "--key", "k", "--url", url)
	want := `DOMAIN       RATING  SCORE                  COMPLETENESS  PREMIUM  TEAM  MARKET  MOMENTUM  FINANCE  SCORED AT
known.com    SVC-3   50.0, likely 37 to 63  14.4 %        0.0      50.0  50.0    50.0      50.0     2026-11-01 12:00:00
unknown.com  SVC-3   50.0, nothing known    0.0 %         0.0      50.0  50.0    50.0      50.0     2026-11-01 12:00:00
`
	if stdout != want {
		t.Errorf("%s\nwant\n%s", stdout, want)
	}
}

// waitingService answers for slow.com when released is closed.
func waitingService(t *testing.T, released <-chan struct{}) (url string) {
	return scoreService(t, func(w http.ResponseWriter, domain string) {
		if domain == "slow.com" {
			<-released
		}
		writeScore(w, domain, 10)
	})
}

// releasing closes a channel when a text is written to it.
type releasing struct {
	bytes.Buffer
	text    string
	release func()
}

func (r *releasing) Write(p []byte) (int, error) {
	n, err := r.Buffer.Write(p)
	if strings.Contains(r.String(), r.text) {
		r.release()
	}
	return n, err
}

func TestScoresArePrintedAsTheyCome(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			released := make(chan struct{})
			out := &releasing{text: "quick.com", release: sync.OnceFunc(func() { close(released) })}
			url := waitingService(t, released)
			var errs bytes.Buffer
			code := Run([]string{"score", "slow.com", "quick.com", "-o", format, "--key", "k", "--url", url}, nil, out, &errs)
			if text := out.String(); code != exitDone || strings.Index(text, "quick.com") > strings.Index(text, "slow.com") {
				t.Errorf("exit %d: %s%s", code, text, &errs)
			}
		})
	}
}

func TestScoreEndsAtRefusals(t *testing.T) {
	t.Parallel()
	refuse := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
	f := func(status int, body string, stderr ...string) {
		t.Helper()
		var asked atomic.Int64
		url := scoreService(t, func(w http.ResponseWriter, domain string) {
			if asked.Add(1); domain == "a.com" {
				writeScore(w, domain, 10)
				return
			}
			refuse(w, status, body)
		})
		code, stdout, got := command(t, "", "score", "a.com", "b.com", "c.com", "d.com", "--parallel", "1", "--key", "k", "--url", url)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if code != exitFailed || !strings.Contains(stdout, "a.com") || asked.Load() != 2 || len(lines) != len(stderr) {
			t.Errorf("%d: exit %d after %d calls: %s%s", status, code, asked.Load(), stdout, got)
			return
		}
		for i, want := range stderr {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%d: line %q, want %q", status, lines[i], want)
			}
		}
	}
	f(http.StatusTooManyRequests, `{"error":"rate limited","reason":"monthly_cap"}`, "b.com: rate limited (monthly_cap)",
		"c.com: not begun", "d.com: not begun")
	f(http.StatusTooManyRequests, `{"error":"rate limited","reason":"per_key_cold_1h"}`, "b.com: rate limited (per_key_cold_1h)",
		"c.com: not begun", "d.com: not begun")
	f(http.StatusUnauthorized, `{"error":"unauthorized"}`, "b.com: unauthorized", "c.com: not begun", "d.com: not begun")

	var arrived sync.WaitGroup
	arrived.Add(2)
	url := scoreService(t, func(w http.ResponseWriter, _ string) {
		arrived.Done()
		arrived.Wait()
		refuse(w, http.StatusUnauthorized, `{"error":"unauthorized"}`)
	})
	_, _, stderr := command(t, "", "score", "a.com", "b.com", "c.com", "--parallel", "2", "--key", "k", "--url", url)
	if strings.Count(stderr, "unauthorized") != 1 || strings.Count(stderr, ".com: not scored either\n") != 1 ||
		!strings.Contains(stderr, "c.com: not begun\n") {
		t.Errorf("a wrong key: %s", stderr)
	}
}

func TestScoreGoesOnAfterOtherErrors(t *testing.T) {
	t.Parallel()
	url := scoreService(t, func(w http.ResponseWriter, domain string) {
		if domain == "a.com" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"body.domain invalid"}`)
			return
		}
		writeScore(w, domain, 10)
	})
	code, stdout, stderr := command(t, "", "score", "a.com", "b.com", "--parallel", "1", "--key", "k", "--url", url)
	if code != exitFailed || !strings.HasPrefix(stderr, "a.com: body.domain invalid") || !strings.Contains(stdout, "b.com") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestScoreProgressEstimatesTimeLeft(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for _, c := range []struct {
		domains []string
		ended   int
		waited  time.Duration
		want    string
	}{
		{[]string{"a\x1b.com"}, 0, 5 * time.Second, "a\uFFFD.com: scoring, 5 s"},
		{many, 0, time.Second, "0 of 100"},
		{many, 12, 24 * time.Second, "12 of 100, about 3 min left"},
		{many, 90, 90 * time.Second, "90 of 100, about 10 s left"},
		{many, 1, 5 * time.Minute, "1 of 100, about 8 h left"},
	} {
		if got := scoreProgressText(c.domains, c.ended, c.waited); got != c.want {
			t.Errorf("%d of %d after %s: %q, want %q", c.ended, len(c.domains), c.waited, got, c.want)
		}
	}
}
