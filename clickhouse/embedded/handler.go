package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// helloQuery is the first query of clickhouse-go. It decodes the answer at its own protocol revision, the library writes revision 0:
// so this one is answered here, and the revision 0 it reports makes the driver read all others as the library writes them.
const helloQuery = "SELECT displayName(), version(), revision(), timezone()"

const maxHead = 1 << 20

// Handler returns the HTTP handler by itself, for tests and other servers.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ping":
		io.WriteString(w, "Ok.\n")
	case "/":
		if err := s.serveQuery(w, r); err != nil {
			var e *exception
			if !errors.As(err, &e) {
				e = &exception{codeUnknown, fmt.Sprintf("Code: %d. DB::Exception: %v. (UNKNOWN_EXCEPTION)", codeUnknown, err)}
			}
			w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
			w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
			w.WriteHeader(status(e.code))
			io.WriteString(w, e.text+"\n")
		}
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveQuery(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	p, err := s.authenticate(r, q)
	if err != nil {
		return err
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return err
		}
	}
	head := q.Get("query")
	if head != "" {
		body = io.MultiReader(strings.NewReader(head+"\n"), body)
	}
	buf, err := io.ReadAll(io.LimitReader(body, maxHead))
	if err != nil {
		return err
	}
	src := string(buf)
	st, err := parseStatement(src)
	if err != nil {
		return &exception{codeSyntaxError, fmt.Sprintf("Code: %d. DB::Exception: Syntax error (Multi-statements are not allowed): %v. (SYNTAX_ERROR)", codeSyntaxError, err)}
	}
	if strings.TrimSpace(st.text) == helloQuery {
		_, err := w.Write(hello(q.Get("client_protocol_version")))
		return err
	}
	sess := session{database: q.Get("database")}
	var params []param
	var settings []string
	for name, v := range q {
		switch {
		case strings.HasPrefix(name, "param_"):
			params = append(params, param{name[len("param_"):], v[0]})
		case name == "query", name == "database", name == "default_format", name == "user", name == "password", name == "client_protocol_version", name == "query_id", name == "compress", name == "decompress":
		default:
			settings = append(settings, setting(name, v[0]))
		}
	}
	sort.Strings(settings)
	sess.settings = strings.Join(settings, ", ")
	text := st.text
	if st.hasData {
		f, err := os.CreateTemp(s.spool, "insert-*")
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		_, err = io.Copy(f, io.MultiReader(bytes.NewReader(buf[st.data:]), body))
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		text = st.text[:st.infile] + " FROM INFILE " + quoteString(f.Name()) + " COMPRESSION 'none' " + st.text[st.infile:]
	}
	format := q.Get("default_format")
	if format == "" {
		format = "TabSeparated"
	}
	c, err := p.get(r.Context(), sess)
	if err != nil {
		return err
	}
	defer p.put(c, st.verb == "SELECT" || st.verb == "INSERT")
	out, err := c.query(text, format, params)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// authenticate returns the pool of the request's user.
func (s *Server) authenticate(r *http.Request, q url.Values) (*pool, error) {
	user, password, ok := r.BasicAuth()
	if !ok {
		user, password = r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	}
	if user == "" {
		user, password = q.Get("user"), q.Get("password")
	}
	same := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	switch {
	case same(user, s.cfg.User) && same(password, s.cfg.Password):
		return s.pool, nil
	case same(user, "analyst") && s.cfg.AnalystPassword != "" && same(password, s.cfg.AnalystPassword):
		return s.analyst, nil
	}
	return nil, &exception{codeAuthFailed, fmt.Sprintf("Code: %d. DB::Exception: %s: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)", codeAuthFailed, user)}
}

// hello encodes the answer to helloQuery as one Native block at the client's revision.
func hello(revision string) []byte {
	n, _ := strconv.Atoi(revision)
	name, version, zone := new(proto.ColStr), new(proto.ColStr), new(proto.ColStr)
	rev := new(proto.ColUInt32)
	name.Append("companyscore")
	version.Append("26.5.1.1")
	rev.Append(0)
	zone.Append("UTC")
	var b proto.Buffer
	input := []proto.InputColumn{{Name: "displayName()", Data: name}, {Name: "version()", Data: version}, {Name: "revision()", Data: rev}, {Name: "timezone()", Data: zone}}
	block := proto.Block{Columns: len(input), Rows: 1, Info: proto.BlockInfo{BucketNum: -1}}
	if err := block.EncodeBlock(&b, n, input); err != nil {
		panic(err)
	}
	return b.Buf
}
