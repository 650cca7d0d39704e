// Package doctor checks whether companyscore can run on this machine, and whether what runs is reachable.
package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"companyscore/internal/spelling"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/redis"
	"companyscore/internal/release"
	"companyscore/internal/stores"
	"companyscore/sql"
)

// Status is the outcome of a check.
type Status string

// The outcomes. Only Failed makes the command fail.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

const (
	// storeTimeout bounds the check of one store.
	storeTimeout = 5 * time.Second
	// skewMax is the largest difference of two clocks that is not reported, as in /readyz.
	skewMax = 2 * time.Second
	// Free space below which a start fails soon, and below which it is time to act.
	diskMin, diskLow = 512 << 20, 5 << 30
	// Free inodes, likewise. ClickHouse makes some files for each part of a table.
	inodesMin, inodesLow = 1000, 100_000
	// Available memory, likewise.
	memoryMin, memoryLow = 512 << 20, 1 << 30
	// Open files, likewise. A server has up to 10,000 connections.
	filesMin, filesLow = 1024, 12_000
)

// Check is one check with its outcome.
type Check struct {
	Name   string `json:"check"`
	Status Status `json:"status"`
	// Found is what the check found.
	Found string `json:"found"`
	// Advice is what to do about it, empty if there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

// Config is what the checks need.
type Config struct {
	// Stores are the addresses, or the data directory of an `up`.
	Stores config.Stores
	// Listen is the address at which the service is to listen.
	Listen string
	// FindEngine returns the path of the library of the embedded ClickHouse.
	FindEngine func() (string, error)
	// Variables are the environment variables that the program reads.
	Variables []string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Run makes all checks. They change nothing but for a file in the data directory that is removed at once.
func Run(ctx context.Context, cfg Config) []Check {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &doctor{Config: cfg}
	// Only one of the URLs may be set: the other address is then that of the running `up`.
	d.external = cfg.Stores
	d.runtime, d.runtimeErr = config.ReadRuntime(cfg.Stores.Data)
	if d.runtime != nil {
		if d.Stores.ClickHouseURL == "" {
			d.Stores.ClickHouseURL = d.runtime.ClickHouseURL
		}
		if d.Stores.RedisURL == "" {
			d.Stores.RedisURL = d.runtime.RedisURL
		}
	}
	checks := []Check{d.version(), d.system(), d.engine(), d.redisServer(), d.up(), d.port(), d.directory()}
	checks = append(checks, d.disk()...)
	checks = append(checks, d.memory(), d.files())
	checks = append(checks, d.redis(ctx)...)
	checks = append(checks, d.clickHouse(ctx)...)
	checks = append(checks, d.ready(ctx), d.variables())
	return checks
}

type doctor struct {
	Config
	external   config.Stores // as the caller gave them
	runtime    *config.Runtime
	runtimeErr error
}

func (d *doctor) version() Check {
	return Check{Name: "version", Status: OK, Found: release.String()}
}

func (d *doctor) system() Check {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // Linux only
	return Check{Name: "system", Status: OK, Found: strings.TrimSpace(fmt.Sprintf("%s %s %s", runtime.GOOS, runtime.GOARCH,
		bytes.TrimSpace(kernel))) +
		fmt.Sprintf(", %d processors", runtime.NumCPU())}
}

// engineVersion finds the version in the path of the library.
var engineVersion = regexp.MustCompile(`libchdb-([0-9.]+)/`)

func (d *doctor) engine() Check {
	const name = "engine library"
	path, err := d.FindEngine()
	switch {
	case err == nil:
		found := path
		if m := engineVersion.FindStringSubmatch(path); m != nil {
			found = m[1] + ", " + path
		}
		return Check{Name: name, Status: OK, Found: found}
	case d.external.ClickHouseURL != "":
		return Check{Name: name, Status: Skipped, Found: "not needed with an external ClickHouse"}
	}
	return Check{name, Failed, err.Error(),
		"run `make deps` in the source tree, set COMPANYSCORE_LIBCHDB to the library, or set CLICKHOUSE_URL to a server"}
}

func (d *doctor) redisServer() Check {
	const name = "redis-server"
	if d.external.RedisURL != "" {
		return Check{Name: name, Status: Skipped, Found: "not needed with an external Redis"}
	}
	const advice = "install Redis 7 (on Debian: apt-get install redis-server), or set REDIS_URL to a server"
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return Check{name, Failed, "not in the PATH", advice}
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return Check{name, Failed, path + ": " + err.Error(), advice}
	}
	_, version, _ := strings.Cut(string(out), " v=")
	version, _, _ = strings.Cut(version, " ")
	if major, _, _ := strings.Cut(version, "."); len(major) == 1 && major < "7" {
		return Check{name, Warning, version + ", " + path, "companyscore is tested with Redis 7: " + advice}
	}
	return Check{Name: name, Status: OK, Found: version + ", " + path}
}

func (d *doctor) up() Check {
	const name = "running up"
	switch {
	case d.runtime != nil:
		return Check{Name: name, Status: OK, Found: fmt.Sprintf("process %d at %s with %s", d.runtime.PID, d.runtime.BaseURL,
			d.Stores.Data)}
	case errors.Is(d.runtimeErr, os.ErrNotExist):
		return Check{Name: name, Status: Skipped, Found: "none with the data directory " + d.Stores.Data}
	}
	return Check{name, Failed, d.runtimeErr.Error(),
		"use the user that started `up`; if no `up` runs, remove runtime.json of the data directory"}
}

func (d *doctor) port() Check {
	name := "port " + d.Listen
	if d.runtime != nil {
		if u, err := url.Parse(d.runtime.BaseURL); err == nil && u.Host == d.Listen {
			return Check{Name: name, Status: OK, Found: "used by the running up"}
		}
	}
	ln, err := net.Listen("tcp", d.Listen)
	if err == nil {
		ln.Close()
		return Check{Name: name, Status: OK, Found: "free"}
	}
	advice := "choose another address with --listen"
	if errors.Is(err, syscall.EADDRINUSE) {
		advice = "end the program that listens (`ss -ltnp` shows it), or choose another address with --listen"
	}
	return Check{name, Failed, err.Error(), advice}
}

func (d *doctor) directory() Check {
	const name = "data directory"
	if d.external.ClickHouseURL != "" && d.external.RedisURL != "" {
		return Check{Name: name, Status: Skipped, Found: "not needed with external stores"}
	}
	const advice = "make it writable for this user, or choose another directory with --data"
	existing := existingParent(d.Stores.Data)
	f, err := os.CreateTemp(existing, ".companyscore-doctor-")
	if err != nil {
		return Check{name, Failed, err.Error(), advice}
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	switch {
	case err != nil:
		return Check{name, Failed, err.Error(), advice}
	case existing != filepath.Clean(d.Stores.Data):
		return Check{Name: name, Status: OK, Found: d.Stores.Data + ", which `up` will make"}
	}
	return Check{Name: name, Status: OK, Found: d.Stores.Data + ", writable"}
}

// existingParent returns the path or the nearest parent that exists.
func existingParent(path string) string {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
	}
}

func (d *doctor) disk() []Check {
	path := existingParent(d.Stores.Data)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return []Check{{"disk", Failed, err.Error(), "choose another directory with --data"}}
	}
	free := int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // the types differ between systems
	disk := level("disk", free, diskMin, diskLow, fmt.Sprintf("%s free at %s", size(free), path),
		"free space or choose a directory on another disk with --data")
	inodes := Check{Name: "inodes", Status: Skipped, Found: "the file system does not limit them"}
	if fs.Files > 0 {
		inodes = level("inodes", int64(fs.Ffree), inodesMin, inodesLow, fmt.Sprintf("%d free at %s", fs.Ffree, path),
			"remove files or choose a directory on another disk with --data")
	}
	return []Check{disk, inodes}
}

