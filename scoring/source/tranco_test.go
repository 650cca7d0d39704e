package source

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rankedFrom returns a list of n domains in which the named ones have their ranks.
func rankedFrom(n int, named map[int]string) string {
	var list strings.Builder
	for rank := 1; rank <= n; rank++ {
		domain, ok := named[rank]
		if !ok {
			domain = fmt.Sprintf("filler-%d.example", rank)
		}
		fmt.Fprintf(&list, "%d,%s\r\n", rank, domain)
	}
	return list.String()
}

func zipped(t testing.TB, name, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	file, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func mustRank(t testing.TB, list []byte) ranking {
	t.Helper()
	got, err := parseRanking(bytes.NewReader(list), int64(len(list)))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRanking(t *testing.T) {
	t.Parallel()
	list := rankedFrom(3000, map[int]string{7: "brindleworks.com", 2900: "Quilltarn.ORG"}) +
		"3001,brindleworks.com\n2500000,far.example\nnonsense\n"
	for name, raw := range map[string][]byte{"csv": []byte(list), "zip": zipped(t, "top-1m.csv", list)} {
		r := mustRank(t, raw)
		for domain, want := range map[string]int{"brindleworks.com": 7, "quilltarn.org": 2900, "filler-1.example": 1, "far.example": 0,
			"unlisted.example": 0, "": 0} {
			if got, _ := r.rank(domain); got != want {
				t.Errorf("%s: rank of %q: got %d, want %d", name, domain, got, want)
			}
		}
	}
	good := zipped(t, "top-1m.csv", list)
	for name, raw := range map[string][]byte{
		"empty": nil, "a page": []byte("<html>gone</html>"), "short": []byte(rankedFrom(10, nil)), "truncated": good[:len(good)/2],
		"no list in the archive": zipped(t, "README", list), "other columns": []byte(strings.Repeat("example.com,1\n", 5000)),
		"a long line": []byte(list + strings.Repeat("a", 1000)), "binary": bytes.Repeat([]byte{0, 255, '\n'}, 5000),
	} {
		if r, err := parseRanking(bytes.NewReader(raw), int64(len(raw))); err == nil {
			t.Errorf("%s: got %d domains, want an error", name, len(r))
		}
	}
}

// A small file can unpack to any size; memory must stay bounded.
func TestRankingRejectsZipBomb(t *testing.T) {
	t.Parallel()
	archive := zipped(t, "top-1m.csv", strings.Repeat("1,a.example\n", 1<<20))
	opened, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	list, err := opened.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readRanking(list, 1<<20); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v, want that the list is too large", err)
	}
}

func TestRankChanges(t *testing.T) {
	t.Parallel()
	list := func(named map[int]string) ranking { return mustRank(t, []byte(rankedFrom(2000, named))) }
	held := &rankings{
		newest:     list(map[int]string{100: "up.com", 800: "down.com", 1000: "new.com"}),
		monthAgo:   list(map[int]string{200: "up.com", 400: "down.com", 500: "gone.com"}),
		quarterAgo: list(map[int]string{400: "up.com", 100: "down.com", 500: "gone.com"}),
	}
	for domain, want := range map[string]string{
		"up.com":    "traffic_rank 100, traffic_rank_change_30d 1, traffic_rank_change_90d 2",
		"down.com":  "traffic_rank 800, traffic_rank_change_30d -1, traffic_rank_change_90d -3",
		"new.com":   "traffic_rank 1000, traffic_rank_change_30d 10.9658, traffic_rank_change_90d 10.9658",
		"gone.com":  "traffic_rank absent, traffic_rank_change_30d -11.9658, traffic_rank_change_90d -11.9658",
		"never.com": "traffic_rank absent, traffic_rank_change_30d absent, traffic_rank_change_90d absent",
	} {
		wantSpoken(t, held.observe(domain), want)
	}
	held.quarterAgo = nil
	wantSpoken(t, held.observe("up.com"), "traffic_rank 100, traffic_rank_change_30d 1, traffic_rank_change_90d insufficient_history")
}

func FuzzRanking(f *testing.F) {
	f.Add([]byte(rankedFrom(1100, nil)))
	f.Add(zipped(f, "top-1m.csv", rankedFrom(1100, nil)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRanking(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		if !slices.IsSorted(r) {
			t.Fatal("the ranking is not in order")
		}
		wantValid(t, (&rankings{newest: r, monthAgo: r}).observe("filler-1.example"))
	})
}
