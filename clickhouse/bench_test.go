package clickhouse_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/scoring"
)

// benchCompanies is the number of companies of the point reads.
const benchCompanies = 2000

func company(n int) string { return fmt.Sprintf("company-%d.com", n) }

// filled returns a database with five records of each company.
func filled(b *testing.B) (*clickhouse.DB, *clickhouse.Scores) {
	b.Helper()
	db := open(b)
	s := scores(b, db)
	for i := range 5 {
		var writers errgroup.Group
		writers.SetLimit(500)
		for n := range benchCompanies {
			writers.Go(func() error { return s.Write(b.Context(), record(b, company(n), noon.AddDate(0, 0, -30*i))) })
		}
		if err := writers.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	return db, s
}

// BenchmarkPointRead measures reads of single rows with one caller, and with four per
// processor.
func BenchmarkPointRead(b *testing.B) {
	db, s := filled(b)
	accounts := clickhouse.NewAccounts(db)
	if err := accounts.PutKey(b.Context(), account.Key{ID: "k", AccountID: "a", Mode: account.Live, CreatedAt: noon}); err != nil {
		b.Fatal(err)
	}
	randomCompany := func() string { return company(rand.IntN(benchCompanies)) }
	reads := []struct {
		name string
		read func() error
	}{
		{"head", func() error { _, err := s.LatestHead(b.Context(), randomCompany()); return err }},
		{"record", func() error { _, err := s.Latest(b.Context(), randomCompany()); return err }},
		{"earlier", func() error { _, err := s.Earlier(b.Context(), randomCompany(), noon); return err }},
		{"history", func() error {
			_, err := s.History(b.Context(), randomCompany(), scoring.Span{To: noon}, 100)
			return err
		}},
		{"key", func() error { _, err := accounts.KeyByHash(b.Context(), [32]byte{}); return err }},
	}
	for _, r := range reads {
		b.Run(r.name+"/alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := r.read(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(r.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := r.read(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkWrite measures durable records per second with several callers per processor.
func BenchmarkWrite(b *testing.B) {
	s := scores(b, open(b))
	rec := record(b, "example.com", noon)
	var n atomic.Int64
	for _, callers := range []int{1, 8, 128} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				rec := rec
				for pb.Next() {
					rec.Domain = company(int(n.Add(1)))
					if err := s.Write(b.Context(), rec); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