func (d *doctor) memory() Check {
	const name = "memory"
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Check{Name: name, Status: Skipped, Found: "not known on this system"}
	}
	available, total := meminfo(text, "MemAvailable"), meminfo(text, "MemTotal")
	found := fmt.Sprintf("%s of %s available", size(available), size(total))
	if limit, ok := cgroupLimit(); ok && limit < available {
		available, found = limit, fmt.Sprintf("limited to %s by the control group", size(limit))
	}
	return level(name, available, memoryMin, memoryLow, found, "end other programs, or lower --cache-mb and --memory-limit-mb")
}

// meminfo returns a value of /proc/meminfo in bytes, zero if there is none.
func meminfo(text []byte, key string) int64 {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == key+":" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// cgroupLimit returns the memory limit of a container.
func cgroupLimit() (int64, bool) {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return limit, err == nil
}

func (d *doctor) files() Check {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Check{Name: "open files", Status: Skipped, Found: err.Error()}
	}
	most := int64(min(limit.Max, 1<<40)) // the Go runtime raises the soft limit to the hard one
	return level("open files", most, filesMin, filesLow, fmt.Sprintf("at most %d (ulimit -Hn)", most),
		"raise the hard limit (LimitNOFILE of systemd, ulimit -n), or lower --http-connections")
}

