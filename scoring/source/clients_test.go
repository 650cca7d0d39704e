package source_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring"
	"companyscore/scoring/source"
)

// told formats a result's observation or part of a signal.
func told(r source.Result, signal string) string {
	for _, o := range r.Observations {
		if o.Signal == signal {
			return fmt.Sprintf("%s %g%s", o.State, o.Raw, o.Reason)
		}
	}
	for _, p := range r.Parts {
		if p.Signal == signal {
			return fmt.Sprintf("part %g", p.Value)
		}
	}
	return "nothing"
}

func wantTold(t *testing.T, r source.Result, want map[string]string) {
	t.Helper()
	for signal, say := range want {
		if got := told(r, signal); got != say {
			t.Errorf("%s: got %q, want %q", signal, got, say)
		}
	}
}

// brindle adds a domain with everything that the source reads.
func brindle(network *fakenet.Network) {
	const d = "brindleworks.com."
	network.Records("brindleworks.com",
		d+" 300 IN A "+fakenet.Address, d+" 300 IN MX 10 aspmx.l.google.com.", d+" 300 IN NS ns-12.awsdns-34.org.",
		d+` 300 IN CAA 0 issue "letsencrypt.org"`,
		d+` 300 IN TXT "v=spf1 include:sendgrid.net include:mail.zendesk.com ~all"`, d+` 300 IN TXT "docusign=1"`,
		d+" 300 IN DS 12345 13 2 "+strings.Repeat("AB", 32))
	network.Records("www.brindleworks.com", "www."+d+" 300 IN A "+fakenet.Address)
	network.Records("_dmarc.brindleworks.com", "_dmarc."+d+` 300 IN TXT "v=DMARC1; p=reject"`)
	network.Records("_smtp._tls.brindleworks.com", "_smtp._tls."+d+` 300 IN TXT "v=TLSRPTv1; rua=mailto:a@brindleworks.com"`)
}

func TestDNS(t *testing.T) {
	t.Parallel()
	all := map[string]string{
		"email_auth_maturity": "ok 5", "saas_tooling_breadth": "ok 3", "security_program": "part 2", "commercial_infrastructure": "part 3",
	}
	tests := []struct {
		name         string
		prepare      func(network *fakenet.Network)
		want         map[string]string
		code         string
		unregistered bool
	}{
		{name: "good", prepare: brindle, want: all},
		{
			name: "nothing but an address", prepare: func(network *fakenet.Network) {
				network.Records("brindleworks.com", "brindleworks.com. 300 IN A "+fakenet.Address)
			},
			want: map[string]string{"email_auth_maturity": "ok 0", "saas_tooling_breadth": "absent 0", "security_program": "part 0",
				"commercial_infrastructure": "part 0"},
		},
		{
			name: "no such name", prepare: func(*fakenet.Network) {}, unregistered: true,
			want: map[string]string{"email_auth_maturity": "ok 0", "saas_tooling_breadth": "absent 0"},
		},
		{
			name: "an answer too large for a datagram comes over TCP", want: map[string]string{"saas_tooling_breadth": "ok 2",
				"email_auth_maturity": "ok 1"},
			prepare: func(network *fakenet.Network) {
				var texts []string
				for i := range 40 {
					texts = append(texts, fmt.Sprintf(`brindleworks.com. 300 IN TXT "filler-%d %s"`, i, strings.Repeat("x", 100)))
				}
				network.Records("brindleworks.com", append(texts, `brindleworks.com. 300 IN TXT "v=spf1 include:sendgrid.net -all"`,
					`brindleworks.com. 300 IN TXT "docusign=1"`)...)
			},
		},
		{
			name: "one question that nobody answers costs what needs it", code: "dns_failure",
			want: map[string]string{"email_auth_maturity": "nothing", "saas_tooling_breadth": "ok 3", "security_program": "part 2",
				"commercial_infrastructure": "part 3"},
			prepare: func(network *fakenet.Network) {
				brindle(network)
				network.Answer("_dmarc.brindleworks.com", func(_ dns.Question, reply *dns.Msg) { reply.Rcode = dns.RcodeServerFailure })
			},
		},
		{
			name: "a resolver that says nothing", code: "timeout",
			want: map[string]string{"email_auth_maturity": "nothing", "saas_tooling_breadth": "nothing", "security_program": "nothing",
				"commercial_infrastructure": "nothing"},
			prepare: func(network *fakenet.Network) {
				silence(network, "brindleworks.com")
				network.Overrides().Slowness = 1
			},
		},
		{
			name: "an answer to another question", code: "dns_failure", want: map[string]string{"saas_tooling_breadth": "nothing"},
			prepare: func(network *fakenet.Network) {
				network.Answer("brindleworks.com", func(_ dns.Question, reply *dns.Msg) { reply.Question[0].Name = "evil.com." })
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			network := fakenet.New(t)
			test.prepare(network)
			got, err := source.NewDNS(network.Client()).Fetch(t.Context(), asked)
			if code := codeOf(err); code != test.code {
				t.Fatalf("got %q (%v), want %q", code, err, test.code)
			}
			if got.Unregistered != test.unregistered {
				t.Errorf("unregistered is %t", got.Unregistered)
			}
			wantTold(t, got, test.want)
			if n := len(network.Asked()); n > 24 { // 12 questions, each repeated at most once
				t.Errorf("%d questions were asked", n)
			}
		})
	}
}

