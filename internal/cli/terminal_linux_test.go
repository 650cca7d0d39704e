package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal. screen returns what was written to it: as many lines, or with zero the text up to the next "s".
func openTerminal(t *testing.T) (terminal *os.File, screen func(lines int) string) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err) // a container without terminals
	}
	t.Cleanup(func() { control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	shown := bufio.NewReader(control)
	return terminal, func(lines int) string {
		if lines == 0 {
			text, err := shown.ReadString('s')
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		var b strings.Builder
		for range lines {
			line, err := shown.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(line)
		}
		return b.String()
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	terminal, screen := openTerminal(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !IsTerminal(terminal) || Paint(terminal, Red, "x") != "\x1b[31mx\x1b[0m" {
		t.Errorf("no colours on a terminal: %q", Paint(terminal, Red, "x"))
	}
	if err := PrintList(terminal, Table, companies()[:1], companyColumns[:2]); err != nil {
		t.Fatal(err)
	}
	if got := screen(2); !strings.Contains(got, "\x1b[01mNAME\x1b[0m") ||
		!strings.Contains(got, `Acme, "Inc."`+"\x1b[0m  \x1b[32mok\x1b[0m") {
		t.Errorf("the terminal shows %q", got)
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if got := Paint(terminal, Red, "x"); got != "x" {
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
	terminal, screen := openTerminal(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	w := NewPrinted(terminal)
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
	terminal, screen := openTerminal(t)
	Working(terminal, "quick")() // shows nothing
	answer := &Awaited{Writer: new(bytes.Buffer), Stop: Working(terminal, "counting")}
	first := screen(0)
	if _, err := answer.Write([]byte("x")); err != nil || !strings.Contains(first, "counting, 1 s") {
		t.Errorf("the terminal shows %q, %v", first, err)
	}
	answer.Stop()
	Working(new(bytes.Buffer), "hidden")()
}