// level compares a value with what is needed and with what suffices for long.
func level(name string, value, least, enough int64, found, advice string) Check {
	switch {
	case value < least:
		return Check{name, Failed, found, advice}
	case value < enough:
		return Check{name, Warning, found, advice}
	}
	return Check{Name: name, Status: OK, Found: found}
}

func size(n int64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%d GB", n>>30)
	}
	return fmt.Sprintf("%d MB", n>>20)
}

// storeAdvice is what to do about a store that does not answer.
func (d *doctor) storeAdvice(url, variable string) string {
	if url != "" {
		return "check that the server runs, and address, user and password in " + variable
	}
	return "`up` restarts it within seconds; if it does not, the log of `up` has the reason"
}

func (d *doctor) redis(ctx context.Context) []Check {
	if d.Stores.RedisURL == "" {
		return []Check{{Name: "Redis", Status: Skipped, Found: "no address: no up runs, and REDIS_URL is not set"}}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rdb, err := redis.Open(ctx, d.Stores.RedisURL)
	if err != nil {
		return []Check{{"Redis", Failed, err.Error(), d.storeAdvice(d.external.RedisURL, "REDIS_URL")}}
	}
	defer rdb.Close()
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return []Check{{"Redis", Failed, err.Error(), d.storeAdvice(d.external.RedisURL, "REDIS_URL")}}
	}
	_, version, _ := strings.Cut(info, "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	return []Check{{Name: "Redis", Status: OK, Found: version + " answers"}, d.redisClock(ctx, rdb)}
}

func (d *doctor) redisClock(ctx context.Context, rdb goredis.UniversalClient) Check {
	before := d.Now()
	at, err := rdb.Time(ctx).Result()
	return clock("clock of Redis", before, d.Now(), at, err)
}

// clock compares a clock that was read between two instants of the own one.
func clock(name string, before, after, at time.Time, err error) Check {
	if err != nil {
		return Check{name, Failed, err.Error(), "repeat the command"}
	}
	var ahead time.Duration
	switch {
	case at.Before(before):
		ahead = at.Sub(before)
	case at.After(after):
		ahead = at.Sub(after)
	}
	if ahead.Abs() <= skewMax {
		return Check{Name: name, Status: OK, Found: fmt.Sprintf("%s from that of this machine", ahead.Abs().Round(time.Millisecond))}
	}
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	return Check{name, Failed, fmt.Sprintf("%s %s that of this machine", ahead.Abs().Round(time.Millisecond), word),
		"synchronise the clocks of both machines (chrony or systemd-timesyncd): leases, budgets and scored_at depend on them"}
}

func (d *doctor) clickHouse(ctx context.Context) []Check {
	const name = "ClickHouse"
	address := d.Stores.ClickHouseURL
	if address == "" {
		return []Check{{Name: name, Status: Skipped, Found: "no address: no up runs, and CLICKHOUSE_URL is not set"}}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	advice := d.storeAdvice(d.external.ClickHouseURL, "CLICKHOUSE_URL")
	db, err := stores.OpenClickHouse(ctx, config.Stores{ClickHouseURL: address, RedisURL: "unused"}, storeTimeout)
	if err != nil {
		err = cmp.Or(errors.Unwrap(err), err) // without the advice to run this command
		return []Check{{name, Failed, err.Error(), advice}}
	}
	defer db.Close()
	const clockName = "clock of ClickHouse"
	if !strings.HasPrefix(address, "http") {
		return []Check{
			{Name: name, Status: OK, Found: "answers"},
			{Name: clockName, Status: Skipped, Found: "compared over HTTP only: use an http:// address to check it"},
		}
	}
	var answer bytes.Buffer
	before := d.Now()
	err = clickhouse.QueryHTTP(ctx, address, sql.Check("server"), "JSONEachRow", &answer)
	after := d.Now()
	var server struct {
		Version string
		Now     json.Number // quoted or not, as the server is set up
	}
	if err == nil {
		err = json.Unmarshal(answer.Bytes(), &server)
	}
	if err != nil {
		return []Check{{name, Failed, err.Error(), advice}}
	}
	milliseconds, err := server.Now.Int64()
	return []Check{
		{Name: name, Status: OK, Found: server.Version + " answers"},
		clock(clockName, before, after, time.UnixMilli(milliseconds), err),
	}
}

// ready asks the running `up` for what it checks itself.
func (d *doctor) ready(ctx context.Context) Check {
	const name = "readiness"
	if d.runtime == nil || d.runtime.AdminURL == "" {
		return Check{Name: name, Status: Skipped, Found: "no up runs, or it has no --admin-listen"}
	}
	const advice = "docs/operations.md has what to do by symptom; the log of `up` has the reason"
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.runtime.AdminURL+"/readyz", nil)
	if err != nil {
		return Check{name, Failed, err.Error(), advice}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Check{name, Failed, err.Error(), advice}
	}
	defer res.Body.Close()
	var reasons map[string]string
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&reasons); err != nil {
		return Check{name, Failed, err.Error(), advice}
	}
	var wrong []string
	for check, reason := range reasons {
		if reason != "ok" {
			wrong = append(wrong, check+": "+reason)
		}
	}
	slices.Sort(wrong)
	switch {
	case res.StatusCode != http.StatusOK:
		return Check{name, Failed, strings.Join(wrong, "; "), advice}
	case len(wrong) > 0:
		return Check{name, Warning, strings.Join(wrong, "; "), "the service answers; " + advice}
	}
	return Check{Name: name, Status: OK, Found: "all checks of /readyz are ok"}
}

