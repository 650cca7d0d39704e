package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkPool compares numbers of connections of the library, each behind HTTP
// with 8 clients at once. The library opens one data directory per process, so
// each size is a slice of the one server: a client that holds none waits.
func BenchmarkPool(b *testing.B) {
	must := func(query string) {
		if err := post(b.Context(), query, nil); err != nil {
			b.Fatal(err)
		}
	}
	must("CREATE TABLE IF NOT EXISTS pooled (domain String, composite Float64) ENGINE = MergeTree ORDER BY domain SETTINGS " +
		"index_granularity = 256")
	must("INSERT INTO pooled SELECT concat('company', toString(number), '.com'), number % 1001 / 10 FROM numbers(1000000)")
	var inserted atomic.Int64
	for name, query := range map[string]func(i int64) string{
		"point read": func(i int64) string {
			return fmt.Sprintf("SELECT composite FROM pooled WHERE domain = 'company%d.com'", i*7919%1_000_000)
		},
		"scan":   func(int64) string { return "SELECT composite, count() FROM pooled GROUP BY composite FORMAT Null" },
		"insert": func(int64) string { return fmt.Sprintf("INSERT INTO pooled VALUES ('new%d.com', 1)", inserted.Add(1)) },
	} {
		for _, size := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/connections=%d", name, size), func(b *testing.B) {
				slots := make(chan struct{}, size)
				var n atomic.Int64
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						slots <- struct{}{}
						err := post(context.Background(), query(n.Add(1)), nil)
						<-slots
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

func post(ctx context.Context, query string, params url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server.address+"/?"+params.Encode(), strings.NewReader(query))
	if err != nil {
		return err
	}
	req.SetBasicAuth("companyscore", "p")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", body)
	}
	return err
}
