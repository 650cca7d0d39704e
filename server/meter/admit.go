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
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
)

const (
	// idempotencyWindow is the lifetime of an Idempotency-Key.
	idempotencyWindow = 24 * time.Hour
	// refundMemory is the time for which Redis rejects an admission after its refund.
	refundMemory = time.Hour
	// refundsMost bounds the queue of refunds of this process.
	refundsMost = 10_000
)

// Reason is the code of the limit that rejected a cold call. Callers get it as it is.
type Reason string

// The reasons to reject, in the order in which they are checked.
const (
	MonthlyCap     Reason = "monthly_cap"
	PerKeyCold1h   Reason = "per_key_cold_1h"
	AccountCold24h Reason = "account_cold_24h"
)

// ErrIdempotencyReused means that an Idempotency-Key was sent before with another body.
var ErrIdempotencyReused = errors.New("idempotency key was used with another body")

// ErrOutcomeUnknown means that Redis did not answer and the call may be charged. After
// Admit, the meter refunds the call in the background, unless a call with the same
// Idempotency-Key returns its job first.
var ErrOutcomeUnknown = errors.New("it is not known whether the call was charged")

// Rejected is the error of a call that was not admitted. It was not charged.
type Rejected struct {
	Reason Reason
	// RetryAfter is the time until the limit admits a call, in whole seconds, at least
	// one. For a call for many companies it is the time until all of its calls are admitted, or until
	// most are if they are more than the limit.
	RetryAfter time.Duration
	// Room is the number of calls that would be admitted now.
	Room int
}

// Error describes the rejection for a log.
func (r *Rejected) Error() string {
	return fmt.Sprintf("cold call rejected: %s, room in %s", r.Reason, r.RetryAfter)
}

// AdmitRequest describes a cold call.
type AdmitRequest struct {
	Account account.Account
	KeyID   string
	// Domain is canonical.
	Domain string
	// Now is the time of the call. All limits are measured by it.
	Now time.Time
	// IdempotencyKey is the key that the caller sent; it may be empty.
	IdempotencyKey string
	// BodyHash is a SHA-256 of the request. It is ignored without an IdempotencyKey.
	BodyHash [sha256.Size]byte
}

// Admission is a cold call that was admitted and charged.
type Admission struct {
	JobID, RunID, AccountID, KeyID, Domain string
	// CreatedAt is in UTC and whole milliseconds.
	CreatedAt time.Time
	// Replayed means that an earlier call with the same Idempotency-Key was charged and
	// this one was not.
	Replayed bool

	idempotencyKey string
	plan           account.Plan
}

// Admit charges a cold call and writes its job. The job joins the run of the domain if one
// is in flight; otherwise Admit queues a new run. The error is a *[Rejected] if a limit is
// reached, [ErrIdempotencyReused] or [ErrOutcomeUnknown]. After any other error nothing is
// charged.
func (m *Meter) Admit(ctx context.Context, req AdmitRequest) (Admission, error) {
	now := req.Now.UTC().Truncate(time.Millisecond)
	a := Admission{
		// A version 7 id contains its time.
		JobID: uuid.Must(uuid.NewV7()).String(), AccountID: req.Account.ID, KeyID: req.KeyID, Domain: req.Domain,
		CreatedAt: now, idempotencyKey: req.IdempotencyKey, plan: req.Account.Plan,
	}
	newRun := queue.NewRunID()
	reply, err := m.runAdmit(ctx, req, a, newRun)
	if err == nil && reply.outcome == "unknown" {
		if err := m.refill(ctx, monthOf(a.AccountID, now), req.Account.Plan, now); err != nil {
			return Admission{}, fmt.Errorf("admit cold call: %w", err)
		}
		reply, err = m.runAdmit(ctx, req, a, newRun)
	}
	if err != nil {
		m.refundLater(refundOf(a))
		return Admission{}, fmt.Errorf("admit cold call: %w: %w", ErrOutcomeUnknown, err)
	}
	switch reply.outcome {
	case "admitted", "replayed", string(MonthlyCap), string(PerKeyCold1h), string(AccountCold24h):
		m.setCold(monthOf(a.AccountID, now), reply.used)
	}
	switch reply.outcome {
	case "admitted", "replayed":
		a.JobID, a.RunID, a.CreatedAt = reply.job, reply.run, reply.created
		a.Replayed = reply.outcome == "replayed"
		m.markDirty(monthOf(a.AccountID, a.CreatedAt), req.Account.Plan)
		return a, nil
	case "reused":
		return Admission{}, ErrIdempotencyReused
	case string(MonthlyCap):
		return Admission{}, &Rejected{Reason: MonthlyCap, RetryAfter: untilNextMonth(req.Now)}
	case string(PerKeyCold1h), string(AccountCold24h):
		return Admission{}, &Rejected{Reason: Reason(reply.outcome), RetryAfter: wholeSeconds(reply.wait)}
	}
	return Admission{}, fmt.Errorf("admit cold call: script returned %q for account %s after its counts were filled in", reply.outcome,
		a.AccountID)
}

