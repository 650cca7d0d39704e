package source

import (
	"context"

	"companyscore/scoring/source/fetch"
)

// TLS is the source of the certificate that a host shows.
type TLS struct{ live }

// NewTLS returns the source.
func NewTLS(c *fetch.Client) *TLS { return &TLS{newLive(c, "tls")} }

// Fetch reads the certificate of the host. An organisation in it counts only if the chain is
// trusted: otherwise no authority verified the name.
func (t *TLS) Fetch(ctx context.Context, req Request) (Result, error) {
	certificate, err := t.client.Handshake(ctx, req.Domain)
	if err != nil {
		return Result{}, err
	}
	s := builder{source: "tls"}
	points := 0.0
	if certificate.Organization != "" && certificate.Fault == "" {
		points = 1
	}
	s.part("commercial_infrastructure", points)
	s.result.Values = map[string]float64{"certificate_days_left": days(certificate.NotAfter.Sub(req.Now))}
	return s.result, nil
}
