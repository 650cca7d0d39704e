package server

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"time"

	"companyscore/server/meter"
)

// errorPagesPath is the address of the list of all error codes. The page about a code is
// below it, at the slug of the code.
const errorPagesPath = "/docs/errors"

// errorPage explains one error code to callers.
type errorPage struct {
	// Answers are the problems with the code, at least one for each status and reason. The
	// page shows each.
	Answers []*problem
	// Meaning says what the code means.
	Meaning string
	// Charged says whether the request counts as a call. Empty means that it does not.
	Charged string
	// Retry says whether to repeat the request and when. Empty means that the same request
	// gets the same answer.
	Retry string
	// Do says what the caller can do.
	Do string
}

const (
	notCharged = "No."
	notRetried = "No. The same request gets the same answer."
	retryAfter = "Yes, after the seconds in the Retry-After header. Double the pause after each further failure."
)

// Code returns the error code.
func (p errorPage) Code() string { return p.Answers[0].Code }

// Path returns the address of the page.
func (p errorPage) Path() string { return errorPagesPath + "/" + p.Answers[0].Slug }

// Statuses returns the statuses of the code, each once.
func (p errorPage) Statuses() (statuses []int) {
	for _, a := range p.Answers {
		if !slices.Contains(statuses, a.Status) {
			statuses = append(statuses, a.Status)
		}
	}
	return statuses
}

// Examples returns the answers as they are sent, without headers that all answers have.
func (p errorPage) Examples() ([]example, error) {
	examples := make([]example, len(p.Answers))
	for i, a := range p.Answers {
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false) // the template escapes it
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(a.body()); err != nil {
			return nil, err
		}
		examples[i] = example{Status: a.Status, Text: http.StatusText(a.Status), RetryAfter: a.RetryAfter, Body: body.String()}
	}
	return examples, nil
}

// example is an answer on a page. RetryAfter is in seconds; 0 means that it has no such header.
type example struct {
	Status     int
	Text       string
	RetryAfter int
	Body       string
}

//go:embed errorpages.html
var errorPagesText string

var errorPagesTemplate = template.Must(template.New("").Parse(errorPagesText))

// renderErrorPages returns the list of all error codes and the page about each, by address.
func renderErrorPages() (map[string][]byte, error) {
	pages := make(map[string][]byte, 1+len(errorPages))
	var list bytes.Buffer
	if err := errorPagesTemplate.ExecuteTemplate(&list, "list", errorPages); err != nil {
		return nil, err
	}
	pages[errorPagesPath] = list.Bytes()
	for _, p := range errorPages {
		p.Charged, p.Retry = cmp.Or(p.Charged, notCharged), cmp.Or(p.Retry, notRetried)
		var page bytes.Buffer
		if err := errorPagesTemplate.ExecuteTemplate(&page, "page", p); err != nil {
			return nil, err
		}
		pages[p.Path()] = page.Bytes()
	}
	return pages, nil
}

// exampleOfDomain is the message for an invalid domain on the pages.
const exampleOfDomain = "The domain cannot be scored: IP addresses are not domains."

