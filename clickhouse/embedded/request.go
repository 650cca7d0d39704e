package embedded

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/google/uuid"
)

// request has the parameters of an HTTP request and what is known of its statement.
type request struct {
	user     *user
	queryID  string
	format   string // of the result, unless the statement has a FORMAT clause
	session  session
	settings map[string]string // settings of the session, by name
	params   []param
	hold     bool          // wait_end_of_query: respond after the statement has ended
	limit    time.Duration // time limit of the statement, 0 for none
	encoding string
	method   compress.Method // of native blocks, compress.None for an uncompressed result
	revision int             // protocol revision of the client
	text     string          // of the statement, as sent
	waited   time.Duration   // for a slot
	ran      bool            // the guard has admitted the statement of an analyst
}

// transport lists the parameters of ClickHouse's HTTP interface that are not settings of the engine.
var transport = []string{"query", "user", "password", "quota_key", "database", "default_format", "query_id", "compress", "decompress",
	"buffer_size", "wait_end_of_query", "session_timeout", "session_check", "stacktrace", "client_protocol_version",
	"enable_http_compression",
	"network_compression_method", "network_zstd_compression_level", "http_zlib_compression_level", "add_http_cors_header",
	"session_id", "role",
	"log_comment"} // log_comment is reserved: kill selects statements by it

var formatName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// read sets what r says before its user is known: the id of the query and the form of the answer. query are the parameters of the address.
func (req *request) read(r *http.Request, query url.Values) (err error) {
	req.queryID = value(r, "X-ClickHouse-Query-Id", query, "query_id")
	req.format = value(r, "X-ClickHouse-Format", query, "default_format")
	req.hold, req.method = on(query, "wait_end_of_query"), compress.None
	if len(req.queryID) > 256 || strings.ContainsFunc(req.queryID, func(r rune) bool { return r < ' ' }) {
		return newException(codeBadArguments, "query_id is no plain text of at most 256 bytes")
	}
	if req.queryID == "" {
		req.queryID = uuid.NewString()
	}
	if req.format == "" {
		req.format = "TabSeparated"
	}
	if !formatName.MatchString(req.format) {
		return newException(codeUnknownFormat, "Unknown format %s", req.format)
	}
	req.revision, _ = strconv.Atoi(query.Get("client_protocol_version"))
	if on(query, "enable_http_compression") {
		req.encoding = acceptedEncoding(r.Header.Get("Accept-Encoding"))
	}
	if on(query, "compress") {
		req.method, err = blockMethod(query.Get("network_compression_method"))
	}
	return err
}

// openSession sets the session, the settings and the parameters that the address asks for, or returns an exception if the user may not have
// them.
func (req *request) openSession(r *http.Request, query url.Values) (err error) {
	if err := req.user.admits(query); err != nil {
		return err
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return newException(codeNotImplemented, "multipart bodies and external tables are not supported by the embedded ClickHouse")
	}
	if req.session.database, err = req.user.database(value(r, "X-ClickHouse-Database", query, "database")); err != nil {
		return err
	}
	req.settings = make(map[string]string)
	for name, values := range query {
		if parameter, ok := strings.CutPrefix(name, "param_"); ok {
			req.params = append(req.params, param{parameter, values[0]})
		} else if !slices.Contains(transport, name) {
			if err := req.set(name, values[0]); err != nil {
				return err
			}
		}
	}
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	if get && (req.settings["readonly"] == "" || req.settings["readonly"] == "0") {
		req.settings["readonly"] = "2" // as in ClickHouse: GET must not change data
	}
	req.session.rights, req.session.settings = req.user.rights, assignments(req.settings)
	return nil
}

// value returns a header of a request, or the parameter of its address that has the same meaning, "" without both.
func value(r *http.Request, header string, query url.Values, name string) string {
	if v := r.Header.Get(header); v != "" {
		return v
	}
	return query.Get(name)
}

// on reports whether a parameter of an address is set.
func on(query url.Values, name string) bool {
	v := query.Get(name)
	return v == "1" || v == "true"
}

// credentials returns the name and password in the Authorization header, the X-ClickHouse headers or the address, in this order.
func credentials(r *http.Request, query url.Values) (name, password string) {
	name, password, given := r.BasicAuth()
	if !given {
		name, password = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	}
	if name == "" {
		name, password = query.Get("user"), query.Get("password")
	}
	return name, password
}

// executionTime parses max_execution_time: seconds, 0 for no limit.
func executionTime(text string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) {
		return 0, newException(codeBadArguments, "max_execution_time is %q: send seconds, or 0 for no limit", text)
	}
	return time.Duration(min(seconds, executionMaxSeconds) * float64(time.Second)), nil
}

// executionMaxSeconds is the maximum execution time, one week. Larger values are reduced to it.
const executionMaxSeconds = 7 * 24 * 3600

// acceptedEncoding returns the encoding that ClickHouse prefers among those in an Accept-Encoding header, "" for none.
func acceptedEncoding(header string) string {
	accepted := strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
	for _, name := range []string{"br", "gzip", "zstd", "deflate"} {
		if slices.Contains(accepted, name) {
			return name
		}
	}
	return ""
}

func blockMethod(name string) (compress.Method, error) {
	switch strings.ToUpper(name) {
	case "", "LZ4":
		return compress.LZ4, nil
	case "ZSTD":
		return compress.ZSTD, nil
	case "NONE":
		return compress.None, nil
	}
	return compress.None, newException(codeNotImplemented, "network_compression_method %s is not supported, use LZ4, ZSTD or NONE", name)
}
