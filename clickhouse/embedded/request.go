package embedded

import (
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// request has the parameters of an HTTP request and its body.
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
	body     io.Reader       // query text and data, decompressed
	text     string          // of the statement, as sent
	waited   time.Duration   // for a slot
	ran      bool            // the guard has admitted the statement of an analyst
}

// user is a user of the server.
type user struct {
	name     string
	password [sha256.Size]byte
	rights   rights
	pool     *pool
	guard    *analystGuard // nil for the service's user, who has all rights
}

// database returns the default database of a session that asks for one, or an exception. Many tools send "default" if none is entered.
func (u *user) database(asked string) (string, error) {
	switch {
	case u.guard == nil:
		return asked, nil
	case asked == "", asked == "default", asked == u.guard.public:
		return u.guard.public, nil
	}
	return "", u.guard.denied("The database of this user is %s; write the name of another one in front of the table", u.guard.public)
}

// admits returns an exception for a session or role that the user cannot have. An analyst's session has no state: it can change none, and settings come
// with each statement. So each session exists, and statements of one may run at once.
func (u *user) admits(query url.Values) error {
	switch {
	case u.guard == nil && query.Has("session_id"):
		return newException(codeNotImplemented, "session_id: sessions are not kept by the embedded ClickHouse, send settings with each request")
	case u.guard == nil && query.Has("role"):
		return newException(codeNotImplemented, "role: the embedded ClickHouse has no roles")
	}
	for _, role := range query["role"] {
		if role != "" && role != roleAnalysts {
			return newException(codeUnknownRole, "There is no role %s in user directories", quoteName(role))
		}
	}
	return nil
}

// transport lists the parameters of ClickHouse's HTTP interface that are not settings of the engine.
var transport = []string{"query", "user", "password", "quota_key", "database", "default_format", "query_id", "compress", "decompress",
	"buffer_size", "wait_end_of_query", "session_timeout", "session_check", "stacktrace", "client_protocol_version", "enable_http_compression",
	"network_compression_method", "network_zstd_compression_level", "http_zlib_compression_level", "add_http_cors_header",
	"session_id", "role",
	"log_comment"} // log_comment is reserved: kill selects statements by it

var formatName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// parseRequest parses the headers and the URL. It does not read the body.
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

	req := &request{queryID: get("X-ClickHouse-Query-Id", "query_id", ""), format: get("X-ClickHouse-Format", "default_format", "TabSeparated"), hold: on("wait_end_of_query"),
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
	req.text = query.Get("query") // if no more is read
	if err := req.user.admits(query); err != nil {
		return req, err
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return req, newException(codeNotImplemented, "multipart bodies and external tables are not supported by the embedded ClickHouse")
	}

	if req.session.database, err = req.user.database(get("X-ClickHouse-Database", "database", "")); err != nil {
		return req, err
	}
	for name, values := range query {
		switch {
		case strings.HasPrefix(name, "param_"):
			req.params = append(req.params, param{name[len("param_"):], values[0]})
		case slices.Contains(transport, name):
		default:
			if err := req.set(name, values[0]); err != nil {
				return req, err
			}
		}
	}
	if get := r.Method == http.MethodGet || r.Method == http.MethodHead; get && (req.settings["readonly"] == "" || req.settings["readonly"] == "0") {
		req.settings["readonly"] = "2" // as in ClickHouse: GET must not change data
	}
	req.session.rights, req.session.settings = req.user.rights, assignments(req.settings)

	if on("enable_http_compression") {
		req.encoding = acceptedEncoding(r.Header.Get("Accept-Encoding"))
	}
	if on("compress") {
		if req.method, err = blockMethod(query.Get("network_compression_method")); err != nil {
			return req, err
		}
	} else {
		req.method = compress.None
	}
	frame := uint32(frameMax)
	if req.user.guard != nil {
		frame = analystFrameMax
	}
	req.body, err = decoded(body, r.Header.Get("Content-Encoding"), on("decompress"), frame)
	if text := query.Get("query"); err == nil && text != "" {
		req.body = io.MultiReader(strings.NewReader(text+"\n"), req.body)
	}
	return req, err
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

// authenticate returns the user of a request. It reads the Authorization header, the X-ClickHouse headers or the URL, in this order.
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
	hash := sha256.Sum256([]byte(password)) // equal lengths make the comparison constant-time
	var found *user
	for _, u := range s.users.all() {
		if subtle.ConstantTimeCompare([]byte(u.name), []byte(name))&subtle.ConstantTimeCompare(u.password[:], hash[:]) == 1 {
			found = u
		}
	}
	if found == nil {
		return nil, newException(codeAuthFailed, "%s: Authentication failed: password is incorrect, or there is no user with such name", name)
	}
	return found, nil
}

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

// frameMax is the maximum size of a compressed block in a request, before and after compression, in bytes. A reader allocates it before the block arrives.
const (
	frameMax        = 128 << 20
	analystFrameMax = 2 << 20
)

// frames passes compressed blocks on and fails before one that is larger than max.
type frames struct {
	io.Reader
	max  uint32
	left int64  // bytes of the current block
	head []byte // of the current block, not passed on
}

func (f *frames) Read(p []byte) (int, error) {
	if f.left == 0 {
		// A checksum of 16 bytes, a byte for the method, the size of the block without the checksum, and its size after decompression.
		head := make([]byte, 25)
		if _, err := io.ReadFull(f.Reader, head); err != nil {
			return 0, err
		}
		size, raw := binary.LittleEndian.Uint32(head[17:]), binary.LittleEndian.Uint32(head[21:])
		if size < 9 || size > f.max || raw > f.max {
			return 0, fmt.Errorf("a compressed block has %d bytes, and %d after decompression: send at most %d", size, raw, f.max)
		}
		f.left, f.head = int64(size)+16, head
	}
	var n int
	var err error
	if len(f.head) > 0 {
		n = copy(p, f.head)
		f.head = f.head[n:]
	} else {
		n, err = f.Reader.Read(p[:min(int64(len(p)), f.left)])
	}
	f.left -= int64(n)
	return n, err
}

// decoded returns a reader that decodes Content-Encoding and then, if blocks is set, ClickHouse's native block compression with blocks of at most frame
// bytes.
func decoded(body io.Reader, encoding string, blocks bool, frame uint32) (io.Reader, error) {
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
		body = compress.NewReader(&frames{Reader: body, max: frame})
	}
	return body, nil
}

// bodyReader sets a deadline for each read of a request body. A large upload may be slow but must not stall.
type bodyReader struct {
	io.Reader
	control *http.ResponseController
	idle    time.Duration
	until   time.Time // deadline of all reads together, zero for none
}

func (b *bodyReader) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if !b.until.IsZero() && b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline) // not supported by test recorders
	n, err := b.Reader.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// hello returns the result of clickhouse-go's first query. The driver reads that result at its own protocol revision, but libchdb
// writes revision 0. The result reports revision 0, so the driver reads all later results at revision 0.
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