// errorPages has a page for each error code. The pages list them in this order.
var errorPages = []errorPage{
	{
		Answers: []*problem{&errRequestMalformed},
		Meaning: "The request is not valid HTTP. The message names the part that is wrong. The server closes the connection.",
		Do:      "Use an HTTP client library instead of writing requests yourself. If a proxy stands between you and the server, check what it sends.",
	},
	{
		Answers: []*problem{&errBodyInvalid},
		Meaning: "The body is missing, is not valid JSON, is not a JSON object, or has a field of the wrong type.",
		Do:      "Send a JSON object with the fields of the description. The message names the fault.",
	},
	{
		Answers: []*problem{&errDomainRequired},
		Meaning: "The body of POST /v1/score has no domain, or an empty one.",
		Do:      "Send the domain of the company in the field domain.",
	},
	{
		Answers: []*problem{errBodyDomain.with(exampleOfDomain)},
		Meaning: "The domain in the body cannot be scored. The message says why. A domain is a name below a public suffix, such as example.com.",
		Do:      "Correct the domain. A scheme, a leading www., a port and a path are removed for you. IP addresses, local names and bare suffixes are not domains.",
	},
	{
		Answers: []*problem{&errDomainsRequired},
		Meaning: "The body of POST /v1/scores/batch has no list of domains.",
		Do:      "Send the list in the field domains.",
	},
	{
		Answers: []*problem{&errBodyDomains},
		Meaning: "The field domains is not a list of strings, is empty, or has too many entries.",
		Do:      "Split a long list into several requests.",
	},
	{
		Answers: []*problem{&errBodyInclude},
		Meaning: "The field include of the body has a value that is not the name of an optional part.",
		Do:      "Send a list of the names that the message gives, or leave the field out.",
	},
	{
		Answers: []*problem{errPathDomain.with(exampleOfDomain)},
		Meaning: "The domain in the path, or in an entry of a batch, cannot be scored. The message says why. The other entries of a batch are answered.",
		Do:      "Correct the domain, and escape it if it has characters that a path cannot have. IP addresses, local names and bare suffixes are not domains.",
	},
	{
		Answers: []*problem{&errSandboxOnly},
		Meaning: "A test key asked for a real company. Test keys read the sandbox, which has these four companies only.",
		Do:      "Use one of the four domains, or a live key.",
	},
	{
		Answers: []*problem{&errTestDomain},
		Meaning: "A live key asked for a company of the sandbox. Domains under .test are not real.",
		Do:      "Use a test key for the sandbox.",
	},
	{
		Answers: []*problem{&errInclude},
		Meaning: "The query parameter include has a value that is not the name of an optional part.",
		Do:      "Use a name from the error code, or leave the parameter out.",
	},
	{
		Answers: []*problem{&errLimit},
		Meaning: "The query parameter limit of a history is not a whole number within its bounds.",
		Do:      "Use a limit within the bounds, and next_cursor to read further pages.",
	},
	{
		Answers: []*problem{&errInvalidCursor},
		Meaning: "The query parameter cursor of a history is not a cursor of this company.",
		Do:      "Send next_cursor of the previous page unchanged. To start again, send no cursor.",
	},
	{
		Answers: []*problem{&errFrom, &errFromAfterTo, &errSpan},
		Meaning: "The query parameter from is not an instant or a date, is later than to, or is too long before it.",
		Do:      "Use an instant of RFC 3339 or a date such as 2026-05-01.",
	},
	{
		Answers: []*problem{&errTo},
		Meaning: "The query parameter to is not an instant or a date.",
		Do:      "Use an instant of RFC 3339 or a date such as 2026-05-31.",
	},
	{
		Answers: []*problem{&errWindow},
		Meaning: "The query parameter window of the movers is missing or unknown.",
		Do:      "Use one of the windows in the error code.",
	},
	{
		Answers: []*problem{&errBy},
		Meaning: "The query parameter by of the usage history is unknown.",
		Do:      "Use one of the groupings in the error code.",
	},
	{
		Answers: []*problem{&errIdempotencyKey},
		Meaning: "The Idempotency-Key header is too long, or has characters other than printable ASCII.",
		Do:      "Use a short random name for each request, such as a UUID.",
	},
	{
		Answers: []*problem{&errUnauthorized},
		Meaning: "The X-API-Key header is missing, or the key is malformed, unknown or revoked.",
		Do:      "Check that the whole key is sent. A key is shown once, when it is created. If it is lost or revoked, create another.",
	},
	{
		Answers: []*problem{&errFreeTier},
		Meaning: "An account of the free tier asked to score a real company. The free tier scores the sandbox only.",
		Do:      "Upgrade the account, or use a test key and a sandbox domain. GET /v1/score/{domain} reads stored scores on every tier.",
	},
	{
		Answers: []*problem{&errForbidden},
		Meaning: "The job was started by another account. Only keys of the account that started a job can read it.",
		Do:      "Use a key of the account that made the request.",
	},
	{
		Answers: []*problem{&errNotFound},
		Meaning: "The address does not exist.",
		Do:      "Compare the address with the description at /docs. All operations are below /v1.",
	},
	{
		Answers: []*problem{&errNoScore},
		Meaning: "The company has no stored score. In a batch this is the answer for its entry only.",
		Retry:   "Only after a run of the company has ended. This request starts none.",
		Do:      "Start a run with POST /v1/score, poll its job, and then read the score.",
	},
	{
		Answers: []*problem{&errNoHistory, &errNoRecord},
		Meaning: "The company has no stored score, or none at or before the instant that the request names.",
		Retry:   "Only after a run of the company has ended. This request starts none.",
		Do:      "Start a run with POST /v1/score, or choose a later instant. The last page of the history has the first score.",
	},
	{
		Answers: []*problem{&errJobNotFound},
		Meaning: "The job does not exist, or it has expired. Jobs expire 30 days after they were created. The sandbox has no jobs.",
		Do:      "Read the score of the company with GET /v1/score/{domain}. Request it again with POST /v1/score if it is too old.",
	},
	{
		Answers: []*problem{&errMethod},
		Meaning: "The address exists, but not with this method.",
		Do:      "Use a method from the Allow header.",
	},
	{
		Answers: []*problem{&errTimeout},
		Meaning: "The request did not arrive within 15 seconds. The server closes the connection.",
		Retry:   "Yes, on a new connection.",
		Do:      "Send the request at once. Check the network if this happens often.",
	},
	{
		Answers: []*problem{&errTooLarge, &errHeadersTooLarge},
		Meaning: "The body is too large (413), or the address and the headers are too large (431).",
		Do:      "Split a large batch into several requests. Remove headers and cookies that this service does not need.",
	},
	{
		Answers: []*problem{&errEncoding},
		Meaning: "The body has a Content-Encoding. The service reads uncompressed bodies only.",
		Do:      "Switch off the compression of request bodies in your client. Answers can still be compressed.",
	},
	{
		Answers: []*problem{&errIdempotencyReused},
		Meaning: "The Idempotency-Key was used with a request for another company or with another force_fresh.",
		Do:      "Use a new key for each new request. Use the same key only to repeat the same request.",
	},
	{
		Answers: []*problem{rejected(&meter.Rejected{Reason: meter.MonthlyCap, RetryAfter: 28 * 24 * time.Hour})},
		Meaning: "The account has used all cold calls of this month.",
		Retry:   "Yes, after the seconds in the Retry-After header: at the start of the next month in UTC.",
		Do:      "Read stored scores with GET /v1/score/{domain}, which need no cold call, or upgrade the account. The RateLimit header of every answer shows the rest of the budget.",
	},
	{
		Answers: []*problem{
			rejected(&meter.Rejected{Reason: meter.PerKeyCold1h, RetryAfter: 30 * time.Minute}),
			rejected(&meter.Rejected{Reason: meter.AccountCold24h, RetryAfter: 11 * time.Hour}),
			&errKeyAnswers, &errKeyRequests,
		},
		Meaning: "A limit is reached. The reason names it: per_key_cold_1h is the cold calls of a key in an hour, account_cold_24h those of an account in 24 hours, " +
			"answer_bytes the bytes of answers that a key has not read yet. Without a reason it is the number of requests per second.",
		Retry: retryAfter,
		Do:    "Spread cold calls over time. Read answers as they arrive, and send fewer requests at once.",
	},
	{
		Answers: []*problem{&errAddressConnections, &errConnections},
		Meaning: "Your address (429) or the whole server (503) has reached its limit of connections.",
		Retry:   retryAfter,
		Do:      "Keep connections open and use each for many requests.",
	},
	{
		Answers: []*problem{internalProblem("01a1fc94-100b-728c-b5ba-54b776aba535")},
		Meaning: "The server failed. The cause is in its log, under the id of the request.",
		Retry:   "Yes, after a few seconds. Double the pause after each further failure.",
		Do:      "If it lasts, give support the id in the message. It is also in the X-Request-Id header.",
	},
	{
		Answers: []*problem{&errEngine, errOutcomeUnknown, errOutcomeOfKey},
		Meaning: "The server could not start the scoring run, or does not know whether it was started. The message says which.",
		Charged: "No, if the message says so. Otherwise it is not known, and the service tries to refund the call.",
		Retry:   "Yes, after a few seconds, with the same Idempotency-Key. Double the pause after each further failure.",
		Do:      "Send an Idempotency-Key with every POST /v1/score. A repeated request is then charged at most once.",
	},
	{
		Answers: []*problem{&errSandboxInvariant},
		Meaning: "A test key reached code for live data. This is a defect of the service. The request was stopped.",
		Do:      "Report it with the X-Request-Id of the answer.",
	},
	{
		Answers: []*problem{&errCoding},
		Meaning: "The Transfer-Encoding of the request is not chunked. The server closes the connection.",
		Do:      "Send the body with a Content-Length, or chunked.",
	},
	{
		Answers: []*problem{&errNotCounted},
		Meaning: "The server has just started and the first count of all companies has not ended. Cohorts, movers and the distribution need it.",
		Retry:   retryAfter,
		Do:      "Wait. Scores and jobs work in the meantime.",
	},
	{
		Answers: []*problem{&errAllAnswers, &errAllBodies, &errHistories},
		Meaning: "The requests or the answers in flight have reached the server's limit of bytes, or histories of requests are read for others. An account has one at a time.",
		Retry:   retryAfter,
		Do:      "Send fewer large requests at once. Read histories of requests one after the other.",
	},
	{
		Answers: []*problem{&errUnavailable},
		Meaning: "The proxy in front of the service got no answer from any server.",
		Charged: "It is not known. A server may have counted the call before its answer was lost.",
		Retry:   retryAfter + " Repeat a POST /v1/score with the same Idempotency-Key only.",
		Do:      "If it lasts, give support the X-Request-Id of the answer.",
	},
}
