package clickhouse_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"companyscore/scoring"
)

// claims are what comments of the views promise, each with a statement that counts the rows that break the promise.
var claims = []struct{ claim, broken string }{
	{"composites are 0 to 100 in steps of 0.1",
		"FROM v1_score_history WHERE composite NOT BETWEEN 0 AND 100 OR abs(composite * 10 - round(composite * 10)) > 1e-9"},
	{"the interval holds the composite", "FROM v1_score_history WHERE NOT (0 <= interval_low AND interval_low <= composite AND composite " +
		"<= interval_high AND interval_high <= 100)"},
	{"the expected composite is 0 to 100", "FROM v1_score_history WHERE expected_composite NOT BETWEEN 0 AND 100"},
	{"base is 0 to 100 without the premium",
		"FROM v1_score_history WHERE base NOT BETWEEN 0 AND 100 OR composite > base + scale_premium + 0.1"},
	{"the premium is 0 to 12 in steps of 0.1",
		"FROM v1_score_history WHERE scale_premium NOT BETWEEN 0 AND 12 OR abs(scale_premium * 10 - round(scale_premium * 10)) > 1e-9"},
	{"bucket scores are 0 to 100", "FROM v1_score_history WHERE arrayExists(x -> x NOT BETWEEN 0 AND 100, [team_structure, " +
		"market_position, momentum_tailwinds, financial_health])"},
	{"the momentum index is at most 10 points from the bucket",
		"FROM v1_score_history WHERE abs(momentum_index - momentum_tailwinds) > 10.05"},
	{"the momentum index is the bucket without a record of 20 to 120 days before", "FROM v1_score_history AS a WHERE abs(momentum_index " +
		"- momentum_tailwinds) > 0.1 AND domain NOT IN (SELECT domain FROM v1_score_history GROUP BY domain HAVING count() > 1)"},
	{"completeness is a percentage", "FROM v1_score_history WHERE completeness_pct NOT BETWEEN 0 AND 100"},
	{"the country is unknown or two capitals", "FROM v1_score_history WHERE NOT match(country, '^(unknown|[A-Z]{2})$')"},
	{"the reach is one of seven", "FROM v1_score_history WHERE geo_scope NOT IN ('global', 'north_america', 'europe', 'asia_pacific', " +
		"'latin_america', 'middle_east_africa', 'unknown')"},
	{"grades rise with the composite",
		"FROM (SELECT rating_number, min(composite) AS low, max(composite) AS high FROM v1_score_history GROUP BY rating_number) AS a " +
			"CROSS JOIN (SELECT rating_number, min(composite) AS low, max(composite) AS high FROM v1_score_history GROUP BY " +
			"rating_number) AS b WHERE a.rating_number < b.rating_number AND a.high >= b.low"},
	{"rating_number is 1 to 7", "FROM v1_score_history WHERE rating_number != toUInt8(rating) OR rating_number NOT BETWEEN 1 AND 7"},
	{"v1_score_latest has one row per company", "FROM (SELECT domain FROM v1_score_latest GROUP BY domain HAVING count() > 1)"},
	{"v1_score_latest has the newest record", "FROM v1_score_latest AS l JOIN (SELECT domain, max(scored_at) AS newest FROM " +
		"v1_score_history GROUP BY domain) AS h ON h.domain = l.domain WHERE h.newest != l.scored_at"},

	{"raw is there if and only if the signal is ok", "FROM v1_signal WHERE (state = 'ok') != isNotNull(raw)"},
	{"a missing or not applicable signal scores exactly 50", "FROM v1_signal WHERE state IN ('missing', 'not_applicable') AND score != 50"},
	{"signal scores are 0 to 100", "FROM v1_signal WHERE score NOT BETWEEN 0 AND 100"},
	{"the reason is there if and only if the signal is missing", "FROM v1_signal WHERE (state = 'missing') != (reason != '')"},
	{"a known signal has a source", "FROM v1_signal WHERE state IN ('ok', 'absent') AND source = ''"},
	{"observed_at is there if and only if there is an observation",
		"FROM v1_signal WHERE (state IN ('ok', 'absent')) != isNotNull(observed_at)"},
	{"an observation is not after its record", "FROM v1_signal WHERE observed_at > scored_at"},
	{"a signal that does not apply has no weight", "FROM v1_signal WHERE state = 'not_applicable' AND weight != 0"},
	{"contributions sum to base", "FROM (SELECT domain, scored_at, sum(contribution) AS total FROM v1_signal GROUP BY ALL) AS s JOIN " +
		"v1_score_history AS h ON h.domain = s.domain AND h.scored_at = s.scored_at WHERE abs(total - base) > 1e-6"},
	{"weights sum to 1, or to 0.75 in a defunct company", "FROM (SELECT sum(weight) AS total FROM v1_signal GROUP BY domain, scored_at) " +
		"WHERE abs(total - 1) > 1e-9 AND abs(total - 0.75) > 1e-9"},
	{"a signal of the current version has a bucket and a unit", "FROM v1_signal WHERE bucket = 'unknown' OR unit = 'unknown'"},

	{"the definitions are 67", "FROM (SELECT count() AS n FROM v1_signal_definition) WHERE n != 67"},
	{"weights of definitions sum to 1 in all and in a bucket", "FROM (SELECT sum(weight) AS total FROM v1_signal_definition UNION ALL " +
		"SELECT sum(weight_in_bucket) FROM v1_signal_definition GROUP BY bucket) WHERE abs(total - 1) > 1e-9"},
	{"raw values of 20, 50 and 80 rise, or fall if lower is better", "FROM v1_signal_definition WHERE raw_p50 IS NOT NULL AND NOT " +
		"if(direction = 'higher', raw_p10 < raw_p50 AND raw_p50 < raw_p90, raw_p10 > raw_p50 AND raw_p50 > raw_p90)"},

	{"the parts of a delta sum to it",
		"FROM v1_mover WHERE abs(delta - observation_delta - coverage_delta - premium_delta - defunct_delta) > 1e-6"},
	{"changed says whether delta is 0", "FROM v1_mover WHERE changed != (abs(delta) > 1e-9)"},
	{"the record before the window is the older one",
		"FROM v1_mover WHERE scored_at_then > scored_at_now OR scored_at_then > now() - toIntervalDay(window_days)"},
	{"newest signals are those of the newest record",
		"FROM (SELECT domain, scored_at, arraySort(groupArray((signal, raw, score, weight, state, source))) AS signals FROM v1_signal " +
			"WHERE (domain, scored_at) IN (SELECT domain, scored_at FROM v1_score_latest) GROUP BY ALL) AS s FULL JOIN " +
			"(SELECT domain, scored_at, arraySort(groupArray((signal, raw[signal], score[signal], weight[signal], " +
			"toString(state[signal]), source[signal]))) AS signals " +
			"FROM v1_signal_latest ARRAY JOIN mapKeys(state) AS signal GROUP BY ALL) AS l USING (domain, scored_at) WHERE NOT (s.signals " +
			"= l.signals)"},
	{"a name that is no signal is NULL", "FROM v1_signal_latest WHERE coalesce(toString(raw['x']), toString(score['x']), " +
		"toString(weight['x']), toString(state['x']), source['x'], '') != ''"},
	{"one row of newest signals for each company", "FROM (SELECT domain FROM v1_score_latest) AS l FULL JOIN (SELECT domain, count() AS " +
		"n FROM v1_signal_latest GROUP BY domain) AS s USING domain WHERE n != 1"},
	{"a crossing changes the grade in its direction", "FROM v1_rating_change WHERE rating_number = rating_number_before OR (direction = " +
		"'up') != (rating_number > rating_number_before) OR scored_at <= scored_at_before"},
	{"shares of a measure sum to 1",
		"FROM (SELECT measure, sum(share) AS total FROM v1_distribution GROUP BY measure) WHERE abs(total - 1) > 1e-9"},
	{"grades have a number, other measures none", "FROM v1_distribution WHERE (measure = 'rating') != isNotNull(rating_number)"},
	{"statistics of a cohort are in order",
		"FROM v1_cohort WHERE NOT (min <= p50 AND p50 <= p90 AND p90 <= max AND min <= mean AND mean <= max AND stddev >= 0)"},
	{"cohorts have companies with something in common",
		"FROM v1_cohort WHERE companies = 0 OR sector = 'unknown' OR geo_scope = 'unknown' OR profile = 'unclassified'"},
}

