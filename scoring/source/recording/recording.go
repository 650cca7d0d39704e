// Package recording keeps the exchanges of data sources with the network in a directory, and
// answers from such a directory in place of the network.
//
// A recording is a directory of plain files:
//
//	recording.json     version, clock, companies, sources, and the size and SHA-256 of each file
//	exchanges.jsonl    one exchange per line: request, answer or failure, times
//	observations.json  what the sources made of the answers
//	bodies/            the bodies of answers and chains of certificates, one file each
//
// HAR was not chosen: it has no DNS, no TLS and no failed connection, and has bodies as escaped
// text in one file. Raw HTTP messages have no DNS and no times. Here a body can be opened, compared
// and searched with the usual tools.
package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// Format is the version of the format that this package writes. It reads no other.
const Format = 1

// Bounds of a recording.
const (
	// BytesMax bounds all files together.
	BytesMax = 256 << 20
	// bodyMaxBytes bounds one body. No policy reads more.
	bodyMaxBytes = 64 << 20
	// textMaxBytes bounds each of the other files.
	textMaxBytes    = 32 << 20
	lineMaxBytes    = 1 << 20
	exchangesMax    = 20_000
	companiesMax    = 1000
	headerMaxValues = 100
)

// The names of files.
const (
	manifestFile     = "recording.json"
	exchangesFile    = "exchanges.jsonl"
	observationsFile = "observations.json"
	bodiesDir        = "bodies"
)

// Manifest describes a recording.
type Manifest struct {
	Format int `json:"format"`
	// Program is the version of the program that recorded.
	Program string `json:"program"`
	// Began is the clock at the start. Exchange.At counts from it.
	Began     time.Time `json:"began"`
	Companies []Company `json:"companies"`
	// Sources are the keys of the recorded sources.
	Sources []string `json:"sources"`
	// Tokens names the tokens that were set. They change the limits and the paths of a source.
	Tokens []string `json:"tokens"`
	// Resolvers is the number of DNS servers.
	Resolvers int    `json:"resolvers"`
	Files     []File `json:"files"`
	// Sum is the SHA-256 of this manifest with an empty Sum, as JSON without spaces.
	Sum string `json:"sha256"`
}

// Company is a company that the sources were asked about, in this order.
type Company struct {
	Domain string `json:"domain"`
	// At is the clock at the start of its run.
	At time.Time `json:"at"`
}

// File is a file of a recording.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sha256"`
}

