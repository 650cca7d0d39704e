package fakesources

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"companyscore/scoring"
)

// Seen is the result of one signal.
type Seen struct {
	State  scoring.State
	Raw    float64
	Reason scoring.Reason
}

// Outcome is the result of one run.
type Outcome struct {
	ScoredAt        time.Time
	CompletenessPct float64
	Signals         map[string]Seen
	// Warnings are the codes by source.
	Warnings map[string]string
}

// want is the expected result of a signal. A missing signal has one of the reasons.
type want struct {
	state   scoring.State
	raw     float64
	reasons []scoring.Reason
}

// Check compares an outcome with the data of a company and the injected faults. It returns the
// differences.
func (fakes *Fakes) Check(c *Company, got Outcome) (faults []string) {
	injected := make(map[string]Kind)
	warnings := make(map[string]string)
	for _, f := range fakes.Injected(c.Domain) {
		injected[f.Source] = f.Kind
		warnings[f.Source] = f.Kind.code(f.Source)
	}
	e := expectation{company: c, fakes: fakes, at: got.ScoredAt, injected: injected, wants: make(map[string]want)}
	e.all()
	if registered := e.wants["legal_entity_registered"]; registered.state == scoring.StateOK && registered.raw == 0 {
		warnings["gleif"] = scoring.WarningDefunct
	}
	for source, code := range warnings {
		if got.Warnings[source] != code {
			faults = append(faults, fmt.Sprintf("%s: warning of %s %q, want %q", c.Domain, source, got.Warnings[source], code))
		}
	}
	for source, code := range got.Warnings {
		if warnings[source] == "" {
			faults = append(faults, fmt.Sprintf("%s: warning of %s %q, want none", c.Domain, source, code))
		}
	}
	known, applicable := make(map[scoring.Bucket]float64), make(map[scoring.Bucket]float64) // weights
	for _, signal := range scoring.Manifest() {
		wanted, ok := e.wants[signal.ID]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: nothing is expected of %s", c.Domain, signal.ID))
			continue
		}
		if wanted.state != scoring.StateNotApplicable {
			applicable[signal.Bucket] += signal.Weight
		}
		if wanted.state == scoring.StateOK || wanted.state == scoring.StateAbsent {
			known[signal.Bucket] += signal.Weight
		}
		seen := got.Signals[signal.ID]
		switch {
		case seen.State != wanted.state:
		case wanted.state == scoring.StateMissing && slices.Contains(wanted.reasons, seen.Reason):
			continue
		case wanted.state != scoring.StateMissing && math.Abs(seen.Raw-wanted.raw) <= 1e-6*(1+math.Abs(wanted.raw)):
			continue
		}
		faults = append(faults, fmt.Sprintf("%s: %s: %s %g %s, want %s %g %v", c.Domain, signal.ID, seen.State, seen.Raw, seen.Reason,
			wanted.state, wanted.raw, wanted.reasons))
	}
	// Rounded to one decimal, either way at a half.
	var pct float64
	for bucket, weight := range known {
		pct += 100 * bucket.Weight() * weight / applicable[bucket]
	}
	if math.Abs(pct-got.CompletenessPct) > 0.05+1e-9 {
		faults = append(faults, fmt.Sprintf("%s: completeness %.1f, want %.3f", c.Domain, got.CompletenessPct, pct))
	}
	return faults
}

// expectation computes the expected signals of a company from its data, by the definitions of the
// signals.
type expectation struct {
	company  *Company
	fakes    *Fakes
	at       time.Time
	injected map[string]Kind
	wants    map[string]want
}

func (e *expectation) failed(source string) bool { return e.injected[source] != "" }

// ok, absent and missing set the expected result of signals.
func (e *expectation) ok(signal string, raw float64) {
	e.wants[signal] = want{state: scoring.StateOK, raw: raw}
}

func (e *expectation) absent(signals ...string) {
	for _, id := range signals {
		signal, _ := scoring.Lookup(id)
		if _, counts := signal.Curve.Absent(); counts {
			e.wants[id] = want{state: scoring.StateAbsent}
		} else {
			e.missing(scoring.ReasonNotFound, id)
		}
	}
}

