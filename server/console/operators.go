package console

import (
	"context"
	"slices"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/scoring"
)

// OperatorStore has what the pages of operators read and write.
type OperatorStore interface {
	Account(ctx context.Context, id string) (account.Account, error)
	List(ctx context.Context) ([]account.Account, error)
	Put(ctx context.Context, accounts ...account.Account) error
	// Keys returns the keys of an account, oldest first; an empty id selects all accounts.
	Keys(ctx context.Context, accountID string) ([]account.Key, error)
	Runs(ctx context.Context, limit int) ([]scoring.Run, error)
	// Audit returns the newest entries, up to limit.
	Audit(ctx context.Context, limit int) ([]table.AuditEntry, error)
}

// listMax bounds the rows of the lists of operators.
const listMax = 200

type accountsBody struct {
	Accounts []account.Account // newest first
	Keys     map[string]int    // valid keys by account
	Plans    []account.Plan
	More     int // accounts that are not listed
}

func (c *Console) accounts(v *visit) (err error) {
	body := accountsBody{Keys: make(map[string]int), Plans: account.Plans}
	if body.Accounts, err = c.Stores.Operators.List(v.ctx()); err != nil {
		return err
	}
	keys, err := c.Stores.Operators.Keys(v.ctx(), "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key.RevokedAt.IsZero() {
			body.Keys[key.AccountID]++
		}
	}
	slices.Reverse(body.Accounts)
	body.Accounts, body.More = shorten(body.Accounts)
	return v.render("accounts", "Accounts", "operators", body)
}

// shorten returns the first listMax elements and the number of the others.
func shorten[T any](all []T) (first []T, more int) {
	n := min(len(all), listMax)
	return all[:n], len(all) - n
}

func (c *Console) setPlan(v *visit) error {
	plan, err := account.ParsePlan(v.r.PostFormValue("tier"))
	if err != nil {
		return errForm
	}
	acct, err := c.Stores.Operators.Account(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if acct.Plan != plan {
		if err := v.audit(table.PlanChanged, acct.ID, string(acct.Plan)+" to "+string(plan)); err != nil {
			return err
		}
		acct.Plan = plan
		if err := c.Stores.Operators.Put(v.ctx(), acct); err != nil {
			return err
		}
		if err := redis.Announce(v.ctx(), c.Redis, redis.AccountChanged, acct.ID); err != nil {
			c.Logger.Warn("change of a tier not announced to servers", "err", err) // they apply it within five minutes
		}
	}
	return v.redirect("/operators")
}

type allKeysBody struct {
	Keys     []account.Key // newest first
	Accounts map[string]string
	More     int
}

func (c *Console) allKeys(v *visit) (err error) {
	body := allKeysBody{Accounts: make(map[string]string)}
	if body.Keys, err = c.Stores.Operators.Keys(v.ctx(), ""); err != nil {
		return err
	}
	all, err := c.Stores.Operators.List(v.ctx())
	if err != nil {
		return err
	}
	for _, a := range all {
		body.Accounts[a.ID] = a.Name
	}
	slices.Reverse(body.Keys)
	body.Keys, body.More = shorten(body.Keys)
	return v.render("allkeys", "Keys of all accounts", "operators", body)
}

type runsBody struct {
	Queue queue.Status
	Runs  []scoring.Run // newest first
}

func (c *Console) runs(v *visit) (err error) {
	var body runsBody
	if body.Queue, err = c.Queue.Status(v.ctx()); err != nil {
		return err
	}
	if body.Runs, err = c.Stores.Operators.Runs(v.ctx(), 100); err != nil {
		return err
	}
	return v.render("runs", "Runs", "operators", body)
}

func (c *Console) audit(v *visit) error {
	entries, err := c.Stores.Operators.Audit(v.ctx(), listMax)
	if err != nil {
		return err
	}
	return v.render("audit", "Audit log", "operators", entries)
}
