package roster

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestBlameFindsTheCulprit has one analyst end the engine again and again beside others, who change.
func TestBlameFindsTheCulprit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "refused.json")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	blame := func(names ...string) []string {
		t.Helper()
		statements := map[string]string{}
		for _, name := range names {
			statements[name] = "SELECT 1"
		}
		now = now.Add(time.Hour)
		blamed, err := Blame(path, statements, "it crashed", now)
		if err != nil {
			t.Fatal(err)
		}
		return blamed
	}
	refused := func(name string) (until time.Time, refused bool) {
		all, err := ReadRefusals(path)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(r Refusal) bool { return r.Name == name })
		if i < 0 {
			return time.Time{}, false
		}
		return all[i].InForce(now)
	}
	for i, c := range []struct{ ran, blamed []string }{
		{[]string{"evil", "ann", "bob"}, []string{"ann", "bob", "evil"}}, // none of them ended it alone before
		{[]string{"evil"}, []string{"evil"}},
		{[]string{"evil", "ann"}, []string{"evil"}},
	} {
		if got := blame(c.ran...); !slices.Equal(got, c.blamed) {
			t.Errorf("end %d: %v, want %v", i+1, got, c.blamed)
		}
		if until, ok := refused("evil"); !ok || until.IsZero() != (i == 2) {
			t.Errorf("end %d: refused %t until %s", i+1, ok, until)
		}
	}
	if _, ok := refused("ann"); ok {
		t.Error("ann is refused for longer than an hour")
	}
	now = now.Add(30 * 24 * time.Hour)
	if got := blame("ann"); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("%v", got)
	}
	all, err := ReadRefusals(path)
	if err != nil || len(all) != 2 { // bob's is forgotten, evil's lasts until an operator allows him
		t.Errorf("%v %v", all, err)
	}
	if i := slices.IndexFunc(all, func(r Refusal) bool { return r.Name == "ann" }); i < 0 || all[i].Ends != 1 {
		t.Errorf("an end of a month ago counts: %v", all)
	}
	if err := Allow(path, "evil"); err != nil {
		t.Error(err)
	}
	if err := Allow(path, "evil"); !errors.Is(err, ErrNotRefused) {
		t.Errorf("allowed twice: %v", err)
	}
	if _, ok := refused("evil"); ok {
		t.Error("evil is still refused")
	}
}
