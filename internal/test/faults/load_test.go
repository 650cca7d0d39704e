package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"companyscore/internal/test/openapicheck"
)

// load sends calls during the faults. Each part runs in a goroutine until its context ends,
// and completes its last call.
type load struct {
	target   *target
	ledger   *ledger
	document *openapicheck.Document
	seed     uint64
	requests atomic.Int64

	customers []*account   // who make cold calls
	hot       []string     // companies with a score from the start
	domains   []string     // companies without one
	asked     atomic.Int64 // how many of domains were asked for
	free      string       // key of an account of the free tier
	stranger  string       // key of an account without jobs
	sandbox   string       // test key
}

// run runs all parts until ctx ends.
func (l *load) run(ctx context.Context) {
	var parts sync.WaitGroup
	begin := func(count int, part func(ctx context.Context, random *rand.Rand)) {
		for range count {
			l.seed++
			random := rand.New(rand.NewPCG(l.seed, 2))
			parts.Go(func() { part(ctx, random) })
		}
	}
	begin(2, l.readHot)
	begin(6, l.callCold)
	begin(3, l.poll)
	begin(1, l.readMany)
	begin(1, l.readUsage)
	begin(1, l.readHistory)
	begin(1, l.browse)
	begin(2, l.analyse)
	parts.Wait()
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// scoreBody is what the load reads of a score.
type scoreBody struct {
	ScoredAt time.Time `json:"scored_at"`
}

func decode[T any](body []byte) (into T, err error) {
	err = json.Unmarshal(body, &into)
	return into, err
}

// wrong notes an answer that the call must not have.
func (l *load) wrong(what string, a answer) {
	l.ledger.differ(wrongAnswer, "%s, request %s at %s: %d %.500s", what, a.request, a.began.UTC().Format(clockFormat), a.status, a.body)
}

// readScore reads the score of a company and compares it with what must be there.
func (l *load) readScore(ctx context.Context, who *account, key, domain string) (answer, bool) {
	floor := l.ledger.floor(domain)
	a, ok := l.call(ctx, http.MethodGet, "/v1/score/"+domain, key, "")
	if !ok {
		return a, false
	}
	switch {
	case a.status == http.StatusOK && a.err == nil:
		l.ledger.countCached(who, 1)
		score, err := decode[scoreBody](a.body)
		if err != nil {
			l.wrong("GET score", a)
			return a, true
		}
		l.ledger.read("request "+a.request, domain, floor, score.ScoredAt)
	case a.status == http.StatusNotFound:
		l.ledger.read("request "+a.request, domain, floor, time.Time{})
	case !a.failed():
		l.wrong("GET score", a)
	case a.executed && a.err != nil:
		l.ledger.mayCount(who, 1)
	}
	return a, true
}

// readHot reads a few companies again and again.
func (l *load) readHot(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 4*time.Millisecond) {
		who := pick(random, l.customers)
		phase := l.target.phase(time.Now())
		a, ok := l.readScore(ctx, who, pick(random, who.Keys), pick(random, l.hot))
		if ok && a.err == nil {
			l.ledger.answeredIn(phase, a.ended.Sub(a.began))
		}
		if ok && a.status == http.StatusNotFound {
			l.wrong("GET score of a company with a score", a)
		}
	}
}

// known returns a company that somebody asked a score of.
func (l *load) known(random *rand.Rand) string {
	asked := min(int(l.asked.Load()), len(l.domains))
	if asked == 0 || random.IntN(10) == 0 {
		return pick(random, l.hot)
	}
	return pick(random, l.domains[:asked])
}

