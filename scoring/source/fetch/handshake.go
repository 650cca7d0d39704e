package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"
)

func (c *Client) handshake(ctx context.Context, host string) (Certificate, error) {
	policy := c.policy("tls")
	host, err := c.dialer.guard.host(host)
	if err != nil {
		return Certificate{}, &Error{Code: CodeAddress, Err: err}
	}
	key := "tls " + host
	if cached, ok := c.certificates.get(key); ok && c.cfg.Now().Before(cached.expires) {
		c.metrics.cacheHits.WithLabelValues(policy.Source).Inc()
		return cached.certificate, nil
	}
	done, err := c.limits.acquire(ctx, "tls", host, policy.need())
	if err != nil {
		c.metrics.requestEnded(policy.Source, err)
		return Certificate{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(withConnect(ctx, policy.Connect), policy.Total)
	defer cancel()
	certificate, err := c.readCertificate(ctx, host)
	c.metrics.requestEnded(policy.Source, err)
	if err == nil {
		c.certificates.put(key, cachedCertificate{certificate, c.cfg.Now().Add(policy.TTL)}, 1)
	}
	return certificate, err
}

type cachedCertificate struct {
	certificate Certificate
	expires     time.Time
}

func (c *Client) readCertificate(ctx context.Context, host string) (Certificate, error) {
	raw, err := c.dialer.untrusted(ctx, "tcp", net.JoinHostPort(host, "443"))
	if err != nil {
		return Certificate{}, classify(err)
	}
	// Verification happens below, so that a bad chain can be reported. The connection is not read
	// from or written to.
	conn := tls.Client(raw, &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10})
	defer conn.Close()
	if err := conn.HandshakeContext(ctx); err != nil {
		return Certificate{}, classify(fmt.Errorf("TLS handshake with %s: %w", host, err))
	}
	state := conn.ConnectionState()
	leaf := state.PeerCertificates[0]
	certificate := Certificate{Issuer: leaf.Issuer.CommonName, NotAfter: leaf.NotAfter.UTC(), Version: state.Version}
	if len(leaf.Subject.Organization) > 0 {
		certificate.Organization = leaf.Subject.Organization[0]
	}
	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: c.roots, Intermediates: intermediates,
		CurrentTime: c.cfg.Now()}); err != nil {
		certificate.Fault = err.Error()
	}
	return certificate, nil
}
