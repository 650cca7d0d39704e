// Package goroutines finds goroutines that outlive the code that has started them.
package goroutines

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"companyscore/internal/test/wait"
)

// Own is a text in the stacks of goroutines that run code of this module.
const Own = "companyscore/"

// MustEnd calls f and waits until all goroutines have ended that f has started, directly or not, and whose stacks contain a text. An empty
// text selects all. After [wait.Max] it fails the test with their stacks.
func MustEnd(t *testing.T, text string, f func(ctx context.Context)) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), f) // goroutines inherit the label
	var left []string
	t.Cleanup(func() {
		if len(left) > 0 {
			t.Logf("%d groups of goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
	wait.Until(t, "all goroutines have ended", func() bool {
		left = labelled(t, t.Name(), text)
		return len(left) == 0
	})
}

// labelled returns the stacks of the goroutines with a label that contain a text.
func labelled(t *testing.T, label, text string) (stacks []string) {
	t.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf(`"test":%q`, label)) && strings.Contains(stack, text) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