// Replay returns the admission of an earlier call with the same account and
// Idempotency-Key within the last 24 hours. Call it before the search for a fresh score, so
// that a repeated call gets its job. Replay charges nothing, and the job that it returns is
// never refunded. The error is [ErrIdempotencyReused] if the body differs, or
// [ErrOutcomeUnknown] if Redis does not answer. The earlier call may then stay charged.
func (m *Meter) Replay(ctx context.Context, req AdmitRequest) (a Admission, found bool, err error) {
	if req.IdempotencyKey == "" {
		return Admission{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a = Admission{
		AccountID: req.Account.ID, KeyID: req.KeyID, Domain: req.Domain,
		CreatedAt: req.Now, Replayed: true, idempotencyKey: req.IdempotencyKey, plan: req.Account.Plan,
	}
	reply, err := decodeAdmit(replayScript.Run(ctx, m.redis, chargeKeys(a),
		req.Now.UnixMilli(), hex.EncodeToString(req.BodyHash[:]), idempotencyWindow.Milliseconds()))
	switch {
	case err != nil:
		return Admission{}, false, fmt.Errorf("find an earlier call: %w: %w", ErrOutcomeUnknown, err)
	case reply.outcome == "reused":
		return Admission{}, false, ErrIdempotencyReused
	case reply.outcome != "replayed":
		return Admission{}, false, nil
	}
	a.JobID, a.RunID, a.CreatedAt = reply.job, reply.run, reply.created
	// The server that admitted the call may have ended before it copied the count.
	m.markDirty(monthOf(a.AccountID, a.CreatedAt), a.plan)
	return a, true, nil
}

// refund removes the charges of a call. Its script removes the charge and the job of a call, and the run
// unless other jobs wait for it or a worker has claimed it. A job that a replay returned stays, with its
// charge. The script is idempotent, and has the same effect if it reaches Redis before the admission.
type refund struct {
	script *goredis.Script
	keys   []string
	id     string // of the job, or of a call for many companies
	month  month
	plan   account.Plan
}

func refundOf(a Admission) refund {
	return refund{script: refundScript, keys: chargeKeys(a), id: a.JobID, month: monthOf(a.AccountID, a.CreatedAt), plan: a.plan}
}

// refundLater queues a refund. If the queue is full, it logs the call instead.
func (m *Meter) refundLater(r refund) {
	if !m.refunds.Add(r) {
		m.logLostRefund(r)
	}
}

func (m *Meter) logLostRefund(r refund) {
	m.logger.Error("an unanswered call may have been charged", "account", r.month.account, "call", r.id)
}

func (m *Meter) refund(ctx context.Context, r refund) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := r.script.Run(ctx, m.redis, r.keys, r.id, refundMemory.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("refund call %s: %w", r.id, err)
	}
	m.markDirty(r.month, r.plan)
	return nil
}

// admitReply is the result of admit.lua or replay.lua.
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
	return decodeAdmit(admitScript.Run(ctx, m.redis, chargeKeys(a), append(m.limitArgs(req.Account, a.CreatedAt),
		a.JobID, newRun, m.limits.JobTTL.Milliseconds(), a.AccountID, a.KeyID, a.Domain,
		bodyArg(req.IdempotencyKey, req.BodyHash), idempotencyWindow.Milliseconds())...))
}

// limitArgs are the first arguments of admit.lua and bulk_admit.lua: the time of the call and the limits.
func (m *Meter) limitArgs(acct account.Account, now time.Time) []any {
	budget, accountLimit := int64(-1), int64(-1)
	if n := m.limits.Plans[acct.Plan].ColdCallsIncluded; n != nil {
		budget, accountLimit = *n, *n*m.limits.Breakers.ColdPerAccount.BudgetMultiple
	}
	perKey, perAccount := m.limits.Breakers.ColdPerKey, m.limits.Breakers.ColdPerAccount
	return []any{now.UnixMilli(), budget, monthOf(acct.ID, now).keep(now).Milliseconds(),
		perKey.Limit, perKey.Window.Milliseconds(), accountLimit, perAccount.Window.Milliseconds()}
}

// bodyArg is the hash of a body for the scripts, empty without an Idempotency-Key.
func bodyArg(idempotencyKey string, hash [sha256.Size]byte) string {
	if idempotencyKey == "" {
		return ""
	}
	return hex.EncodeToString(hash[:])
}

func decodeAdmit(cmd *goredis.Cmd) (admitReply, error) {
	reply, err := cmd.Slice()
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

// chargeKeys are the keys of admit.lua, replay.lua and refund.lua, as charge.lua lists them.
func chargeKeys(a Admission) []string {
	return queue.ScriptKeys(
		redis.ColdMonth(a.AccountID, redis.Period(a.CreatedAt)), redis.ColdKeyWindow(a.KeyID),
		redis.ColdAccountWindow(a.AccountID), redis.Job(""),
		idempotencyName(a.AccountID, a.idempotencyKey), redis.ColdLedger())
}

func idempotencyName(accountID, key string) string {
	sum := sha256.Sum256([]byte(key))
	return redis.Idempotency(accountID, hex.EncodeToString(sum[:]))
}

// untilNextMonth returns the time until budgets are full again.
func untilNextMonth(now time.Time) time.Duration {
	return wholeSeconds(monthOf("", now).end().Sub(now))
}

// wholeSeconds rounds up to whole seconds, at least one.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}
