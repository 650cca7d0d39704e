package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// Tranco is the source of traffic ranks. It asks nobody about a company: Run
// fetches whole lists once a day, and Fetch looks into them. Three lists are kept
// in memory, 8 MB each: the newest, and those of 30 and 90 days before.
type Tranco struct {
	client *fetch.Client
	dir    string
	logger *slog.Logger

	// held is nil until the first attempt to get lists has ended.
	held atomic.Pointer[rankings]
	// tried is closed then.
	tried chan struct{}
}

// rankings are the lists of one day's refresh.
type rankings struct {
	newest, monthAgo, quarterAgo ranking // nil when it could not be had
	date                         time.Time
	// fault is why there is no newest list.
	fault error
}

// NewTranco returns the source. Lists are kept as files in dir for 120 days, so
// that a restart fetches none; with an empty dir they are fetched at every start.
// An operator may put lists of another origin there, as ranking-2026-01-31.csv
// with lines "rank,domain", or such a file in a zip archive under the same name.
func NewTranco(c *fetch.Client, dir string, logger *slog.Logger) *Tranco {
	return &Tranco{client: c, dir: dir, logger: logger, tried: make(chan struct{})}
}

// Name is the key of the source.
func (*Tranco) Name() string { return "tranco" }

// Plan says when the source runs.
func (*Tranco) Plan() Plan { return Plan{Deadline: fetch.PolicyOf("tranco").Deadline} }

const (
	rankRefresh = 24 * time.Hour   // between looks for a newer list
	rankRetry   = 10 * time.Minute // after a look that found none
	rankPatient = 10 * time.Minute // a refresh takes no longer
	rankAgeMax  = 7 * day          // of the newest list
	rankKeep    = 120 * day        // files older than this are removed
)

