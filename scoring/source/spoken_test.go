package source

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"companyscore/scoring"
)

// instant is the time of the tests' runs.
var instant = time.Date(2026, time.March, 10, 12, 0, 0, 0, time.UTC)

// spoken formats the result of each signal: its value, "absent" or the reason why it is missing,
// and "+" and the share for a combined one.
func spoken(r Result) map[string]string {
	said := make(map[string]string)
	for _, o := range r.Observations {
		switch o.State {
		case scoring.StateOK:
			said[o.Signal] = fmt.Sprint(math.Round(o.Raw*10000) / 10000)
		case scoring.StateAbsent:
			said[o.Signal] = "absent"
		default:
			said[o.Signal] = string(o.Reason)
		}
	}
	for _, p := range r.Parts {
		said[p.Signal] = fmt.Sprintf("+%g%s%s", p.Value, strings.Join(p.Names, ","), p.Missing)
	}
	return said
}

// wantSpoken compares a result with want, written as "signal value, signal value".
func wantSpoken(t *testing.T, got Result, want string) {
	t.Helper()
	said := spoken(got)
	expected := make(map[string]string)
	for pair := range strings.SplitSeq(want, ", ") {
		signal, value, _ := strings.Cut(pair, " ")
		expected[signal] = value
	}
	for signal, value := range expected {
		if said[signal] != value {
			t.Errorf("%s: got %q, want %q", signal, said[signal], value)
		}
	}
	for signal, value := range said {
		if _, ok := expected[signal]; !ok {
			t.Errorf("%s: got %q, want nothing said", signal, value)
		}
	}
	wantValid(t, got)
}

// wantValid checks what is true of every result.
func wantValid(t *testing.T, got Result) {
	t.Helper()
	for _, o := range got.Observations {
		if _, ok := scoring.Lookup(o.Signal); !ok || o.Source == "" {
			t.Errorf("an observation of %q by %q", o.Signal, o.Source)
		}
		if math.IsNaN(o.Raw) || math.IsInf(o.Raw, 0) {
			t.Errorf("%s is %v", o.Signal, o.Raw)
		}
	}
	for _, p := range got.Parts {
		if _, ok := scoring.Lookup(p.Signal); !ok || p.Source == "" || math.IsNaN(p.Value) || p.Value < 0 {
			t.Errorf("a part %+v", p)
		}
	}
}
