package console

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/account"
	"companyscore/internal/domainname"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/scoring/source/status"
	"companyscore/server/api"
	"companyscore/universe"
)

const (
	searchMax  = 20  // companies of a list
	textMax    = 100 // bytes of a searched text
	historyMax = 200 // records of the history of a company
	// raisesMax is the number of missing signals that a page names for each advice, and
	// completeEnough the completeness in percent from which it gives none.
	raisesMax      = 6
	completeEnough = 50
	// peersMax is the number of peers that a page names.
	peersMax = 6
)

// CompanyStore has what the pages of companies read.
type CompanyStore interface {
	// SearchCompanies returns companies whose domain or name begins with a prefix in lower case.
	SearchCompanies(ctx context.Context, prefix string, limit int) ([]scoring.Record, error)
	Latest(ctx context.Context, domain string) (scoring.Record, error)
	// History returns records before an instant, newest first; a zero instant means no bound.
	History(ctx context.Context, domain string, span scoring.Span, limit int) ([]scoring.Record, error)
	// At returns the newest record at or before an instant.
	At(ctx context.Context, domain string, at time.Time) (scoring.Record, error)
	Newest(ctx context.Context, domain string) (universe.Stored, error)
	// GetMany returns the imported facts of companies by domain.
	GetMany(ctx context.Context, domains []string) (map[string][]scoring.CompanyFacts, error)
	universe.Writes
}

// KeyID returns the id under which the cold calls of the console are counted for an account.
func KeyID(accountID string) string { return "console:" + accountID }

// searchText returns the form of a text in which it is searched: lower case, with single spaces, cut
// at textMax bytes. An address becomes its domain.
func searchText(raw string) string {
	raw = strings.ReplaceAll(strings.ToValidUTF8(raw, ""), "\x00", "")
	text := strings.ToLower(strings.Join(strings.Fields(raw), " "))
	if strings.Contains(text, "://") || strings.HasPrefix(text, "www.") {
		if domain, err := domainname.Clean(text); err == nil {
			text = domain
		}
	}
	if len(text) > textMax {
		cut := textMax
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = strings.TrimSpace(text[:cut])
	}
	return text
}

type searchBody struct {
	Text   string
	Found  []scoring.Record
	Domain string // that the text names, if no company has it
}

func (c *Console) search(v *visit) error {
	body := searchBody{Text: searchText(v.r.URL.Query().Get("q"))}
	if body.Text == "" {
		return v.redirect("")
	}
	var err error
	if body.Found, err = c.Stores.Companies.SearchCompanies(v.ctx(), body.Text, searchMax); err != nil {
		return err
	}
	if domain, err := domainname.Parse(body.Text); err == nil && !domainname.IsTest(domain) {
		exact := slices.ContainsFunc(body.Found, func(r scoring.Record) bool { return r.Domain == domain })
		if exact && len(body.Found) == 1 {
			return v.redirect("/companies/" + domain)
		}
		if !exact {
			body.Domain = domain
		}
	}
	return v.render("search", "Search", "companies", body)
}

// companyBody is the page of a company.
type companyBody struct {
	scoring.Record
	Explanation scoring.Explanation
	Confidence  api.Confidence
	Signals     map[scoring.Bucket][]scoring.SignalPart
	Gauge       gauge
	Chart       template.HTML
	History     []scoring.Record // newest first
	Change      *change
	Ranked      bool
	Percentile  int
	Companies   int64
	Histogram   histogram
	Cohort      *api.Cohort        // nil before the first count, or without a cohort
	Peers       []universe.Company // the best of the cohort that have data
	NoData      int                // companies without data that were left out of Peers
	Raises      []raise            // empty if the record is complete enough
	Running     bool               // a run was started from this page
	Key         string             // idempotency key of the form
	Stale       map[string]bool
}

// Faint reports whether so little is known that ranks say nothing yet.
func (b companyBody) Faint() bool { return b.Record.Confidence == scoring.BandDirectional }

// refresh loads the page again while a run is in flight.
func (b companyBody) refresh() int { return map[bool]int{true: 2}[b.Running] }

// change is the difference from the previous record.
type change struct {
	scoring.Attribution
	From    scoring.Record
	Signals []namedChange
}

type namedChange struct {
	scoring.SignalChange
	Name string
}

// raise is what would make some missing signals known.
type raise struct {
	Advice  string
	Points  float64 // of completeness, of all these signals
	Signals []api.MissingSignal
	More    int // signals that are not named
}

