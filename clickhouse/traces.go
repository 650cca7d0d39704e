package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/scoring"
	"companyscore/sql"
)

var (
	traceInsert  = sql.Query("trace_insert")
	traceGet     = sql.Query("trace_get")
	traceValues  = sql.Query("trace_values")
	traceClaims  = sql.Query("trace_claims")
	sourceHealth = sql.Query("source_health")
)

// pastMax is the maximum number of earlier runs that Past returns: one per day for
// scoring.PastMaxAge.
const pastMax = uint32(scoring.PastMaxAge / (24 * time.Hour))

// Traces stores the traces of runs. It is safe for concurrent use.
type Traces struct {
	db     *DB
	writer *writer[traceRow]
}

// NewTraces returns the store of traces in db. The caller closes it before db; Close
// writes the traces in flight.
func NewTraces(db *DB, cfg WriterConfig) *Traces {
	return &Traces{db: db, writer: newWriter(db, cfg, traceInsert, func(r *traceRow) string { return "trace of " + r.Domain })}
}

// WriteTrace stores a trace and returns when it is durable. A second write of the same
// trace replaces the first. WriteTrace retries transient errors until ctx ends; the trace
// may then be stored although WriteTrace returns an error.
func (t *Traces) WriteTrace(ctx context.Context, trace scoring.Trace) error {
	return t.writer.write(ctx, newTraceRow(trace))
}

// Close rejects further traces, waits until those in flight are written or ctx ends, and
// stops the writer.
func (t *Traces) Close(ctx context.Context) error { return t.writer.close(ctx) }

// Trace returns the trace of a record. It returns scoring.ErrNotFound if the run used
// imported facts alone or the trace has expired.
func (t *Traces) Trace(ctx context.Context, domain string, scoredAt time.Time) (scoring.Trace, error) {
	var row traceRow
	found, err := t.db.first(ctx, &row, traceGet, ch.Named("domain", domain), ch.Named("at_ms", millis(scoredAt)))
	if err == nil && !found {
		err = scoring.ErrNotFound
	}
	if err != nil {
		return scoring.Trace{}, fmt.Errorf("trace of %s: %w", domain, err)
	}
	return row.trace(), nil
}

