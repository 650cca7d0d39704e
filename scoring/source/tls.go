package source

import (
	"context"

	"companyscore/scoring/source/fetch"
)

// TLS is the source of the certificate that a host shows.
type TLS struct{ client *fetch.Client }

// NewTLS returns the source.
func NewTLS(c *fetch.Client) *TLS { return &TLS{client: c} }

// Name is the key of the source.
func (*TLS) Name() string { return "tls" }

// Plan says when the source runs.
func (*TLS) Plan() Plan { return Plan{Deadline: fetch.PolicyOf("tls").Deadline} }

// Fetch looks at the certificate of the host. One that names the organisation
// counts when a known authority vouches for it: only then did anybody check the name.
func (t *TLS) Fetch(ctx context.Context, req Request) (Result, error) {
	certificate, err := t.client.Handshake(ctx, req.Domain)
	if err != nil {
		return Result{}, err
	}
	s := says{source: "tls"}
	points := 0.0
	if certificate.Organization != "" && certificate.Fault == "" {
		points = 1
	}
	s.part("commercial_infrastructure", points)
	s.result.Values = map[string]float64{"certificate_days_left": days(certificate.NotAfter.Sub(req.Now))}
	return s.result, nil
}
