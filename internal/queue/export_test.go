package queue

import "context"

// Reclaim does what a sweep does first, without extending the server's own leases.
func (s *Server) Reclaim(ctx context.Context) error { return newSweeper(s).reclaim(ctx) }