// callCold makes cold calls, some with an Idempotency-Key.
func (l *load) callCold(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 15*time.Millisecond) {
		op := &operation{Account: pick(random, l.customers)}
		switch n := random.IntN(10); {
		case n < 7:
			next := int(l.asked.Add(1)) - 1
			op.Domain = fmt.Sprintf("unheard-of-%d.com", next)
			if next < len(l.domains) {
				op.Domain = l.domains[next]
			}
		case n < 9:
			op.Domain, op.Forced = l.known(random), true
		default:
			op.Domain = l.known(random)
		}
		if random.IntN(3) > 0 {
			op.Key = fmt.Sprintf("order %d", l.requests.Add(1))
		}
		l.ledger.begin(op)
		if op.Key != "" && random.IntN(20) == 0 {
			// Two callers, one order.
			var second sync.WaitGroup
			other := rand.New(rand.NewPCG(random.Uint64(), 3))
			second.Go(func() { l.order(ctx, other, op) })
			l.order(ctx, random, op)
			second.Wait()
			continue
		}
		l.order(ctx, random, op)
	}
}

// order makes a cold call. With an Idempotency-Key it is repeated until there is an
// answer, as the documents advise, and may be replayed afterwards.
func (l *load) order(ctx context.Context, random *rand.Rand, op *operation) {
	for {
		a, ok := l.post(ctx, pick(random, op.Account.Keys), op, op.Domain)
		switch {
		case !ok:
			return
		case !a.failed():
		case op.Key == "" || !pace(ctx, random, 100*time.Millisecond):
			return
		default:
			continue
		}
		if op.Key == "" || a.status != http.StatusAccepted {
			return
		}
		break
	}
	if random.IntN(4) == 0 {
		a, ok := l.post(ctx, pick(random, op.Account.Keys), op, op.Domain)
		if ok {
			l.ledger.replayed("same body: " + a.outcome())
		}
		if ok && !a.failed() && a.status != http.StatusAccepted {
			l.wrong("replay of "+op.String(), a)
		}
	}
	if random.IntN(8) == 0 {
		a, ok := l.post(ctx, pick(random, op.Account.Keys), op, "other-"+op.Domain)
		if ok {
			l.ledger.replayed("another body: " + a.outcome())
		}
		if ok && !a.failed() && a.status != http.StatusUnprocessableEntity {
			l.wrong("another body with the key of "+op.String(), a)
		}
	}
}

// post makes one POST of an operation, for its domain or for another.
func (l *load) post(ctx context.Context, key string, op *operation, domain string) (answer, bool) {
	var headers []string
	if op.Key != "" {
		headers = []string{"Idempotency-Key", op.Key}
	}
	floor := l.ledger.floor(domain)
	a, ok := l.call(ctx, http.MethodPost, "/v1/score", key, fmt.Sprintf(`{"domain":%q,"force_fresh":%t}`, domain, op.Forced), headers...)
	if !ok {
		return a, false
	}
	made := attempt{At: a.began, Domain: domain, Request: a.request, Outcome: a.outcome()}
	switch {
	case a.failed():
		l.ledger.attempted(op, made, a.executed)
		if a.err != nil && a.executed {
			l.ledger.mayCount(op.Account, 1) // it may have found a fresh score
		}
		return a, true
	case a.status == http.StatusAccepted:
		accepted, err := decode[struct {
			ID     string `json:"job_id"`
			Domain string
		}](a.body)
		if err != nil || accepted.ID == "" || accepted.Domain != domain {
			l.wrong("POST of "+op.String(), a)
		}
		made.Job = accepted.ID
	case a.status == http.StatusOK:
		l.ledger.countCached(op.Account, 1)
		score, err := decode[scoreBody](a.body)
		if err != nil || op.Forced && op.Account.Tier == "enterprise" {
			l.wrong("POST of "+op.String(), a)
			break
		}
		l.ledger.read("request "+a.request, domain, floor, score.ScoredAt)
	case a.status == http.StatusTooManyRequests:
		if op.Account.Budget == unmetered || !bytes.Contains(a.body, []byte(`"cold_budget_exhausted"`)) {
			l.wrong("POST of "+op.String(), a)
		}
	case a.status == http.StatusUnprocessableEntity && domain != op.Domain:
	default:
		l.wrong("POST of "+op.String(), a)
	}
	l.ledger.attempted(op, made, false)
	return a, true
}

// poll polls acknowledged jobs in turn, and reads the score of those that are complete.
func (l *load) poll(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 5*time.Millisecond) {
		j := l.ledger.next()
		if j == nil {
			continue
		}
		who := j.Operation.Account
		if l.pollOne(ctx, j, pick(random, who.Keys)) == "complete" {
			l.readScore(ctx, who, pick(random, who.Keys), j.Domain)
		}
	}
}

