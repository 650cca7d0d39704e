package embedded_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse/embedded"
	"companyscore/clickhouse/embedded/roster"
)

// polygons allocates gigabytes that the engine does not count, for minutes.
const polygons = "SELECT length(polygonsUnionCartesian([[arrayMap(x -> (cos(x * 2.39), sin(x * 2.39)), range(8000))]], [[arrayMap(x -> " +
	"(cos(x * 1.7), sin(x * 1.7)), range(8000))]]))"

// TestStatementsThatAreNotBounded has an engine whose list of functions has some that keep no limit. The watch ends the engine, the analyst
// is refused, and after the third time until an operator allows him. The service is not.
func TestStatementsThatAreNotBounded(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("only Linux tells how much memory a process has")
	}
	config := childConfig{Path: filepath.Join(t.TempDir(), "data"), Memory: 1 << 30, Allow: "[functions]\npolygonsUnionCartesian"}
	s := startChild(t, config)
	if status, body := s.ask(t.Context(), "analyst", polygons, url.Values{"max_memory_usage": {"500000000"}}); status == http.StatusOK {
		t.Fatalf("answered %s", body)
	}
	<-s.ended
	if code := s.cmd.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("exit code %d: %s", code, s.log.String())
	}
	refused := func(until string) {
		t.Helper()
		s := startChild(t, config)
		defer s.stop()
		status, body := s.ask(t.Context(), "analyst", "SELECT 1", nil)
		if status != http.StatusForbidden || !strings.Contains(body, until) || !strings.Contains(body, "may have 1024") ||
			!strings.Contains(body, "polygonsUnion") {
			t.Errorf("%d %s; want %s", status, body, until)
		}
		if status, body := s.ask(t.Context(), "companyscore", "SELECT 1", nil); status != http.StatusOK {
			t.Errorf("the service: %d %s", status, body)
		}
	}
	refused("until 20")
	refusals := roster.RefusalsPath(config.Path)
	for range 2 {
		if _, err := roster.Blame(refusals, map[string]string{"analyst": polygons}, "it may have 1024 MB", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	refused("until an operator runs `companyscore analyst allow analyst`")
	if err := roster.Allow(refusals, "analyst"); err != nil {
		t.Fatal(err)
	}
	s = startChild(t, config)
	if status, body := s.ask(t.Context(), "analyst", "SELECT 1", nil); status != http.StatusOK {
		t.Errorf("after `analyst allow`: %d %s", status, body)
	}
}

// TestCrashIsBlamed kills the engine while statements of an analyst run.
func TestCrashIsBlamed(t *testing.T) {
	t.Parallel()
	config := childConfig{Path: filepath.Join(t.TempDir(), "data")}
	s := startChild(t, config)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.ask(context.WithoutCancel(t.Context()), "analyst", "SELECT sum(sleepEachRow(1)) FROM numbers(100) SETTINGS max_block_size = 1",
			nil)
	}()
	for running := ""; running == "" || running == "0"; {
		_, running = s.ask(t.Context(), "companyscore",
			"SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow%' AND query NOT LIKE '%processes%'", nil)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-answered
	<-s.ended
	s = startChild(t, config)
	if status, body := s.ask(t.Context(), "analyst", "SELECT 1", nil); status != http.StatusForbidden ||
		!strings.Contains(body, "crashed or was killed") {
		t.Errorf("%d %s", status, body)
	}
	s.stop()
	if err := roster.Allow(roster.RefusalsPath(config.Path), "analyst"); err != nil {
		t.Fatal(err)
	}
	s = startChild(t, config)
	if status, body := s.ask(t.Context(), "analyst", "SELECT 1", nil); status != http.StatusOK {
		t.Errorf("a stop is blamed on an analyst: %d %s", status, body)
	}
}

// TestBadConfigurationIsRefused starts engines with limits that cannot be kept, and with a list of names that the engine does not have.
func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]embedded.Config{
		"give at least 512 MB": {Memory: 511 << 20},
		"the machine has only": {Memory: 1 << 60},
	} {
		c.Path, c.Password = t.TempDir(), "p"
		if _, err := embedded.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	for _, wrong := range []string{"[functions]\nnoSuchFunction", "[functions]\nnow(zone", "[functions]\nnow(nonsense)",
		"[formats]\nNoSuch", "[types]\nNoSuch", "[zones]\nNo/Such",
		"[table functions]\nnoSuch", "[combinators]\nNoSuch"} {
		cmd := startFailing(t, childConfig{Path: filepath.Join(t.TempDir(), "data"), Allow: wrong})
		if !strings.Contains(cmd, "analysts") {
			t.Errorf("%s: %s", wrong, cmd)
		}
	}
}

