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
	ctx = withSource(ctx, "tls")
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
	x := exchange(ctx, "TLS "+host)
	done, err := c.wire.Turn(x, func() (func(), error) { return c.limits.acquire(ctx, "tls", host, policy.need()) })
	if err != nil {
		c.metrics.requestEnded(policy.Source, err)
		return Certificate{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(withConnect(ctx, policy.Connect), policy.Total)
	defer cancel()
	shown, err := c.wire.TLS(x, func() (Handshake, error) { return c.shake(ctx, host) })
	if err != nil {
		err = classify(err)
		c.metrics.requestEnded(policy.Source, err)
		return Certificate{}, err
	}
	c.metrics.requestEnded(policy.Source, nil)
	leaf := shown.Chain[0]
	certificate := Certificate{Issuer: leaf.Issuer.CommonName, NotAfter: leaf.NotAfter.UTC(), Version: shown.Version, Fault: shown.Fault}
	if len(leaf.Subject.Organization) > 0 {
		certificate.Organization = leaf.Subject.Organization[0]
	}
	c.certificates.put(key, cachedCertificate{certificate, c.cfg.Now().Add(policy.TTL)}, 1)
	return certificate, nil
}

type cachedCertificate struct {
	certificate Certificate
	expires     time.Time
}

// shake makes a handshake and verifies the chain.
func (c *Client) shake(ctx context.Context, host string) (Handshake, error) {
	raw, err := c.dialer.untrusted(ctx, "tcp", net.JoinHostPort(host, "443"))
	if err != nil {
		return Handshake{}, err
	}
	// Verification happens below, so that a bad chain can be reported. The connection is not read
	// from or written to.
	conn := tls.Client(raw, &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10})
	defer conn.Close()
	if err := conn.HandshakeContext(ctx); err != nil {
		return Handshake{}, fmt.Errorf("TLS handshake with %s: %w", host, err)
	}
	state := conn.ConnectionState()
	shown := Handshake{Version: state.Version, Chain: state.PeerCertificates}
	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	if _, err := shown.Chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: c.roots, Intermediates: intermediates,
		CurrentTime: c.cfg.Now()}); err != nil {
		shown.Fault = err.Error()
	}
	return shown, nil
}
