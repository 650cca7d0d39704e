package queue

import (
	"context"

	"companyscore/scoring"
)

// Reclaim does what a sweep does, without extending the server's own leases.
func (s *Server) Reclaim(ctx context.Context) error { return s.reclaim(ctx) }

// Claim begins runs without a handler.
func (s *Server) Claim(ctx context.Context, most int) ([]scoring.Run, error) {
	return s.claim(ctx, "test", most, s.cfg.Weights)
}

// StartFor starts runs of an account and returns their ids.
func (q *Queue) StartFor(ctx context.Context, lane scoring.Lane, owner string, domains ...string) ([]string, error) {
	var args []any
	for _, domain := range domains {
		args = append(args, domain, NewRunID())
	}
	return q.start(ctx, lane, owner, args...)
}
