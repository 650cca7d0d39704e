package embedded_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestLimitsSayWhatToDo checks that errors of the analyst's limits name the limit and a
// remedy, and that the service's own user gets the error of ClickHouse.
func TestLimitsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query  string
		params url.Values
		says   []string
	}{
		"rows": {"SELECT number FROM numbers(1000)", url.Values{"max_result_rows": {"10"}},
			[]string{"TOO_MANY_ROWS_OR_BYTES", "the analyst's limit for a result", "export in parts"}},
		"time": {"SELECT count() FROM numbers(1000000000000) WHERE cityHash64(number) = 1", url.Values{"max_execution_time": {"1"}},
			[]string{"TIMEOUT_EXCEEDED", "the analyst's limit of time", "narrow"}},
		"memory": {"SELECT length(groupArray(toString(number))) FROM numbers(100000000)", url.Values{"max_memory_usage": {"104857600"}},
			[]string{"MEMORY_LIMIT_EXCEEDED", "2 GiB of memory", "fewer columns"}},
	} {
		status, body := ask(t, "analyst", c.query, c.params)
		if status == http.StatusOK {
			t.Errorf("%s: answered %.100s", name, body)
		}
		for _, text := range c.says {
			if !strings.Contains(body, text) {
				t.Errorf("%s: %q is not said: %s", name, text, body)
			}
		}
	}
	if _, body := ask(t, "companyscore", "SELECT number FROM numbers(1000)", url.Values{"max_result_rows": {"10"},
		"result_overflow_mode": {"throw"}}); !strings.Contains(body, "TOO_MANY_ROWS_OR_BYTES") || strings.Contains(body, "analyst") {
		t.Errorf("the service is told %s", body)
	}
}
