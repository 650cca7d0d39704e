// Package fakenet is a fake internet on loopback for tests of sources: DNS, web sites with
// certificates, and known servers. Tests use it through the real client, whose connections cannot
// leave the machine.
package fakenet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring/source/fetch"
)

// Address is the public address of all hosts in the fake DNS.
const Address = "93.184.215.14"

// Network is a fake internet. Its methods are safe for concurrent use with requests.
type Network struct {
	t         testing.TB
	overrides fetch.Overrides
	authority *x509.Certificate
	key       *ecdsa.PrivateKey

	mu     sync.Mutex
	zone   map[string]func(q dns.Question, reply *dns.Msg) // by canonical name
	asked  []dns.Question
	sites  map[string]http.Handler
	owners map[string]string // organisation in the certificate, by host
}

// New starts a fake network that stops with the test.
func New(t testing.TB) *Network {
	t.Helper()
	network := &Network{
		t: t, zone: make(map[string]func(dns.Question, *dns.Msg)), sites: make(map[string]http.Handler), owners: make(map[string]string),
		overrides: fetch.Overrides{Endpoints: make(map[string]string), Scale: 1000, Slowness: 100},
	}
	network.startAuthority()
	network.startDNS()
	plain := httptest.NewServer(http.HandlerFunc(network.serveSite))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(network.serveSite))
	secure.TLS = &tls.Config{GetCertificate: network.certificate}
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	network.overrides.HTTP, network.overrides.HTTPS = plain.Listener.Addr().String(), secure.Listener.Addr().String()
	return network
}

// Overrides returns the overrides of its clients. A test may change it before it makes a client.
// Scale is 1,000 and Slowness 100: only a test that waits for a limit of time lowers it.
func (network *Network) Overrides() *fetch.Overrides { return &network.overrides }

// Client returns a client that uses the fake network.
func (network *Network) Client() *fetch.Client {
	network.t.Helper()
	return network.ClientWith(fetch.Config{})
}

// ClientWith returns a client with the configuration cfg that uses the fake network.
func (network *Network) ClientWith(cfg fetch.Config) *fetch.Client {
	network.t.Helper()
	overrides := network.overrides
	cfg.Overrides = &overrides
	if cfg.Contact == "" {
		cfg.Contact = "operator@example.com"
	}
	client, err := fetch.New(cfg)
	if err != nil {
		network.t.Fatal(err)
	}
	return client
}

// Endpoint makes a handler answer for a known server, such as "hn". It gets the paths of the real
// server.
func (network *Network) Endpoint(name string, handler http.Handler) {
	server := httptest.NewServer(handler)
	network.t.Cleanup(server.Close)
	network.overrides.Endpoints[name] = server.URL
}

// Site makes a handler answer for a host, over http and https, and gives the host a public
// address. organisation is the owner in its certificate, or "".
func (network *Network) Site(host, organisation string, handler http.Handler) {
	network.Records(host, host+". 300 IN A "+Address)
	network.mu.Lock()
	defer network.mu.Unlock()
	network.sites[host], network.owners[host] = handler, organisation
}

// Records sets the DNS records of a name, in zone file format. A name without records does not
// exist.
func (network *Network) Records(name string, records ...string) {
	network.t.Helper()
	var all []dns.RR
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			network.t.Fatalf("record %q: %v", text, err)
		}
		all = append(all, rr)
	}
	network.Answer(name, func(q dns.Question, reply *dns.Msg) {
		for _, rr := range all {
			if rr.Header().Rrtype == q.Qtype || rr.Header().Rrtype == dns.TypeCNAME {
				reply.Answer = append(reply.Answer, rr)
			}
		}
	})
}

// Answer sets the function that fills the DNS reply for a name. Its Rcode is success by default;
// -1 sends no reply.
func (network *Network) Answer(name string, answer func(q dns.Question, reply *dns.Msg)) {
	network.mu.Lock()
	defer network.mu.Unlock()
	network.zone[dns.CanonicalName(name)] = answer
}

// Asked returns the DNS questions so far, in order.
func (network *Network) Asked() []dns.Question {
	network.mu.Lock()
	defer network.mu.Unlock()
	return append([]dns.Question(nil), network.asked...)
}

func (network *Network) serveSite(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	network.mu.Lock()
	handler := network.sites[strings.ToLower(host)]
	network.mu.Unlock()
	if handler == nil {
		http.Error(w, "the fake network has no such site", http.StatusNotFound)
		return
	}
	handler.ServeHTTP(w, r)
}

// listenDNS listens on a port that is free for UDP and TCP.
func (network *Network) listenDNS() (net.PacketConn, net.Listener) {
	var fault error
	for range 20 {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			network.t.Fatal(err)
		}
		listener, err := net.Listen("tcp", packets.LocalAddr().String())
		if err == nil {
			return packets, listener
		}
		packets.Close()
		fault = err
	}
	network.t.Fatal(fault)
	return nil, nil
}

func (network *Network) startDNS() {
	packets, listener := network.listenDNS()
	network.overrides.Resolvers = []string{packets.LocalAddr().String()}
	for _, server := range []*dns.Server{{PacketConn: packets}, {Listener: listener}} {
		server.Handler = dns.HandlerFunc(network.serveDNS)
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.ActivateAndServe() // returns when the server is shut down
		}()
		<-started
		network.t.Cleanup(func() { _ = server.Shutdown(); <-ended })
	}
}

func (network *Network) serveDNS(w dns.ResponseWriter, query *dns.Msg) {
	if len(query.Question) != 1 {
		return
	}
	q := query.Question[0]
	network.mu.Lock()
	answer := network.zone[dns.CanonicalName(q.Name)]
	network.asked = append(network.asked, q)
	network.mu.Unlock()
	reply := new(dns.Msg)
	reply.SetReply(query)
	if answer == nil {
		reply.Rcode = dns.RcodeNameError
	} else if answer(q, reply); reply.Rcode < 0 {
		return
	}
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		reply.Truncate(dns.MinMsgSize)
	}
	_ = w.WriteMsg(reply) // the client may have left
}

func (network *Network) startAuthority() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		network.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Fake Authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		network.t.Fatal(err)
	}
	if network.authority, err = x509.ParseCertificate(der); err != nil {
		network.t.Fatal(err)
	}
	network.key = key
	network.overrides.CA = filepath.Join(network.t.TempDir(), "authority.pem")
	if err := os.WriteFile(network.overrides.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		network.t.Fatal(err)
	}
}

// certificate issues the certificate of a host, valid for thirty minutes.
func (network *Network) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	network.mu.Lock()
	owner := network.owners[host]
	network.mu.Unlock()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(30 * time.Minute),
	}
	if owner != "" {
		template.Subject.Organization = []string{owner}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, network.authority, &network.key.PublicKey, network.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: network.key}, err
}