func (e *expectation) missing(reason scoring.Reason, signals ...string) {
	for _, id := range signals {
		e.wants[id] = want{state: scoring.StateMissing, reasons: []scoring.Reason{reason}}
	}
}

// count expects ok for n > 0, and absent for 0.
func (e *expectation) count(signal string, n int) {
	if n == 0 {
		e.absent(signal)
		return
	}
	e.ok(signal, float64(n))
}

// lost expects missing signals if one of the sources failed, and reports whether one did.
func (e *expectation) lost(sources []string, signals ...string) bool {
	var reasons []scoring.Reason
	for _, source := range sources {
		switch e.injected[source] {
		case "":
		case Hang:
			reasons = append(reasons, scoring.ReasonSourceTimeout)
		case Limited:
			reasons = append(reasons, scoring.ReasonSourceRateLimited)
		case Robots:
			reasons = append(reasons, scoring.ReasonBlockedByRobots)
		default:
			reasons = append(reasons, scoring.ReasonSourceError)
		}
	}
	if reasons == nil {
		return false
	}
	for _, signal := range signals {
		e.wants[signal] = want{state: scoring.StateMissing, reasons: reasons}
	}
	return true
}

// offer is the value of one source, if it has one.
type offer struct {
	source string
	has    bool
	value  float64
}

// first expects the value of the first source that has one and did not fail. Without any it
// expects an absence, unless a source failed.
func (e *expectation) first(signal string, offers ...offer) {
	var sources []string
	for _, o := range offers {
		sources = append(sources, o.source)
		if o.has && !e.failed(o.source) {
			e.ok(signal, o.value)
			return
		}
	}
	if !e.lost(sources, signal) {
		e.absent(signal)
	}
}

func (e *expectation) days(since time.Time) float64  { return e.at.Sub(since).Hours() / 24 }
func (e *expectation) years(since time.Time) float64 { return e.days(since) / 365.25 }

