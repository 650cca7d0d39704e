package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"companyscore/internal/test/terminal"
)

func TestColoursAreForTerminals(t *testing.T) {
	tty, screen := terminal.Open(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !IsTerminal(tty) || Paint(tty, Red, "x") != "\x1b[31mx\x1b[0m" {
		t.Errorf("no colours on a terminal: %q", Paint(tty, Red, "x"))
	}
	if err := PrintList(tty, Table, companies()[:1], companyColumns[:2]); err != nil {
		t.Fatal(err)
	}
	if got := screen(2); !strings.Contains(got, "\x1b[01mNAME\x1b[0m") ||
		!strings.Contains(got, `Acme, "Inc."`+"\x1b[0m  \x1b[32mok\x1b[0m") {
		t.Errorf("the terminal shows %q", got)
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if got := Paint(tty, Red, "x"); got != "x" {
				t.Errorf("with %s=%s: %q", name, value, got)
			}
		})
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, w := range []io.Writer{null, new(bytes.Buffer)} {
		if IsTerminal(w) || Paint(w, Red, "x") != "x" {
			t.Errorf("%T is shown as a terminal", w)
		}
	}
	if err := PrintList(null, Table, companies(), companyColumns); err != nil {
		t.Error(err)
	}
}

func TestTerminalShowsNoControlCharactersOfOthers(t *testing.T) {
	tty, screen := terminal.Open(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	w := NewPrinted(tty)
	if !IsTerminal(w) || !Colours(w) {
		t.Error("it is no terminal")
	}
	// the euro sign comes in three writes
	for _, part := range []string{"a\x1b]0;title\a\r\x7f\u009b2J b \xe2", "\x82", "\xac \x9b\u202e\n"} {
		if n, err := io.WriteString(w, part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := PrintList(w, Table, companies(), companyColumns[:2]); err != nil {
		t.Fatal(err)
	}
	if err := PrintList(w, CSV, companies()[1:], companyColumns[:1]); err != nil {
		t.Fatal(err)
	}
	got := screen(6)
	for _, want := range []string{"a�]0;title����2J b € ��\r\n", "\x1b[01mNAME\x1b[0m", "\x1b[32mok\x1b[0m", "evil�[2J�x",
		"\"evil�[2J\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the terminal shows %q without %q", got, want)
		}
	}
}

func TestWorkingIsShownAfterASecond(t *testing.T) {
	tty, screen := terminal.Open(t)
	Working(tty, "quick")() // shows nothing
	answer := &Awaited{Writer: new(bytes.Buffer), Stop: Working(tty, "counting")}
	first := screen(0)
	if _, err := answer.Write([]byte("x")); err != nil || !strings.Contains(first, "counting, 1 s") {
		t.Errorf("the terminal shows %q, %v", first, err)
	}
	answer.Stop()
	Working(new(bytes.Buffer), "hidden")()
}
