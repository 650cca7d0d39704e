package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/internal/account"
)

func TestBreakersCountTheirWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	acct := account.Account{ID: "acct", Plan: account.Starter}
	for i, call := range []struct {
		key string
		ago time.Duration
	}{{"k2", 25 * time.Hour}, {"k2", 61 * time.Minute}, {"k1", 59 * time.Minute}, {"k1", 0}} {
		w.mustAdmit(t, AdmitRequest{Account: acct, KeyID: call.key, Domain: string(rune('a'+i)) + ".com", Now: noon.Add(-call.ago)})
	}
	limit := int64(200)
	want := BreakerUse{Keys: map[string]int64{"k1": 2}, KeyLimit: 200, KeyWindow: time.Hour, Account: 3, AccountLimit: &limit,
		AccountWindow: 24 * time.Hour}
	got, err := w.Breakers(t.Context(), acct, []string{"k1", "k2", "k3"}, noon)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("breakers: %v\n%s", err, diff)
	}
	unmetered, err := w.Breakers(t.Context(), account.Account{ID: "other", Plan: account.Enterprise}, nil, noon)
	if err != nil || unmetered.AccountLimit != nil || unmetered.Account != 0 {
		t.Errorf("breakers of an unmetered account: %+v, %v", unmetered, err)
	}
}
