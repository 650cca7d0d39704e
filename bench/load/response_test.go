package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// readAll parses all answers, fed in pieces of a size.
func readAll(data []byte, piece int) (answers []string, err error) {
	r := reader{keep: true}
	for len(data) > 0 {
		n := min(piece, len(data))
		chunk := bytes.Clone(data[:n])
		data = data[n:]
		for len(chunk) > 0 {
			used, done, err := r.feed(chunk)
			if err != nil {
				return answers, err
			}
			if done {
				answers = append(answers, fmt.Sprintf("%d %s %s %q %d", r.answer.Status, r.answer.Timing, r.answer.ETag, r.answer.Body,
					r.size))
				r.size = 0
			} else if used < len(chunk) {
				return answers, errors.New("the reader stopped in the middle")
			}
			// The caller may overwrite fed bytes.
			for i := range chunk[:used] {
				chunk[i] = '#'
			}
			chunk = chunk[used:]
		}
	}
	return answers, nil
}

func TestAnswersAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"with a length": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer-Timing: l1\r\nEtag: \"x\"\r\n\r\nhello",
			`200 l1 "x" "hello"`},
		"with chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n",
			`200   "hello!"`},
		"with a trailer": {"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n1\r\n!\r\n0\r\nA: b\r\n\r\n", `200   "!"`},
		"without a body": {"HTTP/1.1 304 Not Modified\r\nServer-Timing: redis;dur=3\r\nContent-Length: 99\r\n\r\n",
			`304 redis  ""`},
		"with an empty body":     {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", `404   ""`},
		"after an interim one":   {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 1\r\n\r\nx", `202   "x"`},
		"without a phrase":       {"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", `200   "x"`},
		"two names, one counts":  {"HTTP/1.1 200 OK\r\nServer-Timing: l1, redis\r\nContent-Length: 1\r\n\r\nx", `200 l1  "x"`},
		"headers of no interest": {"HTTP/1.1 200 OK\r\nX: \r\nDate: now\r\nContent-Length: 2\r\n\r\nok", `200   "ok"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := fmt.Sprintf("%s %d", c.want, len(c.text))
			for piece := 1; piece <= len(c.text)+1; piece++ {
				// Twice, as on a connection with two answers.
				answers, err := readAll([]byte(c.text+c.text), piece)
				if err != nil || len(answers) != 2 || answers[0] != want || answers[1] != want {
					t.Fatalf("in pieces of %d: %q, %v; want %q twice", piece, answers, err, want)
				}
			}
		})
	}
}

func TestWhatIsNoAnswerIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"another protocol":   "SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"another version":    "HTTP/2 200\r\n\r\n",
		"no status":          "HTTP/1.1 abc OK\r\n\r\n",
		"status below 100":   "HTTP/1.1 099 OK\r\n\r\n",
		"no length":          "HTTP/1.1 200 OK\r\n\r\n",
		"an empty length":    "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
		"a negative length":  "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"a length too large": "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
		"no header":          "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"a chunk of nothing": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
		"a chunk too long":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		"an endless head":    "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*headMaxBytes),
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			if answers, err := readAll([]byte(text), piece); err == nil {
				t.Errorf("%s in pieces of %d: %q", name, piece, answers)
			}
		}
	}
}

// FuzzReader feeds bytes in pieces and in one call, and compares the results with those of
// net/http if both accept the bytes.
func FuzzReader(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer-Timing: l1\r\n\r\nhello"), 3)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), 1)
	f.Add([]byte("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), 9)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		piece = 1 + piece&0xff
		whole, wholeErr := readAll(data, len(data)+1)
		pieces, piecesErr := readAll(data, piece)
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") || (wholeErr == nil) != (piecesErr == nil) {
			t.Fatalf("at once %q, %v; in pieces of %d %q, %v", whole, wholeErr, piece, pieces, piecesErr)
		}
		res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
		if err != nil || len(whole) == 0 || res.StatusCode < 200 || res.StatusCode > 999 {
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.ContentLength < 0 && len(res.TransferEncoding) == 0 {
			return
		}
		var status int
		if _, err := fmt.Sscan(whole[0], &status); err != nil || status != res.StatusCode {
			t.Fatalf("read %q, net/http %d", whole[0], res.StatusCode)
		}
		if status != 204 && status != 304 && len(body) < bodyMaxBytes && !strings.Contains(whole[0], fmt.Sprintf("%q", body)) {
			t.Fatalf("read %q, net/http the body %q", whole[0], body)
		}
	})
}
