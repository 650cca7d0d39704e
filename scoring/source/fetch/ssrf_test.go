package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring/source/fetch"
)

// refusal is one hostile target and its error.
type refusal struct {
	what string
	err  error
	want []string // the allowed codes
}

// suite collects hostile targets for one client. Each is tried through one kind of request.
type suite struct {
	t        *testing.T
	network  *fakenet.Network
	client   *fetch.Client
	refusals []refusal
	hosts    int
}

func (s *suite) add(what string, err error, want ...string) {
	if len(want) == 0 {
		want = []string{fetch.CodeAddress}
	}
	s.refusals = append(s.refusals, refusal{what, err, want})
}

// newHost returns a host name of the fake network that has no records yet.
func (s *suite) newHost() string {
	s.hosts++
	return fmt.Sprintf("host%d.hostile-fake.com", s.hosts)
}

// page reads one page of a host and returns the error.
func (s *suite) page(ctx context.Context, host, ref string, kind fetch.PageKind) error {
	site, err := s.client.Visit(ctx, host)
	if err != nil {
		return err
	}
	page, err := site.Get(ctx, ref, kind)
	if err != nil {
		return err
	}
	return fmt.Errorf("no refusal: status %d, %d bytes from %s", page.Status, len(page.Body), page.URL)
}

// atPage serves a handler as the page /page of a new host, and reads it.
func (s *suite) atPage(ctx context.Context, kind fetch.PageKind, handler http.HandlerFunc) error {
	host := s.newHost()
	mux := http.NewServeMux()
	mux.Handle("/robots.txt", http.NotFoundHandler())
	mux.Handle("/page", handler)
	s.network.Site(host, "", mux)
	return s.page(ctx, host, "/page", kind)
}

// hurried serves a handler as a page and reads it within a second. The robots.txt before it has more time.
func (s *suite) hurried(ctx context.Context, handler http.HandlerFunc) error {
	host := s.newHost()
	mux := http.NewServeMux()
	mux.Handle("/robots.txt", http.NotFoundHandler())
	mux.Handle("/page", handler)
	s.network.Site(host, "", mux)
	site, err := s.client.Visit(ctx, host)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = site.Get(ctx, "/page", fetch.HTML)
	return err
}

