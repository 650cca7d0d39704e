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
	// idempotencyWindow is how long an Idempotency-Key is remembered.
	idempotencyWindow = 24 * time.Hour
	// refundMemory is how long Redis rejects an admission that arrives after its refund.
	refundMemory = time.Hour
	// refundsMost bounds the calls of this process that wait for their refund.
	refundsMost = 10_000
)

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

// ErrOutcomeUnknown is the error of a call whose answer from Redis was lost: it may
// have been charged. The meter refunds it in the background, unless a call with the
// same Idempotency-Key returns its job first.
var ErrOutcomeUnknown = errors.New("it is not known whether the call was charged")

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
	// Replayed says that an earlier call with the same Idempotency-Key was
	// charged, and that this one was not.
	Replayed bool
	// Remaining is what is left of the monthly budget; nil means unmetered.
	Remaining *int64

	idempotencyKey string
	tier           account.Tier
}

// Admit charges a cold call, makes its job and, unless one is in flight for the
// domain, its run, which then waits for a worker. The error is a *[Rejected] when a
// limit is reached, [ErrIdempotencyReused], or [ErrOutcomeUnknown]; after any other
// error nothing is charged.
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
		m.refundLater(a)
		return Admission{}, fmt.Errorf("admit cold call: %w: %w", ErrOutcomeUnknown, err)
	}
	remaining := m.remaining(req.Account.Tier, reply.used)
	switch reply.outcome {
	case "admitted", "replayed":
		a.JobID, a.RunID, a.CreatedAt, a.Remaining = reply.job, reply.run, reply.created, remaining
		a.Replayed = reply.outcome == "replayed"
		m.markDirty(monthOf(a.AccountID, a.CreatedAt), req.Account.Tier)
		return a, nil
	case "reused":
		return Admission{}, ErrIdempotencyReused
	case string(MonthlyCap):
		return Admission{}, &Rejected{MonthlyCap, wholeSeconds(monthOf("", now).end().Sub(req.Now)), remaining}
	case string(PerKeyCold1h), string(AccountCold24h):
		return Admission{}, &Rejected{Reason(reply.outcome), wholeSeconds(reply.wait), remaining}
	}
	return Admission{}, fmt.Errorf("admit cold call: script returned %q for account %s after its counts were filled in", reply.outcome, a.AccountID)
}

// Replay returns the admission of an earlier call with the same account and
// Idempotency-Key, if there was one within a day. It is for answering a repeated
// call before looking whether the score has become fresh. It charges nothing, and
// the job that it returns is never refunded. The error is [ErrIdempotencyReused]
// when the body was another, and [ErrOutcomeUnknown] when Redis did not answer:
// then the earlier call may stay charged until a later replay returns its job.
func (m *Meter) Replay(ctx context.Context, req AdmitRequest) (a Admission, found bool, err error) {
	if req.IdempotencyKey == "" {
		return Admission{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a = Admission{
		AccountID: req.Account.ID, KeyID: req.KeyID, Domain: req.Domain,
		CreatedAt: req.Now, Replayed: true, idempotencyKey: req.IdempotencyKey, tier: req.Account.Tier,
	}
	reply, err := decodeAdmit(replayScript.Run(ctx, m.redis, chargeKeys(a),
		req.Now.UnixMilli(), hex.EncodeToString(req.BodyHash[:]), idempotencyWindow.Milliseconds()))
	switch {
	case err != nil:
		return Admission{}, false, fmt.Errorf("look for an earlier call: %w: %w", ErrOutcomeUnknown, err)
	case reply.outcome == "reused":
		return Admission{}, false, ErrIdempotencyReused
	case reply.outcome != "replayed":
		return Admission{}, false, nil
	}
	a.JobID, a.RunID, a.CreatedAt = reply.job, reply.run, reply.created
	// The server that was charged may have died before it copied the count.
	m.markDirty(monthOf(a.AccountID, a.CreatedAt), a.tier)
	return a, true, nil
}

// refundLater has a call refunded in the background.
func (m *Meter) refundLater(a Admission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refunds) >= refundsMost {
		m.logLostRefund(a)
		return
	}
	m.refunds = append(m.refunds, a)
}

func (m *Meter) logLostRefund(a Admission) {
	m.logger.Error("a call that was not answered may have been charged", "account", a.AccountID, "job", a.JobID)
}

// refundAll refunds the calls that wait for it. One that fails waits on, with those
// after it.
func (m *Meter) refundAll(ctx context.Context) error {
	for {
		m.mu.RLock()
		waiting := m.refunds
		m.mu.RUnlock()
		if len(waiting) == 0 {
			return nil
		}
		if err := m.refund(ctx, waiting[0]); err != nil {
			return err
		}
		m.mu.Lock()
		m.refunds = m.refunds[1:]
		m.mu.Unlock()
	}
}

// refund undoes what was charged for a call, as if it had never been: the charge,
// the job, and the run unless others wait for it. A job that a replay has returned
// stays. Refunding twice, or before the admission reaches Redis, has the same effect
// as refunding once after it.
func (m *Meter) refund(ctx context.Context, a Admission) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := refundScript.Run(ctx, m.redis, chargeKeys(a), a.JobID, refundMemory.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("refund job %s: %w", a.JobID, err)
	}
	m.markDirty(monthOf(a.AccountID, a.CreatedAt), a.tier)
	return nil
}

// admitReply is what admit.lua and replay.lua return.
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
	return decodeAdmit(admitScript.Run(ctx, m.redis, chargeKeys(a),
		a.CreatedAt.UnixMilli(), budget, monthOf(a.AccountID, a.CreatedAt).keep(a.CreatedAt).Milliseconds(),
		perKey.Limit, perKey.Window.Milliseconds(), accountLimit, perAccount.Window.Milliseconds(),
		a.JobID, newRun, m.limits.JobTTL.Milliseconds(), a.AccountID, a.KeyID, a.Domain,
		body, idempotencyWindow.Milliseconds()))
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
