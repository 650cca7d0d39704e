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

// Tranco is the source of traffic ranks. It sends no request about a company: Run downloads whole
// lists once a day, and Fetch looks domains up in them. It has three lists in memory, 8 MB each:
// the newest, and those of 30 and 90 days earlier.
type Tranco struct {
	live
	dir    string
	logger *slog.Logger

	// held is nil until the first refresh has ended.
	held atomic.Pointer[rankings]
	// tried is closed after the first refresh.
	tried chan struct{}
}

// rankings are the lists of one refresh.
type rankings struct {
	newest, monthAgo, quarterAgo ranking // nil if it is unavailable
	date                         time.Time
	// fault is why there is no newest list.
	fault error
}

// NewTranco returns the source. It stores lists as files in dir for 120 days, so that a restart
// downloads none. With an empty dir it downloads them at every start. Operators can put other
// lists there: ranking-2026-01-31.csv with lines "rank,domain", or the same in a zip archive
// under the same name.
func NewTranco(c *fetch.Client, dir string, logger *slog.Logger) *Tranco {
	return &Tranco{live: newLive(c, "tranco"), dir: dir, logger: logger, tried: make(chan struct{})}
}

const (
	rankRefresh = 24 * time.Hour   // between two refreshes
	rankRetry   = 10 * time.Minute // after a refresh without a new list
	rankPatient = 10 * time.Minute // bounds a refresh
	rankAgeMax  = 7 * day          // of the newest list
	rankKeep    = 120 * day        // after which files are removed
)

// Run downloads lists and updates them until ctx ends. Only one Run may be in flight.
func (t *Tranco) Run(ctx context.Context) {
	for first := true; ; first = false {
		next := t.refresh(ctx, t.client.Now())
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

// Ready is closed after the first refresh.
func (t *Tranco) Ready() <-chan struct{} { return t.tried }

// refresh updates the lists as of now and returns the time until the next refresh.
func (t *Tranco) refresh(ctx context.Context, now time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, rankPatient)
	defer cancel()
	held := t.held.Load()
	got := &rankings{}
	got.newest, got.date, got.fault = t.list(ctx, now.Add(-day), 6) // the list of a day appears after its end
	if got.fault != nil {
		t.logger.Warn("no new list of traffic ranks", "err", got.fault)
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
			t.logger.Warn("no earlier list of traffic ranks", "days_ago", older.ago.Hours()/24, "err", err)
		}
		*older.into = list
	}
	t.held.Store(got)
	t.tidy(now)
	t.logger.Info("traffic ranks updated", "date", got.date.Format(time.DateOnly), "domains", len(got.newest),
		"month_ago", got.monthAgo != nil, "quarter_ago", got.quarterAgo != nil)
	if got.monthAgo == nil || got.quarterAgo == nil {
		return time.Hour
	}
	return rankRefresh
}

// list returns the list of a date, or of the nearest date before it, at most earlier days before.
func (t *Tranco) list(ctx context.Context, date time.Time, earlier int) (ranking, time.Time, error) {
	var last error
	for n := range earlier + 1 {
		at := date.UTC().Truncate(day).AddDate(0, 0, -n)
		list, err := t.listOf(ctx, at)
		if err == nil {
			return list, at, nil
		}
		last = err
		// Try the day before only if the provider has no list of this date.
		var refused *fetch.Error
		if !errors.As(err, &refused) || refused.Status == 0 || refused.Status == http.StatusTooManyRequests {
			break
		}
	}
	return nil, time.Time{}, fmt.Errorf("ranks of %s: %w", date.Format(time.DateOnly), last)
}

// listOf returns the list of exactly one date, from a file if there is one.
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
		t.logger.Warn("cannot read a file of traffic ranks, downloading it again", "file", path, "err", err)
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(t.dir, "fetching-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // fails after the rename
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

// readRankingFile reads a list from a file. It fails with parse_error if the file is not a list.
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

// listID matches identifiers of lists.
var listID = regexp.MustCompile(`^[A-Z0-9]{3,12}$`)

// download downloads the list of a date into an empty file and parses it.
func (t *Tranco) download(ctx context.Context, date time.Time, file *os.File) (ranking, error) {
	id, err := fetch.Get(ctx, t.client, fetch.Request{
		Source: "tranco", Endpoint: "tranco", Path: "/daily_list_id", Query: url.Values{"date": {date.Format(time.DateOnly)}},
		Types: []string{"*"}, TTL: -1,
	}, func(res *fetch.Response) (string, error) {
		text, err := io.ReadAll(io.LimitReader(res.Body, 100))
		if id := strings.TrimSpace(string(text)); listID.MatchString(id) {
			return id, err
		}
		return "", errors.Join(err, errors.New("the answer is not an identifier of a list"))
	})
	if err != nil {
		return nil, err
	}
	err = t.save(ctx, "/download_daily/"+id, file)
	if fetch.IsRefused(err) { // the list is served from another place
		err = t.save(ctx, "/download/"+id+"/1000000", file)
	}
	if err != nil {
		return nil, err
	}
	return readRankingFile(file)
}

// save downloads a path into a file.
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

// tidy removes the files of old lists.
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
				t.logger.Warn("cannot remove an old file of traffic ranks", "err", err)
			}
		}
	}
}

// Fetch looks up a domain. It waits for the first refresh, within its deadline. Without a list it
// fails with the error of the refresh.
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

// observe derives the signals from the ranks of a domain.
func (r *rankings) observe(domain string) Result {
	s := builder{source: "tranco"}
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

// rankOr returns a rank, or the rank that counts for unlisted domains.
func rankOr(rank int, listed bool) float64 {
	if !listed {
		return rankMax
	}
	return float64(rank)
}
