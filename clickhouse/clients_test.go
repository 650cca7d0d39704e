package clickhouse_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// TestRecordedClientsConnect replays the requests of testdata/clients.
func TestRecordedClientsConnect(t *testing.T) {
	t.Parallel()
	server, _, _ := known(t)
	u, err := url.Parse(server.AnalystURL("companyscore"))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	secrets := strings.NewReplacer("BASIC", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.String())), "USER", u.User.Username(),
		"PASSWORD", password)
	files, err := filepath.Glob("testdata/clients/*.http")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, request := range strings.Split(string(text), "\n### ")[1:] {
				expect, request, _ := strings.Cut(request, "\n")
				status, want, _ := strings.Cut(expect, " ")
				head, body, _ := strings.Cut(request, "\n\n")
				head = secrets.Replace(strings.Replace(strings.TrimSpace(head), "\n", " HTTP/1.1\nHost: "+u.Host+"\n", 1))
				if !strings.Contains(head, "HTTP/1.1") {
					head += " HTTP/1.1\nHost: " + u.Host
				}
				req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n")))
				if err != nil {
					t.Fatalf("request %d: %v", i+1, err)
				}
				body = strings.TrimSpace(body)
				req.RequestURI, req.URL.Scheme, req.URL.Host = "", "http", u.Host
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				res, err := http.DefaultClient.Do(req.WithContext(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || fmt.Sprint(res.StatusCode) != status || !strings.Contains(string(answer), want) {
					t.Errorf("request %d, %s: %d %v %.300q; want %s %s", i+1, body, res.StatusCode, err, answer, status, want)
				}
			}
		})
	}
}

// TestDriverOfGoAsAnalyst uses clickhouse-go as an analyst does: queries, streams, parameters, settings, compression, cancellation and what
// is refused.
func TestDriverOfGoAsAnalyst(t *testing.T) {
	t.Parallel()
	server, _, _ := known(t)
	opt, err := ch.ParseDSN(server.AnalystURL("companyscore"))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []ch.CompressionMethod{ch.CompressionNone, ch.CompressionLZ4, ch.CompressionZSTD, ch.CompressionGZIP} {
		o := *opt
		o.Compression = &ch.Compression{Method: method}
		conn, err := ch.Open(&o)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("%v: %v", method, err)
		}
		var n, sum uint64
		rows, err := conn.Query(t.Context(), "SELECT number FROM numbers(1000000)")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var value uint64
			if err := rows.Scan(&value); err != nil {
				t.Fatal(err)
			}
			n, sum = n+1, sum+value
		}
		if rows.Err() != nil || n != 1_000_000 || sum != 499_999_500_000 {
			t.Errorf("%v: %d rows of sum %d, %v", method, n, sum, rows.Err())
		}
	}
	conn, err := ch.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var domain string
	var composite float64
	if err := conn.QueryRow(t.Context(),
		"SELECT domain, composite FROM v1_score_latest WHERE domain = {d:String} AND scored_at < {at:DateTime64(3)}",
		ch.Named("d", "apple.com"),
		ch.Named("at", time.Now())).Scan(&domain, &composite); err != nil || domain != "apple.com" || composite != 55 {
		t.Errorf("%s %v, %v", domain, composite, err)
	}
	var views uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM {t:Identifier}", ch.Named("t", "v1_score_latest")).Scan(&views); err != nil ||
		views != uint64(len(knownCompanies)) {
		t.Errorf("by identifier: %d, %v", views, err)
	}
	settings := ch.Context(t.Context(), ch.WithSettings(ch.Settings{"max_memory_usage": 1_000_000_000, "max_threads": 1,
		"join_use_nulls": 1}), ch.WithQueryID("from-go"))
	if err := conn.QueryRow(settings, "SELECT count() FROM v1_score_history").Scan(&views); err != nil || views == 0 {
		t.Errorf("with settings: %d, %v", views, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := conn.QueryRow(short, "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)").Scan(&views); err == nil {
		t.Error("a statement outlives its deadline")
	}
	refused := func(code int32, query string, settings ch.Settings) {
		t.Helper()
		err := conn.Exec(ch.Context(t.Context(), ch.WithSettings(settings)), query)
		var e *ch.Exception
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s %v: %v, want code %d", query, settings, err, code)
		}
	}
	refused(164, "CREATE TABLE mine (a Int8) ENGINE = Memory", nil)
	refused(497, "SELECT * FROM companyscore_private.account", nil)
	refused(452, "SELECT 1", ch.Settings{"max_memory_usage": 100_000_000_000})
	refused(115, "SELECT 1", ch.Settings{"no_such_setting": 1})
	refused(60, "SELECT * FROM v1_nothing", nil)
	refused(62, "SELEC 1", nil)
	if err := conn.Exec(ch.Context(t.Context(), ch.WithAsync(true)), "INSERT INTO v1_score_latest (domain) VALUES ('a')"); err == nil {
		t.Error("an insert is accepted")
	}
}
