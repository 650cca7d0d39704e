// Package lab is a small internet on loopback for tests of sources: DNS, web
// sites with certificates, and known servers, all of them asked by the real
// client. Nothing it serves can be reached by other means, and nothing that is
// asked through its client can leave the machine.
package lab

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

// Address is the public address that hosts of the lab have in its DNS.
const Address = "93.184.215.14"

// Lab is a small internet. Its methods may be called while it is asked.
type Lab struct {
	t         testing.TB
	rehearsal fetch.Rehearsal
	authority *x509.Certificate
	key       *ecdsa.PrivateKey

	mu     sync.Mutex
	zone   map[string]func(q dns.Question, reply *dns.Msg) // by name in canonical form
	asked  []dns.Question
	sites  map[string]http.Handler
	owners map[string]string // organisation in the certificate, by host
}

// New starts a lab, which ends with the test.
func New(t testing.TB) *Lab {
	t.Helper()
	l := &Lab{
		t: t, zone: make(map[string]func(dns.Question, *dns.Msg)), sites: make(map[string]http.Handler), owners: make(map[string]string),
		rehearsal: fetch.Rehearsal{Endpoints: make(map[string]string), Scale: 1000},
	}
	l.startAuthority()
	l.startDNS()
	plain := httptest.NewServer(http.HandlerFunc(l.serveSite))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(l.serveSite))
	secure.TLS = &tls.Config{GetCertificate: l.certificate}
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	l.rehearsal.HTTP, l.rehearsal.HTTPS = plain.Listener.Addr().String(), secure.Listener.Addr().String()
	return l
}

// Rehearsal is what makes a client ask the lab. It may be changed before the
// first client is made: limits, for one, are a thousand times those in earnest.
func (l *Lab) Rehearsal() *fetch.Rehearsal { return &l.rehearsal }

// Client returns a client that asks the lab.
func (l *Lab) Client() *fetch.Client {
	l.t.Helper()
	return l.ClientWith(fetch.Config{})
}

// ClientWith returns a client that asks the lab and is otherwise as cfg says.
func (l *Lab) ClientWith(cfg fetch.Config) *fetch.Client {
	l.t.Helper()
	rehearsal := l.rehearsal
	cfg.Rehearsal = &rehearsal
	if cfg.Contact == "" {
		cfg.Contact = "operator@example.com"
	}
	client, err := fetch.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

// Endpoint has a handler answer for a known server, such as "hn". Paths reach it
// as they would reach the real one.
func (l *Lab) Endpoint(name string, handler http.Handler) {
	server := httptest.NewServer(handler)
	l.t.Cleanup(server.Close)
	l.rehearsal.Endpoints[name] = server.URL
}

// Site has a handler answer for a host, over http and https, and gives the host
// a public address. The organisation stands in its certificate unless it is empty.
func (l *Lab) Site(host, organisation string, handler http.Handler) {
	l.Records(host, host+". 300 IN A "+Address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sites[host], l.owners[host] = handler, organisation
}

// Records has the DNS answer for a name with records in the form of a zone file,
// those of the type that is asked for. A name without any does not exist.
func (l *Lab) Records(name string, records ...string) {
	l.t.Helper()
	var all []dns.RR
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			l.t.Fatalf("record %q: %v", text, err)
		}
		all = append(all, rr)
	}
	l.Answer(name, func(q dns.Question, reply *dns.Msg) {
		for _, rr := range all {
			if rr.Header().Rrtype == q.Qtype || rr.Header().Rrtype == dns.TypeCNAME {
				reply.Answer = append(reply.Answer, rr)
			}
		}
	})
}

// Answer has a function answer for a name: it fills the reply, whose Rcode is
// success. An Rcode of -1 is no answer at all.
func (l *Lab) Answer(name string, answer func(q dns.Question, reply *dns.Msg)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.zone[dns.CanonicalName(name)] = answer
}

// Asked returns the questions the DNS was asked, in order.
func (l *Lab) Asked() []dns.Question {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]dns.Question(nil), l.asked...)
}

func (l *Lab) serveSite(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	l.mu.Lock()
	handler := l.sites[strings.ToLower(host)]
	l.mu.Unlock()
	if handler == nil {
		http.Error(w, "the lab has no such site", http.StatusNotFound)
		return
	}
	handler.ServeHTTP(w, r)
}

// listenDNS finds a port that is free for UDP as well as TCP.
func (l *Lab) listenDNS() (net.PacketConn, net.Listener) {
	var fault error
	for range 20 {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			l.t.Fatal(err)
		}
		listener, err := net.Listen("tcp", packets.LocalAddr().String())
		if err == nil {
			return packets, listener
		}
		packets.Close()
		fault = err
	}
	l.t.Fatal(fault)
	return nil, nil
}

func (l *Lab) startDNS() {
	packets, listener := l.listenDNS()
	l.rehearsal.Resolvers = []string{packets.LocalAddr().String()}
	for _, server := range []*dns.Server{{PacketConn: packets}, {Listener: listener}} {
		server.Handler = dns.HandlerFunc(l.serveDNS)
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.ActivateAndServe() // its error is that it was shut down
		}()
		<-started
		l.t.Cleanup(func() { _ = server.Shutdown(); <-ended })
	}
}

func (l *Lab) serveDNS(w dns.ResponseWriter, query *dns.Msg) {
	if len(query.Question) != 1 {
		return
	}
	q := query.Question[0]
	l.mu.Lock()
	answer := l.zone[dns.CanonicalName(q.Name)]
	l.asked = append(l.asked, q)
	l.mu.Unlock()
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
	_ = w.WriteMsg(reply) // who asked may have gone
}

func (l *Lab) startAuthority() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Lab Authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		l.t.Fatal(err)
	}
	if l.authority, err = x509.ParseCertificate(der); err != nil {
		l.t.Fatal(err)
	}
	l.key = key
	l.rehearsal.CA = filepath.Join(l.t.TempDir(), "authority.pem")
	if err := os.WriteFile(l.rehearsal.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// certificate issues the certificate of a host, valid for thirty minutes.
func (l *Lab) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	l.mu.Lock()
	owner := l.owners[host]
	l.mu.Unlock()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(30 * time.Minute),
	}
	if owner != "" {
		template.Subject.Organization = []string{owner}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, l.authority, &l.key.PublicKey, l.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: l.key}, err
}
