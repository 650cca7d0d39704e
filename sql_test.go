package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSQLReportsATruncatedAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("default_format"); got != "Parquet" {
			t.Errorf("format %q", got)
		}
		switch user, password, _ := r.BasicAuth(); {
		case user != "analyst" || password != "secret":
			t.Errorf("user %q with %q", user, password)
		case r.URL.Query().Get("database") == "whole":
			_, _ = w.Write([]byte("PAR1...PAR1"))
		case r.URL.Query().Get("database") == "limit":
			http.Error(w, "Code: 241. DB::Exception: Memory limit. (MEMORY_LIMIT_EXCEEDED)", http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte("PAR1"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	f := func(database string, code int, stdout, stderr string) {
		t.Helper()
		address := strings.Replace(server.URL, "http://", "http://analyst:secret@", 1) + "/" + database
		gotCode, gotOut, gotErr := command(t, "", "sql", "--analyst-url", address, "--format", "Parquet", "SELECT 1")
		if gotCode != code || gotOut != stdout || !strings.Contains(gotErr, stderr) {
			t.Errorf("%s: exit %d, %q, %q", database, gotCode, gotOut, gotErr)
		}
	}
	f("whole", exitDone, "PAR1...PAR1", "")
	f("broken", exitFailed, "PAR1", "incomplete")
	f("limit", exitFailed, "", "join the smaller side last")
}