// otherVariables are read without a flag.
var otherVariables = []string{"COMPANYSCORE_LIBCHDB", "COMPANYSCORE_GITHUB_TOKEN", "COMPANYSCORE_CERTSPOTTER_TOKEN"}

func (d *doctor) variables() Check {
	const prefix = "COMPANYSCORE_"
	known := append(slices.Clone(otherVariables), d.Variables...)
	var unknown, advice []string
	set := 0
	for _, entry := range d.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, prefix+"TEST_") {
			continue
		}
		if set++; slices.Contains(known, name) {
			continue
		}
		unknown = append(unknown, name)
		if meant := nearest(name, known); meant != "" {
			advice = append(advice, fmt.Sprintf("rename %s to %s", name, meant))
		} else {
			advice = append(advice, "unset "+name)
		}
	}
	if len(unknown) > 0 {
		return Check{"variables", Failed, "no command reads " + strings.Join(unknown, ", "), strings.Join(advice, ", ")}
	}
	return Check{Name: "variables", Status: OK, Found: fmt.Sprintf("%d set, all known", set)}
}

// nearest returns the known name that differs in the fewest letters, empty if more than three do.
func nearest(name string, known []string) (best string) {
	least := 4
	for _, k := range known {
		if n := spelling.Distance(name, k); n < least {
			best, least = k, n
		}
	}
	return best
}
