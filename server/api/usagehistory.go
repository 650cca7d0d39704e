package api

// UsageHistory is the requests of an account, grouped.
type UsageHistory struct {
	Mode   string       `json:"mode,omitempty"`
	UserID string       `json:"user_id"`
	From   Time         `json:"from"` // whole minute
	To     Time         `json:"to"`   // whole minute, exclusive
	By     string       `json:"by"`   // day, key, route or status
	Rows   []UsageGroup `json:"rows"` // days in order, other groups by calls
}

// UsageGroup is the requests of one group.
type UsageGroup struct {
	Group     string  `json:"group"` // a day YYYY-MM-DD, an id of a key, a route or a status
	Calls     uint64  `json:"calls"`
	ColdCalls uint64  `json:"cold_calls"`
	Errors    uint64  `json:"errors"`  // calls with a status of 400 or more
	Bytes     uint64  `json:"bytes"`   // of bodies
	MeanMs    float64 `json:"mean_ms"` // time from the arrival to the answer, 3 decimals
}
