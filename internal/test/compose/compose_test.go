package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// composed selects the tests of this package. scripts/compose-test.sh sets it.
var composed = flag.Bool("compose", false, "start docker-compose.yml and test it")

// examples is how many companies examples/companies.csv has.
const examples = 880

// TestDeployment scores the examples, kills each container, and restarts a server under load.
func TestDeployment(t *testing.T) {
	if !*composed {
		t.Skip("make compose-test runs it")
	}
	d, err := Start(t.Context(), "breakers: {cold_per_key: {limit: 1000000, window: 1h}}\n")
	if d != nil {
		t.Cleanup(func() {
			if t.Failed() {
				log, _ := d.Logs(context.Background())
				if err := os.WriteFile(filepath.Join(os.TempDir(), "companyscore-compose.log"), []byte(log), 0o600); err == nil {
					t.Log("the log of all containers is in companyscore-compose.log of the directory for temporary files")
				}
			}
			if err := d.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	l := newLoad(t, d)
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"examples", l.examples},
		{"proxy", l.proxy},
		{"kills", l.kills},
		{"restart", l.restart},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// load calls the service through the proxy.
type load struct {
	d      *Deployment
	key    string
	client *http.Client
}

func newLoad(t *testing.T, d *Deployment) *load {
	t.Helper()
	l := &load{d: d, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	var account struct {
		ID string `json:"account_id"`
	}
	l.command(t, &account, "account", "create", "--name", "load", "--tier", "enterprise", "--json")
	var key struct {
		Raw string `json:"api_key"`
	}
	l.command(t, &key, "key", "create", "--account", account.ID, "--mode", "live", "--json")
	l.key = key.Raw
	return l
}

// command runs a command in the container of api-1, as docs/operations.md shows.
func (l *load) command(t *testing.T, into any, args ...string) {
	t.Helper()
	out, err := l.d.Compose(t.Context(), append([]string{"exec", "-T", "api-1", "companyscore"}, args...)...)
	if err == nil {
		err = json.Unmarshal([]byte(out), into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// call makes a request and returns status and body.
func (l *load) call(ctx context.Context, method, path, body string, headers ...string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.d.BaseURL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-Key", l.key)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := l.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, text, err
}

// examples scores the companies of examples/companies.csv with the commands of docs/operations.md.
func (l *load) examples(t *testing.T) {
	root := os.Getenv("COMPOSE_TEST_ROOT")
	began := time.Now()
	for _, args := range [][]string{{"facts", "import", "--quiet", "/in/companies.csv"}, {"run", "start", "--quiet", "--from",
		"/in/companies.csv", "--wait"}} {
		if _, err := l.d.Compose(t.Context(), append([]string{"run", "--rm", "-T", "-v", root + "/examples:/in:ro", "migrate"},
			args...)...); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	text, err := os.ReadFile(filepath.Join(root, "examples", "companies.csv"))
	if err != nil {
		t.Fatal(err)
	}
	var domains []string
	for line := range strings.Lines(string(text)) {
		if domain, _, _ := strings.Cut(line, ","); domain != "domain" {
			domains = append(domains, domain)
		}
	}
	body, err := json.Marshal(map[string][]string{"domains": domains})
	if err != nil {
		t.Fatal(err)
	}
	status, answer, err := l.call(t.Context(), http.MethodPost, "/v1/scores/batch", string(body))
	scored := bytes.Count(answer, []byte(`"composite_score"`))
	if err != nil || status != http.StatusOK || len(domains) != examples || scored != examples {
		t.Fatalf("%d of %d companies are scored: %d %v %.300s", scored, len(domains), status, err, answer)
	}
	fmt.Printf("examples: %d companies imported and scored in %.1f s\n", scored, took.Seconds())
}

// proxy sends what the proxy answers itself, and reads its log.
func (l *load) proxy(t *testing.T) {
	const most = 512 << 10
	pad := func(n int) string {
		const body = `{"domains":["acme.test"]}`
		return strings.Repeat(" ", n-len(body)) + body
	}
	for size, want := range map[int]int{most: http.StatusOK, most + 1: http.StatusRequestEntityTooLarge} {
		id := fmt.Sprintf("body-of-%d", size)
		if status, answer, err := l.call(t.Context(), http.MethodPost, "/v1/scores/batch", pad(size), "X-Request-Id", id); err != nil ||
			status != want {
			t.Errorf("a body of %d bytes: %d %v %s, want %d", size, status, err, answer, want)
		}
		l.logged(t, fmt.Sprintf(`"request":"%s"`, id))
	}
	log, err := l.d.Logs(t.Context())
	if err != nil || strings.Contains(log, l.key) {
		t.Errorf("the log has the key, or cannot be read: %v", err)
	}
}

// logged waits until the log of the proxy has a text.
func (l *load) logged(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for range 20 {
		if log, err := l.d.Compose(t.Context(), "logs", "--no-color", "proxy"); err == nil && strings.Contains(log, text) {
			return
		}
		<-tick.C
	}
	t.Errorf("the log of the proxy has no %s", text)
}

// outcomes counts answers. It is safe for concurrent use.
type outcomes struct {
	mu     sync.Mutex
	took   []time.Duration // of answers as wanted
	failed []string
	jobs   []string
}

func (o *outcomes) failures() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.failed)
}

// every calls do rate times a second, concurrently, until ctx ends, and returns when all calls have.
func every(ctx context.Context, rate int, do func(n int)) {
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			calls.Go(func() { do(n) })
		}
	}
}

// read reads a stored score and notes the outcome.
func (l *load) read(o *outcomes) {
	began := time.Now()
	status, text, err := l.call(context.Background(), http.MethodGet, "/v1/score/stripe.com", "")
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || status != http.StatusOK {
		o.failed = append(o.failed, fmt.Sprintf("%d %s %v", status, text, err))
		return
	}
	o.took = append(o.took, time.Since(began))
}

// scoreNew has a company scored that was not, and notes the job.
func (l *load) scoreNew(o *outcomes, n int) {
	status, text, err := l.call(context.Background(), http.MethodPost, "/v1/score", fmt.Sprintf(`{"domain":"killed-%d.com"}`, n),
		"Content-Type", "application/json", "Idempotency-Key", fmt.Sprint("kill-", n))
	var job struct {
		ID string `json:"job_id"`
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || status != http.StatusAccepted || json.Unmarshal(text, &job) != nil {
		o.failed = append(o.failed, fmt.Sprintf("%d %s %v", status, text, err))
		return
	}
	o.jobs = append(o.jobs, job.ID)
}

// kills ends each container by SIGKILL under 50 reads and 20 cold calls a second.
func (l *load) kills(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads, posts outcomes
	var load sync.WaitGroup
	load.Go(func() { every(ctx, 50, func(int) { l.read(&reads) }) })
	load.Go(func() { every(ctx, 20, func(n int) { l.scoreNew(&posts, n) }) })
	for _, service := range Services {
		failedReads, failedPosts, began := reads.failures(), posts.failures(), time.Now()
		before, err := l.d.PID(t.Context(), service)
		if err == nil {
			err = l.d.Signal(t.Context(), service, syscall.SIGKILL)
		}
		if err == nil {
			err = l.d.waitReplaced(t.Context(), service, before)
		}
		if err == nil && strings.HasPrefix(service, "api-") {
			err = l.d.waitRouted(t.Context(), service)
		}
		if err != nil {
			t.Fatalf("%s: %v", service, err)
		}
		failedReads, failedPosts = reads.failures()-failedReads, posts.failures()-failedPosts
		fmt.Printf("kill of %s: healthy after %.1f s, %d reads and %d cold calls failed\n", service, time.Since(began).Seconds(),
			failedReads, failedPosts)
		if failedReads > 0 && service != "proxy" {
			t.Errorf("%d reads failed while %s was away: %s", failedReads, service, reads.failed[len(reads.failed)-1])
		}
	}
	stop()
	load.Wait()
	l.settle(t, posts.jobs)
	fmt.Printf("kills: %d reads answered, %d failed; %d jobs acknowledged and completed, %d cold calls failed\n", len(reads.took),
		len(reads.failed), len(posts.jobs), len(posts.failed))
	if len(posts.jobs) == 0 {
		t.Error("no job was acknowledged")
	}
}

// waitReplaced waits until a service runs as another process and is healthy.
func (d *Deployment) waitReplaced(ctx context.Context, service string, before int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if pid, err := d.PID(ctx, service); err == nil && pid != before {
			return d.WaitHealthy(ctx, Services...)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("it was not started again within %s", startTimeout)
		}
	}
}

// waitRouted waits until the proxy has the address of an API server. Until then it has one server less.
func (d *Deployment) waitRouted(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	addresses, err := d.inspect(ctx, service, "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}")
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		servers, err := d.Compose(ctx, "exec", "-T", "proxy", "cat", "/tmp/api-servers.conf")
		if err == nil && slices.ContainsFunc(strings.Fields(addresses), func(address string) bool {
			return strings.Contains(servers, " "+address+":")
		}) {
			return nil
		}
	}
	return fmt.Errorf("the proxy does not have the address of %s: %w", service, ctx.Err())
}

// settle polls jobs until they are complete. A job that is unknown or failed is lost.
func (l *load) settle(t *testing.T, jobs []string) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	var lost atomic.Int64
	var all sync.WaitGroup
	for part := range slices.Chunk(jobs, len(jobs)/8+1) {
		all.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for _, id := range part {
				for {
					status, text, err := l.call(t.Context(), http.MethodGet, "/v1/jobs/"+id, "")
					if err == nil && status == http.StatusOK && bytes.Contains(text, []byte(`"status":"complete"`)) {
						break
					}
					if time.Now().After(deadline) || status == http.StatusNotFound || bytes.Contains(text, []byte(`"status":"failed"`)) {
						lost.Add(1)
						t.Errorf("job %s: %d %s %v", id, status, text, err)
						break
					}
					<-tick.C
				}
			}
		})
	}
	all.Wait()
	if n := lost.Load(); n > 0 {
		t.Errorf("%d of %d acknowledged jobs are lost", n, len(jobs))
	}
}

