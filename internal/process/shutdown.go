package process

import (
	"context"
	"time"
)

// shutdownTimeout bounds an orderly shutdown. Docker kills after 10 s by default.
const shutdownTimeout = 9 * time.Second

// ShutdownContext returns a context for an orderly shutdown that begins now. It has the values of
// ctx and a deadline of its own, since ctx has usually ended.
func ShutdownContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
}
