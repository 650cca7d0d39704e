package embedded

import (
	"net/http"
	"regexp"
	"strconv"
)

// exception is an error of the engine, or one of our own in the same shape.
type exception struct {
	code int
	text string // whole text as the client sees it: Code: 60. DB::Exception: ... (UNKNOWN_TABLE) ...
}

func (e *exception) Error() string { return e.text }

var codePrefix = regexp.MustCompile(`^Code: (\d+)\.`)

// parseException takes the code from an error text of the library.
func parseException(text string) *exception {
	e := &exception{code: codeUnknown, text: text}
	if m := codePrefix.FindStringSubmatch(text); m != nil {
		e.code, _ = strconv.Atoi(m[1])
	}
	return e
}

// Codes of ClickHouse's ErrorCodes.cpp.
const (
	codeSyntaxError   = 62
	codeTooManyAtOnce = 202
	codeAuthFailed    = 516
	codeUnknown       = 1002
)

// status maps an exception code to the HTTP status ClickHouse answers with.
func status(code int) int {
	switch code {
	case codeAuthFailed:
		return http.StatusForbidden
	case 60, 81:
		return http.StatusNotFound
	case 62, 36, 47:
		return http.StatusBadRequest
	case codeTooManyAtOnce:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
