package embedded_test

import (
	"errors"
	"net"
	"testing"

	"companyscore/clickhouse/embedded"
)

func TestFailedStartClosesListener(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := embedded.Run(t.Context(), embedded.Config{Listener: ln}); err == nil {
		t.Error("an engine without a configuration starts")
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open after a failed start: %v", err)
	}
}