func silence(network *fakenet.Network, name string) {
	network.Answer(name, func(_ dns.Question, reply *dns.Msg) { reply.Rcode = -1 })
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return source.WarningCode(err)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	const signal = "commercial_infrastructure"
	tests := []struct {
		name, domain, want, code string
	}{
		{"a certificate that names the owner", "owned.com", "part 1", ""},
		{"a certificate that names nobody", "plain.com", "part 0", ""},
		{"no address", "missing.com", "nothing", "dns_failure"},
		{"a private address", "inside.com", "nothing", "blocked_address"},
	}
	network := fakenet.New(t)
	network.Site("owned.com", "Owned Inc.", http.NotFoundHandler())
	network.Site("plain.com", "", http.NotFoundHandler())
	network.Records("inside.com", "inside.com. 300 IN A 10.1.2.3")
	src := source.NewTLS(network.Client())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := src.Fetch(t.Context(), source.Request{Domain: test.domain, Registrable: test.domain, Now: time.Now()})
			if code := codeOf(err); code != test.code {
				t.Fatalf("got %q (%v), want %q", code, err, test.code)
			}
			wantTold(t, got, map[string]string{signal: test.want})
		})
	}
}

// An organisation in an untrusted certificate does not count.
func TestTLSRejectsUntrustedOrganisation(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	network.Site("owned.com", "Owned Inc.", http.NotFoundHandler())
	network.Overrides().CA = fakenet.New(t).Overrides().CA
	got, err := source.NewTLS(network.Client()).Fetch(t.Context(), source.Request{Domain: "owned.com", Registrable: "owned.com",
		Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	wantTold(t, got, map[string]string{"commercial_infrastructure": "part 0"})
}

// rankings is a fake server of lists of traffic ranks.
type rankings struct {
	mu     sync.Mutex
	lists  map[string]string // by date; others do not exist
	bare   bool              // offer lists in the other place only
	status int               // instead of any answer
	asked  atomic.Int64
}

func (r *rankings) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.asked.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 0 {
		http.Error(w, "no", r.status)
		return
	}
	date := req.URL.Query().Get("date")
	kind, rest, _ := strings.Cut(strings.Trim(req.URL.Path, "/"), "/")
	id, _, _ := strings.Cut(rest, "/")
	if kind != "daily_list_id" && len(id) == 9 {
		date = id[1:5] + "-" + id[5:7] + "-" + id[7:]
	}
	list, ok := r.lists[date]
	switch {
	case !ok:
		http.NotFound(w, req)
	case kind == "daily_list_id":
		fmt.Fprint(w, "D"+strings.ReplaceAll(date, "-", ""))
	case kind == "download_daily" && r.bare:
		http.Error(w, "not here", http.StatusForbidden)
	case kind == "download_daily":
		archive := zip.NewWriter(w)
		if file, err := archive.Create("top-1m.csv"); err == nil {
			fmt.Fprint(file, list)
		}
		archive.Close()
	default:
		fmt.Fprint(w, list)
	}
}

// ranked is a list in which a domain has a rank.
func ranked(domain string, rank int) string {
	var list bytes.Buffer
	for i := 1; i <= 1200; i++ {
		if i == rank {
			fmt.Fprintf(&list, "%d,%s\n", i, domain)
		} else {
			fmt.Fprintf(&list, "%d,filler-%d.net\n", i, i)
		}
	}
	return list.String()
}

func TestTranco(t *testing.T) {
	t.Parallel()
	date := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	three := map[string]string{date(1): ranked("brindleworks.com", 100), date(31): ranked("brindleworks.com", 200),
		date(91): ranked("brindleworks.com", 400)}
	late := map[string]string{date(3): ranked("brindleworks.com", 100), date(34): ranked("brindleworks.com", 200)}
	tests := []struct {
		name   string
		server *rankings
		want   map[string]string
		code   string
	}{
		{
			name: "three lists", server: &rankings{lists: three},
			want: map[string]string{"traffic_rank": "ok 100", "traffic_rank_change_30d": "ok 1", "traffic_rank_change_90d": "ok 2"},
		},
		{
			name: "lists in the other place", server: &rankings{lists: three, bare: true},
			want: map[string]string{"traffic_rank": "ok 100", "traffic_rank_change_90d": "ok 2"},
		},
		{
			name: "a late list, and one that cannot be had", server: &rankings{lists: late},
			want: map[string]string{"traffic_rank": "ok 100", "traffic_rank_change_30d": "ok 1",
				"traffic_rank_change_90d": "missing 0insufficient_history"},
		},
		{name: "lists too old", server: &rankings{lists: map[string]string{date(9): ranked("brindleworks.com", 1)}}, code: "http_error"},
		{name: "no list", server: &rankings{status: http.StatusForbidden}, code: "http_error"},
		{name: "a list that is none", server: &rankings{lists: map[string]string{date(1): "<html>"}}, code: "parse_error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			network := fakenet.New(t)
			network.Endpoint("tranco", test.server)
			src := source.NewTranco(network.Client(), t.TempDir(), slog.New(slog.DiscardHandler))
			got, err := runOnce(t, src)
			if code := codeOf(err); code != test.code {
				t.Fatalf("got %q (%v), want %q", code, err, test.code)
			}
			wantTold(t, got, test.want)
		})
	}
}

