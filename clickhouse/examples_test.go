package clickhouse_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/clickhouse"
	"companyscore/examples"
	"companyscore/internal/seed"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/worker"
	"companyscore/server/api"
)

// unpublished is a store of records without Redis.
type unpublished struct{ *clickhouse.Scores }

func (unpublished) Publish(context.Context, ...scoring.Record) error { return nil }

// scoredExamples fills a database with the examples, as `up --examples --sources facts` does.
func scoredExamples(t *testing.T) (*stores.ClickHouseServer, *clickhouse.DB) {
	t.Helper()
	server, db := openServer(t)
	store := clickhouse.NewFacts(db)
	for _, file := range examples.Files {
		importRows(t, store, file.Name, string(file.Text))
	}
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { scores.Close(context.Background()) })
	w, err := worker.New([]source.Source{source.Facts{Store: store}}, unpublished{scores}, nil, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	var all errgroup.Group
	all.SetLimit(4)
	for group := range slices.Chunk(examples.Domains(examples.Files...), 1000) {
		all.Go(func() error {
			runs := make([]scoring.Run, len(group))
			for i, domain := range group {
				runs[i] = scoring.Run{ID: domain, Domain: domain, StartedAt: now}
			}
			for i, out := range w.Run(t.Context(), runs, func(int) bool { return false }) {
				if out.Err != nil {
					return fmt.Errorf("score %s: %w", group[i], out.Err)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return server, db
}

var (
	rowsOfExamples = regexp.MustCompile(`(?m)^-- 21,501 examples: (no|\d+) rows?\b`)
	rowsWithSeed   = regexp.MustCompile("(?m)^-- With 300 companies of `companyscore bench seed --domains 300 --append`: (\\d+) rows?\\.$")
	firstQuery     = regexp.MustCompile("(?s)\n```sql\n(.*?)\n```\n|## First query.*?\n```text\n(.*?)\n```\n")
)

// compareSignals compares the signals of 880 examples in the API with those of v1_signal_latest.
func compareSignals(t *testing.T, db *clickhouse.DB) {
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { scores.Close(context.Background()) })
	rows, err := db.Conn().Query(t.Context(), "SELECT domain, raw, score, weight FROM companyscore.v1_signal_latest "+
		"WHERE domain IN {domains:Array(String)}",
		clickhouse.Named("domains", examples.Domains(examples.Companies)))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	companies := 0
	var all errgroup.Group // calls at once share queries
	for rows.Next() {
		var domain string
		var raw, score, weight map[string]*float64
		if err := rows.Scan(&domain, &raw, &score, &weight); err != nil {
			t.Fatal(err)
		}
		companies++
		all.Go(func() error {
			rec, err := scores.Latest(t.Context(), domain)
			if err != nil {
				return err
			}
			for _, s := range api.NewScoreSignals(rec).Signals {
				same := s.Value == nil && raw[s.ID] == nil || s.Value != nil && raw[s.ID] != nil && *s.Value == *raw[s.ID]
				share := weight[s.ID]
				if !same || share != nil && (*score[s.ID] != s.Score || math.Abs(*share*s.Score-*s.Contribution) > 1e-12) {
					return fmt.Errorf("%s of %s: the API has %+v, the view %v, %v and %v", s.ID, domain, s, raw[s.ID], score[s.ID], share)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if err := rows.Err(); err != nil || companies != 880 {
		t.Errorf("%d companies, %v", companies, err)
	}
}

// TestQueriesHaveRowsOnTheExamples runs the worked queries on the examples. The answer has as many rows as the head of the file says.
// Queries of histories have rows beside a generated universe; those without rows of other reasons have some in
// TestWorkedQueriesAnswerAsKnown. The queries of pages about tools and data teams have rows.
func TestQueriesHaveRowsOnTheExamples(t *testing.T) {
	t.Parallel()
	server, db := scoredExamples(t)
	rows := func(path, query string) int {
		status, answer := asAnalyst(t, server, query, "TSV")
		if status != http.StatusOK {
			t.Errorf("%s: %s", path, answer)
		}
		return strings.Count(answer, "\n")
	}
	if n := rows("examples", "SELECT domain FROM v1_score_latest"); n != 21_501 {
		t.Fatalf("%d examples", n)
	}
	t.Run("signals", func(t *testing.T) { compareSignals(t, db) })
	queries, err := filepath.Glob("../docs/sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	beside := make(map[string]int) // rows with a generated universe, by path
	texts := make(map[string]string)
	for _, path := range queries {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
		m := rowsOfExamples.FindStringSubmatch(texts[path])
		if m == nil {
			t.Errorf("%s does not say how many rows it has on the examples", path)
			continue
		}
		want, _ := strconv.Atoi(m[1]) // 0 for no
		if got := rows(path, texts[path]); got != want {
			t.Errorf("%s has %d rows on the examples, promised are %d", path, got, want)
		}
		if m := rowsWithSeed.FindStringSubmatch(texts[path]); m != nil {
			beside[path], _ = strconv.Atoi(m[1])
		}
	}
	pages, err := filepath.Glob("../docs/sql/connect/*.md")
	if err != nil {
		t.Fatal(err)
	}
	first := 0
	for _, path := range append(pages, "../docs/data-teams.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range firstQuery.FindAllStringSubmatch(string(text), -1) {
			first++
			query := expand(m[1]+m[2], time.Now().AddDate(0, 0, -1), time.Now().Add(time.Minute), "", "")
			if rows(path, query) == 0 {
				t.Errorf("%s: no rows on the examples: %s", path, query)
			}
		}
	}
	if first < 10 {
		t.Errorf("%d queries of pages were tried", first)
	}
	spec := seed.Spec{Universe: seed.Universe{Domains: 300, Records: 5, Seed: 1}, Signals: seed.SignalsNewest}
	if _, err := seed.Write(t.Context(), db, spec, true, nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range beside {
		if got := rows(path, texts[path]); got != want || got == 0 {
			t.Errorf("%s has %d rows beside a generated universe, promised are %d", path, got, want)
		}
	}
	if len(beside) < 5 {
		t.Errorf("%d queries were tried beside a generated universe", len(beside))
	}
}
