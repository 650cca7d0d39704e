package meter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/server/account"
)

// idempotencyWindow is how long an Idempotency-Key is remembered.
const idempotencyWindow = 24 * time.Hour

// Reason says why a cold call was rejected, in the words callers see.
type Reason string

// The reasons to reject, in the order in which they are looked at.
const (
	MonthlyCap     Reason = "monthly_cap"
	PerKeyCold1h   Reason = "per_key_cold_1h"
	AccountCold24h Reason = "account_cold_24h"
)

// ErrIdempotencyReused says that an Idempotency-Key came again with another body.
var ErrIdempotencyReused = errors.New("idempotency key was used with another body")

// Rejected is the error of a call that was not admitted. It was not charged.
type Rejected struct {
	Reason Reason
	// RetryAfter is the time until the limit has room again, in whole seconds,
	// at least one.
	RetryAfter time.Duration
	// Remaining is what is left of the monthly budget; nil means unmetered.
	Remaining *int64
}

// Error describes the rejection for a log.
func (r *Rejected) Error() string {
	return fmt.Sprintf("cold call rejected: %s, room in %s", r.Reason, r.RetryAfter)
}

// AdmitRequest asks for a cold call.
type AdmitRequest struct {
	Account account.Account
	KeyID   string
	// Domain is canonical.
	Domain string
	// Now is the time of the call. All limits are measured by it.
	Now time.Time
	// IdempotencyKey is the caller's own name for the call; it may be empty.
	IdempotencyKey string
	// BodyHash is the SHA-256 of the request's body; it is read only when there
	// is an IdempotencyKey.
	BodyHash [sha256.Size]byte
}

// Admission is a cold call that was admitted and charged.
type Admission struct {
	JobID, RunID, AccountID, KeyID, Domain string
	// CreatedAt is in UTC and whole milliseconds.
	CreatedAt time.Time
	// NewRun says that this call opened the run, which must now be enqueued.
	NewRun bool
	// Replayed says that an earlier call with the same Idempotency-Key was
	// charged, and that this one was not.
	Replayed bool
	// Remaining is what is left of the monthly budget; nil means unmetered.
	Remaining *int64

	idempotencyKey string
	tier           account.Tier
}

// Admit charges a cold call, makes its job and, unless one is under way for the
// domain, its run. The error is a *[Rejected] when a limit is reached, and
// [ErrIdempotencyReused]; after any error nothing is charged. The caller enqueues
// a new run, and takes the admission back with Refund if the start fails.
func (m *Meter) Admit(ctx context.Context, req AdmitRequest) (Admission, error) {
	now := req.Now.UTC().Truncate(time.Millisecond)
	a := Admission{
		// A version 7 id says when it was made.
		JobID: uuid.Must(uuid.NewV7()).String(), AccountID: req.Account.ID, KeyID: req.KeyID, Domain: req.Domain,
		CreatedAt: now, idempotencyKey: req.IdempotencyKey, tier: req.Account.Tier,
	}
	newRun := queue.NewRunID()
	reply, err := m.runAdmit(ctx, req, a, newRun)
	if err == nil && reply.outcome == "unknown" {
		if err := m.refill(ctx, monthOf(a.AccountID, now), req.Account.Tier, now); err != nil {
			return Admission{}, fmt.Errorf("admit cold call: %w", err)
		}
		reply, err = m.runAdmit(ctx, req, a, newRun)
	}
	if err != nil {
		// The script may have run although its answer was lost.
		m.refundLater(ctx, a)
		return Admission{}, fmt.Errorf("admit cold call: %w", err)
	}
	remaining := m.remaining(req.Account.Tier, reply.used)
	switch reply.outcome {
	case "admitted", "replayed":
		a.JobID, a.RunID, a.CreatedAt, a.Remaining = reply.job, reply.run, reply.created, remaining
		a.NewRun = a.RunID == newRun
		a.Replayed = reply.outcome == "replayed"
		if !a.Replayed {
			m.markDirty(monthOf(a.AccountID, now), req.Account.Tier)
		}
		return a, nil
	case "reused":
		return Admission{}, ErrIdempotencyReused
	case string(MonthlyCap):
		return Admission{}, &Rejected{MonthlyCap, wholeSeconds(monthOf("", now).end().Sub(req.Now)), remaining}
	case string(PerKeyCold1h), string(AccountCold24h):
		return Admission{}, &Rejected{Reason(reply.outcome), wholeSeconds(reply.wait), remaining}
	}
	return Admission{}, fmt.Errorf("admit cold call: counts of account %s do not stay in Redis", a.AccountID)
}

