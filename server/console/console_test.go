package console

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
	"companyscore/server/meter"
	"companyscore/universe"
)

func TestMain(m *testing.M) { stores.Main(m) }

// store is the ClickHouse of a console.
type store struct {
	*clickhouse.Accounts
	*clickhouse.Scores
	*clickhouse.Requests
	*clickhouse.Facts
	*clickhouse.DB
}

// counted returns statistics of records.
type counted struct{ records []scoring.Record }

func (c *counted) Tables(now time.Time) *universe.Tables {
	if c.records == nil {
		return nil
	}
	t, err := universe.New(universe.Snapshot{Counts: universe.Count(c.records, now)})
	if err != nil {
		panic(err)
	}
	return t
}

// fixture is a console on real stores, with a clock of its own.
type fixture struct {
	*Console
	store    store
	redis    goredis.UniversalClient
	universe *counted
	clock    time.Time
	customer account.Account
	other    account.Account
	scored   []string // domains and keys of the cold calls
	refusal  error    // of the next one, nil for none
}

func newFixture(t *testing.T) *fixture {
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
	q, err := queue.New(rdb, queue.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { _ = scores.Close(context.Background()) })
	f := &fixture{
		store: store{clickhouse.NewAccounts(db), scores, clickhouse.NewRequests(db), clickhouse.NewFacts(db), db}, redis: rdb,
		universe: &counted{}, clock: time.Now().UTC().Truncate(time.Second),
		customer: account.Account{ID: "customer", Name: "Acme", Plan: account.Growth}, other: account.Account{ID: "other", Name: "Other",
			Plan: account.Starter},
	}
	f.customer.CreatedAt, f.other.CreatedAt = f.clock, f.clock
	if err := f.store.Put(ctx, f.customer, f.other); err != nil {
		t.Fatal(err)
	}
	m := meter.New(rdb, clickhouse.NewUsage(db), meter.DefaultLimits(), slog.New(slog.DiscardHandler))
	t.Cleanup(m.Close)
	f.Console, err = New(Config{Switch: "on", Proxies: "192.0.2.0/24"}, Dependencies{
		Stores:   Stores{f.store, f.store, f.store, f.store, f.store, f.store, f.store, f.store},
		Universe: f.universe, Meter: m, Queue: q, Scorer: f, Redis: rdb, Logger: slog.New(slog.DiscardHandler),
		Refusals: map[string]Refusal{"no_history": {Meaning: "The company was never scored.", Do: "Score it.",
			Path: "/docs/errors/no-history"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return f.clock }
	return f
}

// Score implements Scorer.
func (f *fixture) Score(_ context.Context, _ account.Account, domain, key string, now time.Time) (time.Time, error) {
	f.scored = append(f.scored, domain+" "+key)
	return now, f.refusal
}

// browser is a client with the cookie of a session.
type browser struct {
	f       *fixture
	cookie  string
	address string
}

func (b *browser) send(t *testing.T, method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://console.test"+Path+path, strings.NewReader(form.Encode()))
	r.RemoteAddr = "203.0.113.1:4000"
	if b.address != "" {
		r.RemoteAddr = b.address
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if b.cookie != "" {
		r.AddCookie(&http.Cookie{Name: cookieName, Value: b.cookie})
	}
	w := httptest.NewRecorder()
	b.f.ServeHTTP(w, r)
	return w
}

// see returns a page, which must have a status.
func (b *browser) see(t *testing.T, path string, status int) string {
	t.Helper()
	w := b.send(t, http.MethodGet, path, nil)
	if w.Code != status {
		t.Fatalf("GET %s = %d, want %d: %s", path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// form returns the hidden fields of the form for an action on a page.
func (b *browser) form(t *testing.T, page, action string) url.Values {
	t.Helper()
	text := b.see(t, page, http.StatusOK)
	found := regexp.MustCompile(`action="` + regexp.QuoteMeta(Path+action) + `"[^>]*>((?:<input type="hidden"[^>]*>)+)`).
		FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no form for %s: %s", page, action, text)
	}
	form := make(url.Values)
	for _, field := range regexp.MustCompile(`name="(\w+)" value="(\w+)"`).FindAllStringSubmatch(found[1], -1) {
		form.Set(field[1], field[2])
	}
	return form
}

// submit sends a form with the hidden fields that the page at path has for it.
func (b *browser) submit(t *testing.T, page, action string, fields url.Values) *httptest.ResponseRecorder {
	t.Helper()
	form := b.form(t, page, action)
	maps.Copy(form, fields)
	return b.send(t, http.MethodPost, action, form)
}

// link returns the path of a new link below the console.
func (f *fixture) link(t *testing.T, g Grant) string {
	t.Helper()
	address, err := NewLink(t.Context(), f.redis, "http://console.test/", g, LinkTTL)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(address, "http://console.test"+Path)
}

// signIn returns a browser with a new session.
func (f *fixture) signIn(t *testing.T, g Grant) *browser {
	t.Helper()
	b := &browser{f: f}
	w := b.send(t, http.MethodPost, f.link(t, g), nil)
	if cookies := w.Result().Cookies(); w.Code == http.StatusSeeOther && len(cookies) == 1 {
		b.cookie = cookies[0].Value
		return b
	}
	t.Fatalf("sign-in = %d: %s", w.Code, w.Body)
	return nil
}

func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q: %.2000s", what, part, text)
		}
	}
}

func TestLinkSignsInOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := &browser{f: f}
	path := f.link(t, Grant{AccountID: "customer"})
	for range 3 { // as previews of links do
		wants(t, "page of the link", b.see(t, path, http.StatusOK), `method="post" action="`+Path+path+`"`)
	}
	w := b.send(t, http.MethodPost, path, nil)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("POST of the link = %d with %d cookies", w.Code, len(cookies))
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != Path || c.Secure || c.MaxAge != 0 {
		t.Errorf("cookie %v", c)
	}
	if w := b.send(t, http.MethodPost, path, nil); w.Code != http.StatusForbidden {
		t.Errorf("second POST of the link = %d, want 403", w.Code)
	}
	if ttl, err := f.redis.TTL(t.Context(), redis.ConsoleSession(hashOf(cookies[0].Value))).Result(); err != nil || ttl <= 0 ||
		ttl > sessionIdle {
		t.Errorf("the session lives %s, %v", ttl, err)
	}
	for _, key := range f.redis.Keys(t.Context(), "*").Val() {
		if strings.Contains(key, cookies[0].Value) || strings.Contains(key, strings.TrimPrefix(path, "/link/")) {
			t.Errorf("Redis has the secret in %s", key)
		}
	}
}

// brokenStore is a store whose audit log fails on command.
type brokenStore struct {
	store
	fault error
}

func (s *brokenStore) WriteAudit(ctx context.Context, e table.AuditEntry) error {
	if s.fault != nil {
		return s.fault
	}
	return s.store.WriteAudit(ctx, e)
}

func TestLinkOutlivesFailedSignIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	broken := &brokenStore{f.store, errors.New("ClickHouse is away")}
	f.Stores.Sessions = broken
	b, path := &browser{f: f}, f.link(t, Grant{AccountID: "customer"})
	if w := b.send(t, http.MethodPost, path, nil); w.Code != http.StatusServiceUnavailable || len(w.Result().Cookies()) != 0 {
		t.Fatalf("sign-in without ClickHouse = %d with %d cookies", w.Code, len(w.Result().Cookies()))
	}
	broken.fault = nil
	for _, want := range []int{http.StatusSeeOther, http.StatusForbidden} {
		if w := b.send(t, http.MethodPost, path, nil); w.Code != want {
			t.Errorf("the link = %d, want %d", w.Code, want)
		}
	}
}

// heldStore holds reads of keys until released. It refuses more than most at once.
type heldStore struct {
	store
	most     int64
	held     atomic.Int64
	began    chan struct{}
	released chan struct{}
}

func (s *heldStore) Keys(ctx context.Context, accountID string) ([]account.Key, error) {
	if s.held.Add(1) > s.most {
		return nil, errors.New("too many reads")
	}
	s.began <- struct{}{}
	<-s.released
	return s.store.Keys(ctx, accountID)
}

func TestPagesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	third := account.Account{ID: "third", Name: "Third", Plan: account.Starter, CreatedAt: f.clock}
	if err := f.store.Put(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	const own, all = 2, 4
	held := &heldStore{store: f.store, most: all, began: make(chan struct{}, all), released: make(chan struct{})}
	f.Stores.Keys = held
	answers := make(map[string]chan *httptest.ResponseRecorder)
	for _, id := range []string{"customer", "other"} {
		b, got := f.signIn(t, Grant{AccountID: id}), make(chan *httptest.ResponseRecorder, 20)
		for range cap(got) {
			go func() { got <- b.send(t, http.MethodGet, "/keys", nil) }()
		}
		answers[id] = got
	}
	for id, got := range answers {
		for range cap(got) - own {
			if w := <-got; w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
				t.Fatalf("a further page of %s = %d, Retry-After %q", id, w.Code, w.Header().Get("Retry-After"))
			}
		}
	}
	for range all {
		<-held.began
	}
	if w := f.signIn(t, Grant{AccountID: "third"}).send(t, http.MethodGet, "/keys", nil); w.Code != http.StatusServiceUnavailable ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("a page beside %d others = %d, Retry-After %q", all, w.Code, w.Header().Get("Retry-After"))
	}
	close(held.released)
	for id, got := range answers {
		for range own {
			if w := <-got; w.Code != http.StatusOK {
				t.Errorf("a page of %s in flight = %d", id, w.Code)
			}
		}
	}
	if n := len(f.slots.accounts); n != 0 {
		t.Errorf("%d accounts are remembered", n)
	}
}

func TestKeysOfAccountAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var keys []account.Key
	for i := range 101 {
		key, _ := account.NewKey("customer", "", account.Live, f.clock)
		if i == 0 {
			key.RevokedAt = f.clock
		}
		keys = append(keys, key)
	}
	if err := f.store.PutKey(t.Context(), keys...); err != nil {
		t.Fatal(err)
	}
	b, form := f.signIn(t, Grant{AccountID: "customer"}), url.Values{"name": {"one more"}, "mode": {"test"}}
	w := b.submit(t, "/keys", "/keys", form)
	if w.Code != http.StatusConflict {
		t.Errorf("key 101 = %d", w.Code)
	}
	wants(t, "the refusal", w.Body.String(), "100 keys", "Revoke one", `value="one more"`)
	keys[1].RevokedAt = f.clock
	if err := f.store.PutKey(t.Context(), keys[1]); err != nil {
		t.Fatal(err)
	}
	if w := b.submit(t, "/keys", "/keys", form); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "svc_test_") {
		t.Errorf("a key in place of a revoked one = %d", w.Code)
	}
}

func TestLinksNeedSaneLifetime(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{0, -time.Second, 25 * time.Hour} {
		if _, err := NewLink(t.Context(), nil, "http://console.test", Grant{}, ttl); err == nil {
			t.Errorf("a link of %s was made", ttl)
		}
	}
}

