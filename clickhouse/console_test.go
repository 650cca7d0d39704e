package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/scoring"
)

func TestCompaniesAreFoundByPrefix(t *testing.T) {
	t.Parallel()
	db := open(t)
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { _ = scores.Close(t.Context()) })
	for _, c := range []struct{ domain, name string }{
		{"acme.com", "Acme"}, {"acme.com", "Acme"}, {"acmatic.io", "Matic"}, {"zeta.com", "ACME of Zürich"}, {"other.com", "Other"}, {"per%cent.com", "100% Real"},
	} {
		rec, err := scoring.Score(scoring.Input{Domain: c.domain, Now: noon, Identity: scoring.Identity{Name: c.name}})
		if err != nil {
			t.Fatal(err)
		}
		if err := scores.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		prefix string
		limit  int
		want   []string
	}{
		{"acm", 10, []string{"acmatic.io", "acme.com", "zeta.com"}},
		{"acm", 2, []string{"acmatic.io", "acme.com"}},
		{"acme of zür", 10, []string{"zeta.com"}},
		{"100%", 10, []string{"per%cent.com"}},
		{"%", 10, nil},
		{"nobody", 10, nil},
	} {
		found, err := scores.SearchCompanies(t.Context(), c.prefix, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var domains []string
		for _, rec := range found {
			domains = append(domains, rec.Domain)
		}
		if !slices.Equal(domains, c.want) {
			t.Errorf("search for %q finds %v, want %v", c.prefix, domains, c.want)
		}
	}
}

func TestAuditLogHasNewestFirst(t *testing.T) {
	t.Parallel()
	db := open(t)
	accounts := clickhouse.NewAccounts(db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := accounts.Put(t.Context(), account.Account{ID: "a", Name: "Acme", Tier: account.Free, CreatedAt: now}); err != nil {
		t.Fatal(err)
	}
	entry := account.AuditEntry{At: now, AccountID: "a", Operator: true, Session: "0123", Address: "2001:db8::1", Action: account.TierChanged, Subject: "b", Detail: "free to scale"}
	earlier := entry
	earlier.At, earlier.Action = now.Add(-time.Second), account.SignIn
	for _, e := range []account.AuditEntry{entry, earlier} {
		if err := accounts.WriteAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	entry.AccountName, earlier.AccountName = "Acme", "Acme"
	for limit, want := range [][]account.AuditEntry{1: {entry}, 2: {entry, earlier}} {
		if limit == 0 {
			continue
		}
		got, err := accounts.Audit(t.Context(), limit)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("newest %d: %v\n%s", limit, err, diff)
		}
	}
}

func TestRequestsAreListedByKind(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewRequests(db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	row := func(accountID, key string, status uint16, ago time.Duration, number uint64) account.Request {
		return account.Request{RequestKind: account.RequestKind{AccountID: accountID, KeyID: key, Route: "/v1/score/*", Status: status, AnsweredBy: "l1"}, ID: "id", At: now.Add(-ago), Number: number}
	}
	newest, failed, other, old := row("a", "k1", 200, 0, 1), row("a", "k1", 404, time.Minute, 2), row("a", "k2", 200, 2*time.Minute, 3), row("a", "k1", 200, 2*time.Hour, 4)
	for range 2 {
		if err := store.WriteRequests(t.Context(), []account.Request{old, other, failed, newest, row("b", "k3", 200, 0, 5)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		key    string
		status uint16
		limit  int
		want   []account.Request
	}{
		{"", 0, 10, []account.Request{newest, failed, other}}, {"", 0, 2, []account.Request{newest, failed}},
		{"k1", 0, 10, []account.Request{newest, failed}}, {"", 404, 10, []account.Request{failed}}, {"k3", 0, 10, []account.Request{}},
	} {
		got, err := store.ListRequests(t.Context(), "a", now.Add(-time.Hour), c.key, c.status, c.limit)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("key %q, status %d, limit %d: %v\n%s", c.key, c.status, c.limit, err, diff)
		}
	}
}

func TestSourceHealthCountsNewestRuns(t *testing.T) {
	t.Parallel()
	db := open(t)
	tr := traces(t, db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i, domain := range []string{"old.com", "a.com", "b.com"} {
		at := now.Add(time.Duration(i-3) * time.Minute)
		if err := tr.WriteTrace(t.Context(), trace(domain, at, 3)); err != nil {
			t.Fatal(err)
		}
		run := scoring.Run{ID: domain, Domain: domain, State: scoring.RunSucceeded, Lane: scoring.LaneAPI, CreatedAt: at, StartedAt: at, FinishedAt: at, ScoredAt: at, Attempts: 1}
		if err := db.WriteRuns(t.Context(), []scoring.Run{run}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.SourceHealth(t.Context(), now.Add(-time.Hour), 2)
	want := []scoring.SourceHealth{
		{Source: "ct", Asked: 2, Answered: 0, Mean: 20 * time.Second, Failures: []string{"timeout"}},
		{Source: "jobs", Asked: 2, Answered: 2, Mean: 1234 * time.Millisecond, Failures: []string{}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("health of the newest two runs: %v\n%s", err, diff)
	}
}
