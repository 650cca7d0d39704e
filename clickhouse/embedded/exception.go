package embedded

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
)

// exception is an error in the form that ClickHouse returns to clients.
type exception struct {
	code    int
	name    string // SYNTAX_ERROR
	message string
}

// Error returns the message without code, name and version.
func (e *exception) Error() string { return e.message }

// render returns the text that clients receive and parse.
func (e *exception) render(version string) string {
	return fmt.Sprintf("Code: %d. DB::Exception: %s. (%s) (version %s)\n", e.code, e.message, e.name, version)
}

// Codes of the errors that this package creates, as in ClickHouse.
const (
	codeBadArguments      = 36
	codeUnknownFunction   = 46
	codeNotImplemented    = 48
	codeSyntaxError       = 62
	codeUnknownFormat     = 73
	codeUnknownSetting    = 115
	codeTimeoutExceeded   = 159
	codeReadonly          = 164
	codeRequiredPassword  = 194
	codeTooManyQueries    = 202
	codeQueryTooLarge     = 229
	codeMemoryLimit       = 241
	codeTooManyBytes      = 307
	codeOutfile           = 358
	codeCancelled         = 394
	codeSettingConstraint = 452
	codeAccessDenied      = 497
	codeUnknownParameter  = 456
	codeUnknownRole       = 511
	codeAuthFailed        = 516
	codeUnknownException  = 1002
)

var codeNames = map[int]string{
	codeBadArguments:      "BAD_ARGUMENTS",
	codeUnknownFunction:   "UNKNOWN_FUNCTION",
	codeNotImplemented:    "NOT_IMPLEMENTED",
	codeSyntaxError:       "SYNTAX_ERROR",
	codeUnknownFormat:     "UNKNOWN_FORMAT",
	codeUnknownSetting:    "UNKNOWN_SETTING",
	codeTimeoutExceeded:   "TIMEOUT_EXCEEDED",
	codeReadonly:          "READONLY",
	codeRequiredPassword:  "REQUIRED_PASSWORD",
	codeTooManyQueries:    "TOO_MANY_SIMULTANEOUS_QUERIES",
	codeQueryTooLarge:     "QUERY_IS_TOO_LARGE",
	codeMemoryLimit:       "MEMORY_LIMIT_EXCEEDED",
	codeTooManyBytes:      "TOO_MANY_BYTES",
	codeOutfile:           "INTO_OUTFILE_NOT_ALLOWED",
	codeCancelled:         "QUERY_WAS_CANCELLED",
	codeSettingConstraint: "SETTING_CONSTRAINT_VIOLATION",
	codeAccessDenied:      "ACCESS_DENIED",
	codeUnknownParameter:  "UNKNOWN_QUERY_PARAMETER",
	codeUnknownRole:       "UNKNOWN_ROLE",
	codeAuthFailed:        "AUTHENTICATION_FAILED",
	codeUnknownException:  "UNKNOWN_EXCEPTION",
}

func newException(code int, format string, args ...any) *exception {
	return &exception{code, codeNames[code], fmt.Sprintf(format, args...)}
}

var (
	exceptionHead = regexp.MustCompile(`^(?:Code: (\d+)\. DB::\w+: )+`)
	exceptionTail = regexp.MustCompile(`(?:\.? \(([A-Z0-9_]+)\)(?: \(version [^()]*\))?)+\s*$`)
)

// parseException parses an error text of the library. The library repeats code and name up to three times.
func parseException(text string) *exception {
	e := newException(codeUnknownException, "")
	if m := exceptionHead.FindStringSubmatch(text); m != nil {
		e.code, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if m := exceptionTail.FindStringSubmatchIndex(text); m != nil {
		e.name = text[m[2]:m[3]]
		text = text[:m[0]]
	}
	e.message = text
	return e
}

// status is the HTTP status ClickHouse gives an exception; what is not here is 500.
func (e *exception) status() int {
	switch e.name {
	case "BAD_ARGUMENTS", "CANNOT_COMPILE_REGEXP", "CANNOT_PARSE_TEXT", "CANNOT_PARSE_ESCAPE_SEQUENCE", "CANNOT_PARSE_QUOTED_STRING",
		"CANNOT_PARSE_DATE", "CANNOT_PARSE_DATETIME", "CANNOT_PARSE_NUMBER", "CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING",
		"CANNOT_PARSE_IPV4", "CANNOT_PARSE_IPV6", "CANNOT_PARSE_INPUT_ASSERTION_FAILED", "CANNOT_PARSE_UUID", "DUPLICATE_COLUMN",
		"ILLEGAL_COLUMN", "UNKNOWN_ELEMENT_IN_AST", "UNKNOWN_TYPE_OF_AST_NODE", "THERE_IS_NO_COLUMN", "TOO_DEEP_AST", "TOO_BIG_AST",
		"UNEXPECTED_AST_STRUCTURE", "SYNTAX_ERROR", "INCORRECT_DATA", "TYPE_MISMATCH", "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE":
		return http.StatusBadRequest
	case "REQUIRED_PASSWORD":
		return http.StatusUnauthorized
	case "UNKNOWN_USER", "WRONG_PASSWORD", "AUTHENTICATION_FAILED", "ACCESS_DENIED":
		return http.StatusForbidden
	case "UNKNOWN_TABLE", "UNKNOWN_FUNCTION", "UNKNOWN_IDENTIFIER", "UNKNOWN_TYPE", "UNKNOWN_STORAGE", "UNKNOWN_DATABASE",
		"UNKNOWN_SETTING", "UNKNOWN_AGGREGATE_FUNCTION", "UNKNOWN_FORMAT", "UNKNOWN_DATABASE_ENGINE", "UNKNOWN_TYPE_OF_QUERY":
		return http.StatusNotFound
	case "TIMEOUT_EXCEEDED":
		return http.StatusRequestTimeout
	case "QUERY_IS_TOO_LARGE":
		return http.StatusRequestEntityTooLarge
	case "NOT_IMPLEMENTED":
		return http.StatusNotImplemented
	case "TOO_MANY_SIMULTANEOUS_QUERIES": // 500 in ClickHouse; clients and proxies retry a 503
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