// pollOne polls a job and returns its status, empty without an answer.
func (l *load) pollOne(ctx context.Context, j *job, key string) string {
	a, ok := l.call(ctx, http.MethodGet, "/v1/jobs/"+j.ID, key, "")
	switch {
	case !ok || a.failed():
		l.ledger.polled(j, "", time.Time{}, "")
		return ""
	case a.status == http.StatusNotFound:
		l.ledger.polled(j, "unknown", time.Time{}, "")
		return "unknown"
	case a.status != http.StatusOK:
		l.wrong("GET of job "+j.ID, a)
		l.ledger.polled(j, "", time.Time{}, "")
		return ""
	}
	body, err := decode[struct {
		Status string
		Reason string `json:"failure_reason"`
		Result struct {
			ScoredAt time.Time `json:"scored_at"`
		} `json:"result_ref"`
	}](a.body)
	if err != nil {
		l.wrong("GET of job "+j.ID, a)
	}
	l.ledger.polled(j, body.Status, body.Result.ScoredAt, body.Reason)
	return body.Status
}

// batchSize is how many companies one call of readMany reads.
const batchSize = 30

// readMany reads many scores with each call.
func (l *load) readMany(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 150*time.Millisecond) {
		who := pick(random, l.customers)
		domains := make([]string, batchSize)
		floors := make([]time.Time, batchSize)
		for i := range domains {
			domains[i] = l.known(random)
			floors[i] = l.ledger.floor(domains[i])
		}
		list, err := json.Marshal(domains)
		if err != nil {
			panic(err) // strings
		}
		a, ok := l.call(ctx, http.MethodPost, "/v1/scores/batch", pick(random, who.Keys), `{"domains":`+string(list)+`}`)
		if !ok || a.failed() {
			if ok && a.err != nil && a.executed {
				l.ledger.mayCount(who, batchSize)
			}
			continue
		}
		body, err := decode[struct {
			Results []struct {
				Domain string
				Status int
				Score  scoreBody
			}
		}](a.body)
		if err != nil || a.status != http.StatusOK || len(body.Results) != batchSize {
			l.wrong("POST batch", a)
			continue
		}
		for i, result := range body.Results {
			if result.Domain != domains[i] {
				l.wrong("POST batch", a)
			}
			if result.Status == http.StatusOK {
				l.ledger.countCached(who, 1)
			}
			l.ledger.read("request "+a.request, domains[i], floors[i], result.Score.ScoredAt)
		}
	}
}

// usageBody is the answer of GET /v1/usage.
type usageBody struct {
	Period string
	Total  int `json:"total_calls"`
	Cold   int `json:"cold_calls"`
	Cached int `json:"cached_calls"`
}

// readUsage reads the counts of the accounts in turn. No budget may be exceeded at any time.
func (l *load) readUsage(ctx context.Context, random *rand.Rand) {
	for i := 0; pace(ctx, random, 100*time.Millisecond); i++ {
		who := l.customers[i%len(l.customers)]
		a, ok := l.call(ctx, http.MethodGet, "/v1/usage", pick(random, who.Keys), "")
		if !ok || a.failed() {
			continue
		}
		usage, err := decode[usageBody](a.body)
		if err != nil || a.status != http.StatusOK || usage.Total != usage.Cold+usage.Cached {
			l.wrong("GET usage", a)
		}
		if who.Budget != unmetered && usage.Cold > who.Budget {
			l.ledger.differ(budgetExceeded, "account %s was charged %d cold calls of %d, request %s", who.Name, usage.Cold, who.Budget,
				a.request)
		}
	}
}