func TestCookieIsSecureBehindTLS(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct {
		from   string
		secure bool
	}{{"192.0.2.7:4000", true}, {"203.0.113.1:4000", false}} {
		b := &browser{f: f, address: c.from}
		w := b.send(t, http.MethodPost, f.link(t, Grant{AccountID: "customer"}), nil, "X-Forwarded-Proto", "https")
		if got := w.Result().Cookies()[0].Secure; got != c.secure {
			t.Errorf("from %s: Secure is %v, want %v", c.from, got, c.secure)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	began := f.clock
	for _, c := range []struct {
		what  string
		visit []time.Duration // since the sign-in, all with an answer
		end   time.Duration   // a visit then has none
	}{
		{"without use", []time.Duration{0, 20 * time.Minute}, 51 * time.Minute},
		{"although used", func() (all []time.Duration) {
			for at := time.Duration(0); at < sessionMax; at += 20 * time.Minute {
				all = append(all, at)
			}
			return all
		}(), sessionMax + time.Second},
	} {
		f.clock = began
		b := f.signIn(t, Grant{AccountID: "customer"})
		for _, at := range c.visit {
			f.clock = began.Add(at)
			b.see(t, "/keys", http.StatusOK)
		}
		f.clock = began.Add(c.end)
		if w := b.send(t, http.MethodGet, "/keys", nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != Path+"/sign-in" {
			t.Errorf("%s: a visit after %s = %d", c.what, c.end, w.Code)
		}
	}
}

func TestSignOutEndsStolenCookie(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.signIn(t, Grant{AccountID: "customer"})
	thief := &browser{f: f, cookie: b.cookie, address: "198.51.100.2:1"}
	thief.see(t, "/keys", http.StatusOK)
	if w := b.submit(t, "/keys", "/sign-out", nil); w.Code != http.StatusSeeOther || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Fatalf("sign-out = %d with %v", w.Code, w.Result().Cookies())
	}
	if w := thief.send(t, http.MethodGet, "/keys", nil); w.Code != http.StatusSeeOther {
		t.Errorf("the stolen cookie gets %d", w.Code)
	}
}

func TestForgedFormsAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b, other := f.signIn(t, Grant{AccountID: "customer"}), f.signIn(t, Grant{AccountID: "customer"})
	token := func(b *browser, path string) string {
		return (&visit{id: b.cookie}).formToken(path)
	}
	form := func(token string) url.Values {
		return url.Values{"name": {"forged"}, "mode": {"live"}, "token": {token}}
	}
	for _, c := range []struct {
		what    string
		form    url.Values
		headers []string
	}{
		{"no token", form(""), nil},
		{"the token of another session", form(token(other, "/keys")), nil},
		{"the token of another form", form(token(b, "/sign-out")), nil},
		{"another site", form(token(b, "/keys")), []string{"Sec-Fetch-Site", "cross-site"}},
		{"another origin of the site", form(token(b, "/keys")), []string{"Sec-Fetch-Site", "same-site"}},
		{"another origin in an old browser", form(token(b, "/keys")), []string{"Sec-Fetch-Site", "", "Origin", "http://evil.test"}},
	} {
		if w := b.send(t, http.MethodPost, "/keys", c.form, c.headers...); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", c.what, w.Code)
		}
	}
	if keys, err := f.store.Keys(t.Context(), "customer"); err != nil || len(keys) != 0 {
		t.Errorf("there are %d keys, %v", len(keys), err)
	}
	if w := b.send(t, http.MethodPost, "/keys", form(token(b, "/keys"))); w.Code != http.StatusOK {
		t.Errorf("the own form = %d", w.Code)
	}
}

func TestWrongLinksLockOutOneAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	attacker, wrong := &browser{f: f, address: "198.51.100.9:1"}, "/link/"+strings.Repeat("A", 26)
	statuses := make(map[int]int)
	for range 100 {
		w := attacker.send(t, http.MethodPost, wrong, nil)
		statuses[w.Code]++
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Fatal("429 without Retry-After")
		}
	}
	if statuses[http.StatusForbidden] != wrongLinksMax || statuses[http.StatusTooManyRequests] != 100-wrongLinksMax {
		t.Errorf("statuses %v", statuses)
	}
	f.signIn(t, Grant{AccountID: "customer"}) // from another address
	if ttl := f.redis.TTL(t.Context(), redis.ConsoleWrongLinks("198.51.100.9")).Val(); ttl <= 0 || ttl > wrongLinksWindow {
		t.Errorf("the count lives %s", ttl)
	}
}

func TestClientAddressBehindProxies(t *testing.T) {
	t.Parallel()
	c := &Console{proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for _, x := range []struct{ peer, forwarded, want string }{
		{"203.0.113.1:9", "198.51.100.1", "203.0.113.1"},
		{"192.0.2.1:9", "10.9.9.9, 198.51.100.1", "198.51.100.1"},
		{"192.0.2.1:9", "", "192.0.2.1"},
		{"192.0.2.1:9", "nonsense", "192.0.2.1"},
		{"[2001:db8::1:2:3:4]:9", "", "2001:db8::1:2:3:4"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = x.peer
		if x.forwarded != "" {
			r.Header.Set("X-Forwarded-For", x.forwarded)
		}
		if got, _ := c.client(r); got.String() != x.want {
			t.Errorf("client of %s for %q is %s, want %s", x.peer, x.forwarded, got, x.want)
		}
	}
	if got := rangeOf(netip.MustParseAddr("2001:db8::1:2:3:4")); got != "2001:db8::/64" {
		t.Errorf("the range of an IPv6 address is %s", got)
	}
}

func TestKeysOfOtherAccountsAreHidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.signIn(t, Grant{AccountID: "customer"})
	w := b.submit(t, "/keys", "/keys", url.Values{"name": {"<b>mine</b>"}, "mode": {"test"}})
	raw := regexp.MustCompile(`svc_test_\w{30}`).FindString(w.Body.String())
	if _, _, err := account.ParseKey(raw); w.Code != http.StatusOK || err != nil || strings.Contains(w.Body.String(), "<b>mine") {
		t.Fatalf("new key %q: %v: %s", raw, err, w.Body)
	}
	if strings.Contains(b.see(t, "/keys", http.StatusOK), raw) {
		t.Error("the key is shown twice")
	}
	keys, err := f.store.Keys(t.Context(), "customer")
	if err != nil || len(keys) != 1 || keys[0].Name != "<b>mine</b>" || keys[0].Mode != account.Test {
		t.Fatalf("keys %v, %v", keys, err)
	}
	path := "/keys/" + keys[0].ID + "/revoke"
	stranger := f.signIn(t, Grant{AccountID: "other"})
	stranger.see(t, path, http.StatusNotFound)
	token := (&visit{id: stranger.cookie}).formToken(path)
	if w := stranger.send(t, http.MethodPost, path, url.Values{"token": {token}}); w.Code != http.StatusNotFound {
		t.Errorf("a stranger's revocation = %d", w.Code)
	}
	if w := b.submit(t, path, path, nil); w.Code != http.StatusSeeOther {
		t.Errorf("revocation = %d: %s", w.Code, w.Body)
	}
	if key, err := f.store.Key(t.Context(), keys[0].ID); err != nil || key.RevokedAt.IsZero() {
		t.Errorf("the key is not revoked: %v", err)
	}
}

func TestOperatorsChangeTiers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	customer := f.signIn(t, Grant{AccountID: "customer"})
	for _, path := range []string{"/operators", "/operators/keys", "/operators/runs", "/operators/audit", "/examples"} {
		customer.see(t, path, http.StatusForbidden)
	}
	operator := f.signIn(t, Grant{AccountID: "customer", Operator: true})
	if w := operator.submit(t, "/operators", "/operators/accounts/other", url.Values{"tier": {"scale"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("change of a tier = %d: %s", w.Code, w.Body)
	}
	if acct, err := f.store.Account(t.Context(), "other"); err != nil || acct.Plan != account.Scale {
		t.Errorf("the account has tier %s, %v", acct.Plan, err)
	}
	if w := operator.submit(t, "/operators", "/operators/accounts/other", url.Values{"tier": {"gold"}}); w.Code != http.StatusBadRequest {
		t.Errorf("an unknown tier = %d", w.Code)
	}
	wants(t, "audit log", operator.see(t, "/operators/audit", http.StatusOK), "tier changed", "starter to scale", "sign in", "203.0.113.1")
}

// scored stores a record of a company from facts.
func (f *fixture) addRecord(t *testing.T, domain, name string, at time.Time, employees float64) scoring.Record {
	t.Helper()
	rec, err := scoring.Score(scoring.Input{
		Domain: domain, Now: at, Identity: scoring.Identity{Name: name, Country: "US", Industries: []string{"software"}},
		Answered:     []string{"facts"},
		Observations: []scoring.Observation{{Signal: "employee_count", State: scoring.StateOK, Raw: employees, Source: "facts"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestPagesShowStoredData(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.signIn(t, Grant{AccountID: "customer", Operator: true})
	wants(t, "the first page", b.see(t, "", http.StatusOK), "No company has a score yet", "Import the 880 examples", "You have no API key")
	wants(t, "an empty universe", b.see(t, "/universe", http.StatusOK), "Nothing is counted yet")

	f.addRecord(t, "example.com", "Example <Inc>", f.clock.Add(-48*time.Hour), 10)
	rec := f.addRecord(t, "example.com", "Example <Inc>", f.clock.Add(-time.Hour), 5000)
	f.universe.records = []scoring.Record{rec, f.addRecord(t, "peer.com", "Peer", f.clock.Add(-time.Hour), 50)}
	request := table.Request{RequestKind: table.RequestKind{AccountID: "customer", KeyID: "k", Route: "/v1/score/*", Status: 404,
		ErrorCode: "no_history", AnsweredBy: "none"}, ID: "my-request-id", At: f.clock, Number: 1}
	foreign := request
	foreign.AccountID, foreign.ID, foreign.Number = "other", "foreign-request", 2
	if err := f.store.WriteRequests(t.Context(), []table.Request{request, foreign}); err != nil {
		t.Fatal(err)
	}
	if _, err := facts.ImportCSV(t.Context(), f.store, "<crm>.csv", []byte("domain,employees\na.com,5\nb.com,many\n"),
		facts.Options{Origin: "crm"}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Discard(t.Context(), table.FactsImport{ID: "failed", Kind: table.ImportFile, Recipe: "tranco", File: "list.zip",
		StartedAt: f.clock}, errors.New("the archive is damaged")); err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		"":                         {"Companies", "2"},
		"/universe":                {"Rating mix", "software"},
		"/companies?q=EXAMPLE+%3C": {"example.com"},
		"/companies?q=exam":        {"Example &lt;Inc&gt;", "example.com"},
		"/companies?q=new.com":     {"Score new.com"},
		"/companies/example.com": {"Example &lt;Inc&gt;", "of this score rests on data", "The 2 newest records", "Employee count",
			"missing: not found"},
		"/companies/new.com":      {"This company has no score"},
		"/usage":                  {"Cold calls", "Breakers"},
		"/requests":               {"my-request-id", "no_history"},
		"/requests/my-request-id": {"The company was never scored.", "Score it."},
		"/data": {"Batch jobs", "housekeeping", "inbox", "bulk", "&lt;crm&gt;.csv", "<div>1 invalid</div>", "tranco", "list.zip",
			"the archive is damaged"},
		"/operators":      {"Acme", "Other"},
		"/operators/runs": {"No run has ended yet"},
	} {
		text := b.see(t, path, http.StatusOK)
		wants(t, path, text, parts...)
		if strings.Contains(text, "<Inc>") || strings.Contains(text, "ZgotmplZ") || strings.Contains(text, " style=") {
			t.Errorf("%s is not escaped, or has inline style", path)
		}
	}
	customer := f.signIn(t, Grant{AccountID: "customer"})
	customer.see(t, "/requests/foreign-request", http.StatusNotFound)
	customer.see(t, "/companies/no%20domain", http.StatusNotFound)
	customer.see(t, "/nothing", http.StatusNotFound)
}

func TestRequestsOfOthersWithSameIDHideNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	own := table.Request{RequestKind: table.RequestKind{AccountID: "customer", KeyID: "k", Route: "/v1/changes", Status: 404,
		AnsweredBy: "none"}, ID: "same-id", At: f.clock.Add(-time.Hour), Number: 1}
	rows := []table.Request{own}
	for i := range 120 {
		r := own
		r.AccountID, r.Route, r.At, r.Number = "other", "/v1/movers", f.clock.Add(time.Duration(i)*time.Millisecond), uint64(i+2)
		rows = append(rows, r)
	}
	if err := f.store.WriteRequests(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	customer, operator := f.signIn(t, Grant{AccountID: "customer"}), f.signIn(t, Grant{AccountID: "customer", Operator: true})
	const ofOwn, ofOthers = "<code>/v1/changes</code>", "<code>/v1/movers</code>"
	for _, c := range []struct {
		who         *browser
		path        string
		own, others int
	}{
		{customer, "/requests/same-id", 1, 0},
		{customer, "/requests/same-id?account=other", 1, 0},
		{customer, "/requests?id=same-id", 1, 0},
		{customer, "/requests?account=other", 1, 0},
		{operator, "/requests/same-id", 0, 100},
		{operator, "/requests?id=same-id", 0, 100},
		{operator, "/requests/same-id?account=customer", 1, 0},
		{operator, "/requests?id=same-id&account=customer", 1, 0},
		{operator, "/requests?account=other", 0, 100},
	} {
		text := c.who.see(t, c.path, http.StatusOK)
		if o, x := strings.Count(text, ofOwn), strings.Count(text, ofOthers); o != c.own || x != c.others {
			t.Errorf("%s has %d own requests and %d of others, want %d and %d", c.path, o, x, c.own, c.others)
		}
		if more := strings.Contains(strings.ToLower(text), "there are more"); more != (c.others > 0) {
			t.Errorf("%s: more is %v", c.path, more)
		}
	}
}

// overtakenStore returns a record as the newest although the history has one that is newer.
type overtakenStore struct {
	store
	newest scoring.Record
}

func (s *overtakenStore) Latest(context.Context, string) (scoring.Record, error) {
	return s.newest, nil
}

func TestChangeIsSinceAnEarlierRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.addRecord(t, "example.com", "Example", f.clock.Add(-72*time.Hour), 10)
	shown := f.addRecord(t, "example.com", "Example", f.clock.Add(-48*time.Hour), 5000)
	f.addRecord(t, "example.com", "Example", f.clock.Add(-time.Hour), 20)
	f.Stores.Companies = &overtakenStore{f.store, shown}
	b := f.signIn(t, Grant{AccountID: "customer"})
	wants(t, "the page", b.see(t, "/companies/example.com", http.StatusOK), "since "+f.clock.Add(-72*time.Hour).Format("2 January 2006"))
}

func TestHeadersForbidInlineCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := &browser{f: f}
	for _, path := range []string{"/sign-in", "/nothing"} {
		h := b.send(t, http.MethodGet, path, nil).Header()
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			!strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") == "" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	_, assets := parsed()
	for name := range assets {
		w := b.send(t, http.MethodGet, "/static/"+name, nil)
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s = %d with %v", name, w.Code, w.Header())
		}
	}
	if w := b.send(t, http.MethodGet, "/static/console.css", nil); w.Code != http.StatusNotFound {
		t.Errorf("a file without the hash of its content = %d", w.Code)
	}
}

func TestCompanyIsScoredOnRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.signIn(t, Grant{AccountID: "customer"})
	form := b.form(t, "/companies/new.com", "/companies/new.com")
	w := b.send(t, http.MethodPost, "/companies/new.com", form)
	if w.Code != http.StatusSeeOther || len(f.scored) != 1 || f.scored[0] != "new.com "+form.Get("key") {
		t.Fatalf("scoring = %d, asked for %v", w.Code, f.scored)
	}
	wants(t, "the page of the run", b.see(t, strings.TrimPrefix(w.Header().Get("Location"), Path), http.StatusOK), "The run is in flight",
		`http-equiv="refresh"`)
	if next := b.form(t, "/companies/new.com", "/companies/new.com"); next.Get("key") == form.Get("key") {
		t.Error("two pages have one key")
	}
	form.Set("key", "chosen by hand")
	if w = b.send(t, http.MethodPost, "/companies/new.com", form); w.Code != http.StatusBadRequest {
		t.Errorf("a form with another key = %d", w.Code)
	}
}

func TestRefusedCallKeepsStatusAndKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.signIn(t, Grant{AccountID: "customer"})
	f.refusal = &NotStarted{Status: http.StatusTooManyRequests, Message: "The cold calls of this month are used up.", RetryAfter: 60}
	form := b.form(t, "/companies/new.com", "/companies/new.com")
	w := b.send(t, http.MethodPost, "/companies/new.com", form)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "60" {
		t.Errorf("a refused call = %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	wants(t, "a refused call", w.Body.String(), "The cold calls of this month are used up.", form.Get("key"))
}

func TestExamplesAreImportedByButton(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.signIn(t, Grant{AccountID: "customer", Operator: true})
	if w := b.submit(t, "", "/examples", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("import = %d: %s", w.Code, w.Body)
	}
	status, err := f.Queue.Status(t.Context())
	if err != nil || status.Open() != 880 {
		t.Errorf("%d runs are open, %v", status.Open(), err)
	}
	if facts, err := f.store.Facts.Get(t.Context(), "apple.com"); err != nil || len(facts) != 1 || facts[0].CompanyName != "Apple" {
		t.Errorf("facts of apple.com: %v, %v", facts, err)
	}
	wants(t, "the progress", b.see(t, "/examples", http.StatusOK), "0 of 880 companies have a score", `data-refresh="1"`)
}

func TestSearchTextIsCanonical(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"  Apple   Inc ": "apple inc", "https://www.Apple.com/mac": "apple.com", "www.apple.com": "apple.com", "": "", "\x00": "",
		strings.Repeat("é", 60): strings.Repeat("é", 50),
	} {
		if got := searchText(raw); got != want {
			t.Errorf("searchText(%q) = %q, want %q", raw, got, want)
		}
	}
}
