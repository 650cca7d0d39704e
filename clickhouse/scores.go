package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/coalesce"
	"companyscore/scoring"
	"companyscore/sql"
	"companyscore/universe"
)

var (
	scoreInsert        = sql.Query("score_insert")
	scoreHeads         = sql.Query("score_heads")
	scoreAt            = sql.Query("score_at")
	scoreFirst         = sql.Query("score_first")
	scoreFresh         = sql.Query("score_fresh")
	scoreNewest        = sql.Query("score_newest")
	scoreLast          = sql.Query("score_last")
	scoreHistory       = sql.Query("score_history")
	scoreHistoryOldest = sql.Query("score_history_oldest")
	scoreRecords       = sql.Query("score_newest_records")
)

// headsPause is the minimum time between two coalesced lookups of newest records. Planning
// one query takes ClickHouse about 6 ms of CPU, for one company or for 200.
const headsPause = 25 * time.Millisecond

// Scores reads and writes records. It is safe for concurrent use.
type Scores struct {
	db      *DB
	writer  *writer[recordRow]
	earlier *coalesce.Coalescer[earlierKey, scoring.Earlier]
	heads   *coalesce.Coalescer[string, headRow]
	records *coalesce.Coalescer[string, recordRow]
}

// NewScores returns the store of records in db. The caller closes it before db; Close
// writes the records in flight.
func NewScores(db *DB, cfg WriterConfig) *Scores {
	s := &Scores{db: db, writer: newWriter(db, cfg, scoreInsert, func(r *recordRow) string { return "record of " + r.Domain })}
	s.earlier = coalesce.New(coalesce.Config[earlierKey, scoring.Earlier]{Query: s.manyEarlier, KeysMax: runPage, Pause: runPause,
		Timeout: runTimeout})
	s.heads = coalesce.New(coalesce.Config[string, headRow]{Query: s.latestHeads, KeysMax: runPage, Pause: headsPause})
	s.records = coalesce.New(coalesce.Config[string, recordRow]{Query: s.latestRecords, KeysMax: runPage, Pause: headsPause})
	return s
}

// Write stores a record and returns when it is durable. A second write of the same record
// replaces the first. Write retries transient errors until ctx ends; the record may then
// be stored although Write returns an error.
func (s *Scores) Write(ctx context.Context, rec scoring.Record) error {
	return s.writer.write(ctx, newRecordRow(rec))
}

// WriteGroup stores records with one insert. It returns one error per record, nil if the
// record is durable. A record that ClickHouse rejects does not affect the others. It
// retries like Write.
func (s *Scores) WriteGroup(ctx context.Context, records []scoring.Record) []error {
	rows := make([]*recordRow, len(records))
	for i, rec := range records {
		rows[i] = newRecordRow(rec)
	}
	return s.writer.writeGroup(ctx, rows)
}

// Close rejects further records, waits until those in flight are written or ctx ends, and
// stops the writer.
func (s *Scores) Close(ctx context.Context) error { return s.writer.close(ctx) }

// headRow has the columns that score_latest and score_history have in common, without signals.
type headRow struct {
	Domain            string    `ch:"domain"`
	ScoredAt          time.Time `ch:"scored_at"`
	PipelineVersion   string    `ch:"pipeline_version"`
	RunID             string    `ch:"run_id"`
	CompanyName       string    `ch:"company_name"`
	Country           string    `ch:"country"`
	Sector            string    `ch:"sector"`
	GeoScope          string    `ch:"geo_scope"`
	Profile           string    `ch:"profile"`
	Rating            string    `ch:"rating"`
	Composite         float64   `ch:"composite"`
	IntervalLow       float64   `ch:"interval_low"`
	IntervalHigh      float64   `ch:"interval_high"`
	ExpectedComposite float64   `ch:"expected_composite"`
	Base              float64   `ch:"base"`
	ScalePremium      float64   `ch:"scale_premium"`
	TeamStructure     float64   `ch:"team_structure"`
	MarketPosition    float64   `ch:"market_position"`
	MomentumTailwinds float64   `ch:"momentum_tailwinds"`
	FinancialHealth   float64   `ch:"financial_health"`
	MomentumIndex     float64   `ch:"momentum_index"`
	CompletenessPct   float64   `ch:"completeness_pct"`
	Confidence        string    `ch:"confidence"`
	WrittenAt         time.Time `ch:"written_at"` // read for summaries only, as is ID
	ID                uint64    `ch:"record_id"`
}