// Replay returns the admission of an earlier call with the same account and
// Idempotency-Key, if there was one within a day. It is for answering a repeated
// call before looking whether the score has become fresh; it charges nothing.
// The error is [ErrIdempotencyReused] when the body was another.
func (m *Meter) Replay(ctx context.Context, req AdmitRequest) (a Admission, found bool, err error) {
	if req.IdempotencyKey == "" {
		return Admission{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := m.redis.HGetAll(ctx, idempotencyName(req.Account.ID, req.IdempotencyKey)).Result()
	if err != nil {
		return Admission{}, false, fmt.Errorf("look for an earlier call: %w", err)
	}
	at, err := strconv.ParseInt(fields["at"], 10, 64)
	if err != nil || req.Now.Sub(time.UnixMilli(at)) >= idempotencyWindow {
		return Admission{}, false, nil
	}
	if fields["body"] != hex.EncodeToString(req.BodyHash[:]) {
		return Admission{}, false, ErrIdempotencyReused
	}
	return Admission{
		JobID: fields["job"], RunID: fields["run"], AccountID: req.Account.ID, KeyID: req.KeyID, Domain: req.Domain,
		CreatedAt: time.UnixMilli(at).UTC(), Replayed: true, idempotencyKey: req.IdempotencyKey, tier: req.Account.Tier,
	}, true, nil
}

// Refund takes back an admission whose start failed, as if it had never been:
// the charge, the job, and the run unless others wait for it. Doing so twice is
// doing it once, and a replayed admission has nothing to take back.
func (m *Meter) Refund(ctx context.Context, a Admission) error {
	if a.Replayed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := refundScript.Run(ctx, m.redis, chargeKeys(a), a.JobID).Int()
	if err != nil {
		return fmt.Errorf("refund job %s: %w", a.JobID, err)
	}
	if n == 1 {
		m.markDirty(monthOf(a.AccountID, a.CreatedAt), a.tier)
	}
	return nil
}

// refundLater takes back, without keeping the caller waiting, what may have been
// charged.
func (m *Meter) refundLater(ctx context.Context, a Admission) {
	m.refunds.Go(func() {
		if err := m.Refund(context.WithoutCancel(ctx), a); err != nil {
			m.logger.Error("a call that could not start may have been charged", "job", a.JobID, "error", err)
		}
	})
}

// admitReply is what admit.lua returns.
type admitReply struct {
	outcome string
	wait    time.Duration
	used    int64
	job     string
	run     string
	created time.Time
}

func (m *Meter) runAdmit(ctx context.Context, req AdmitRequest, a Admission, newRun string) (admitReply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	budget, accountLimit := int64(-1), int64(-1)
	if n := m.limits.Tiers[req.Account.Tier].ColdCallsIncluded; n != nil {
		budget, accountLimit = *n, *n*m.limits.Breakers.ColdPerAccount.BudgetMultiple
	}
	body := ""
	if req.IdempotencyKey != "" {
		body = hex.EncodeToString(req.BodyHash[:])
	}
	perKey, perAccount := m.limits.Breakers.ColdPerKey, m.limits.Breakers.ColdPerAccount
	reply, err := admitScript.Run(ctx, m.redis, chargeKeys(a),
		a.CreatedAt.UnixMilli(), budget, monthOf(a.AccountID, a.CreatedAt).keep(a.CreatedAt).Milliseconds(),
		perKey.Limit, perKey.Window.Milliseconds(), accountLimit, perAccount.Window.Milliseconds(),
		a.JobID, newRun, m.limits.JobTTL.Milliseconds(), a.AccountID, a.KeyID, a.Domain,
		body, idempotencyWindow.Milliseconds()).Slice()
	if err != nil {
		return admitReply{}, err
	}
	r := admitReply{outcome: reply[0].(string)}
	if len(reply) >= 3 {
		r.wait = time.Duration(reply[1].(int64)) * time.Millisecond
		r.used = reply[2].(int64)
	}
	if len(reply) == 6 {
		r.job, r.run = reply[3].(string), reply[4].(string)
		ms, err := strconv.ParseInt(reply[5].(string), 10, 64)
		if err != nil {
			return admitReply{}, fmt.Errorf("read time of job %s: %w", r.job, err)
		}
		r.created = time.UnixMilli(ms).UTC()
	}
	return r, nil
}

// chargeKeys are the keys of admit.lua and refund.lua, as charge.lua lists them.
func chargeKeys(a Admission) []string {
	return queue.ScriptKeys(
		redis.ColdMonth(a.AccountID, redis.Period(a.CreatedAt)), redis.ColdKeyWindow(a.KeyID),
		redis.ColdAccountWindow(a.AccountID), redis.Job(a.JobID),
		idempotencyName(a.AccountID, a.idempotencyKey), redis.ColdLedger())
}

func idempotencyName(accountID, key string) string {
	sum := sha256.Sum256([]byte(key))
	return redis.Idempotency(accountID, hex.EncodeToString(sum[:]))
}

func (m *Meter) remaining(tier account.Tier, used int64) *int64 {
	budget := m.limits.Tiers[tier].ColdCallsIncluded
	if budget == nil {
		return nil
	}
	left := max(*budget-used, 0)
	return &left
}

// wholeSeconds rounds up, so that a caller who waits that long finds room.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}
