package cmd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSQLReportsEmptyAndTruncatedAnswers(t *testing.T) {
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
		case r.URL.Query().Get("database") == "empty":
		case r.URL.Query().Get("database") == "limit":
			http.Error(w, "Code: 241. DB::Exception: Memory limit. (MEMORY_LIMIT_EXCEEDED)", http.StatusInternalServerError)
		case r.URL.Query().Get("database") == "reason":
			w.Header().Set("X-ClickHouse-Exception-Tag", "tagtag")
			_, _ = w.Write([]byte("PAR1\r\n__exception__\r\ntagtag\r\n" +
				"Code: 396. DB::Exception: Too much. (TOO_MANY_ROWS_OR_BYTES) (version 26)\n72 tagtag\r\n__exception__\r\n"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
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
		if gotCode != code || gotOut != stdout || !strings.Contains(gotErr, stderr) ||
			(database == "whole") != (gotErr == "") {
			t.Errorf("%s: exit %d, %q, %q", database, gotCode, gotOut, gotErr)
		}
	}
	f("whole", exitDone, "PAR1...PAR1", "")
	f("empty", exitDone, "", "0 rows\n")
	f("broken", exitFailed, "PAR1", "incomplete")
	f("reason", exitFailed, "PAR1", "incomplete: Code: 396. DB::Exception: Too much. (TOO_MANY_ROWS_OR_BYTES) (version 26)\n"+
		"This is a limit of the analyst user: add a LIMIT")
	f("limit", exitFailed, "", "join the smaller side last")
}