// advice says what makes a missing signal known, by the reason why it is missing.
var advice = map[scoring.Reason]string{
	scoring.ReasonSourceDisabled:      "The sources are off. Start with `companyscore up --contact you@example.com`, which asks them.",
	scoring.ReasonNotFound:            "No source has them. Import them with `companyscore facts import`.",
	scoring.ReasonInsufficientHistory: "They need earlier records. Score the company again later.",
	scoring.ReasonUnresolvedIdentity:  "The company is not identified. Import its name and country.",
	scoring.ReasonAmbiguousName:       "Several companies have the name. Import its name and country.",
	scoring.ReasonUnsupportedProvider: "The provider cannot be read. Import the value.",
	scoring.ReasonBlockedByRobots:     "The site does not allow robots. Import the value.",
	scoring.ReasonSourceTimeout:       "The source did not answer in time. The next run asks again.",
	scoring.ReasonSourceError:         "The source failed. The next run asks again.",
	scoring.ReasonSourceRateLimited:   "The source limits requests. The next run asks again.",
	scoring.ReasonNotApplicable:       "The source does not apply to the company. Import the value.",
}

// raisesOf groups missing signals by what would make them known, the largest weight first.
func raisesOf(missing []api.MissingSignal) []raise {
	missing = slices.Clone(missing)
	slices.SortStableFunc(missing, func(a, b api.MissingSignal) int { return cmp.Compare(b.CompositeWeight, a.CompositeWeight) })
	var all []raise
	for _, m := range missing {
		i := slices.IndexFunc(all, func(r raise) bool { return r.Advice == advice[m.Reason] })
		if i < 0 {
			i = len(all)
			all = append(all, raise{Advice: advice[m.Reason]})
		}
		all[i].Points += 100 * m.CompositeWeight
		if len(all[i].Signals) < raisesMax {
			all[i].Signals = append(all[i].Signals, m)
		} else {
			all[i].More++
		}
	}
	slices.SortStableFunc(all, func(a, b raise) int { return cmp.Compare(b.Points, a.Points) })
	return all
}

// unscored is the page of a company without a record.
type unscored struct {
	Domain  string
	Key     string // of the form; a page that shows a fault has that of the refused form
	Running bool
	Fault   string
	Free    bool
	Asked   asked
}

func (b unscored) refresh() int { return map[bool]int{true: 2}[b.Running] }

// asked is which sources a run of a company asks now, and what they can tell.
type asked struct {
	Facts    bool            // imported facts
	Imported bool            // there are facts of the company
	Live     []status.Source // the others
	Signals  int             // that live sources can tell
}

// Any reports whether a worker runs.
func (a asked) Any() bool { return a.Facts || len(a.Live) > 0 }

// Nothing reports whether a run can learn nothing about the company.
func (a asked) Nothing() bool { return a.Any() && len(a.Live) == 0 && !a.Imported }

// showUnscored answers with the page of a company without a record.
func (c *Console) showUnscored(v *visit, body unscored) error {
	body.Free = v.account.Plan == account.Free
	sources, err := status.Read(v.ctx(), c.Redis, c.now())
	if err != nil {
		return err
	}
	var live []string
	for _, s := range sources {
		if s.Name == scoring.FactsSource {
			body.Asked.Facts = true
			continue
		}
		live, body.Asked.Live = append(live, s.Name), append(body.Asked.Live, s)
	}
	body.Asked.Signals = scoring.SignalsFrom(live...)
	facts, err := c.Stores.Companies.GetMany(v.ctx(), []string{body.Domain})
	if err != nil {
		return err
	}
	body.Asked.Imported = len(facts) > 0
	return v.render("unscored", body.Domain, "companies", body)
}

// withData returns the companies of a list that have data, and the number of the others.
func withData[T any](all []T, hasData func(T) bool) (shown []T, others int) {
	for _, one := range all {
		if hasData(one) {
			shown = append(shown, one)
		}
	}
	return shown, len(all) - len(shown)
}