func (m Manifest) sum() (string, error) {
	m.Sum = ""
	text, err := json.Marshal(m)
	return sumOf(text), err
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Exchange is one exchange of a source with the network. It has one of HTTP, DNS, TLS and Failure.
type Exchange struct {
	Source string `json:"source"`
	// Request is the request as in fetch.Exchange.
	Request string `json:"request"`
	// Company is the domain of the run, empty for work besides runs, such as lists of all companies.
	Company string `json:"company,omitempty"`
	// At is the start since the begin of the recording, and Took the time to the last byte that was
	// read, both in milliseconds.
	At      int64    `json:"at_ms"`
	Took    int64    `json:"took_ms"`
	HTTP    *HTTP    `json:"http,omitempty"`
	DNS     *DNS     `json:"dns,omitempty"`
	TLS     *TLS     `json:"tls,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// HTTP is an HTTP answer.
type HTTP struct {
	Status int `json:"status"`
	// Header has the kept headers only.
	Header http.Header `json:"header,omitempty"`
	// Body is the file of the body, without content encoding where it could be decoded. It is empty
	// if nothing was read.
	Body string `json:"body,omitempty"`
	// End is how the body ended.
	End bodyEnd `json:"end"`
	// Failure is why the body ended, if End is endFailed.
	Failure *Failure `json:"body_failure,omitempty"`
}

// bodyEnd is how the body of an answer ended.
type bodyEnd string

const (
	endComplete bodyEnd = "complete"
	endCut      bodyEnd = "cut"    // the connection ended before the body
	endLeft     bodyEnd = "left"   // the client read no further
	endFailed   bodyEnd = "failed" // for example a timeout
)

// DNS is a DNS answer. Records are in the format of zone files.
type DNS struct {
	Rcode         string   `json:"rcode"`
	Authenticated bool     `json:"authenticated,omitempty"`
	Truncated     bool     `json:"truncated,omitempty"`
	Answer        []string `json:"answer,omitempty"`
	Authority     []string `json:"authority,omitempty"`
}

// TLS is what a server showed in a handshake.
type TLS struct {
	// Version is the TLS version, such as 772 for TLS 1.3.
	Version uint16 `json:"version"`
	// Chain is the file with the certificates in PEM.
	Chain string `json:"chain"`
	// Fault is why the chain was not trusted, empty if it was.
	Fault string `json:"fault,omitempty"`
}

// Failure is an exchange without an answer.
type Failure struct {
	// Code is a warning code of package fetch.
	Code string `json:"code"`
	Text string `json:"text"`
	// Unsent is set if a limit or a circuit breaker of the client did not admit the request.
	Unsent bool `json:"unsent,omitempty"`
	// Dial is set if there was no connection, and Refused if the server refused it.
	Dial    bool `json:"dial,omitempty"`
	Refused bool `json:"refused,omitempty"`
	// Deadline is set if the deadline of the source had passed.
	Deadline bool  `json:"deadline,omitempty"`
	Status   int   `json:"status,omitempty"`
	RetryMs  int64 `json:"retry_after_ms,omitempty"`
}

// failureOf describes an error.
func failureOf(err error) *Failure {
	f := &Failure{Code: fetch.CodeHTTP, Text: withoutAddresses(err.Error())}
	var e *fetch.Error
	var timeout net.Error
	switch {
	case errors.As(err, &e):
		f.Code, f.Status, f.RetryMs = e.Code, e.Status, e.RetryAfter.Milliseconds()
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Code = fetch.CodeTimeout
	}
	var op *net.OpError
	f.Dial = errors.As(err, &op) && op.Op == "dial"
	f.Refused = errors.Is(err, syscall.ECONNREFUSED)
	return f
}

// recorded is the error of a recorded failure.
type recorded struct{ failure *Failure }

func (r recorded) Error() string { return r.failure.Text }

// Timeout makes the client classify a recorded timeout as one.
func (r recorded) Timeout() bool { return r.failure.Code == fetch.CodeTimeout }

// Temporary completes net.Error.
func (r recorded) Temporary() bool { return false }

// Is makes a recorded refusal equal to the error of the system.
func (r recorded) Is(target error) bool { return r.failure.Refused && target == syscall.ECONNREFUSED }

// err returns the failure as the client saw it.
func (f *Failure) err() error {
	var err error = recorded{f}
	if f.Dial {
		err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	if f.Unsent || f.Code != fetch.CodeHTTP && f.Code != fetch.CodeTimeout || f.Status != 0 {
		err = &fetch.Error{Code: f.Code, Status: f.Status, RetryAfter: time.Duration(f.RetryMs) * time.Millisecond, Err: err}
	}
	return err
}

// Found is what the sources made of the answers about one company.
type Found struct {
	Domain string `json:"domain"`
	// Failure is why there is no record, for example that the domain is not registered.
	Failure      string                `json:"failure,omitempty"`
	Sources      []scoring.SourceTrace `json:"sources,omitempty"`
	Observations []Observation         `json:"observations,omitempty"`
	Claims       []scoring.Claim       `json:"claims,omitempty"`
	// Values are by "source.name".
	Values map[string]float64 `json:"values,omitempty"`
}

// Observation is one observation of a source.
type Observation struct {
	Source string         `json:"source"`
	Signal string         `json:"signal"`
	State  scoring.State  `json:"state"`
	Raw    *float64       `json:"raw,omitempty"`
	Low    *float64       `json:"low,omitempty"`
	High   *float64       `json:"high,omitempty"`
	Reason scoring.Reason `json:"reason,omitempty"`
	At     *time.Time     `json:"at,omitempty"`
}

// FoundOf returns what a run found. failure is nil if the run made a record.
func FoundOf(domain string, trace scoring.Trace, failure error) Found {
	f := Found{Domain: domain, Sources: trace.Sources, Claims: trace.Claims, Values: trace.Values}
	if failure != nil {
		f.Failure = failure.Error()
	}
	for _, o := range trace.Observations {
		seen := Observation{Source: o.Source, Signal: o.Signal, State: o.State, Reason: o.Reason}
		if o.State == scoring.StateOK {
			seen.Raw = &o.Raw
		}
		if o.Low != o.High {
			seen.Low, seen.High = &o.Low, &o.High
		}
		if !o.At.IsZero() {
			seen.At = &o.At
		}
		f.Observations = append(f.Observations, seen)
	}
	return f
}

// Differences compares what two runs found about the same companies, to the last digit. It returns
// a line for each difference.
func Differences(before, after []Found) ([]string, error) {
	var lines []string
	if len(before) != len(after) {
		return []string{fmt.Sprintf("%d companies, not %d", len(after), len(before))}, nil
	}
	for i := range before {
		old, err := before[i].lines()
		if err != nil {
			return nil, err
		}
		now, err := after[i].lines()
		if err != nil {
			return nil, err
		}
		lines = append(lines, onlyIn(old, now, before[i].Domain+": no longer ")...)
		lines = append(lines, onlyIn(now, old, after[i].Domain+": now ")...)
	}
	return lines, nil
}

// onlyIn returns the lines that some has more often than others, with a prefix.
func onlyIn(some, others []string, prefix string) (lines []string) {
	left := make(map[string]int)
	for _, line := range others {
		left[line]++
	}
	for _, line := range some {
		if left[line]--; left[line] < 0 {
			lines = append(lines, prefix+line)
		}
	}
	return lines
}

// lines returns all that was found, one thing per line.
func (f Found) lines() ([]string, error) {
	var values []any
	for _, s := range f.Sources {
		values = append(values, s)
	}
	for _, o := range f.Observations {
		values = append(values, o)
	}
	for _, c := range f.Claims {
		values = append(values, c)
	}
	for name, v := range f.Values {
		values = append(values, map[string]float64{name: v})
	}
	if f.Failure != "" {
		values = append(values, f.Failure)
	}
	lines := make([]string, len(values))
	for i, v := range values {
		text, err := encode(v, "")
		if err != nil {
			return nil, err
		}
		lines[i] = string(text)
	}
	return lines, nil
}

// encode returns a value as JSON that people can read, with each level indented by indent.
func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
