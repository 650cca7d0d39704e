package embedded_test

import (
	"context"
	"net"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/clickhouse/embedded"
)

func TestDriverRoundTrip(t *testing.T) {
	s, err := embedded.New(t.Context(), embedded.Config{Path: t.TempDir(), Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	opt, err := ch.ParseDSN("http://companyscore:p@" + ln.Addr().String() + "/default")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ch.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := conn.Exec(ctx, "CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	b, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	for i := range 100000 {
		b.Append(uint64(i), "x")
	}
	if err := b.Send(); err != nil {
		t.Fatal(err)
	}
	t.Log("insert", time.Since(t0))
	var n uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM t WHERE b = {b:String}", ch.Named("b", "x")).Scan(&n); err != nil || n != 100000 {
		t.Fatal(n, err)
	}
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}
