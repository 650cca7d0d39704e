//go:build !race

// The race detector has sync.Pool forget at random, so this is tested without it.

package server

import "testing"

func TestHotAnswerAllocatesNothing(t *testing.T) {
	s, _ := hotServer(t)
	ctx := request("/v1/score/example.com")
	if n := testing.AllocsPerRun(2000, func() {
		ctx.Response.Reset()
		if !s.hot(ctx) {
			t.Fatal("not answered")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
