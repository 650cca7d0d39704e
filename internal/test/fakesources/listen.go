// Package fakesources runs fakes of all data sources on loopback for a few hundred invented
// companies: known servers, company sites with certificates, a registry and name servers. They
// are slow, and some of them fail. Equal seeds and clocks give equal answers. The signals that sources
// derive from them are in testdata, and with the answers in the recording of all fakes in
// scoring/source/recording/testdata.
package fakesources

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring/source/fetch"
)

// address is the public address of every host. No connection uses it.
const address = "93.184.215.14"

// servers are the listeners of the fakes.
type servers struct {
	endpoints, plain, secure *http.Server
	names                    []*dns.Server
	overrides                fetch.Overrides
	authority                *x509.Certificate
	key                      *ecdsa.PrivateKey
	now                      time.Time
	// organization returns the owner in the certificate of a host.
	organization func(host string) string
	// shaken handles a handshake without a request; an error refuses it.
	shaken func(host string) error

	mu           sync.Mutex
	certificates map[string]*tls.Certificate
	ended        sync.WaitGroup
}

// listen starts the servers. dir is the directory for files. Certificates are valid from five years
// before now to ten years after. known handles the requests of an
// endpoint, site those of all hosts, zone all DNS queries.
func listen(dir string, now time.Time, known func(endpoint string) http.Handler, site http.Handler, zone dns.Handler,
	organization func(string) string, shaken func(string) error) (*servers, error) {
	s := &servers{now: now, organization: organization, shaken: shaken, certificates: make(map[string]*tls.Certificate)}
	s.overrides.Endpoints = make(map[string]string)
	if err := s.authorize(dir); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	quiet := log.New(discard{}, "", 0)
	s.endpoints = &http.Server{Handler: mux, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	s.plain = &http.Server{Handler: site, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	s.secure = &http.Server{
		Handler: site, ErrorLog: quiet, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{GetConfigForClient: s.greet, GetCertificate: s.certificate, NextProtos: []string{"http/1.1"},
			MinVersion: tls.VersionTLS12},
	}
	at := make([]string, 3)
	for i, server := range []*http.Server{s.endpoints, s.plain, s.secure} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		at[i] = listener.Addr().String()
		serve := func() error { return server.Serve(listener) }
		if server.TLSConfig != nil {
			serve = func() error { return server.ServeTLS(listener, "", "") }
		}
		s.ended.Go(func() { _ = serve() }) // returns when the server is closed
	}
	for _, e := range fetch.Endpoints {
		mux.Handle("/"+e.Name+"/", http.StripPrefix("/"+e.Name, known(e.Name)))
		s.overrides.Endpoints[e.Name] = "http://" + at[0] + "/" + e.Name
	}
	s.overrides.HTTP, s.overrides.HTTPS = at[1], at[2]
	for range 2 {
		if err := s.listenNames(zone); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// listenNames starts a name server on a port that is free for UDP and TCP.
func (s *servers) listenNames(zone dns.Handler) error {
	var fault error
	for range 20 {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", packets.LocalAddr().String())
		if err != nil {
			fault = errors.Join(err, packets.Close())
			continue
		}
		s.overrides.Resolvers = append(s.overrides.Resolvers, packets.LocalAddr().String())
		for _, server := range []*dns.Server{{PacketConn: packets, Handler: zone}, {Listener: listener, Handler: zone}} {
			started := make(chan struct{})
			server.NotifyStartedFunc = func() { close(started) }
			s.ended.Go(func() { _ = server.ActivateAndServe() }) // returns when the server is closed
			<-started
			s.names = append(s.names, server)
		}
		return nil
	}
	return fault
}

// close stops all servers.
func (s *servers) close() error {
	var faults []error
	for _, server := range []*http.Server{s.endpoints, s.plain, s.secure} {
		if server != nil {
			faults = append(faults, server.Close())
		}
	}
	for _, server := range s.names {
		faults = append(faults, server.Shutdown())
	}
	s.ended.Wait()
	return errors.Join(faults...)
}

// authorize creates the CA of all hosts' certificates.
func (s *servers) authorize(dir string) (err error) {
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Fake Authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: s.now.AddDate(-5, 0, 0), NotAfter: s.now.AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &s.key.PublicKey, s.key)
	if err != nil {
		return err
	}
	if s.authority, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	s.overrides.CA = filepath.Join(dir, "authority.pem")
	return os.WriteFile(s.overrides.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

// greet calls shaken for handshakes without ALPN: HTTP clients send it, others do not.
func (s *servers) greet(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if len(hello.SupportedProtos) > 0 {
		return nil, nil
	}
	return nil, s.shaken(strings.ToLower(hello.ServerName))
}

func (s *servers) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.certificates[host]; made != nil {
		return made, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(s.certificates) + 2)), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: s.now.AddDate(-5, 0, 0), NotAfter: s.now.AddDate(10, 0, 0),
	}
	if owner := s.organization(host); owner != "" {
		template.Subject.Organization = []string{owner}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.authority, &s.key.PublicKey, s.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", host, err)
	}
	s.certificates[host] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.key}
	return s.certificates[host], nil
}
