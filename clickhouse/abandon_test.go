package clickhouse_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"companyscore/internal/test/extent"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
)

// endless is a statement whose answer exceeds all buffers between engine and client. Blocks are small, so that the
// engine writes often.
const endless = "SELECT number, arrayStringConcat(arrayMap(x -> hex(rand64(x)), range(60))) AS text FROM numbers(10000000) " +
	"SETTINGS max_block_size = 50 FORMAT "

// TestAbandonedStreamsLeaveTheEngineAlone abandons streaming answers of each kind at different positions, a thousand in all if all tests
// run. The engine must not die, must continue to answer, and must not leak descriptors or statements.
func TestAbandonedStreamsLeaveTheEngineAlone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("counts open files in /proc")
	}
	server := stores.StartClickHouse(t)
	pid := server.PID()
	for _, kind := range []struct{ name, user, proto, format, params, headers string }{
		{"text by the service", server.URL(""), "HTTP/1.1", "JSONEachRow", "", ""},
		{"compressed by the analyst", server.AnalystURL(""), "HTTP/1.1", "TSV", "enable_http_compression=1", "Accept-Encoding: zstd\r\n"},
		{"native blocks by the service, HTTP/1.0", server.URL(""), "HTTP/1.0", "RowBinary", "compress=1", ""},
	} {
		t.Run(kind.name, func(t *testing.T) {
			u, err := url.Parse(kind.user)
			if err != nil {
				t.Fatal(err)
			}
			request := fmt.Sprintf("POST /?%s %s\r\nHost: %s\r\nAuthorization: Basic %s\r\n%sContent-Length: %d\r\n\r\n%s", kind.params,
				kind.proto, u.Host,
				base64.StdEncoding.EncodeToString([]byte(u.User.String())), kind.headers, len(endless+kind.format), endless+kind.format)
			abandonMany := func(streams int) {
				const clients = 4
				next := make(chan int)
				var wg sync.WaitGroup
				for range clients {
					wg.Go(func() {
						for i := range next {
							if err := abandon(u.Host, request, i); err != nil {
								t.Errorf("stream %d: %v", i, err)
							}
						}
					})
				}
				for i := range streams {
					next <- i
				}
				close(next)
				wg.Wait()
			}
			abandonMany(50) // the engine opens its connections and starts its threads
			before := descriptors(t, pid)
			streams := 100
			if extent.All() {
				streams = 330
			}
			abandonMany(streams)
			if t.Failed() {
				return
			}
			// A statement ends shortly after its client. The counting statement counts itself. A pool opens connections on demand.
			const connections = 50
			var left string
			for deadline := time.Now().Add(wait.Max); time.Now().Before(deadline); {
				count := statementsRunning(t, server)
				spooled, err := filepath.Glob(filepath.Join(server.Dir(), "data", "spool", "*"))
				if err != nil {
					t.Fatal(err)
				}
				left = fmt.Sprintf("%d statements run, pipes %v, %d descriptors of %d before", count, spooled, descriptors(t, pid), before)
				if count == 1 && len(spooled) == 0 && descriptors(t, pid) < before+connections {
					left = ""
					break
				}
			}
			if left != "" {
				t.Error(left)
			}
		})
	}
}

// statementsRunning returns the number of running statements, its own included.
func statementsRunning(t *testing.T, server *stores.ClickHouseServer) int {
	t.Helper()
	res, err := http.Get(server.URL("") + "?query=" + url.QueryEscape("SELECT count() FROM system.processes"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var n int
	if _, err := fmt.Fscan(res.Body, &n); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the engine answers %d, %v", res.StatusCode, err)
	}
	return n
}

// abandon sends a request and abandons its answer. i selects the position and the way.
func abandon(address, request string, i int) error {
	conn, err := net.DialTimeout("tcp", address, wait.Max)
	if err != nil {
		return err
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	if err := tcp.SetReadBuffer(64 << 10); err != nil {
		return err
	}
	if err := tcp.SetDeadline(time.Now().Add(wait.Max)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	if i%2 == 0 { // with a reset, as from a process that dies with unread data
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	moments := []int64{0, 1, 1 << 10, 20 << 10, 60 << 10} // bytes of the body read before; the engine starts to send at 64 KiB
	if n := moments[i/2%len(moments)]; n > 0 {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if _, err := io.CopyN(io.Discard, res.Body, n); err != nil || res.StatusCode != http.StatusOK {
			return fmt.Errorf("read the answer with status %d: %w", res.StatusCode, err)
		}
	}
	return nil
}

// descriptors returns the number of open files of a live process.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil || len(open) == 0 {
		t.Fatalf("process %d is gone: %v", pid, err)
	}
	return len(open)
}