func truths(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// named reports whether the item or the site gives the company's name.
func (e *expectation) named() bool { return !e.failed("web") || e.item() }

func (e *expectation) item() bool { return e.company.QID != "" && !e.failed("wikidata") }

func (e *expectation) all() {
	e.names()
	e.site()
	e.hiring()
	e.wikimedia()
	e.money()
	e.entity()
	e.repositories()
	e.archived()
	e.attention()
	e.ranks()
	e.together()
	e.exclude()
}

// exclude expects that signals which mean nothing for the company are not applicable.
func (e *expectation) exclude() {
	sector := scoring.Unknown
	if e.named() {
		sector = e.company.Sector.key
	}
	listing := e.wants["public_listing"].state
	for _, signal := range scoring.Manifest() {
		excluded := slices.Contains(signal.NotFor, sector)
		if e.wants[signal.ID].state != scoring.StateOK {
			excluded = excluded || listing == scoring.StateOK && slices.Contains(signal.NotFor, scoring.Listed) ||
				listing == scoring.StateAbsent && slices.Contains(signal.NotFor, scoring.Unlisted)
		}
		if excluded {
			e.wants[signal.ID] = want{state: scoring.StateNotApplicable}
		}
	}
}

// names are the signals of the registry, name servers and certificate logs.
func (e *expectation) names() {
	c := e.company
	if !e.lost([]string{"rdap"}, "domain_renewal_runway_days") {
		e.missing(scoring.ReasonNotFound, "domain_renewal_runway_days")
		if !c.Expires.IsZero() {
			e.ok("domain_renewal_runway_days", -e.days(c.Expires))
		}
	}
	e.first("organization_age_years",
		offer{"wikidata", c.QID != "", e.years(c.Founded)},
		offer{"web", !c.Site.Founded.IsZero(), e.years(c.Site.Founded)},
		offer{"rdap", !c.Registered.IsZero(), e.years(c.Registered)})
	if !e.lost([]string{"dns"}, "email_auth_maturity", "saas_tooling_breadth") {
		e.ok("email_auth_maturity", float64(truths(c.Mail != "", c.SPF, c.DMARC != "", c.DMARC == "reject" || c.DMARC == "quarantine",
			c.STS || c.Reports)))
		vendors := make(map[string]bool)
		for _, vendor := range slices.Concat(c.Tokens, c.Senders) {
			vendors[vendor] = true
		}
		e.count("saas_tooling_breadth", len(vendors))
	}
	if !e.lost([]string{"ct"}, "subdomain_breadth") {
		e.count("subdomain_breadth", c.Hosts)
	}
}

// site are the signals of the company's own pages.
func (e *expectation) site() {
	s := e.company.Site
	if e.lost([]string{"web"}, "team_page_present", "careers_page_present", "product_surface", "customer_proof", "monetization_evidence",
		"site_language_count",
		"site_size_urls", "social_profile_breadth", "content_freshness_days", "content_cadence_90d", "ats_in_use") {
		return
	}
	e.count("team_page_present", truths(s.Team))
	e.count("careers_page_present", truths(s.Careers))
	e.count("ats_in_use", truths(s.Board != ""))
	e.count("product_surface", truths(s.Pricing, s.Docs, s.Products, s.Integrations, s.Login, s.Status))
	e.count("customer_proof", truths(s.Customers, s.Testimonial, s.CaseStudies >= 5))
	e.count("monetization_evidence", truths(s.Pricing, s.Pricing && s.Priced, s.Sales, s.Terms || s.Paying))
	e.count("social_profile_breadth", len(s.Social))
	e.count("site_size_urls", s.Pages)
	e.absent("site_language_count")
	if len(s.Languages) > 0 {
		e.ok("site_language_count", float64(len(s.Languages)+1))
	}
	var newest time.Time
	recent := 0
	for _, post := range s.Posts {
		if post.After(newest) {
			newest = post
		}
		recent += truths(e.days(post) <= 90)
	}
	e.absent("content_freshness_days", "content_cadence_90d")
	if !newest.IsZero() {
		e.ok("content_freshness_days", e.days(newest))
		e.count("content_cadence_90d", recent)
	}
}

// hiring are the signals of job boards.
func (e *expectation) hiring() {
	c := e.company
	all := []string{"open_roles", "department_breadth", "technical_role_share", "hiring_location_count", "fresh_role_share_30d",
		"open_roles_change_90d"}
	readable := slices.Contains([]string{"greenhouse", "lever", "ashby"}, c.Site.Board)
	switch {
	case e.failed("web"):
		e.missing(scoring.ReasonUnresolvedIdentity, all...)
	case e.lost([]string{"jobs"}, all...):
	case readable || !c.Site.Careers:
		departments, locations := make(map[string]bool), make(map[string]bool)
		technical, fresh := 0, 0
		for _, r := range c.Roles {
			departments[r.department], locations[r.location] = true, true
			technical += truths(!slices.Contains([]string{"Account Manager", "Recruiter", "Office Manager"}, r.title))
			fresh += truths(e.days(r.published) <= 30)
		}
		n := len(c.Roles)
		e.count("open_roles", n)
		e.count("department_breadth", len(departments))
		e.count("hiring_location_count", len(locations))
		e.missing(scoring.ReasonInsufficientHistory, "open_roles_change_90d")
		e.absent("technical_role_share", "fresh_role_share_30d")
		if n > 0 {
			e.ok("fresh_role_share_30d", float64(fresh)/float64(n))
			e.missing(scoring.ReasonNotApplicable, "technical_role_share")
		}
		if n >= 3 {
			e.ok("technical_role_share", float64(technical)/float64(n))
		}
	case c.Site.Board != "":
		e.missing(scoring.ReasonUnsupportedProvider, all...)
	default:
		e.missing(scoring.ReasonNotFound, all...)
	}
	e.first("employee_count", offer{"wikidata", c.QID != "" && c.Employees > 0, float64(c.Employees)},
		offer{"web", c.Site.Employees > 0, float64(c.Site.Employees)})
	roles, employees := e.wants["open_roles"], e.wants["employee_count"]
	switch {
	case roles.state == scoring.StateMissing:
		e.wants["hiring_intensity_pct"] = roles
	case roles.raw == 0:
		e.ok("hiring_intensity_pct", 0)
	case employees.state == scoring.StateMissing:
		e.wants["hiring_intensity_pct"] = employees
	default:
		e.ok("hiring_intensity_pct", 100*roles.raw/employees.raw)
	}
	// A failure of a listed source replaces other reasons.
	if e.wants["hiring_intensity_pct"].state == scoring.StateMissing {
		e.lost([]string{"jobs", "wikidata"}, "hiring_intensity_pct")
	}
}

// wikimedia are the signals of Wikipedia and its pageviews.
func (e *expectation) wikimedia() {
	c := e.company
	if !e.lost([]string{"wikidata"}, "wikipedia_language_count") {
		e.count("wikipedia_language_count", c.Editions)
	}
	article := []string{"wikipedia_pageviews_30d", "pageviews_trend_30d", "pageviews_trend_365d"}
	last := e.at.UTC().Truncate(day).Add(-2 * day)
	sum := func(level, trend float64, days, before int) (total float64) {
		for back := before; back < before+days; back++ {
			total += float64(viewsOn(level, trend, last.Add(-time.Duration(back)*day), e.fakes.now))
		}
		return total
	}
	switch {
	case e.failed("wikidata"):
		e.missing(scoring.ReasonUnresolvedIdentity, article...)
	case !c.Article:
		e.absent(article...)
	case e.lost([]string{"wikipedia"}, article...):
	default:
		views := func(days, before int) float64 { return sum(c.Views, c.ViewsTrend, days, before) }
		e.ok("wikipedia_pageviews_30d", views(30, 0))
		e.ok("pageviews_trend_30d", math.Log((views(30, 0)+30)/(views(30, 30)+30)))
		e.ok("pageviews_trend_365d", math.Log((views(90, 0)+90)/(views(90, 365)+90)))
	}
	const sector = "sector_attention_trend_365d"
	if !e.named() {
		e.missing(scoring.ReasonUnresolvedIdentity, sector)
		return
	}
	s := c.Sector
	e.ok(sector, math.Log((3*sum(s.views, s.trend, 90, 0)+270)/(3*sum(s.views, s.trend, 90, 365)+270)))
}

// money are the signals of audited numbers and filings.
func (e *expectation) money() {
	c := e.company
	filer := c.CIK != "" && e.named()
	var b, before books
	audited := filer && len(c.Books) > 0
	if audited {
		b = c.Books[0]
	}
	grown := audited && len(c.Books) > 1
	if grown {
		before = c.Books[1]
	}
	own := c.QID != "" && c.Revenue > 0
	for _, s := range []struct {
		signal      string
		audited     bool
		filed, said float64
	}{
		{signal: "revenue_latest_usd", audited: audited, filed: b.revenue, said: c.Revenue},
		{signal: "net_margin", audited: audited, filed: b.net / b.revenue, said: c.Net / c.Revenue},
		{signal: "operating_margin", audited: audited, filed: b.operating / b.revenue, said: c.Operating / c.Revenue},
		{signal: "revenue_growth_yoy", audited: grown, filed: b.revenue/before.revenue - 1, said: c.Revenue/c.Before - 1},
		{signal: "total_assets_usd", audited: audited, filed: b.assets, said: c.Assets},
	} {
		e.first(s.signal, offer{"sec", s.audited, s.filed}, offer{"wikidata", own, s.said})
		if e.wants[s.signal].state == scoring.StateMissing && !e.failed("sec") && !e.failed("wikidata") && !filer {
			e.wants[s.signal] = want{state: scoring.StateMissing, reasons: []scoring.Reason{scoring.ReasonNotFound,
				scoring.ReasonUnresolvedIdentity}}
		}
	}
	for _, signal := range []string{"funding_total_usd", "funding_rounds"} { // only facts have them
		e.wants[signal] = want{state: scoring.StateMissing, reasons: []scoring.Reason{scoring.ReasonNotFound, scoring.ReasonSourceDisabled}}
	}
	e.first("market_value_usd", offer{source: "wikidata"})
	e.first("public_listing", offer{"sec", filer && c.Ticker, 1}, offer{"wikidata", c.QID != "" && c.Listed, 1})

	ratios := []string{"free_cash_flow_margin", "current_ratio", "liabilities_to_assets", "cash_runway_months", "profitable_years_5"}
	filings := []string{"distress_events_24m", "capital_raise_recency_days"}
	switch {
	case e.lost([]string{"sec"}, slices.Concat(ratios, filings)...):
		return
	case !filer:
		e.missing(scoring.ReasonUnresolvedIdentity, slices.Concat(ratios, filings)...)
		return
	}
	e.missing(scoring.ReasonNotFound, ratios...)
	if audited {
		free := b.cashFlow - b.capex
		e.ok("free_cash_flow_margin", free/b.revenue)
		e.ok("current_ratio", b.currentAssets/b.currentLiabilities)
		e.ok("liabilities_to_assets", b.liabilities/b.assets)
		e.ok("cash_runway_months", 60)
		if free < 0 {
			e.ok("cash_runway_months", math.Min(12*b.cash/-free, 60))
		}
		e.missing(scoring.ReasonInsufficientHistory, "profitable_years_5")
		if years := len(c.Books); years >= 3 {
			profits := 0
			for _, b := range c.Books {
				profits += truths(b.net > 0)
			}
			e.ok("profitable_years_5", 5*float64(profits)/float64(years))
		}
	}
	var late, distress int
	reports := false
	var raised time.Time
	for _, f := range c.Filings {
		switch age := e.days(f.on); {
		case f.form == "NT 10-K":
			late += truths(age <= 730)
		case f.form == "10-K" && age <= 548:
			reports = true
		case f.form == "8-K" && age <= 730:
			reports = true
			distress += truths(strings.Contains(f.items, "1.03") || strings.Contains(f.items, "4.02"))
		case slices.Contains([]string{"S-1", "424B5", "D"}, f.form) && f.on.After(raised):
			raised = f.on
		}
	}
	e.missing(scoring.ReasonNotApplicable, "distress_events_24m")
	e.absent("capital_raise_recency_days")
	if reports {
		e.ok("distress_events_24m", float64(distress+late))
	}
	if !raised.IsZero() {
		e.ok("capital_raise_recency_days", e.days(raised))
	}
}

// entity are the signals of the register of legal entities.
func (e *expectation) entity() {
	c := e.company
	const registered = "legal_entity_registered"
	switch {
	case e.lost([]string{"gleif"}, registered):
	case !e.named():
		e.missing(scoring.ReasonUnresolvedIdentity, registered)
	case c.LEI == "":
		e.absent(registered)
	default:
		e.ok("legal_entity_registered", float64(truths(c.LEIStatus == "ACTIVE")))
	}
}

func (e *expectation) repositories() {
	c := e.company
	all := []string{"github_org_verified", "github_followers", "github_stars_total", "github_push_recency_days",
		"github_active_repo_share_90d", "github_new_repos_365d"}
	if e.lost([]string{"github"}, all...) {
		return
	}
	e.missing(scoring.ReasonNotFound, all...)
	if !c.Organization {
		return
	}
	var stars, live, active, created int
	var pushed time.Time
	for _, r := range c.Repos {
		if r.fork {
			continue
		}
		stars += r.stars
		live += truths(!r.archived)
		active += truths(!r.archived && e.days(r.pushed) <= 90)
		created += truths(e.days(r.created) <= 365)
		if r.pushed.After(pushed) {
			pushed = r.pushed
		}
	}
	e.ok("github_org_verified", float64(truths(c.Verified)))
	e.ok("github_followers", float64(c.Followers))
	e.ok("github_stars_total", float64(stars))
	e.ok("github_new_repos_365d", float64(created))
	if !pushed.IsZero() {
		e.ok("github_push_recency_days", e.days(pushed))
	}
	if live > 0 {
		e.ok("github_active_repo_share_90d", float64(active)/float64(live))
	}
}

func (e *expectation) archived() {
	c := e.company
	if e.lost([]string{"wayback"}, "web_presence_years", "homepage_change_rate_365d") {
		return
	}
	e.absent("web_presence_years", "homepage_change_rate_365d")
	if c.First.IsZero() {
		return
	}
	e.ok("web_presence_years", e.years(c.First))
	copies := slices.Clone(c.Captures)
	slices.SortFunc(copies, func(a, b capture) int { return a.at.Compare(b.at) })
	known := make(map[string]bool)
	months, fresh := make(map[string]bool), make(map[string]bool)
	for _, capture := range copies {
		age := e.days(capture.at)
		if month := capture.at.Format("2006-01"); age <= 365 {
			months[month] = true
			if !known[capture.digest] {
				fresh[month] = true
			}
		}
		known[capture.digest] = true
	}
	if len(months) >= 4 {
		e.ok("homepage_change_rate_365d", float64(len(fresh))/float64(len(months)))
	}
}

// attention are the signals of developer and other news.
func (e *expectation) attention() {
	c := e.company
	if !e.lost([]string{"hn"}, "hn_mentions_365d", "hn_engagement_365d", "hn_mentions_trend_90d") {
		var year, engagement, last, previous int
		for _, s := range c.Stories {
			age := e.days(s.at)
			if age > 365 {
				continue
			}
			year++
			engagement += s.points + s.comments
			last += truths(age <= 90)
			previous += truths(age > 90 && age <= 180)
		}
		e.absent("hn_mentions_365d", "hn_engagement_365d", "hn_mentions_trend_90d")
		if year > 0 {
			e.ok("hn_mentions_365d", float64(year))
			e.ok("hn_engagement_365d", float64(engagement))
		}
		if last+previous >= 3 {
			e.ok("hn_mentions_trend_90d", math.Log(float64(last+2)/float64(previous+2)))
		}
	}
	news := []string{"news_volume_90d", "news_volume_trend_30d", "news_tone_90d"}
	switch {
	case !e.named():
		e.missing(scoring.ReasonUnresolvedIdentity, news...)
		return
	case e.lost([]string{"gdelt"}, news...):
		return
	}
	var last, previous, tone, toned float64
	today := e.fakes.now.Truncate(day)
	for back := range newsDays {
		at := today.Add(-time.Duration(back) * day)
		n := float64(c.newsOn(at))
		if e.days(at) <= 30 {
			last += n
		} else {
			previous += n
		}
		if t := c.toneOn(at); t != 0 {
			tone, toned = tone+t, toned+1
		}
	}
	e.absent(news...)
	if total := last + previous; total > 0 {
		e.ok("news_volume_90d", total)
		if total >= 5 {
			e.ok("news_volume_trend_30d", math.Log((last+3)/(previous/2+3)))
		}
		if total >= 10 && toned > 0 {
			e.ok("news_tone_90d", tone/toned)
		}
	}
}

func (e *expectation) ranks() {
	r := e.company.Ranks
	e.count("traffic_rank", r[0])
	for i, signal := range []string{"traffic_rank_change_30d", "traffic_rank_change_90d"} {
		now, then := float64(r[0]), float64(r[i+1])
		if now == 0 && then == 0 {
			e.absent(signal)
			continue
		}
		for _, rank := range []*float64{&now, &then} {
			if *rank == 0 {
				*rank = 2_000_000
			}
		}
		e.ok(signal, math.Log2(then/now))
	}
}

// together are the signals that need several sources.
func (e *expectation) together() {
	c := e.company
	if !e.lost([]string{"web", "dns"}, "security_program") {
		e.count("security_program", truths(c.Site.SecurityText, c.Site.Security, c.Site.HSTS, c.CAA, c.Signed))
	}
	if !e.lost([]string{"dns", "tls"}, "commercial_infrastructure") {
		senders := 0
		for _, vendor := range c.Senders {
			senders += truths(slices.Contains(paid, vendor))
		}
		e.count("commercial_infrastructure", truths(c.Mail == "hosted" || c.Mail == "own", c.Managed, senders >= 2, c.OV))
	}
	if !e.lost([]string{"wikidata", "web"}, "leadership_disclosure") {
		names := make(map[string]bool)
		for _, name := range slices.Concat(c.Leaders, c.Site.Leaders) {
			names[name] = true
		}
		e.count("leadership_disclosure", min(len(names), 6))
	}
	switch {
	case e.lost([]string{"wikidata", "gleif"}, "corporate_group_size"):
	case !e.named():
		e.missing(scoring.ReasonUnresolvedIdentity, "corporate_group_size")
	case c.LEI == "":
		e.count("corporate_group_size", c.Subsidiaries)
	default:
		e.count("corporate_group_size", max(c.Subsidiaries, c.Children))
	}
}