// readHistory reads pages of history.
func (l *load) readHistory(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 50*time.Millisecond) {
		domain := l.known(random)
		a, ok := l.call(ctx, http.MethodGet, "/v1/score/"+domain+"/history?limit=20", pick(random, pick(random, l.customers).Keys), "")
		if !ok || a.failed() || a.status == http.StatusNotFound {
			continue
		}
		history, err := decode[struct{ Records []scoreBody }](a.body)
		if err != nil || a.status != http.StatusOK {
			l.wrong("GET history", a)
		}
		for i := 1; i < len(history.Records); i++ {
			if !history.Records[i].ScoredAt.Before(history.Records[i-1].ScoredAt) {
				l.wrong("GET history, whose records are not each older than the one before", a)
			}
		}
	}
}

// browse makes the calls that are refused, those of the sandbox, and those about many companies.
func (l *load) browse(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 100*time.Millisecond) {
		live := pick(random, pick(random, l.customers).Keys)
		someJob := ""
		if j := l.ledger.anyJob(random); j != nil {
			someJob = j.ID
		}
		visit := pick(random, []struct {
			method, path, key, body string
			wants                   int
		}{
			{http.MethodGet, "/v1/score/acme.test", l.sandbox, "", 200},
			{http.MethodPost, "/v1/score", l.sandbox, `{"domain":"acme.test"}`, 200},
			{http.MethodGet, "/v1/jobs/" + someJob, l.sandbox, "", 404},
			{http.MethodGet, "/v1/jobs/" + someJob, l.stranger, "", 403},
			{http.MethodPost, "/v1/score", l.free, `{"domain":"free-company.com"}`, 403},
			{http.MethodPost, "/v1/score", live, `{"domain":"acme.test"}`, 400},
			{http.MethodPost, "/v1/score", live, `{"domain":"localhost"}`, 400},
			{http.MethodGet, "/v1/usage", "svc_live_nobody", "", 401},
			{http.MethodGet, "/v1/movers?window=7d", live, "", 200},
			{http.MethodGet, "/v1/distribution", live, "", 200},
			{http.MethodGet, "/v1/company/" + pick(random, l.hot) + "/cohort", live, "", 200},
			{http.MethodGet, "/v1/company/" + pick(random, l.hot) + "/confidence", live, "", 200},
		})
		if strings.HasSuffix(visit.path, "/jobs/") {
			continue
		}
		a, ok := l.call(ctx, visit.method, visit.path, visit.key, visit.body)
		if ok && !a.failed() && a.status != visit.wants {
			l.wrong(visit.method+" "+visit.path+" with key "+visit.key, a)
		}
	}
}

// statements are what the analyst reads. The last is larger than all buffers between
// the engine and a client.
var statements = []string{
	"SELECT * FROM v1_signal FORMAT TabSeparated",
	"SELECT * FROM v1_score_history FORMAT TabSeparated",
	"SELECT number, toString(number) FROM numbers(10000000) FORMAT TabSeparated",
}

// analyse reads from ClickHouse as the analyst: a part of an answer, then a pause, then it
// closes the connection.
func (l *load) analyse(ctx context.Context, random *rand.Rand) {
	for pace(ctx, random, 500*time.Millisecond) {
		runtime, _, ok := l.target.wait(ctx)
		if !ok {
			return
		}
		outcome := func() string {
			callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			defer cancel()
			req, err := http.NewRequestWithContext(callCtx, http.MethodPost, runtime.AnalystURL,
				strings.NewReader(pick(random, statements)))
			if err != nil {
				panic(err) // up wrote the address
			}
			password, _ := req.URL.User.Password()
			req.SetBasicAuth(req.URL.User.Username(), password)
			req.URL.RawQuery, req.URL.Path = "database="+strings.Trim(req.URL.Path, "/"), "/"
			res, err := client.Do(req)
			if err != nil {
				return "not answered"
			}
			defer res.Body.Close()
			n, err := io.CopyN(io.Discard, res.Body, random.Int64N(256<<10))
			switch {
			case res.StatusCode != http.StatusOK:
				return fmt.Sprint(res.StatusCode)
			case err == io.EOF && n >= 0:
				return "read"
			case err != nil:
				return "broken off"
			}
			if random.IntN(2) == 0 {
				rest(ctx, time.Duration(random.Int64N(int64(6*time.Second))))
			}
			return "abandoned"
		}()
		l.ledger.analysed(outcome)
	}
}