// recordRow is a row of score_history.
type recordRow struct {
	headRow
	TeamCompleteness      float64     `ch:"team_structure_completeness_pct"`
	MarketCompleteness    float64     `ch:"market_position_completeness_pct"`
	MomentumCompleteness  float64     `ch:"momentum_tailwinds_completeness_pct"`
	FinancialCompleteness float64     `ch:"financial_health_completeness_pct"`
	SignalID              []string    `ch:"signal.id"`
	SignalState           []string    `ch:"signal.state"`
	SignalRaw             []float64   `ch:"signal.raw"`
	SignalScore           []float64   `ch:"signal.score"`
	SignalSource          []string    `ch:"signal.source"`
	SignalOrigin          []string    `ch:"signal.origin"`
	SignalReason          []string    `ch:"signal.reason"`
	SignalObservedAt      []time.Time `ch:"signal.observed_at"`
	SignalShare           []float64   `ch:"signal.share"` // written only
	WarningSource         []string    `ch:"warning.source"`
	WarningCode           []string    `ch:"warning.code"`
	WarningAt             []time.Time `ch:"warning.at"`
}

func newRecordRow(r scoring.Record) *recordRow {
	row := &recordRow{
		headRow: headRow{
			Domain: r.Domain, ScoredAt: r.ScoredAt, PipelineVersion: r.PipelineVersion, RunID: r.RunID,
			CompanyName: r.CompanyName, Country: r.Country, Sector: r.Sector, GeoScope: r.GeoScope,
			Profile: string(r.Profile), Rating: string(r.Rating), Composite: r.Composite,
			IntervalLow: r.Interval.Low, IntervalHigh: r.Interval.High, ExpectedComposite: r.ExpectedComposite, Base: r.Base,
			ScalePremium:  r.ScalePremium,
			TeamStructure: r.Buckets.TeamStructure, MarketPosition: r.Buckets.MarketPosition,
			MomentumTailwinds: r.Buckets.MomentumTailwinds, FinancialHealth: r.Buckets.FinancialHealth,
			MomentumIndex: r.MomentumIndex, CompletenessPct: r.CompletenessPct, Confidence: string(r.Confidence),
		},
		TeamCompleteness: r.BucketCompleteness.TeamStructure, MarketCompleteness: r.BucketCompleteness.MarketPosition,
		MomentumCompleteness: r.BucketCompleteness.MomentumTailwinds, FinancialCompleteness: r.BucketCompleteness.FinancialHealth,
	}
	for _, s := range r.Signals {
		row.SignalID = append(row.SignalID, s.ID)
		row.SignalState = append(row.SignalState, string(s.State))
		row.SignalRaw = append(row.SignalRaw, s.Raw)
		row.SignalScore = append(row.SignalScore, s.Score)
		row.SignalSource = append(row.SignalSource, s.Source)
		row.SignalOrigin = append(row.SignalOrigin, s.Origin)
		row.SignalReason = append(row.SignalReason, string(s.Reason))
		row.SignalObservedAt = append(row.SignalObservedAt, toColumn(s.ObservedAt))
	}
	if len(r.Signals) > 0 {
		row.SignalShare = scoring.Shares(r)
	}
	for _, w := range r.Warnings {
		row.WarningSource = append(row.WarningSource, w.Source)
		row.WarningCode = append(row.WarningCode, w.Code)
		row.WarningAt = append(row.WarningAt, w.At)
	}
	return row
}