// TestViewsKeepTheirClaims checks the claims on companies with two to four records: some are defunct, some lack signals or have stale ones.
func TestViewsKeepTheirClaims(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	now, r := time.Now().UTC().Truncate(time.Millisecond), rand.New(rand.NewPCG(19, 7))
	var all []scoring.Record
	for n := range 200 {
		var records []scoring.Record
		for _, days := range []int{100, 40, 8, 0}[r.IntN(4):] {
			in := randomInput(r, n, now.AddDate(0, 0, -days))
			if last := len(records) - 1; last >= 0 {
				in.Previous = &records[last]
				in.Reference = scoring.ReferenceAmong([]scoring.Reference{{ScoredAt: records[last].ScoredAt, Base: records[last].Base}},
					in.Now)
			}
			rec, err := scoring.Score(in)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, rec)
		}
		all = append(all, records...)
	}
	if err := errors.Join(s.WriteGroup(t.Context(), all)...); err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if got := column(t, db, "SELECT toString(count()) "+c.broken); got[0] != "0" {
			t.Errorf("%s: %s rows do not (%s)", c.claim, got[0], c.broken)
		}
	}
	for _, view := range []string{"v1_score_history", "v1_signal WHERE state = 'not_applicable'", "v1_signal WHERE observed_at < scored_at",
		"v1_mover WHERE defunct_delta != 0", "v1_rating_change", "v1_cohort"} {
		if got := column(t, db, "SELECT toString(count()) FROM "+view); got[0] == "0" {
			t.Errorf("there is no row in %s, so the claims about it prove nothing", view)
		}
	}
}