// Past returns the values of the runs of a domain before now, newest first, and the claims of the
// newest: at most pastMax, none older than scoring.PastMaxAge.
func (t *Traces) Past(ctx context.Context, domain string, now time.Time) ([]scoring.Past, error) {
	var rows []struct {
		ScoredAt    time.Time `ch:"scored_at"`
		ValueName   []string  `ch:"value.name"`
		ValueNumber []float64 `ch:"value.number"`
	}
	err := t.db.listBuffered(ctx, &rows, traceValues,
		ch.Named("domain", domain), ch.Named("since_ms", millis(now.Add(-scoring.PastMaxAge))), ch.Named("before_ms", millis(now)),
		ch.Named("limit", pastMax))
	if err != nil {
		return nil, fmt.Errorf("earlier values of %s: %w", domain, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	past := make([]scoring.Past, len(rows))
	for i, row := range rows {
		past[i] = scoring.Past{At: row.ScoredAt.UTC(), Values: values(row.ValueName, row.ValueNumber)}
	}
	var newest claimColumns
	_, err = t.db.first(ctx, &newest, traceClaims, ch.Named("domain", domain), ch.Named("since_ms", millis(past[0].At)),
		ch.Named("before_ms", millis(now)))
	if err != nil {
		return nil, fmt.Errorf("earlier claims about %s: %w", domain, err)
	}
	past[0].Claims = newest.claims()
	return past, nil
}

// traceRow is a row of run_trace.
type traceRow struct {
	Domain        string    `ch:"domain"`
	ScoredAt      time.Time `ch:"scored_at"`
	RunID         string    `ch:"run_id"`
	SourceName    []string  `ch:"source.name"`
	SourceOutcome []string  `ch:"source.outcome"`
	SourceTook    []uint32  `ch:"source.took_ms"`
	Signal        []string  `ch:"observation.signal"`
	Source        []string  `ch:"observation.source"`
	State         []string  `ch:"observation.state"`
	Raw           []float64 `ch:"observation.raw"`
	Reason        []string  `ch:"observation.reason"`
	ValueName     []string  `ch:"value.name"`
	ValueNumber   []float64 `ch:"value.number"`
	claimColumns
}

// claimColumns are the columns of claims.
type claimColumns struct {
	ClaimKind     []string `ch:"claim.kind"`
	ClaimValue    []string `ch:"claim.value"`
	ClaimSource   []string `ch:"claim.source"`
	ClaimVia      []string `ch:"claim.via"`
	ClaimEvidence []string `ch:"claim.evidence"`
}

func (c *claimColumns) claims() []scoring.Claim {
	var all []scoring.Claim
	for i := range c.ClaimKind {
		all = append(all, scoring.Claim{
			Kind: scoring.ClaimKind(c.ClaimKind[i]), Value: c.ClaimValue[i], Source: c.ClaimSource[i], Via: c.ClaimVia[i],
			Evidence: c.ClaimEvidence[i],
		})
	}
	return all
}

func newTraceRow(t scoring.Trace) *traceRow {
	row := &traceRow{Domain: t.Domain, ScoredAt: t.ScoredAt, RunID: t.RunID}
	for _, s := range t.Sources {
		row.SourceName = append(row.SourceName, s.Source)
		row.SourceOutcome = append(row.SourceOutcome, s.Outcome)
		row.SourceTook = append(row.SourceTook, uint32(s.Took.Milliseconds()))
	}
	for _, o := range t.Observations {
		row.Signal = append(row.Signal, o.Signal)
		row.Source = append(row.Source, o.Source)
		row.State = append(row.State, string(o.State))
		row.Raw = append(row.Raw, o.Raw)
		row.Reason = append(row.Reason, string(o.Reason))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		row.ValueName = append(row.ValueName, name)
		row.ValueNumber = append(row.ValueNumber, t.Values[name])
	}
	for _, c := range t.Claims {
		row.ClaimKind = append(row.ClaimKind, string(c.Kind))
		row.ClaimValue = append(row.ClaimValue, c.Value)
		row.ClaimSource = append(row.ClaimSource, c.Source)
		row.ClaimVia = append(row.ClaimVia, c.Via)
		row.ClaimEvidence = append(row.ClaimEvidence, c.Evidence)
	}
	return row
}

func (r *traceRow) trace() scoring.Trace {
	t := scoring.Trace{Domain: r.Domain, ScoredAt: r.ScoredAt.UTC(), RunID: r.RunID, Values: values(r.ValueName, r.ValueNumber)}
	for i := range r.SourceName {
		t.Sources = append(t.Sources, scoring.SourceTrace{
			Source: r.SourceName[i], Outcome: r.SourceOutcome[i], Took: time.Duration(r.SourceTook[i]) * time.Millisecond,
		})
	}
	for i := range r.Signal {
		t.Observations = append(t.Observations, scoring.Observation{
			Signal: r.Signal[i], Source: r.Source[i], State: scoring.State(r.State[i]), Raw: r.Raw[i], Reason: scoring.Reason(r.Reason[i]),
		})
	}
	t.Claims = r.claims()
	return t
}

// values returns the numbers by name.
func values(names []string, numbers []float64) map[string]float64 {
	m := make(map[string]float64, len(names))
	for i, name := range names {
		m[name] = numbers[i]
	}
	return m
}

// SourceHealth returns how often each source answered in the newest runs since an instant, up to
// runs of them.
func (db *DB) SourceHealth(ctx context.Context, since time.Time, runs int) ([]scoring.SourceHealth, error) {
	var rows []struct {
		Source   string   `ch:"source"`
		Asked    uint64   `ch:"asked"`
		Answered uint64   `ch:"answered"`
		MeanMs   float64  `ch:"mean_ms"`
		Failures []string `ch:"failures"`
	}
	if err := db.listBuffered(ctx, &rows, sourceHealth, ch.Named("since_ms", millis(since)), ch.Named("runs", uint32(runs))); err != nil {
		return nil, fmt.Errorf("read the health of sources: %w", err)
	}
	health := make([]scoring.SourceHealth, len(rows))
	for i, r := range rows {
		health[i] = scoring.SourceHealth{Source: r.Source, Asked: r.Asked, Answered: r.Answered,
			Mean: time.Duration(r.MeanMs * float64(time.Millisecond)), Failures: r.Failures}
	}
	return health, nil
}