// TestHostileTargets tries hostile names, addresses, redirects and answers with the real client.
// All are refused, and no request reaches another server. `make ssrf` prints the list.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	var inside atomic.Int64 // requests that reach a server which must not be reached
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	t.Cleanup(canary.Close)
	network.Endpoint("gleif", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/deep" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bytes.Repeat([]byte("["), 100_000))
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	var clock atomic.Int64 // seconds that the client's clock is ahead
	s := &suite{t: t, network: network}
	s.client = network.ClientWith(fetch.Config{
		Never: []string{"opted-out.com", "93.184.99.0/24"},
		Now:   func() time.Time { return time.Now().Add(time.Duration(clock.Load()) * time.Second) },
	})
	ctx := t.Context()

	s.notations(ctx)
	s.addresses(ctx)
	s.redirects(ctx, canary.URL)
	s.rebinding(ctx, &clock)
	s.bodies(ctx)

	if n := inside.Load(); n != 0 {
		t.Errorf("%d requests reached a server on loopback that the client was not told of", n)
	}
	for i, r := range s.refusals {
		code := code(r.err)
		if !slices.Contains(r.want, code) {
			t.Errorf("%s: %v; want a refusal with %v", r.what, r.err, r.want)
			continue
		}
		t.Logf("%3d  %-52s %-16s %v", i+1, r.what, code, r.err)
	}
	if len(s.refusals) < 100 {
		t.Errorf("only %d hostile targets", len(s.refusals))
	}
}

// notations are spellings of hosts in requests and pages.
func (s *suite) notations(ctx context.Context) {
	for _, host := range []string{
		"127.0.0.1", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "0x7f.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0",
		"169.254.169.254", "2852039166", "0xa9fea9fe", "[::1]", "::1", "[::ffff:127.0.0.1]", "[fe80::1%eth0]", "fe80::1%25lo",
		"[fd00:ec2::254]",
		"127。0。0。1", "１２７.0.0.1", "①②⑦.⓪.⓪.①", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "localhost", "LOCALHOST.", "localhost.localdomain", "metadata.google.internal",
		"router.lan", "db.corp", "printer.local", "service.home.arpa", "hidden.onion", "intranet", "com", "co.uk", "a..com", "-", "",
		"user@hostile-fake.com", "hostile-fake.com:22", "hostile-fake.com/@127.0.0.1", "127.0.0.1\x00.hostile-fake.com",
		"hostile-fake.com#.lan",
		"127.0.0.1%2f.hostile-fake.com", "exa mple.com", "opted-out.com", "www.opted-out.com", strings.Repeat("a", 64) + ".com",
		strings.Repeat("a.", 130) + "com",
	} {
		s.add(fmt.Sprintf("visit %.40q", host), s.page(ctx, host, "/", fetch.HTML))
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "0x7f000001"} {
		_, err := s.client.Handshake(ctx, host)
		s.add(fmt.Sprintf("handshake with %q", host), err)
	}
	for _, url := range []string{
		"http://rdap.hostile-fake.com/", "https://127.0.0.1/", "https://[::1]/", "https://rdap.hostile-fake.com:8443/",
		"https://user:pw@rdap.hostile-fake.com/",
		"file:///etc/passwd", "gopher://rdap.hostile-fake.com/", "ftp://rdap.hostile-fake.com/", "https:///nohost",
		"//rdap.hostile-fake.com/", "https:rdap.hostile-fake.com",
		"unix:///var/run/docker.sock", "https://rdap.hostile-fake.com\\@127.0.0.1/", "https://2130706433/",
	} {
		_, err := fetch.Get(ctx, s.client, fetch.Request{Source: "rdap", URL: url}, decodeThing)
		s.add("registry "+url, err)
	}
	for _, url := range []string{"http://169.254.169.254/latest/", "http://localhost/", "http://rdap.hostile-fake.com:8080/",
		"http://user:pw@rdap.hostile-fake.com/"} {
		_, err := fetch.Get(ctx, s.client, fetch.Request{Source: "rdap", URL: url, Plain: true}, decodeThing)
		s.add("registry over plain http "+url, err)
	}
}

// addresses are answers of a hostile DNS.
func (s *suite) addresses(ctx context.Context) {
	for _, address := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
		"168.63.129.16", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1",
		"192.175.48.1", "198.18.0.1",
		"198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "93.184.99.7",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1",
		"100::1", "2001::7f00:1", "2001:2::1",
		"2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2620:4f:8000::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254",
		"fe80::1", "fec0::1", "ff02::1",
	} {
		host, kind := s.newHost(), "A"
		if strings.Contains(address, ":") {
			kind = "AAAA"
		}
		s.network.Records(host, fmt.Sprintf("%s. 300 IN %s %s", host, kind, address))
		s.add("name with address "+address, s.page(ctx, host, "/", fetch.HTML))
	}
	host := s.newHost()
	s.network.Records(host, host+". 300 IN A "+fakenet.Address, host+". 300 IN A 10.0.0.1")
	s.add("name with a public and a private address", s.page(ctx, host, "/", fetch.HTML))
	host = s.newHost()
	s.network.Records(host, host+". 300 IN A "+fakenet.Address, host+". 300 IN AAAA ::1")
	s.add("name with public IPv4 and loopback IPv6", s.page(ctx, host, "/", fetch.HTML))
	host = s.newHost()
	s.network.Records(host, host+". 300 IN CNAME localhost.", "localhost. 300 IN A 127.0.0.1")
	s.add("alias of localhost", s.page(ctx, host, "/", fetch.HTML))
	host = s.newHost()
	s.network.Answer(host, func(q dns.Question, reply *dns.Msg) {
		for i := range 9 {
			reply.Answer = append(reply.Answer, &dns.CNAME{Hdr: dns.RR_Header{Name: fmt.Sprintf("a%d.com.", i), Rrtype: dns.TypeCNAME,
				Class: dns.ClassINET, Ttl: 60}, Target: fmt.Sprintf("a%d.com.", i+1)})
		}
	})
	s.add("nine aliases in a row", s.page(ctx, host, "/", fetch.HTML), fetch.CodeDNS)
	host = s.newHost()
	s.network.Answer(host, func(q dns.Question, reply *dns.Msg) { reply.Question[0].Name = "other.com." })
	s.add("answer to another question", s.page(ctx, host, "/", fetch.HTML), fetch.CodeDNS)
}

