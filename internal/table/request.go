package table

import "time"

// RequestKind is what requests are counted by, besides the minute.
type RequestKind struct {
	AccountID string // empty for a request without a valid key
	KeyID     string // empty for a request without a valid key
	// Route is the pattern of the address, such as /v1/score/*, or "none" if no route answered.
	Route      string
	Status     uint16
	ErrorCode  string // empty below 400
	AnsweredBy string // none, sandbox, l1, table, redis or clickhouse
}

// Request is one answered request.
type Request struct {
	RequestKind
	// ID is the X-Request-Id of the answer. Callers may send one id several times.
	ID   string
	At   time.Time // arrival, in UTC
	Took time.Duration
	// Bytes is the size of the body of the answer, as it was sent.
	Bytes   uint64
	Charged bool   // the request was charged as a cold call
	JobID   string // job of a 202 answer; empty otherwise
	// Server and Number identify the row: the process that answered, and a number of its own.
	Server string
	Number uint64
}

// RequestCount is the requests of one kind that one process answered in one minute. It has
// totals, not increments: the row with the largest Version replaces the others of its minute,
// kind and server.
type RequestCount struct {
	RequestKind
	Minute  time.Time // start of the minute of arrival, in UTC
	Server  string
	Calls   uint64
	Charged uint64
	// NotStored is the number of calls that have no row.
	NotStored uint64
	Took      time.Duration // sum
	Bytes     uint64        // sum
	Version   uint64
}

// RequestGroup is the requests of an account with one day, key, route or status.
type RequestGroup struct {
	Group   string
	Calls   uint64
	Charged uint64
	Errors  uint64 // calls with a status of 400 or more
	Took    time.Duration
	Bytes   uint64
}