func (h *headRow) record() scoring.Record {
	return scoring.Record{
		Domain: h.Domain, ScoredAt: h.ScoredAt.UTC(), PipelineVersion: h.PipelineVersion, RunID: h.RunID,
		CompanyName: h.CompanyName, Country: h.Country, Sector: h.Sector, GeoScope: h.GeoScope,
		Profile: scoring.Profile(h.Profile), Rating: scoring.Rating(h.Rating), Composite: h.Composite,
		Interval:          scoring.Interval{Low: h.IntervalLow, High: h.IntervalHigh, Level: scoring.IntervalLevel},
		ExpectedComposite: h.ExpectedComposite, Base: h.Base, ScalePremium: h.ScalePremium,
		Buckets: scoring.BucketScores{
			TeamStructure: h.TeamStructure, MarketPosition: h.MarketPosition,
			MomentumTailwinds: h.MomentumTailwinds, FinancialHealth: h.FinancialHealth,
		},
		MomentumIndex: h.MomentumIndex, CompletenessPct: h.CompletenessPct, Confidence: scoring.Band(h.Confidence),
	}
}

func (h *headRow) stored() universe.Stored {
	return universe.Stored{Record: h.record(), ID: h.ID, WrittenAt: h.WrittenAt.UTC()}
}

func (r *recordRow) record() scoring.Record {
	rec := r.headRow.record()
	rec.BucketCompleteness = scoring.BucketScores{
		TeamStructure: r.TeamCompleteness, MarketPosition: r.MarketCompleteness,
		MomentumTailwinds: r.MomentumCompleteness, FinancialHealth: r.FinancialCompleteness,
	}
	for i := range r.SignalID {
		rec.Signals = append(rec.Signals, scoring.SignalScore{
			ID: r.SignalID[i], State: scoring.State(r.SignalState[i]), Raw: r.SignalRaw[i], Score: r.SignalScore[i],
			Source: r.SignalSource[i], Origin: r.SignalOrigin[i], Reason: scoring.Reason(r.SignalReason[i]),
			ObservedAt: fromColumn(r.SignalObservedAt[i]),
		})
	}
	for i := range r.WarningSource {
		rec.Warnings = append(rec.Warnings, scoring.Warning{Source: r.WarningSource[i], Code: r.WarningCode[i], At: r.WarningAt[i].UTC()})
	}
	return rec
}

// LatestHeads returns the newest records by domain, without signals, warnings and
// completeness per bucket. Domains without a record are not in the map.
func (s *Scores) LatestHeads(ctx context.Context, domains []string) (map[string]scoring.Record, error) {
	rows, err := s.latestHeads(ctx, domains)
	if err != nil {
		return nil, err
	}
	records := make(map[string]scoring.Record, len(rows))
	for domain, row := range rows {
		records[domain] = row.record()
	}
	return records, nil
}

func (s *Scores) latestHeads(ctx context.Context, domains []string) (map[string]headRow, error) {
	rows, err := listOf[headRow](ctx, s.db, scoreHeads, domains)
	if err != nil {
		return nil, fmt.Errorf("latest scores of %d companies: %w", len(domains), err)
	}
	heads := make(map[string]headRow, len(rows))
	for _, row := range rows {
		heads[row.Domain] = row
	}
	return heads, nil
}

// Newest returns the newest record of a company with the fields of LatestHeads, or
// scoring.ErrNotFound. Concurrent calls share queries.
func (s *Scores) Newest(ctx context.Context, domain string) (universe.Stored, error) {
	head, found, err := s.heads.Get(ctx, domain)
	if err == nil && !found {
		err = scoring.ErrNotFound
	}
	if err != nil {
		return universe.Stored{}, fmt.Errorf("newest score of %s: %w", domain, err)
	}
	return head.stored(), nil
}

// Latest returns the newest record of a company with its signals, or scoring.ErrNotFound.
// Concurrent calls share queries.
func (s *Scores) Latest(ctx context.Context, domain string) (scoring.Record, error) {
	row, found, err := s.records.Get(ctx, domain)
	if err == nil && !found {
		err = scoring.ErrNotFound
	}
	if err != nil {
		return scoring.Record{}, fmt.Errorf("newest record of %s: %w", domain, err)
	}
	return row.record(), nil
}

func (s *Scores) latestRecords(ctx context.Context, domains []string) (map[string]recordRow, error) {
	rows, err := listOf[recordRow](ctx, s.db, scoreRecords, domains)
	if err != nil {
		return nil, fmt.Errorf("newest records of %d companies: %w", len(domains), err)
	}
	records := make(map[string]recordRow, len(rows))
	for _, row := range rows {
		records[row.Domain] = row
	}
	return records, nil
}

