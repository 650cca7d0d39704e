package cmd

import (
	"bytes"
	"strings"
	"testing"

	"companyscore/internal/test/terminal"
)

func TestTerminalShowsScoresAsTheyCome(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	tty, screen := terminal.Open(t)
	released := make(chan struct{})
	url := waitingService(t, released)
	ended := make(chan int)
	var errs bytes.Buffer
	go func() {
		ended <- Run([]string{"score", "slow.com", "quick.com", "--key", "k", "--url", url}, nil, tty, &errs)
	}()
	text := screen(2)
	close(released)
	text += screen(1)
	if code := <-ended; code != exitDone {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	lines := strings.Split(text, "\r\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "DOMAIN     RATING") || !strings.HasPrefix(lines[1], "quick.com  SVC-3") ||
		!strings.HasPrefix(lines[2], "slow.com   SVC-3") || strings.Index(lines[0], "PREMIUM") != strings.Index(lines[2], "0.0  ") {
		t.Errorf("the terminal shows %q", text)
	}
}
