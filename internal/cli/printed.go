package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text of somebody else without control characters, which could change what a terminal shows.
func Printable(text string) string { return strings.Map(printable, text) }

func printable(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
		return unicode.ReplacementChar
	}
	return r
}

// Printed is a writer for a terminal. It replaces control characters as [Printable] does, but for newlines and tabs. What this program
// itself does with a terminal goes to [Control]. It is safe for concurrent use.
type Printed struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // begin of a character whose other bytes come with the next write
}

// NewPrinted returns a writer that writes to w.
func NewPrinted(w io.Writer) *Printed { return &Printed{to: w} }

// Write implements io.Writer.
func (p *Printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(p.rest, text...)
	whole := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if begin := len(all) - i; utf8.RuneStart(all[begin]) {
			if !utf8.FullRune(all[begin:]) {
				whole = begin
			}
			break
		}
	}
	_, err := p.to.Write(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r)
	}, all[:whole]))
	p.rest = bytes.Clone(all[whole:])
	return len(text), err
}

// Control returns the writer to which this program writes colours and moves of the cursor on w.
func Control(w io.Writer) io.Writer {
	if p, ok := w.(*Printed); ok {
		return p.to
	}
	return w
}
