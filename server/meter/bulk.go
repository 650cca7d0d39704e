package meter

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
)

const (
	// openMax bounds the jobs that one script opens. It takes Redis about half a millisecond.
	openMax = 10
	// bulkMemory is the time for which a call without an Idempotency-Key is stored after its jobs are open.
	bulkMemory = time.Minute
	// bulkStaleAge is the age at which any server opens the jobs of a call: its own server had the time to.
	bulkStaleAge = 2 * callTimeout
	// bulksPage bounds the calls that openBulks reads at once.
	bulksPage = 20
)

// BulkRequest describes a call that starts runs for many companies.
type BulkRequest struct {
	Account account.Account
	KeyID   string
	// Domains are canonical, without duplicates, at most 1,000.
	Domains []string
	// Now is the time of the call. All limits are measured by it.
	Now time.Time
	// IdempotencyKey is the key that the caller sent; it may be empty.
	IdempotencyKey string
	// BodyHash is a SHA-256 of the request. It is ignored without an IdempotencyKey.
	BodyHash [sha256.Size]byte
	// Partial admits as many of the first domains as the limits allow, instead of all or none.
	Partial bool
}

// BulkAdmission is a call for many companies that was admitted and charged.
type BulkAdmission struct {
	// Jobs are the ids of the admitted calls by domain.
	Jobs map[string]string
	// Rest is the limit that refused the other domains, empty if all were admitted.
	Rest Reason
	// Replayed means that an earlier call with the same Idempotency-Key was charged and this one
	// was not.
	Replayed bool
}

// bulkCall is one cold call of a call for many companies: the ids of its job and of its run, if a new
// one is opened. Its JSON is a list.
type bulkCall struct{ job, domain, run string }

func (c bulkCall) MarshalJSON() ([]byte, error) {
	return json.Marshal([]string{c.job, c.domain, c.run})
}

func (c *bulkCall) UnmarshalJSON(text []byte) error {
	var fields []string
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if len(fields) != 3 {
		return fmt.Errorf("a call has %d fields, want 3", len(fields))
	}
	c.job, c.domain, c.run = fields[0], fields[1], fields[2]
	return nil
}

// bulk is a stored call for many companies.
type bulk struct {
	id, account, key string
	created          time.Time
	calls            []bulkCall // those that were admitted
	remembered       time.Duration
}

// AdmitMany charges the cold calls of a call for many companies and opens their jobs: all of them, or as
// many as the limits allow if req.Partial is set. The error is a *[Rejected] if none is admitted,
// [ErrIdempotencyReused] or [ErrOutcomeUnknown]. After any other error nothing is charged. If a server ends
// after the charge, another one opens the jobs within seconds.
func (m *Meter) AdmitMany(ctx context.Context, req BulkRequest) (BulkAdmission, error) {
	b := bulk{id: uuid.Must(uuid.NewV7()).String(), account: req.Account.ID, key: req.KeyID,
		created: req.Now.UTC().Truncate(time.Millisecond), remembered: bulkMemory}
	mode := "all"
	if req.Partial {
		mode = "part"
	}
	reply, err := m.runAdmitMany(ctx, req, b, mode)
	if err != nil {
		m.refundLater(refund{script: bulkRefundScript, keys: bulkKeys(b.account, b.key, req.IdempotencyKey, b.created), id: b.id,
			month: monthOf(b.account, b.created), plan: req.Account.Plan})
		return BulkAdmission{}, fmt.Errorf("admit %d cold calls: %w: %w", len(req.Domains), ErrOutcomeUnknown, err)
	}
	switch reply.outcome {
	case "admitted", "replayed":
		return m.openMany(ctx, req, reply)
	case "reused":
		return BulkAdmission{}, ErrIdempotencyReused
	case string(MonthlyCap):
		return BulkAdmission{}, &Rejected{Reason: MonthlyCap, RetryAfter: untilNextMonth(req.Now), Room: reply.room}
	case string(PerKeyCold1h), string(AccountCold24h):
		return BulkAdmission{}, &Rejected{Reason: Reason(reply.outcome), RetryAfter: wholeSeconds(reply.wait), Room: reply.room}
	}
	return BulkAdmission{}, fmt.Errorf("admit %d cold calls: script returned %q for account %s after its counts were filled in",
		len(req.Domains), reply.outcome, req.Account.ID)
}

