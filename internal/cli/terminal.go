package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := Control(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colours reports whether w shows colours: it is a terminal, and NO_COLOR is not set.
func Colours(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Tone is how a terminal shows a text.
type Tone string

// The tones, by their ANSI codes. The codes have the same length, so that tables stay aligned.
const (
	Plain Tone = ""
	Bold  Tone = "01"
	Red   Tone = "31"
	Green Tone = "32"
	Amber Tone = "33"
)

// Toned is a text with a tone. It is the plain text wherever there are no colours.
type Toned struct {
	Text string
	Tone Tone
}

func (t Toned) paint(colours bool) string {
	if !colours {
		return t.Text
	}
	return "\x1b[" + string(cmp.Or(t.Tone, "00")) + "m" + t.Text + "\x1b[0m"
}

// Paint returns a text of this program in a tone if w shows colours, to be written to [Control].
func Paint(w io.Writer, tone Tone, text string) string { return Toned{text, tone}.paint(Colours(w)) }

// Working shows on a terminal w what a command waits for and since when, beginning after a second. stop ends and clears it; it may be
// called more than once, and concurrently.
func Working(w io.Writer, what string) (stop func()) {
	if !IsTerminal(w) {
		return func() {}
	}
	w = Control(w)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for shown := false; ; shown = true {
			select {
			case <-tick.C:
				fmt.Fprintf(w, "\r\033[K%s, %d s", what, int(time.Since(began).Seconds()))
			case <-end:
				if shown {
					fmt.Fprint(w, "\r\033[K")
				}
				return
			}
		}
	}()
	once := sync.OnceFunc(func() { close(end); <-ended })
	return once
}

// Awaited is a writer that ends Working with the first byte.
type Awaited struct {
	io.Writer
	// Stop is what Working returned.
	Stop func()
	// Written is set by the first byte.
	Written bool
}

// Write implements io.Writer.
func (a *Awaited) Write(p []byte) (int, error) {
	a.Stop()
	a.Written = a.Written || len(p) > 0
	return a.Writer.Write(p)
}
