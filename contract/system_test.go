package contract

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/config"
	"companyscore/internal/test/compose"
	"companyscore/internal/test/program"
	"companyscore/internal/test/wait"
)

// built is the directory of the built program, empty before the first use.
var built string

// binary returns the path of the program, which it builds once.
var binary = sync.OnceValues(func() (string, error) {
	if *measured != "" {
		return *measured, nil
	}
	dir, err := os.MkdirTemp("", "companyscore-contract-")
	if err != nil {
		return "", err
	}
	built = dir
	return program.Build(dir)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	if code == 0 && wholeSuite() && (!complete(os.Stdout) || *composed && !allSeen(os.Stdout)) {
		code = 1
	}
	os.Exit(code)
}

// system is a running `up` of its own, or docker-compose.yml behind its proxy.
type system struct {
	issued                    *issued // API keys, which must not be in a log
	binary, data, base, admin string
	runtime                   *config.Runtime
	live                      *program.System     // the `up`, nil if the system is a deployment
	deployment                *compose.Deployment // nil if the system is an `up`
	stop                      func() error        // of a server made by another: ends it, and returns how it ended
}

// startLimit bounds the start of a process and a command.
const startLimit = program.Timeout

// slots bounds the number of concurrent systems. Each has five processes; too many of them
// exceed timeouts.
var slots = make(chan bool, 2)

// start starts an `up` with a tiers file and stops it at the end of the test.
func start(t testing.TB, tiers string) *system {
	t.Helper()
	slots <- true
	t.Cleanup(func() { <-slots })
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	if *composed {
		return startComposed(t, path, tiers)
	}
	// Paths of unix sockets must be short, so t.TempDir does not suit.
	dir, err := os.MkdirTemp("", "cs-contract-")
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	if tiers != "" {
		file := filepath.Join(dir, "tiers.yaml")
		if err := os.WriteFile(file, []byte(tiers), 0o600); err != nil {
			t.Fatal(err)
		}
		args = []string{"--tiers", file}
	}
	up := program.New(path, dir, args...)
	s := &system{binary: path, data: up.Data, issued: new(issued), live: up}
	if err := up.Start(); err != nil {
		os.RemoveAll(dir)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := up.Stop(); err != nil && !t.Failed() {
			t.Errorf("up ended with %v", err)
		}
		text, _ := os.ReadFile(up.Log)
		s.readLog(t, text)
		os.RemoveAll(dir)
	})
	s.base, s.admin, s.runtime = up.Runtime.BaseURL, up.Runtime.AdminURL, up.Runtime
	return s
}

// readLog fails the test if the log holds a panic or an API key.
func (s *system) readLog(t testing.TB, text []byte) {
	t.Helper()
	if bytes.Contains(text, []byte("panic")) {
		t.Errorf("something panicked")
	}
	if key := s.issued.in(text); key != "" {
		t.Errorf("the log holds the key %s", key)
	}
	if t.Failed() {
		t.Logf("log:\n%s", program.Tail(text, 4000))
	}
}

// cli runs a command of the program and returns what it printed.
func (s *system) cli(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.command(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// command runs a command of the program and returns what it prints.
func (s *system) command(ctx context.Context, args ...string) (string, error) {
	if s.deployment != nil {
		return s.deployment.Command(ctx, s.binary, args...)
	}
	return s.live.Command(ctx, args...)
}

// signal sends a signal to a child of the `up`.
func (s *system) signal(t *testing.T, child string, sig syscall.Signal) {
	t.Helper()
	var err error
	if s.deployment != nil {
		err = s.deployment.Signal(context.WithoutCancel(t.Context()), containers[child], sig) // also of a test that ends
	} else {
		err = syscall.Kill(s.runtime.Processes[child], sig)
	}
	if err != nil {
		t.Fatalf("signal %s: %v", child, err)
	}
}

// pause stops a child for the rest of the test.
func (s *system) pause(t *testing.T, child string) {
	t.Helper()
	s.signal(t, child, syscall.SIGSTOP)
	t.Cleanup(func() { s.signal(t, child, syscall.SIGCONT) })
}

// customer is an account with a key of each mode.
type customer struct{ account, live, liveID, test string }

// customer creates an account of a tier.
func (s *system) customer(t testing.TB, tier string) customer {
	t.Helper()
	var account struct {
		ID string `json:"account_id"`
	}
	decode(t, s.cli(t, "account", "create", "--name", t.Name(), "--tier", tier, "--json"), &account)
	c := customer{account: account.ID}
	c.live, c.liveID = s.key(t, account.ID, "live")
	c.test, _ = s.key(t, account.ID, "test")
	return c
}

// issued is a set of API keys. It is safe for concurrent use.
type issued struct {
	mu   sync.Mutex
	keys []string
}

func (i *issued) add(key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, key)
}

// in returns a key that the text contains, empty if there is none.
func (i *issued) in(text []byte) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, key := range i.keys {
		if bytes.Contains(text, []byte(key)) {
			return key
		}
	}
	return ""
}