// Run gets the lists and keeps them up to date until ctx ends. Only one Run may
// be under way.
func (t *Tranco) Run(ctx context.Context) {
	for first := true; ; first = false {
		next := t.refresh(ctx, time.Now())
		if first {
			close(t.tried)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// refresh gets the lists as of now and returns when to do so again.
func (t *Tranco) refresh(ctx context.Context, now time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, rankPatient)
	defer cancel()
	held := t.held.Load()
	got := &rankings{}
	got.newest, got.date, got.fault = t.list(ctx, now.Add(-day), 6) // the list of a day appears after its end
	if got.fault != nil {
		t.logger.Warn("no new traffic ranks", "err", got.fault)
		if held == nil || held.newest == nil {
			t.held.Store(got)
		}
		return rankRetry
	}
	for _, older := range []struct {
		into *ranking
		ago  time.Duration
	}{{&got.monthAgo, 30 * day}, {&got.quarterAgo, 90 * day}} {
		list, _, err := t.list(ctx, got.date.Add(-older.ago), 3)
		if err != nil {
			t.logger.Warn("no earlier traffic ranks", "days_ago", older.ago.Hours()/24, "err", err)
		}
		*older.into = list
	}
	t.held.Store(got)
	t.tidy(now)
	t.logger.Info("traffic ranks", "date", got.date.Format(time.DateOnly), "domains", len(got.newest),
		"month_ago", got.monthAgo != nil, "quarter_ago", got.quarterAgo != nil)
	if got.monthAgo == nil || got.quarterAgo == nil {
		return time.Hour
	}
	return rankRefresh
}

// list returns the list of a date, or of the nearest one before it, at most so
// many days earlier.
func (t *Tranco) list(ctx context.Context, date time.Time, earlier int) (ranking, time.Time, error) {
	var last error
	for n := range earlier + 1 {
		at := date.UTC().Truncate(day).AddDate(0, 0, -n)
		list, err := t.listOf(ctx, at)
		if err == nil {
			return list, at, nil
		}
		last = err
		// Only when the provider answers that it has no such list an earlier one may be there.
		var refused *fetch.Error
		if !errors.As(err, &refused) || refused.Status == 0 || refused.Status == http.StatusTooManyRequests {
			break
		}
	}
	return nil, time.Time{}, fmt.Errorf("ranks of %s: %w", date.Format(time.DateOnly), last)
}

// listOf reads the list of exactly one date, from a file if there is one.
func (t *Tranco) listOf(ctx context.Context, date time.Time) (ranking, error) {
	if t.dir == "" {
		file, err := os.CreateTemp("", "companyscore-ranking-*")
		if err != nil {
			return nil, err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		return t.download(ctx, date, file)
	}
	path := filepath.Join(t.dir, "ranking-"+date.Format(time.DateOnly)+".csv")
	if file, err := os.Open(path); err == nil {
		defer file.Close()
		list, err := readRankingFile(file)
		if err == nil {
			return list, nil
		}
		t.logger.Warn("a file of traffic ranks cannot be read, it is fetched again", "file", path, "err", err)
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(t.dir, "fetching-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // it is gone when it was renamed
	defer file.Close()
	list, err := t.download(ctx, date, file)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return nil, err
	}
	return list, nil
}

// readRankingFile fails with parse_error for a file that is no list.
func readRankingFile(file *os.File) (ranking, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	list, err := parseRanking(file, info.Size())
	if err != nil {
		return nil, &Error{Code: fetch.CodeParse, Err: err}
	}
	return list, nil
}

// listID is the form of the identifiers of lists.
var listID = regexp.MustCompile(`^[A-Z0-9]{3,12}$`)

// download fetches the list of a date into an empty file, and reads it.
func (t *Tranco) download(ctx context.Context, date time.Time, file *os.File) (ranking, error) {
	id, err := fetch.Get(ctx, t.client, fetch.Request{
		Source: "tranco", Endpoint: "tranco", Path: "/daily_list_id", Query: url.Values{"date": {date.Format(time.DateOnly)}}, Types: []string{"*"}, TTL: -1,
	}, func(res *fetch.Response) (string, error) {
		text, err := io.ReadAll(io.LimitReader(res.Body, 100))
		if id := strings.TrimSpace(string(text)); listID.MatchString(id) {
			return id, err
		}
		return "", errors.Join(err, errors.New("the answer is no identifier of a list"))
	})
	if err != nil {
		return nil, err
	}
	err = t.save(ctx, "/download_daily/"+id, file)
	if fetch.IsRefused(err) { // a list that is offered in another place
		err = t.save(ctx, "/download/"+id+"/1000000", file)
	}
	if err != nil {
		return nil, err
	}
	return readRankingFile(file)
}

// save fetches a path into a file.
func (t *Tranco) save(ctx context.Context, path string, file *os.File) error {
	_, err := fetch.Get(ctx, t.client, fetch.Request{Source: "tranco", Endpoint: "tranco", Path: path, Types: []string{"*"}, TTL: -1},
		func(res *fetch.Response) (struct{}, error) {
			if err := errors.Join(file.Truncate(0), seekStart(file)); err != nil {
				return struct{}{}, err
			}
			_, err := io.Copy(file, res.Body)
			return struct{}{}, err
		})
	return err
}

func seekStart(file *os.File) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// tidy removes files of lists that are no longer needed.
func (t *Tranco) tidy(now time.Time) {
	if t.dir == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(t.dir, "ranking-*.csv"))
	if err != nil {
		return
	}
	for _, path := range files {
		date, err := time.Parse("ranking-2006-01-02.csv", filepath.Base(path))
		if err == nil && now.Sub(date) > rankKeep {
			if err := os.Remove(path); err != nil {
				t.logger.Warn("an old file of traffic ranks stays", "err", err)
			}
		}
	}
}

// Fetch looks a domain up. Until the first lists are there it waits, within its
// deadline. Without any list it fails as the attempt to get one did.
func (t *Tranco) Fetch(ctx context.Context, req Request) (Result, error) {
	select {
	case <-t.tried:
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for the list of traffic ranks: %w", ctx.Err())
	}
	held := t.held.Load()
	if held.newest == nil {
		return Result{}, fmt.Errorf("there is no list of traffic ranks: %w", held.fault)
	}
	if age := req.Now.Sub(held.date); age > rankAgeMax+rankRefresh {
		return Result{}, &Error{Code: fetch.CodeHTTP, Err: fmt.Errorf("the newest list of traffic ranks is %.0f days old", days(age))}
	}
	return held.observe(req.Registrable), nil
}

// observe turns the ranks of a domain into signals.
func (r *rankings) observe(domain string) Result {
	s := says{source: "tranco"}
	rank, listed := r.newest.rank(domain)
	if listed {
		s.ok("traffic_rank", float64(rank))
	} else {
		s.absent("traffic_rank")
	}
	for _, change := range []struct {
		signal string
		then   ranking
	}{{"traffic_rank_change_30d", r.monthAgo}, {"traffic_rank_change_90d", r.quarterAgo}} {
		if change.then == nil {
			s.missing(scoring.ReasonInsufficientHistory, change.signal)
			continue
		}
		then, listedThen := change.then.rank(domain)
		if !listed && !listedThen {
			s.absent(change.signal)
			continue
		}
		s.ok(change.signal, math.Log2(rankOr(then, listedThen)/rankOr(rank, listed)))
	}
	return s.result
}

// rankOr is a rank, or that of all domains that are not listed.
func rankOr(rank int, listed bool) float64 {
	if !listed {
		return rankMax
	}
	return float64(rank)
}
