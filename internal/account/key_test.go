package account

import (
	"strings"
	"testing"
	"time"
)

func TestNewKeyParses(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Live, Test} {
		key, raw := NewKey("a", "ci", mode, time.Unix(0, 0))
		got, hash, err := ParseKey(raw)
		if err != nil || got != mode || hash != key.Hash {
			t.Errorf("ParseKey of a new %s key = %s, same hash %v, %v", mode, got, hash == key.Hash, err)
		}
		if !strings.HasPrefix(raw, "svc_"+string(mode)+"_") || !strings.HasPrefix(raw, key.Prefix) || len(key.Prefix) > 16 {
			t.Errorf("new %s key begins %q and shows %q", mode, raw[:9], key.Prefix)
		}
	}
}

func TestParseKeyRefusesEveryMistypedCharacter(t *testing.T) {
	t.Parallel()
	_, raw := NewKey("a", "", Live, time.Unix(0, 0))
	for i := range raw {
		for _, c := range []byte("0aZ_") {
			if raw[i] == c {
				continue
			}
			typo := raw[:i] + string(c) + raw[i+1:]
			if _, _, err := ParseKey(typo); err != ErrMalformed {
				t.Errorf("ParseKey with %q at %d = %v, want ErrMalformed", c, i, err)
			}
		}
	}
}

func TestNewKeysDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		_, raw := NewKey("a", "", Live, time.Unix(0, 0))
		if seen[raw] {
			t.Fatal("the same key came twice")
		}
		seen[raw] = true
	}
}

func FuzzParseKey(f *testing.F) {
	_, raw := NewKey("a", "", Test, time.Unix(0, 0))
	f.Add(raw)
	f.Add("svc_live_")
	f.Add("")
	f.Fuzz(func(t *testing.T, raw string) {
		mode, _, err := ParseKey(raw)
		if err == nil && !strings.HasPrefix(raw, "svc_"+string(mode)+"_") {
			t.Fatalf("ParseKey(%q) says %s", raw, mode)
		}
	})
}