// ReplayMany returns the admission of an earlier call for many companies, as [Meter.Replay] does for one
// company. It opens those of its jobs that are not open.
func (m *Meter) ReplayMany(ctx context.Context, req BulkRequest) (a BulkAdmission, found bool, err error) {
	if req.IdempotencyKey == "" {
		return BulkAdmission{}, false, nil
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := decodeBulk(bulkReplayScript.Run(callCtx, m.redis, bulkKeys(req.Account.ID, req.KeyID, req.IdempotencyKey, req.Now),
		req.Now.UnixMilli(), bodyArg(req.IdempotencyKey, req.BodyHash), idempotencyWindow.Milliseconds()))
	switch {
	case err != nil:
		return BulkAdmission{}, false, fmt.Errorf("find an earlier call: %w: %w", ErrOutcomeUnknown, err)
	case reply.outcome == "reused":
		return BulkAdmission{}, false, ErrIdempotencyReused
	case reply.outcome != "replayed":
		return BulkAdmission{}, false, nil
	}
	a, err = m.openMany(ctx, req, reply)
	return a, err == nil, err
}

// Room returns how many cold calls of req would be admitted now, and the first limit that has no room for
// all of them, empty if all have. It changes nothing.
func (m *Meter) Room(ctx context.Context, req BulkRequest) (n int, rest Reason, err error) {
	b := bulk{account: req.Account.ID, key: req.KeyID, created: req.Now.UTC().Truncate(time.Millisecond)}
	reply, err := m.runAdmitMany(ctx, req, b, "dry")
	if err != nil {
		return 0, "", fmt.Errorf("room for cold calls of account %s: %w", req.Account.ID, err)
	}
	return reply.room, reply.limit, nil
}

// runAdmitMany runs bulk_admit.lua, after the counts are restored if need be.
func (m *Meter) runAdmitMany(ctx context.Context, req BulkRequest, b bulk, mode string) (bulkReply, error) {
	b.calls = make([]bulkCall, len(req.Domains))
	for i, domain := range req.Domains {
		b.calls[i] = bulkCall{uuid.Must(uuid.NewV7()).String(), domain, queue.NewRunID()}
	}
	calls, err := json.Marshal(b.calls)
	if err != nil {
		return bulkReply{}, err
	}
	args := append(m.limitArgs(req.Account, b.created), b.id, m.limits.JobTTL.Milliseconds(), b.account, b.key,
		bodyArg(req.IdempotencyKey, req.BodyHash), idempotencyWindow.Milliseconds(), mode, calls)
	for _, call := range b.calls {
		args = append(args, call.job)
	}
	run := func() (bulkReply, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return decodeBulk(bulkAdmitScript.Run(ctx, m.redis, bulkKeys(b.account, b.key, req.IdempotencyKey, b.created), args...))
	}
	reply, err := run()
	if err == nil && reply.outcome == "unknown" {
		if err := m.refill(ctx, monthOf(b.account, b.created), req.Account.Plan, b.created); err != nil {
			return bulkReply{}, err
		}
		reply, err = run()
	}
	if err == nil && reply.outcome != "unknown" && reply.outcome != "reused" && reply.outcome != "refunded" {
		m.setCold(monthOf(b.account, b.created), reply.used)
	}
	return reply, err
}

// openMany opens the jobs of an admitted call. If it fails, openBulks opens the rest.
func (m *Meter) openMany(ctx context.Context, req BulkRequest, reply bulkReply) (BulkAdmission, error) {
	b := bulk{id: reply.id, account: req.Account.ID, key: req.KeyID, created: reply.created, calls: reply.calls, remembered: bulkMemory}
	if req.IdempotencyKey != "" {
		b.remembered = idempotencyWindow
	}
	m.markDirty(monthOf(b.account, b.created), req.Account.Plan)
	if err := m.open(ctx, b); err != nil {
		return BulkAdmission{}, fmt.Errorf("open %d jobs: %w: %w", len(b.calls), ErrOutcomeUnknown, err)
	}
	a := BulkAdmission{Jobs: make(map[string]string, len(b.calls)), Rest: reply.limit, Replayed: reply.outcome == "replayed"}
	for _, call := range b.calls {
		a.Jobs[call.domain] = call.job
	}
	return a, nil
}

// open opens the jobs of a call that do not exist, and then removes the call from the open ones.
func (m *Meter) open(ctx context.Context, b bulk) error {
	keys := bulkKeys(b.account, b.key, "", b.created)
	for start := 0; start < len(b.calls); start += openMax {
		part := b.calls[start:min(start+openMax, len(b.calls))]
		keep := ""
		if start+openMax >= len(b.calls) {
			keep = strconv.FormatInt(b.remembered.Milliseconds(), 10)
		}
		args := []any{b.id, b.account, b.key, b.created.UnixMilli(), m.limits.JobTTL.Milliseconds(), keep}
		for _, call := range part {
			args = append(args, call.job, call.domain, call.run)
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		stored, err := bulkOpenScript.Run(callCtx, m.redis, keys, args...).Bool()
		cancel()
		if err == nil && !stored {
			err = errors.New("the call is no longer in Redis")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openBulks opens the jobs of calls whose server ended, or was refused by Redis, before it had opened all.
func (m *Meter) openBulks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	ids, err := m.redis.ZRangeByScore(ctx, redis.OpenBulks(), &goredis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(m.now().Add(-bulkStaleAge).UnixMilli(), 10), Count: bulksPage,
	}).Result()
	if err != nil {
		return fmt.Errorf("list calls whose jobs are not open: %w", err)
	}
	var faults []error
	for _, id := range ids {
		if err := m.openBulk(ctx, id); err != nil {
			faults = append(faults, fmt.Errorf("open the jobs of call %s: %w", id, err))
		}
	}
	return errors.Join(faults...)
}

func (m *Meter) openBulk(ctx context.Context, id string) error {
	values, err := m.redis.HMGet(ctx, redis.Bulk(id), "account", "key", "created", "n", "calls").Result()
	if err != nil {
		return err
	}
	text := make([]string, len(values))
	for i, value := range values {
		text[i], _ = value.(string)
	}
	if text[4] == "" { // it has expired or was refunded
		return m.redis.ZRem(ctx, redis.OpenBulks(), id).Err()
	}
	var fields bulkReply
	if err := fields.decode(text[2], text[3], text[4], ""); err != nil {
		return err
	}
	m.logger.Warn("opening the jobs of a call whose server ended", "call", id, "account", text[0], "jobs", len(fields.calls))
	return m.open(ctx, bulk{id: id, account: text[0], key: text[1], created: fields.created, calls: fields.calls,
		remembered: idempotencyWindow})
}

// bulkReply is the result of bulk_admit.lua or bulk_replay.lua.
type bulkReply struct {
	outcome string
	wait    time.Duration
	used    int64
	room    int
	limit   Reason // that refused the rest, empty if all were admitted
	id      string // of the call that was admitted
	created time.Time
	calls   []bulkCall // that were admitted
}

// decode reads the fields of a stored call.
func (r *bulkReply) decode(created, n, calls, limit string) error {
	ms, err := strconv.ParseInt(created, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of a call: %w", err)
	}
	admitted, err := strconv.Atoi(n)
	if err != nil {
		return fmt.Errorf("read the number of calls: %w", err)
	}
	if err := json.Unmarshal([]byte(calls), &r.calls); err != nil {
		return fmt.Errorf("read calls: %w", err)
	}
	if admitted < 0 || admitted > len(r.calls) {
		return fmt.Errorf("read calls: %d of %d are admitted", admitted, len(r.calls))
	}
	r.created, r.calls, r.limit = time.UnixMilli(ms).UTC(), slices.Clip(r.calls[:admitted]), Reason(limit)
	return nil
}

func decodeBulk(cmd *goredis.Cmd) (bulkReply, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return bulkReply{}, err
	}
	r := bulkReply{outcome: reply[0].(string)}
	if len(reply) < 4 {
		return r, nil
	}
	r.wait, r.used = time.Duration(reply[1].(int64))*time.Millisecond, reply[2].(int64)
	switch r.outcome {
	case "admitted", "replayed":
		r.id = reply[7].(string)
		return r, r.decode(reply[3].(string), reply[4].(string), reply[5].(string), reply[6].(string))
	case "dry":
		r.limit = Reason(reply[4].(string))
	}
	r.room = int(reply[3].(int64))
	return r, nil
}

// bulkKeys are the keys of the scripts about calls for many companies, as bulk.lua lists them.
func bulkKeys(accountID, keyID, idempotencyKey string, now time.Time) []string {
	return append(chargeKeys(Admission{AccountID: accountID, KeyID: keyID, CreatedAt: now, idempotencyKey: idempotencyKey}),
		redis.Bulk(""), redis.OpenBulks())
}