// TestHeadsAndBodiesAreBounded sends what is refused before it is read: long headers, and unfinished bodies without a password.
func TestHeadsAndBodiesAreBounded(t *testing.T) {
	t.Parallel()
	send := func(request string) string {
		c, err := net.Dial("tcp", server.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, request) // fails once the server has refused
		answer, _ := io.ReadAll(c)
		return string(answer)
	}
	if answer := send("POST / HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("a", 1<<20) + "\r\n\r\n"); !strings.HasPrefix(answer,
		"HTTP/1.1 431") {
		t.Errorf("a megabyte of headers: %.100q", answer)
	}
	if answer := send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("a",
		1000)); !strings.HasPrefix(answer, "HTTP/1.1 401") {
		t.Errorf("an unfinished body without a password: %.100q", answer)
	}
	if answer := send("POST / HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: analyst\r\nX-ClickHouse-Key: wrong\r\nContent-Length: 1000000\r\n" +
		"\r\n" + strings.Repeat("a", 1000)); !strings.HasPrefix(answer, "HTTP/1.1 403") {
		t.Errorf("an unfinished body with a wrong password: %.100q", answer)
	}
}

// TestBlocksAreBoundedBeforeTheyArrive sends the header of a compressed block that claims more than a statement can have, and a body with a
// setting that is refused before it arrives.
func TestBlocksAreBoundedBeforeTheyArrive(t *testing.T) {
	t.Parallel()
	block := make([]byte, 25) // checksum, method, two sizes
	block[16] = 0x82
	binary.LittleEndian.PutUint32(block[17:], 100<<20)
	binary.LittleEndian.PutUint32(block[21:], 100<<20)
	for path, want := range map[string]string{"/?decompress=1": "a compressed block has 104857600 bytes", "/?nosuch=1": "UNKNOWN_SETTING"} {
		c, err := net.Dial("tcp", server.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: analyst\r\nX-ClickHouse-Key: a\r\nContent-Length: 1000000\r\n"+
			"\r\n%s", path, block)
		part := make([]byte, 2000)
		n, _ := io.ReadFull(c, part) // to the end of the connection
		if !strings.Contains(string(part[:n]), want) {
			t.Errorf("%s: %q; want %s", path, part[:n], want)
		}
	}
}

// TestUnfinishedBodiesAreCounted opens connections of one analyst whose statements do not arrive, plain and compressed. Those above the
// bound are refused, and another analyst is served.
func TestUnfinishedBodiesAreCounted(t *testing.T) {
	t.Parallel()
	s := startChild(t, childConfig{Path: filepath.Join(t.TempDir(), "data"), Slots: 2})
	for name, head := range map[string]string{"plain": "\r\n\r\nSELECT", "compressed": "\r\nContent-Encoding: gzip\r\n\r\n"} {
		password, err := roster.Add(roster.Path(s.config.Path), name, roster.Limits{Statements: 1}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		const connections = 100
		answers := make(chan string, connections)
		for range connections {
			c, err := net.Dial("tcp", s.config.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\nContent-Length: 1000000%s", name,
				password, head)
			go func() { // ends with the connection
				head := make([]byte, 20)
				n, _ := c.Read(head)
				answers <- string(head[:n])
			}()
		}
		const refused = connections - 65 // one that runs and 64 that wait
		for range refused {
			if answer := <-answers; !strings.HasPrefix(answer, "HTTP/1.1 503") {
				t.Fatalf("%s: %q", name, answer)
			}
		}
	}
	if status, body := s.ask(t.Context(), "analyst", "SELECT 1", nil); status != http.StatusOK {
		t.Errorf("another analyst: %d %s", status, body)
	}
}

// TestTemporaryFilesHaveAQuota lowers the quota of a statement below what its aggregation spills. An analyst cannot raise it.
func TestTemporaryFilesHaveAQuota(t *testing.T) {
	t.Parallel()
	const spills = "SELECT max(c) FROM (SELECT cityHash64(number) AS h, count() AS c FROM numbers(4000000) GROUP BY h)"
	small := url.Values{"max_bytes_before_external_group_by": {"20000000"}, "max_memory_usage": {"500000000"},
		"max_temporary_data_on_disk_size_for_query": {"1000000"}}
	if _, body := ask(t, "analyst", spills, small); !strings.Contains(body, "Limit for temporary files size exceeded") {
		t.Errorf("%s", body)
	}
	_, quota := ask(t, "analyst", "SELECT getSetting('max_temporary_data_on_disk_size_for_query')", nil)
	for _, more := range []string{"0", quota + "0"} {
		if _, body := ask(t, "analyst", "SELECT 1",
			url.Values{"max_temporary_data_on_disk_size_for_query": {more}}); !strings.Contains(body, "SETTING_CONSTRAINT_VIOLATION") {
			t.Errorf("%s instead of %s: %s", more, quota, body)
		}
	}
}

// TestBrokenRosterIsLoggedOnce sends statements while the file of analysts is damaged.
func TestBrokenRosterIsLoggedOnce(t *testing.T) {
	t.Parallel()
	config := childConfig{Path: filepath.Join(t.TempDir(), "data")}
	s := startChild(t, config)
	if err := os.WriteFile(roster.Path(config.Path), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if status, body := s.ask(t.Context(), "analyst", "SELECT 1", nil); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	s.stop()
	if n := strings.Count(s.log.String(), "the analysts are as before"); n != 1 {
		t.Errorf("logged %d times: %s", n, s.log.String())
	}
}
