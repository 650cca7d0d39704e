// Package terminal opens pseudo-terminals for tests. It is for Linux.
package terminal

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Open opens a pseudo-terminal that is closed with the test. screen returns what was written to it: as many lines, or with zero the text
// up to the next "s".
func Open(t *testing.T) (tty *os.File, screen func(lines int) string) {
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
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	shown := bufio.NewReader(control)
	return tty, func(lines int) string {
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
