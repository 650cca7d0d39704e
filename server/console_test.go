package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/scoring/source/status"
	"companyscore/server/console"
)

// consoleDB is the ClickHouse of a console. Its audit log fails on command.
type consoleDB struct {
	*clickhouse.Accounts
	*clickhouse.Scores
	*clickhouse.Requests
	*clickhouse.Facts
	*clickhouse.DB
	auditFault error
}

func (s *consoleDB) WriteAudit(ctx context.Context, e table.AuditEntry) error {
	if s.auditFault != nil {
		return s.auditFault
	}
	return s.Accounts.WriteAudit(ctx, e)
}

// unsureScores fails on command to find the newest record of a company.
type unsureScores struct {
	*clickhouse.Scores
	fault error
}

func (s *unsureScores) NewestAt(ctx context.Context, domains []string) (map[string]time.Time, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	return s.Scores.NewestAt(ctx, domains)
}

// consoleRole is a server with a console, and a browser that is signed in.
type consoleRole struct {
	*role
	db      *consoleDB
	scores  *unsureScores
	redis   goredis.UniversalClient
	logged  *bytes.Buffer // read it after an answer only
	browser http.Client
}

var growing = account.Account{ID: "clicks", Name: "Clicks", Plan: account.Growth}

func startConsole(t *testing.T) *consoleRole {
	t.Helper()
	ctx := t.Context()
	db, err := clickhouse.Open(ctx, clickhouse.Config{URL: stores.ClickHouse(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	rdb, err := redis.Open(ctx, stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	accounts, scores, requests := clickhouse.NewAccounts(db), clickhouse.NewScores(db, clickhouse.WriterConfig{}),
		clickhouse.NewRequests(db)
	c := &consoleRole{db: &consoleDB{accounts, scores, requests, clickhouse.NewFacts(db), db, nil}, scores: &unsureScores{scores, nil},
		redis: rdb, logged: new(bytes.Buffer)}
	if err := accounts.Put(ctx, growing); err != nil {
		t.Fatal(err)
	}
	pages := console.Stores{Sessions: c.db, Home: c.db, Keys: c.db, Usage: c.db, Requests: c.db, Companies: c.db, Data: c.db,
		Operators: c.db}
	c.role, err = start(ctx, Config{
		Listen: "127.0.0.1:0", CacheMB: 64, Limits: smallLimits(), Console: console.Config{Switch: "on"},
		Logger: slog.New(slog.NewTextHandler(c.logged, nil)),
		Stores: Stores{Accounts: accounts, Ledger: clickhouse.NewUsage(db), Records: c.scores, Requests: requests, Console: pages,
			ClickHouse: db, Redis: rdb},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.parts.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.browser = http.Client{Jar: jar, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	link, err := console.NewLink(ctx, rdb, "http://"+c.address, console.Grant{AccountID: growing.ID}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.send(t, strings.TrimPrefix(link, "http://"+c.address+console.Path), nil, http.StatusSeeOther)
	return c
}

// send posts a form and returns the body, if the answer has the status.
func (c *consoleRole) send(t *testing.T, path string, form url.Values, status int) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.address+console.Path+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return c.do(t, r, status)
}

func (c *consoleRole) do(t *testing.T, r *http.Request, status int) string {
	t.Helper()
	res, err := c.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status {
		t.Fatalf("%s %s = %d, want %d: %s", r.Method, r.URL.Path, res.StatusCode, status, body)
	}
	return string(body)
}

// form returns the hidden fields of the form that scores a company.
func (c *consoleRole) form(t *testing.T, path string) url.Values {
	t.Helper()
	_, text, _ := strings.Cut(c.page(t, path), `<form method="post" action="`+console.Path+path)
	text, _, _ = strings.Cut(text, "</form>")
	form := make(url.Values)
	for _, field := range regexp.MustCompile(`name="(\w+)" value="(\w+)"`).FindAllStringSubmatch(text, -1) {
		form.Set(field[1], field[2])
	}
	return form
}

// mustHaveCharged fails unless the account has made so many cold calls.
func (c *consoleRole) mustHaveCharged(t *testing.T, want int64) {
	t.Helper()
	usage, err := c.meter.Usage(t.Context(), growing, time.Now())
	if err != nil || usage.ColdCalls != want {
		t.Errorf("%d cold calls are charged, want %d: %v", usage.ColdCalls, want, err)
	}
}

// TestConsoleOwnsItsRequests sends two requests of equal length over one connection. What the console keeps of the first must not become
// that of the second, which is read into the same memory.
func TestConsoleOwnsItsRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, panicking{}, new(bytes.Buffer))
	var kept []*http.Request
	s.Console = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		kept = append(kept, r)
	})
	s.addConsole()
	s.routes = s.app.Handler()
	request := func(method, text string) string {
		return method + " /console/" + text + "?query=" + text + " HTTP/1.1\r\nHost: " + text + ".test\r\nCookie: id=" + text +
			"\r\nX-Text: " + text +
			"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\nform=" + text
	}
	w := &wire{in: bytes.NewReader([]byte(request("POST", "first") + request("PUT", "other")))}
	s.newConn(w).serve()
	if len(kept) != 2 {
		t.Fatalf("%d requests are answered, want 2: %s", len(kept), w.out.String())
	}
	r := kept[0]
	cookie, err := r.Cookie("id")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{r.Method, r.URL.Path, r.RequestURI, r.URL.Query().Get("query"), r.Host, r.Header.Get("X-Text"), cookie.Value,
		r.PostFormValue("form"), r.Proto}
	want := []string{"POST", "/console/first", "/console/first?query=first", "first", "first.test", "first", "first", "first", "HTTP/1.1"}
	if !slices.Equal(got, want) {
		t.Errorf("the first request has become %q, want %q", got, want)
	}
}

// page returns a page of the console.
func (c *consoleRole) page(t *testing.T, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.address+console.Path+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.do(t, r, http.StatusOK)
}

func TestBrowsersAreLedToTheConsole(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	get := func(path, accept string, status int) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		res, err := c.browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%s for %s is answered %d, want %d", path, accept, res.StatusCode, status)
		}
		return res
	}
	if to := get("/", "text/html,*/*;q=0.8", http.StatusSeeOther).Header.Get("Location"); to != console.Path {
		t.Errorf("/ leads to %q", to)
	}
	get("/", "*/*", http.StatusNotFound) // a program
	if to := get(console.Path+"/", "text/html", http.StatusMovedPermanently).Header.Get("Location"); to != console.Path {
		t.Errorf("%s/ leads to %q", console.Path, to)
	}
}

func TestConsoleSaysWhatARunCanLearn(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	says := func(want string) {
		t.Helper()
		if page := c.page(t, "/companies/new.com"); !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	publish := func(board *status.Board, sources int) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		var publishing sync.WaitGroup
		publishing.Go(func() { board.Publish(ctx, c.redis, slog.New(slog.DiscardHandler)) })
		wait.Until(t, "the status is published", func() bool {
			all, err := status.Read(t.Context(), c.redis, time.Now())
			return err == nil && len(all) == sources
		})
		stop()
		publishing.Wait()
	}
	says("No worker runs now.")
	publish(status.NewBoard([]string{scoring.FactsSource}), 1)
	says("A run now would learn nothing")
	file := facts.Options{Origin: "test"}
	if _, err := facts.ImportCSV(t.Context(), c.db.Facts, "new.csv", []byte("domain,employees\nnew.com,10\n"), file); err != nil {
		t.Fatal(err)
	}
	says("Facts of this company are imported.")
	board := status.NewBoard([]string{scoring.FactsSource, "dns", "sec"})
	board.Note("sec", false, time.Now())
	publish(board, 3)
	says("A run asks 2 live sources, which can tell up to")
	says("no answer since")
}

func TestConsoleShowsThatNothingIsKnown(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	rec, err := scoring.Score(scoring.Input{Domain: "unknown.com", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.db.Scores.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if page := c.page(t, "/companies/unknown.com"); !strings.Contains(page, "Nothing is known yet") ||
		strings.Contains(page, `<div class="big">50.0</div>`) {
		t.Errorf("a score without data looks like one: %s", page)
	}
}

func TestFormOfConsoleIsChargedOnce(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	form := c.form(t, "/companies/new.com")
	for range 5 { // clicks, or a page that is loaded again
		c.send(t, "/companies/new.com", form, http.StatusSeeOther)
	}
	c.mustHaveCharged(t, 1)
	c.send(t, "/companies/new.com", c.form(t, "/companies/new.com"), http.StatusSeeOther)
	c.mustHaveCharged(t, 2)
}

func TestColdCallOfConsoleNeedsItsAuditEntry(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.db.auditFault = errors.New("the disk is full")
	c.send(t, "/companies/new.com", c.form(t, "/companies/new.com"), http.StatusServiceUnavailable)
	c.mustHaveCharged(t, 0)
}

func TestFaultOfColdCallOfConsoleIsLogged(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	form := c.form(t, "/companies/new.com")
	c.scores.fault = errors.New("the index is damaged")
	text := c.send(t, "/companies/new.com", form, errEngine.Status)
	if !strings.Contains(text, errEngine.Message) {
		t.Errorf("the page lacks the message of the API: %s", text)
	}
	if log := c.logged.String(); !strings.Contains(log, "the index is damaged") {
		t.Errorf("the cause is not logged: %s", log)
	}
	c.mustHaveCharged(t, 0)
}
