package embedded

import (
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/andybalholm/brotli"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// request is what an HTTP request says besides its statement.
type request struct {
	user     *user
	queryID  string
	format   string // of the answer, unless the statement has a FORMAT clause
	session  session
	settings map[string]string // the session's, by name
	params   []param
	hold     bool          // answer only when the statement has succeeded
	limit    time.Duration // how long the statement may run, 0 for as long as it likes
	encoding string
	method   compress.Method // of native blocks, compress.None for a plain answer
	revision int             // protocol revision the client asks for
	body     io.Reader       // query text and data, decompressed
}

// user is one who may connect.
type user struct {
	name     string
	password [sha256.Size]byte
	pool     *pool
	guard    *analystGuard // nil for the user who may do everything
}

// transport names the parameters of ClickHouse's HTTP interface that are no settings of the engine.
var transport = []string{"query", "user", "password", "quota_key", "database", "default_format", "query_id", "compress", "decompress",
	"buffer_size", "wait_end_of_query", "session_timeout", "session_check", "stacktrace", "client_protocol_version", "enable_http_compression",
	"network_compression_method", "network_zstd_compression_level", "http_zlib_compression_level", "add_http_cors_header",
	"log_comment"} // the last one is ours: by it a statement is found when it must be killed

var formatName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// parseRequest reads the headers and the URL. The body is left to the caller.
func (s *Server) parseRequest(r *http.Request, body io.Reader) (*request, error) {
	query := r.URL.Query()
	get := func(header, name, otherwise string) string {
		if v := r.Header.Get(header); header != "" && v != "" {
			return v
		}
		if v := query.Get(name); v != "" {
			return v
		}
		return otherwise
	}
	on := func(name string) bool { v := query.Get(name); return v == "1" || v == "true" }

	req := &request{queryID: get("", "query_id", ""), format: get("X-ClickHouse-Format", "default_format", "TabSeparated"), hold: on("wait_end_of_query"),
		settings: make(map[string]string)}
	if len(req.queryID) > 256 || strings.ContainsFunc(req.queryID, func(r rune) bool { return r < ' ' }) {
		return nil, newException(codeBadArguments, "query_id is no plain text of at most 256 bytes")
	}
	if req.queryID == "" {
		req.queryID = uuid.NewString()
	}
	if !formatName.MatchString(req.format) {
		return nil, newException(codeUnknownFormat, "Unknown format %s", req.format)
	}
	req.revision, _ = strconv.Atoi(query.Get("client_protocol_version"))

	var err error
	if req.user, err = s.authenticate(r); err != nil {
		return nil, err
	}
	if query.Has("session_id") {
		return nil, newException(codeNotImplemented, "session_id: sessions are not kept by the embedded ClickHouse, send settings with each request")
	}
	if query.Has("role") {
		return nil, newException(codeNotImplemented, "role: the embedded ClickHouse has no roles")
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, newException(codeNotImplemented, "multipart bodies and external tables are not supported by the embedded ClickHouse")
	}

	req.session.database = get("X-ClickHouse-Database", "database", "")
	for name, values := range query {
		switch {
		case strings.HasPrefix(name, "param_"):
			req.params = append(req.params, param{name[len("param_"):], values[0]})
		case slices.Contains(transport, name):
		default:
			if err := req.set(name, values[0]); err != nil {
				return nil, err
			}
		}
	}
	if get := r.Method == http.MethodGet || r.Method == http.MethodHead; get && (req.settings["readonly"] == "" || req.settings["readonly"] == "0") {
		req.settings["readonly"] = "2" // as in ClickHouse: a link must not change anything
	}
	req.session.settings = assignments(req.settings)

	if on("enable_http_compression") {
		req.encoding = acceptedEncoding(r.Header.Get("Accept-Encoding"))
	}
	if on("compress") {
		if req.method, err = blockMethod(query.Get("network_compression_method")); err != nil {
			return nil, err
		}
	} else {
		req.method = compress.None
	}
	req.body, err = decoded(body, r.Header.Get("Content-Encoding"), on("decompress"))
	if text := query.Get("query"); err == nil && text != "" {
		req.body = io.MultiReader(strings.NewReader(text+"\n"), req.body)
	}
	return req, err
}

// executionTime reads max_execution_time: seconds, 0 for no limit.
func executionTime(text string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) {
		return 0, newException(codeBadArguments, "max_execution_time is %q: send seconds, or 0 for no limit", text)
	}
	return time.Duration(min(seconds, executionMaxSeconds) * float64(time.Second)), nil
}

// executionMaxSeconds is what more is cut to: a week.
const executionMaxSeconds = 7 * 24 * 3600

// authenticate finds the user by Authorization header, X-ClickHouse headers or URL, in this order.
func (s *Server) authenticate(r *http.Request) (*user, error) {
	name, password, given := r.BasicAuth()
	if !given {
		name, password = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	}
	if name == "" {
		name, password = r.URL.Query().Get("user"), r.URL.Query().Get("password")
	}
	if name == "" {
		return nil, newException(codeRequiredPassword, "Authentication failed: send user and password, as with curl --user")
	}
	hash := sha256.Sum256([]byte(password)) // of one length, so that the comparison takes the same time whatever was sent
	var found *user
	for _, u := range s.users {
		if subtle.ConstantTimeCompare([]byte(u.name), []byte(name))&subtle.ConstantTimeCompare(u.password[:], hash[:]) == 1 {
			found = u
		}
	}
	if found == nil {
		return nil, newException(codeAuthFailed, "%s: Authentication failed: password is incorrect, or there is no user with such name", name)
	}
	return found, nil
}

// acceptedEncoding is the first encoding of ClickHouse's preference that the client accepts, "" for none.
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

// decoded undoes Content-Encoding, then ClickHouse's native block compression.
func decoded(body io.Reader, encoding string, blocks bool) (io.Reader, error) {
	var err error
	switch encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		body, err = gzip.NewReader(body)
	case "deflate":
		body, err = zlib.NewReader(body)
	case "br":
		body = brotli.NewReader(body)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20)); err == nil {
			body = d.IOReadCloser()
		}
	default:
		return nil, newException(codeNotImplemented, "Content-Encoding %s is not supported, use gzip, deflate, br or zstd", encoding)
	}
	if err != nil {
		return nil, newException(codeBadArguments, "read body as %s: %v", encoding, err)
	}
	if blocks {
		body = compress.NewReader(body)
	}
	return body, nil
}

// bodyReader gives every read of a request body a deadline of its own, so that a large upload may take its time but not stall.
type bodyReader struct {
	io.Reader
	control *http.ResponseController
	idle    time.Duration
}

func (b bodyReader) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.idle)) // not supported by test recorders
	n, err := b.Reader.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// hello answers the first query of clickhouse-go. The driver reads it at its own protocol revision while libchdb writes revision 0, so
// it is written here; the revision 0 it reports makes the driver read everything after as libchdb writes it.
func hello(e *engine, clientRevision int) ([]byte, error) {
	var name, version, zone proto.ColStr
	var revision proto.ColUInt32
	name.Append("companyscore embedded ClickHouse")
	version.Append(e.version)
	revision.Append(0)
	zone.Append(e.zone)
	columns := []proto.InputColumn{
		{Name: "displayName()", Data: name}, {Name: "version()", Data: version},
		{Name: "revision()", Data: revision}, {Name: "timezone()", Data: zone},
	}
	var b proto.Buffer
	block := proto.Block{Columns: len(columns), Rows: 1, Info: proto.BlockInfo{BucketNum: -1}}
	err := block.EncodeBlock(&b, clientRevision, columns)
	return b.Buf, err
}