// At returns the newest record of a company at or before an instant with its signals, or
// scoring.ErrNotFound.
func (s *Scores) At(ctx context.Context, domain string, at time.Time) (scoring.Record, error) {
	var row recordRow
	found, err := s.db.first(ctx, &row, scoreAt, ch.Named("domain", domain), ch.Named("at_ms", millis(at)))
	if err == nil && !found {
		err = scoring.ErrNotFound
	}
	if err != nil {
		return scoring.Record{}, fmt.Errorf("record of %s at %s: %w", domain, at.Format(time.RFC3339), err)
	}
	return row.record(), nil
}

// First returns the oldest record of a company with its signals, or scoring.ErrNotFound.
func (s *Scores) First(ctx context.Context, domain string) (scoring.Record, error) {
	var row recordRow
	found, err := s.db.first(ctx, &row, scoreFirst, ch.Named("domain", domain))
	if err == nil && !found {
		err = scoring.ErrNotFound
	}
	if err != nil {
		return scoring.Record{}, fmt.Errorf("first record of %s: %w", domain, err)
	}
	return row.record(), nil
}

// lastInstant is the last day that a DateTime64 can represent.
var lastInstant = time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC)

// History returns up to limit records of a company in a span, with the fields of LatestHeads.
func (s *Scores) History(ctx context.Context, domain string, span scoring.Span, limit int) ([]scoring.Record, error) {
	if span.From.IsZero() {
		span.From = time.UnixMilli(0)
	}
	if span.To.IsZero() {
		span.To = lastInstant
	}
	query := scoreHistory
	if span.OldestFirst {
		query = scoreHistoryOldest
	}
	var rows []headRow
	err := s.db.listBuffered(ctx, &rows, query, ch.Named("domain", domain), ch.Named("from_ms", millis(span.From)),
		ch.Named("before_ms", millis(span.To)), ch.Named("limit", uint32(limit)))
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", domain, err)
	}
	records := make([]scoring.Record, len(rows))
	for i := range rows {
		records[i] = rows[i].record()
	}
	return records, nil
}

// scoredRow is a company with the time of a record.
type scoredRow struct {
	Domain   string    `ch:"domain"`
	ScoredAt time.Time `ch:"scored_at"`
}

// NewestAt returns the time of the newest record per domain, of any pipeline version.
// Domains without a record are not in the map.
func (s *Scores) NewestAt(ctx context.Context, domains []string) (map[string]time.Time, error) {
	rows, err := listOf[scoredRow](ctx, s.db, scoreNewest, domains)
	if err != nil {
		return nil, fmt.Errorf("newest scores of %d companies: %w", len(domains), err)
	}
	newest := make(map[string]time.Time, len(rows))
	for _, row := range rows {
		if row.ScoredAt.After(newest[row.Domain]) {
			newest[row.Domain] = row.ScoredAt.UTC()
		}
	}
	return newest, nil
}

// LastScoredAt returns the time of the newest of all records, or the zero time if there
// is no record. The query reads no rows.
func (db *DB) LastScoredAt(ctx context.Context) (time.Time, error) {
	var row struct {
		ScoredAt time.Time `ch:"scored_at"`
	}
	if _, err := db.first(ctx, &row, scoreLast); err != nil {
		return time.Time{}, fmt.Errorf("find the newest record: %w", err)
	}
	return fromColumn(row.ScoredAt), nil
}

// FreshSince returns the domains whose newest record of the current pipeline version was
// scored at or after at, with the time of that record.
func (s *Scores) FreshSince(ctx context.Context, domains []string, at time.Time) (map[string]time.Time, error) {
	rows, err := listOf[scoredRow](ctx, s.db, scoreFresh, domains,
		ch.Named("version", scoring.PipelineVersion), ch.Named("since_ms", millis(at)))
	if err != nil {
		return nil, fmt.Errorf("find fresh scores: %w", err)
	}
	fresh := make(map[string]time.Time, len(rows))
	for _, row := range rows {
		fresh[row.Domain] = row.ScoredAt.UTC()
	}
	return fresh, nil
}
