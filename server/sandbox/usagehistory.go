package sandbox

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"companyscore/server/api"
)

// cannedCalls are the requests of a canned account in one hour of a working day.
var cannedCalls = []struct {
	key, route string
	status     int
	calls      uint64
	cold       uint64
	bytes      uint64  // of each body
	ms         float64 // duration of each call
}{
	{"canned-key-1", "/v1/score/*", 200, 150, 0, 446, 0.2},
	{"canned-key-1", "/v1/score/*", 304, 40, 0, 0, 0.2},
	{"canned-key-1", "/v1/score/*", 404, 3, 0, 121, 1.5},
	{"canned-key-1", "/v1/score", 202, 5, 5, 164, 4},
	{"canned-key-1", "/v1/jobs/:job_id", 200, 20, 0, 231, 1},
	{"canned-key-2", "/v1/score/*", 200, 60, 0, 446, 0.2},
	{"canned-key-2", "/v1/movers", 200, 2, 0, 5120, 0.5},
	{"canned-key-2", "/v1/movers", 400, 1, 0, 148, 0.3},
}

// The hours of a day in UTC with canned requests: from cannedFirst until before cannedLast.
const cannedFirst, cannedLast = 8, 18

// UsageHistory returns canned requests by "day", "key", "route" or "status". They are the same in
// each hour, and by any grouping they have the same sums.
func UsageHistory(accountID, by string, from, to time.Time) api.UsageHistory {
	groups := make(map[string]*api.UsageGroup)
	ms := make(map[string]float64)
	hour := from.UTC().Truncate(time.Hour)
	if hour.Before(from) {
		hour = hour.Add(time.Hour)
	}
	for ; hour.Before(to); hour = hour.Add(time.Hour) {
		if hour.Hour() < cannedFirst || hour.Hour() >= cannedLast {
			continue
		}
		for _, c := range cannedCalls {
			name := map[string]string{"day": hour.Format(time.DateOnly), "key": c.key, "route": c.route,
				"status": strconv.Itoa(c.status)}[by]
			g := groups[name]
			if g == nil {
				g = &api.UsageGroup{Group: name}
				groups[name] = g
			}
			g.Calls += c.calls
			g.ColdCalls += c.cold
			g.Bytes += c.calls * c.bytes
			ms[name] += float64(c.calls) * c.ms
			if c.status >= 400 {
				g.Errors += c.calls
			}
		}
	}
	rows := make([]api.UsageGroup, 0, len(groups))
	for name, g := range groups {
		g.MeanMs = math.Round(1000*ms[name]/float64(g.Calls)) / 1000
		rows = append(rows, *g)
	}
	slices.SortFunc(rows, func(a, b api.UsageGroup) int {
		if by == "day" {
			return cmp.Compare(a.Group, b.Group)
		}
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Group, b.Group))
	})
	return api.UsageHistory{Mode: api.Sandbox, UserID: accountID, From: api.Time(from), To: api.Time(to), By: by, Rows: rows}
}