// redirects are targets of redirects from a page or a known server.
func (s *suite) redirects(ctx context.Context, canary string) {
	private := s.newHost()
	s.network.Records(private, private+". 300 IN A 192.168.0.1")
	other := s.newHost()
	s.network.Site(other, "", http.NotFoundHandler())
	for _, to := range []string{
		"http://127.0.0.1/", "https://127.0.0.1/", canary, "https://169.254.169.254/latest/meta-data/", "https://[::1]/",
		"https://[fe80::1%25eth0]/", "https://2130706433/",
		"https://0x7f.1/", "https://0177.0.0.1/", "//127.0.0.1/", "https://localhost/", "https://" + private + "/",
		"https://" + other + ":8443/", "https://user@" + other + "/",
		"https://" + other + ":22/", "http://" + other + "/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_FLUSHALL",
		"ftp://" + other + "/", "javascript:alert(1)",
		"data:text/html,x", "dict://127.0.0.1:11211/", "https://127。0。0。1/", "https://metadata.google.internal/",
		"https://" + other + "\\@127.0.0.1/", "https://127.0.0.1#@" + other + "/",
		"https://127.0.0.1?@" + other + "/", "https:///etc/passwd", "jar:https://" + other + "!/",
	} {
		err := s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Location"] = []string{to}
			w.WriteHeader(http.StatusFound)
		})
		s.add("redirect to "+strings.ReplaceAll(to, canary, "a server on loopback"), err, fetch.CodeAddress, fetch.CodeHTTP)
	}
	s.add("redirects in a circle", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/page", http.StatusFound)
	}), fetch.CodeHTTP)
	s.add("redirects without end", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/page?"+r.URL.RawQuery+"x", http.StatusFound)
	}), fetch.CodeHTTP)
	s.network.Site("second-fake.com", "", http.RedirectHandler("https://third-fake.com/", http.StatusFound))
	s.network.Site("third-fake.com", "", http.NotFoundHandler())
	s.add("redirect to a third site", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://second-fake.com/", http.StatusFound)
	}), fetch.CodeHTTP, fetch.CodeRobots)
	s.network.Site("closed-fake.com", "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /")
	}))
	s.add("redirect to a site that wants no robots", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://closed-fake.com/", http.StatusFound)
	}), fetch.CodeRobots)
	for _, ref := range []string{"https://127.0.0.1/", "http://localhost/", "//[::1]/", "https://unrelated-fake.com/", "file:///etc/passwd",
		"https://" + other + ":99/", "/\r\nHost: evil", "/%zz"} {
		host := s.newHost()
		s.network.Site(host, "", http.NotFoundHandler())
		s.add(fmt.Sprintf("link to %q", ref), s.page(ctx, host, ref, fetch.HTML))
	}
	// A known server that was taken over must not redirect elsewhere.
	for _, to := range []string{"http://127.0.0.1/", canary, "https://169.254.169.254/", "https://" + other + "/", "file:///etc/passwd"} {
		_, err := fetch.Get(ctx, s.client, fetch.Request{Source: "gleif", Endpoint: "gleif", Path: "/api",
			Query: map[string][]string{"to": {to}}}, decodeThing)
		s.add("known server redirects to "+strings.ReplaceAll(to, canary, "a server on loopback"), err)
	}
}

// rebinding is a name whose address changes between two lookups.
func (s *suite) rebinding(ctx context.Context, clock *atomic.Int64) {
	host := "rebinding-fake.com"
	var asked atomic.Int64
	s.network.Site(host, "", http.NotFoundHandler())
	s.network.Answer(host, func(q dns.Question, reply *dns.Msg) {
		address := fakenet.Address
		if asked.Add(1) > 2 { // A and AAAA of the first look
			address = "127.0.0.1"
		}
		if q.Qtype == dns.TypeA {
			rr, err := dns.NewRR(host + ". 0 IN A " + address)
			if err != nil {
				s.t.Error(err)
			}
			reply.Answer = append(reply.Answer, rr)
		}
	})
	site, err := s.client.Visit(ctx, host)
	if err != nil {
		s.t.Errorf("first look at %s: %v", host, err)
		return
	}
	if _, err := site.Get(ctx, "/while-the-answer-is-kept", fetch.HTML); err != nil {
		s.t.Errorf("second look at %s: %v", host, err)
	}
	clock.Add(int64((7 * time.Hour).Seconds()))
	_, err = site.Get(ctx, "/after-the-address-has-changed", fetch.HTML)
	s.add("name that rebinds from public to loopback", err)
}