func (c *Console) company(v *visit) error {
	domain, err := domainname.Parse(v.r.PathValue("domain"))
	if err != nil {
		return errNotFound.with("This is not a domain: %s.", strings.TrimPrefix(err.Error(), domainname.ErrInvalid.Error()+": "))
	}
	// A page that has started a run shows the time of the start until a newer record is stored.
	started, _ := time.Parse(time.RFC3339, v.r.URL.Query().Get("started"))
	running := c.now().Sub(started) < 3*time.Minute
	var rec scoring.Record
	var newest universe.Stored
	var history []scoring.Record
	reads, ctx := errgroup.WithContext(v.ctx())
	reads.Go(func() (err error) { rec, err = c.Stores.Companies.Latest(ctx, domain); return err })
	reads.Go(func() (err error) { newest, err = c.Stores.Companies.Newest(ctx, domain); return err })
	reads.Go(func() (err error) {
		history, err = c.Stores.Companies.History(ctx, domain, scoring.Span{}, historyMax)
		return err
	})
	err = reads.Wait()
	if errors.Is(err, scoring.ErrNotFound) {
		return c.showUnscored(v, unscored{Domain: domain, Key: newSecret(), Running: running})
	}
	if err != nil {
		return err
	}
	body := companyBody{
		Record: rec, Key: newSecret(), Explanation: scoring.Explain(rec), Confidence: api.NewConfidence(rec),
		Signals: make(map[scoring.Bucket][]scoring.SignalPart),
		Gauge:   newGauge(rec), History: history, Chart: historyChart(history), Running: running && rec.ScoredAt.Before(started),
		Stale: make(map[string]bool),
	}
	for _, s := range body.Explanation.Signals {
		body.Signals[s.Bucket] = append(body.Signals[s.Bucket], s)
	}
	for _, s := range body.Confidence.Stale {
		body.Stale[s.ID] = true
	}
	if rec.CompletenessPct < completeEnough {
		body.Raises = raisesOf(body.Confidence.Missing)
	}
	// The history was read beside the record, so it may have a newer one or lack this one.
	earlier := slices.IndexFunc(history, func(r scoring.Record) bool { return r.ScoredAt.Before(rec.ScoredAt) })
	if earlier >= 0 {
		before, err := c.Stores.Companies.At(v.ctx(), domain, history[earlier].ScoredAt)
		if err != nil {
			return err
		}
		body.Change = newChange(before, rec)
	}
	if err := c.place(v, newest, &body); err != nil {
		return err
	}
	return v.render("company", rec.CompanyName, "companies", body)
}

func newChange(from, to scoring.Record) *change {
	d := &change{Attribution: scoring.Attribute(from, to), From: from}
	for _, s := range d.Attribution.Signals {
		signal, _ := scoring.Lookup(s.ID)
		d.Signals = append(d.Signals, namedChange{s, signal.Name})
	}
	return d
}

// place adds the place of the company in the universe and in its cohort.
func (c *Console) place(v *visit, newest universe.Stored, body *companyBody) error {
	tables := c.Universe.Tables(c.now())
	if tables == nil || body.PipelineVersion != tables.PipelineVersion() {
		return nil
	}
	body.Ranked = true
	body.Percentile, body.Companies = tables.Rank(body.Composite)
	d := tables.Distribution()
	body.Histogram = newHistogram(d.CompositeHist[:], 100, body.Composite, "the composite", halfWidth)
	if !scoring.KeyOf(body.Record).Peers() {
		return nil
	}
	counted, err := tables.CountedRecord(v.ctx(), c.Stores.Companies, newest)
	if err != nil {
		return err
	}
	comparison := tables.Compare(newest.Record, counted)
	cohort := api.NewCohort(newest.Record, comparison)
	body.Cohort = &cohort
	body.Peers, body.NoData = withData(comparison.Members, universe.Company.HasData)
	body.Peers = body.Peers[:min(len(body.Peers), peersMax)]
	return nil
}

// scoreCompany starts a run, or finds a fresh score, as POST /v1/score does. All requests with one form
// are one call, since the form has an idempotency key.
func (c *Console) scoreCompany(v *visit) error {
	domain, err := domainname.Parse(v.r.PathValue("domain"))
	if err != nil {
		return errNotFound
	}
	key := v.r.PostFormValue("key")
	if !tokenIsSane(key) {
		return errForm
	}
	if err := v.audit(table.ScoreStarted, domain, "form "+key); err != nil {
		return err
	}
	started, err := c.Scorer.Score(v.ctx(), v.account, domain, key, c.now())
	var refused *NotStarted
	if errors.As(err, &refused) {
		v.status = refused.Status
		v.retryAfter(refused.RetryAfter)
		return c.showUnscored(v, unscored{Domain: domain, Key: key, Fault: refused.Message})
	}
	if err != nil {
		return err
	}
	if started.IsZero() {
		return v.redirect("/companies/" + domain)
	}
	return v.redirect("/companies/" + domain + "?started=" + started.UTC().Format(time.RFC3339))
}