// restart restarts a server under 500 reads a second.
func (l *load) restart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads outcomes
	var load sync.WaitGroup
	load.Go(func() { every(ctx, 500, func(int) { l.read(&reads) }) })
	before, err := l.d.PID(t.Context(), "api-1")
	if err == nil {
		_, err = l.d.Compose(t.Context(), "restart", "api-1")
	}
	if err == nil {
		err = l.d.waitReplaced(t.Context(), "api-1", before)
	}
	if err == nil { // it is used again under its new address
		err = l.d.waitUsed(t.Context(), l.client)
	}
	stop()
	load.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if len(reads.failed) > 0 || len(reads.took) == 0 {
		t.Errorf("%d of %d reads failed, such as %s", len(reads.failed), len(reads.failed)+len(reads.took), reads.failed[0])
	}
	slices.Sort(reads.took)
	at := func(share float64) float64 { return reads.took[int(share*float64(len(reads.took)-1))].Seconds() * 1000 }
	fmt.Printf("restart of api-1: %d reads, %d failed; p50 %.1f ms, p99 %.1f ms, slowest %.1f ms\n", len(reads.took), len(reads.failed),
		at(0.5), at(0.99), at(1))
}

// waitUsed waits until api-1 counts requests of the proxy.
func (d *Deployment) waitUsed(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.AdminURL+"/metrics", nil)
		if err != nil {
			return err
		}
		if res, err := client.Do(req); err == nil {
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil && bytes.Contains(text, []byte(`companyscore_http_requests_total{route="/v1/score/*",status="200"`)) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("api-1 got no request within %s of its restart", startTimeout)
		}
	}
}
