package clickhouse_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/table"
)

func TestAuditLogHasNewestFirst(t *testing.T) {
	t.Parallel()
	db := open(t)
	accounts := clickhouse.NewAccounts(db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := accounts.Put(t.Context(), account.Account{ID: "a", Name: "Acme", Plan: account.Free, CreatedAt: now}); err != nil {
		t.Fatal(err)
	}
	entry := table.AuditEntry{At: now, AccountID: "a", Operator: true, Session: "0123", Address: "2001:db8::1", Action: table.PlanChanged,
		Subject: "b", Detail: "free to scale"}
	earlier := entry
	earlier.At, earlier.Action = now.Add(-time.Second), table.SignIn
	for _, e := range []table.AuditEntry{entry, earlier} {
		if err := accounts.WriteAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	entry.AccountName, earlier.AccountName = "Acme", "Acme"
	for limit, want := range [][]table.AuditEntry{1: {entry}, 2: {entry, earlier}} {
		if limit == 0 {
			continue
		}
		got, err := accounts.Audit(t.Context(), limit)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("newest %d: %v\n%s", limit, err, diff)
		}
	}
}
