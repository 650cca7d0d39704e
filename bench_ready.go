package main

import (
	"strings"
	"sync"
)

// readyLine reads the line that a server prints when it answers.
type readyLine struct {
	mu   sync.Mutex
	text strings.Builder
}

// readyMaxBytes bounds what is kept of it.
const readyMaxBytes = 4 << 10

func (r *readyLine) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text.Len() < readyMaxBytes {
		r.text.Write(b[:min(len(b), readyMaxBytes-r.text.Len())])
	}
	return len(b), nil
}

// address is host:port, empty as long as it was not said.
func (r *readyLine) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, rest, found := strings.Cut(r.text.String(), "ready http://")
	line, _, ended := strings.Cut(rest, "\n")
	if !found || !ended {
		return ""
	}
	address, _, _ := strings.Cut(line, " ")
	return address
}