// runOnce starts the source, fetches once, and stops it.
func runOnce(t *testing.T, src *source.Tranco) (source.Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { src.Run(ctx) })
	defer running.Wait()
	defer cancel()
	req := asked
	req.Now = time.Now()
	return src.Fetch(ctx, req)
}

// A restart reads the files of the run before and sends no request. Without a directory no file
// is written.
func TestTrancoKeepsItsLists(t *testing.T) {
	t.Parallel()
	date := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	server := &rankings{lists: map[string]string{date(1): ranked("brindleworks.com", 7), date(31): ranked("a.com", 1),
		date(91): ranked("a.com", 1)}}
	network := fakenet.New(t)
	network.Endpoint("tranco", server)
	dir := t.TempDir()
	old := filepath.Join(dir, "ranking-2020-01-01.csv")
	if err := os.WriteFile(old, []byte(ranked("a.com", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if _, err := runOnce(t, source.NewTranco(network.Client(), dir, logger)); err != nil {
		t.Fatal(err)
	}
	first := server.asked.Load()
	got, err := runOnce(t, source.NewTranco(network.Client(), dir, logger))
	if err != nil {
		t.Fatal(err)
	}
	wantTold(t, got, map[string]string{"traffic_rank": "ok 7"})
	if again := server.asked.Load() - first; first != 6 || again != 0 {
		t.Errorf("asked %d times at first and %d times at the second start, want 6 and 0", first, again)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 3 {
		t.Errorf("the directory holds %v, want the three lists", files)
	}
}

// A fetch before the first lists waits, within its deadline.
func TestTrancoWaitsForItsFirstList(t *testing.T) {
	t.Parallel()
	src := source.NewTranco(fakenet.New(t).Client(), "", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := src.Fetch(ctx, asked); codeOf(err) != "timeout" {
		t.Errorf("got %v, want a timeout", err)
	}
}

// dns and rdap both report an unregistered domain.
func TestUnregisteredName(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	network.Endpoint("rdap.bootstrap", answers(`{"services":[[["com"],["https://rdap.registry-one.com/v1/"]]]}`))
	network.Site("rdap.registry-one.com", "", http.NotFoundHandler())
	got, err := source.NewRDAP(network.Client()).Fetch(t.Context(), asked)
	if err != nil || !got.Unregistered {
		t.Errorf("got %+v %v, want an unregistered name", got, err)
	}
	wantTold(t, got, map[string]string{"domain_renewal_runway_days": "missing 0" + string(scoring.ReasonNotFound)})
	other := asked
	other.Domain, other.Registrable = "brindleworks.zz", "brindleworks.zz"
	got, err = source.NewRDAP(network.Client()).Fetch(t.Context(), other)
	if err != nil || got.Unregistered {
		t.Errorf("a suffix without a registry: got %+v %v, want nothing known", got, err)
	}
}
