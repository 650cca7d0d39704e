package embedded_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestRequestsShareNoState makes requests that change their session
// in every way there is, each followed by more plain ones than there are
// connections, of both users.
func TestRequestsShareNoState(t *testing.T) {
	must(t, "CREATE DATABASE IF NOT EXISTS isolated")
	must(t, "CREATE TABLE isolated.only_here (a UInt8) ENGINE = MergeTree ORDER BY a")
	const plain = "SELECT currentDatabase(), getSetting('max_threads'), getSetting('max_result_rows'), timezone(), " +
		"getSetting('session_timezone')"
	before := make(map[string]string)
	for _, user := range []string{"companyscore", "analyst"} {
		status, body := ask(t, user, plain, nil)
		if status != http.StatusOK {
			t.Fatalf("%s: %s", user, body)
		}
		before[user] = body
	}
	type request struct {
		user, query string
		params      url.Values
	}
	for name, r := range map[string]request{
		"settings in the address": {"companyscore", "SELECT 1", url.Values{"max_threads": {"7"}, "max_result_rows": {"11"},
			"session_timezone": {"Asia/Tokyo"}}},
		"settings of the analyst":     {"analyst", "SELECT 1", url.Values{"max_threads": {"3"}, "session_timezone": {"Asia/Tokyo"}}},
		"a SET statement":             {"companyscore", "SET max_threads = 5, max_result_rows = 13", nil},
		"a USE statement":             {"companyscore", "USE isolated", nil},
		"a database in the address":   {"companyscore", "SELECT count() FROM only_here", url.Values{"database": {"isolated"}}},
		"settings in the statement":   {"companyscore", "SELECT 1 SETTINGS max_threads = 9", nil},
		"a parameter":                 {"companyscore", "SELECT {p:UInt8}", url.Values{"param_p": {"3"}}},
		"a parameter by SET":          {"companyscore", "SET param_q = 4", nil},
		"a temporary table":           {"companyscore", "CREATE TEMPORARY TABLE temporary_one (a UInt8)", nil},
		"an error under settings":     {"companyscore", "SELECT nonsense", url.Values{"max_threads": {"2"}}},
		"a transaction that is none":  {"companyscore", "BEGIN TRANSACTION", nil},
		"readonly in the address":     {"companyscore", "SELECT 1", url.Values{"readonly": {"1"}}},
		"readonly taken off":          {"analyst", "SELECT 1", url.Values{"readonly": {"0"}}},
		"a setting of the wrong kind": {"companyscore", "SELECT 1", url.Values{"max_threads": {"many"}}},
	} {
		t.Run(name, func(t *testing.T) {
			ask(t, r.user, r.query, r.params) // whether it is allowed is not the question here
			for range 40 {
				for user, want := range before {
					if status, body := ask(t, user, plain, nil); status != http.StatusOK || body != want {
						t.Fatalf("%s sees %d %q, before it was %q", user, status, body, want)
					}
				}
			}
			for _, leak := range []string{"SELECT count() FROM temporary_one", "SELECT {p:UInt8}", "SELECT {q:UInt8}",
				"SELECT count() FROM only_here"} {
				if status, body := ask(t, "companyscore", leak, nil); status == http.StatusOK {
					t.Errorf("%s answers %q", leak, body)
				}
			}
			if status, body := ask(t, "companyscore", "CREATE TABLE IF NOT EXISTS writable (a UInt8) ENGINE = MergeTree ORDER BY a",
				nil); status != http.StatusOK {
				t.Errorf("the service may not write any more: %s", body)
			}
			if status, body := ask(t, "analyst", "CREATE TABLE forbidden (a UInt8) ENGINE = MergeTree ORDER BY a",
				nil); status == http.StatusOK || !strings.Contains(body, "readonly") {
				t.Errorf("the analyst may write: %d %s", status, body)
			}
		})
	}
}
