//go:build !race

// The race detector has sync.Pool forget at random, so this is tested without it.

package server

import (
	"testing"
	"time"

	"companyscore/server/requestlog"
)

func TestHotAnswerAllocatesNothing(t *testing.T) {
	s, _ := hotServer(t)
	s.Requests = requestlog.Start(requestlog.Config{On: true, HotRows: 1000}, forgetting{}, quiet)
	defer s.Requests.Close(t.Context())
	ctx := request("/v1/score/example.com")
	now := time.Now()
	if n := testing.AllocsPerRun(2000, func() {
		ctx.Response.Reset()
		if !s.hot(ctx, now) {
			t.Fatal("not answered")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