func (s *system) key(t testing.TB, account, mode string) (raw, id string) {
	t.Helper()
	var key struct {
		ID  string `json:"key_id"`
		Raw string `json:"api_key"`
	}
	decode(t, s.cli(t, "key", "create", "--account", account, "--mode", mode, "--json"), &key)
	s.issued.add(key.Raw)
	return key.Raw, key.ID
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("read %q: %v", text, err)
	}
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// at returns the value at a path of keys, such as "universe.count", nil if there is none.
func (r reply) at(path string) any {
	var v any = r.body
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func (r reply) text(path string) string    { s, _ := r.at(path).(string); return s }
func (r reply) number(path string) float64 { n, _ := r.at(path).(float64); return n }
func (r reply) list(path string) []any     { l, _ := r.at(path).([]any); return l }

var client = &http.Client{Timeout: wait.Max, Transport: &http.Transport{MaxIdleConnsPerHost: 600, DisableCompression: true}}

// call sends a request and checks the answer against the OpenAPI document. Headers are pairs
// of name and value. The body may be empty.
func (s *system) call(t *testing.T, method, path, key, body string, headers ...string) reply {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, req, res)
}

// raw sends the bytes of a request and reads the answer.
func (s *system) raw(t *testing.T, method, path, key, headers string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, method+" "+path+" HTTP/1.1\r\nHost: "+req.URL.Host+"\r\nX-API-Key: "+key+"\r\n"+headers); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, req, res)
}

// dial opens a connection to the server.
func (s *system) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.base, "http://"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(wait.Max)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// headersRead is the maximum size of headers.
const headersRead = 40 << 10

// read reads an answer and checks it against the OpenAPI document.
func read(t *testing.T, req *http.Request, res *http.Response) reply {
	t.Helper()
	method, path := req.Method, req.URL.Path
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if len(raw) > 0 && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") && res.Header.Get("Content-Encoding") == "" {
		if err := json.Unmarshal(raw, &r.body); err != nil {
			t.Errorf("%s %s: body is no JSON: %q", method, path, raw)
		}
	}
	if err := described(req, r); err != nil {
		t.Errorf("%s %s: the answer %d is not as described: %v\n%s", method, path, r.status, err, raw)
	}
	if r.header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: no X-Request-Id", method, path)
	}
	if r.status >= 400 && method != http.MethodHead && (r.text("error") == "" || r.text("message") == "") {
		t.Errorf("%s %s: error %d without error and message: %q", method, path, r.status, raw)
	}
	return r
}

func (s *system) get(t *testing.T, path, key string, headers ...string) reply {
	t.Helper()
	return s.call(t, http.MethodGet, path, key, "", headers...)
}

func (s *system) post(t *testing.T, key, body string, headers ...string) reply {
	t.Helper()
	return s.call(t, http.MethodPost, "/v1/score", key, body, headers...)
}

func (s *system) score(t *testing.T, key, domain string, headers ...string) reply {
	t.Helper()
	return s.post(t, key, `{"domain":"`+domain+`"}`, headers...)
}

// wants fails the test unless the answer has the status and, for errors, the code.
func (r reply) wants(t *testing.T, status int, code string) reply {
	t.Helper()
	if r.status != status || status >= 400 && r.text("error") != code {
		t.Fatalf("answered %d %s, want %d %s", r.status, r.raw, status, code)
	}
	return r
}

// poll polls a job until it is settled.
func (s *system) poll(t *testing.T, key, job string) reply {
	t.Helper()
	var r reply
	eventually(t, "the job is settled", func() bool {
		r = s.get(t, "/v1/jobs/"+job, key).wants(t, 200, "")
		return r.text("status") != "pending"
	})
	return r
}

// scored posts for a company and returns the settled job.
func (s *system) scored(t *testing.T, key, domain string) reply {
	t.Helper()
	r := s.score(t, key, domain).wants(t, 202, "")
	r = s.poll(t, key, r.text("job_id"))
	if r.text("status") != "complete" {
		t.Fatalf("the run of %s: %s", domain, r.raw)
	}
	return r
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	wait.Until(t, what, so)
}