// bodies are answers that try to exhaust the client.
func (s *suite) bodies(ctx context.Context) {
	endless := func(w io.Writer, chunk []byte) {
		for range 1 << 20 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	html := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") }
	zeros := make([]byte, 1<<16)
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	for range 1600 { // 100 MB of zeros in 100 kB
		if _, err := packer.Write(zeros); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := packer.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.add("page of 100 MB, announced", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, _ *http.Request) {
		html(w)
		w.Header().Set("Content-Length", "104857600")
		endless(w, zeros)
	}), fetch.CodeTooLarge)
	s.add("page without end", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, _ *http.Request) {
		html(w)
		endless(w, zeros)
	}), fetch.CodeTooLarge)
	s.add("page that unpacks to 100 MB", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, _ *http.Request) {
		html(w)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}), fetch.CodeTooLarge)
	s.add("sitemap file that unpacks to 100 MB", s.atPage(ctx, fetch.Feed, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		_, _ = w.Write(bomb.Bytes())
	}), fetch.CodeTooLarge)
	s.add("encoding that was not asked for", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, _ *http.Request) {
		html(w)
		w.Header().Set("Content-Encoding", "br")
		_, _ = w.Write(zeros)
	}), fetch.CodeParse)
	s.add("program instead of a page", s.atPage(ctx, fetch.HTML, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(zeros)
	}), fetch.CodeParse)
	s.add("page that drips", s.hurried(ctx, func(w http.ResponseWriter, r *http.Request) {
		html(w)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			pause(r.Context(), 20*time.Millisecond)
		}
	}), fetch.CodeTimeout)
	s.add("answer that never begins", s.hurried(ctx, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		fetch.CodeTimeout)
	raw := func(send func(conn net.Conn)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			send(conn)
		}
	}
	plain := func(handler http.HandlerFunc) error { // hijacking needs HTTP/1.1, which is what http gives
		host := s.newHost()
		mux := http.NewServeMux()
		mux.Handle("/robots.txt", http.NotFoundHandler())
		mux.Handle("/page", handler)
		s.network.Site(host, "", mux)
		return s.page(ctx, host, "http://"+host+"/page", fetch.HTML)
	}
	s.add("headers without end", plain(raw(func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n")
		endless(conn, []byte("X-Filler: "+strings.Repeat("a", 4000)+"\r\n"))
	})), fetch.CodeHTTP)
	s.add("provisional answers without end", plain(raw(func(conn net.Conn) {
		endless(conn, []byte("HTTP/1.1 103 Early Hints\r\nLink: <"+strings.Repeat("a", 4000)+">\r\n\r\n"))
	})), fetch.CodeHTTP)
	s.add("one header line without end", plain(raw(func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nX: ")
		endless(conn, zeros)
	})), fetch.CodeHTTP)
	s.add("no HTTP at all", plain(raw(func(conn net.Conn) { fmt.Fprint(conn, "SSH-2.0-OpenSSH_9.9\r\n") })), fetch.CodeHTTP)
	s.add("body that ends too early", plain(raw(func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\nshort")
	})), fetch.CodeParse)
	s.add("robots.txt that cannot be had", func() error {
		host := s.newHost()
		s.network.Site(host, "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}))
		return s.page(ctx, host, "/", fetch.HTML)
	}(), fetch.CodeRobots)
	s.add("more than 12 MiB in a visit", func() error {
		host := s.newHost()
		s.network.Site(host, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if html(w); r.URL.Path != "/robots.txt" {
				_, _ = w.Write(make([]byte, 2<<20-1))
			}
		}))
		site, err := s.client.Visit(ctx, host)
		for i := 0; err == nil && i < 8; i++ {
			_, err = site.Get(ctx, fmt.Sprintf("/%d", i), fetch.HTML)
		}
		return err
	}(), fetch.CodeTooLarge)
	s.add("more than 14 pages in a visit", func() error {
		host := s.newHost()
		s.network.Site(host, "", http.NotFoundHandler())
		site, err := s.client.Visit(ctx, host)
		for i := 0; err == nil && i < 14; i++ {
			_, err = site.Get(ctx, fmt.Sprintf("/%d", i), fetch.HTML)
		}
		return err
	}(), fetch.CodeRateLimited)
	s.add("JSON that nests 100,000 levels deep", func() error {
		_, err := fetch.Get(ctx, s.client, fetch.Request{Source: "gleif", Endpoint: "gleif", Path: "/deep"}, decodeThing)
		return err
	}(), fetch.CodeParse)
}

// pause waits without outliving ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func TestRefusalsAreClientErrors(t *testing.T) {
	t.Parallel()
	client := fakenet.New(t).Client()
	_, err := client.Visit(t.Context(), "localhost")
	var e *fetch.Error
	if !errors.As(err, &e) || e.WarningCode() != fetch.CodeAddress {
		t.Errorf("Visit(localhost) = %v", err)
	}
}
