// Package up runs all roles on one machine: Redis, the embedded ClickHouse, a worker and the batch
// jobs as child processes, and the HTTP API in this process.
package up

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"companyscore/batch"
	"companyscore/batch/inbox"
	"companyscore/clickhouse"
	"companyscore/clickhouse/embedded"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/internal/redis"
	"companyscore/internal/stores"
	"companyscore/scoring/source/selection"
	"companyscore/server"
	"companyscore/server/console"
	"companyscore/server/meter"
)

// Config is what Run needs. All fields but TiersFile and Inbox are required.
type Config struct {
	// Stores has the data directory. Run does not start a store whose URL is set.
	Stores config.Stores
	// Server configures the HTTP API. Run sets its Stores, Logger and Ready.
	Server server.Config
	// Demo opens a demo account and prints its keys.
	Demo bool
	// Examples imports and scores the example companies at a start without any score.
	Examples bool
	// ClickHouseListen is the address of the embedded ClickHouse.
	ClickHouseListen string
	// ClickHouse configures the embedded ClickHouse.
	ClickHouse config.ClickHouse
	Sources    selection.Config
	// TiersFile is the YAML file of limits that the children read, empty for none.
	TiersFile string
	Schedules batch.Schedules
	Ages      batch.Ages
	// MinDataPct is that of batch.Config.
	MinDataPct float64
	// Inbox is the directory of the inbox job, empty for none.
	Inbox string
	// Log is passed to the children.
	Log    config.Log
	Logger *slog.Logger
	// Out receives the addresses and the demo account.
	Out io.Writer
}

// Flags adds the flags of c with their defaults.
func (c *Config) Flags(flags *pflag.FlagSet) {
	c.Server.AdminListen = "127.0.0.1:0"
	c.Server.Flags(flags)
	DemoFlag(flags, &c.Demo, true)
	flags.BoolVar(&c.Examples, "examples", false, "import and score 21,501 example companies if no company has a score yet")
	flags.StringVar(&c.Stores.Data, "data", config.DefaultData, "data directory")
	flags.StringVar(&c.Stores.ClickHouseURL, "clickhouse-url", "", "external ClickHouse")
	flags.StringVar(&c.ClickHouseListen, "clickhouse-listen", "127.0.0.1:0",
		"address of the embedded ClickHouse, for SQL tools; port 0 is a free one, another at each start")
	c.ClickHouse.Flags(flags)
	flags.StringVar(&c.Stores.RedisURL, "redis-url", "", "external Redis")
	c.Sources.Flags(flags)
	meter.LimitsFlag(flags, &c.TiersFile)
	c.Schedules.Flags(flags)
	c.Ages.Flags(flags)
	batch.MinDataFlag(flags, &c.MinDataPct)
	inbox.Flag(flags, &c.Inbox)
}

// Validate returns an error that names every flag that is wrong.
func (c *Config) Validate() error {
	var missing error
	if c.Inbox != "" {
		missing = inbox.Check(c.Inbox)
	}
	return errors.Join(missing, config.CheckAddress("--clickhouse-listen", c.ClickHouseListen), c.ClickHouse.Validate(),
		c.Server.Validate(),
		c.Sources.Validate(), c.Schedules.Validate(), c.Ages.Validate(), batch.CheckMinData(c.MinDataPct))
}

// Run starts all roles and stops them when ctx ends or the HTTP API fails. It returns after all
// child processes have ended. All data stay in the data directory.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Sources.Ranks == "" {
		cfg.Sources.Ranks = filepath.Join(cfg.Stores.Data, "ranks")
	}
	u := &run{cfg: cfg, logger: cfg.Logger}
	err := u.start(ctx)
	switch {
	case err == nil:
		select {
		case <-u.api.ended: // its stop returns its error
		case <-ctx.Done():
		}
	case ctx.Err() != nil: // any error during a shutdown is a result of it
		u.logger.Info("stopped during the start", "err", err)
		err = nil
	}
	return errors.Join(err, u.parts.Close(ctx))
}

// run is one call of Run.
type run struct {
	cfg    Config
	logger *slog.Logger

	redis      *redis.Local     // nil if it is external
	clickhouse *process.Process // nil if it is external
	analystURL string
	stores     *stores.Stores
	api        *api

	parts process.Parts
	users []func(context.Context) error // end the parts that use the stores
}

// api is the HTTP API in this process.
type api struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed after the API has ended
	err    error         // result of the API, valid after ended is closed
}

// startAPI starts the HTTP API and returns its address.
func (u *run) startAPI(ctx context.Context) (server.Address, error) {
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan server.Address, 1)
	cfg := u.cfg.Server
	cfg.Stores, cfg.Logger, cfg.Ready = u.stores.Server(), u.logger, func(at server.Address) { ready <- at }
	a := &api{cancel: cancel, ended: make(chan struct{})}
	go func() { // ends with stop
		defer close(a.ended)
		a.err = server.Run(ctx, cfg)
	}()
	select {
	case at := <-ready:
		u.api = a
		u.users = append(u.users, a.stop)
		return at, nil
	case <-a.ended:
		err := errors.Join(a.err, ctx.Err())
		cancel()
		return server.Address{}, err
	}
}

// stop ends the HTTP API and returns its error. It ignores its context.
func (a *api) stop(context.Context) error {
	a.cancel()
	<-a.ended
	return a.err
}

func (u *run) start(ctx context.Context) (err error) {
	began := time.Now()
	lock, err := config.LockData(u.cfg.Stores.Data)
	if err != nil {
		return err
	}
	u.parts.Defer(func(context.Context) error {
		err := config.RemoveRuntime(u.cfg.Stores.Data)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return errors.Join(err, lock.Close())
	})
	starting, startCtx := errgroup.WithContext(ctx)
	if u.cfg.Stores.RedisURL == "" {
		starting.Go(func() (err error) {
			if u.redis, err = redis.StartLocal(startCtx, filepath.Join(u.cfg.Stores.Data, "redis"), u.logger); err != nil {
				return err
			}
			u.parts.Defer(u.redis.Stop)
			return nil
		})
	}
	if u.cfg.Stores.ClickHouseURL == "" {
		starting.Go(func() error { return u.startClickHouse(startCtx) })
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	if u.redis != nil {
		u.cfg.Stores.RedisURL = u.redis.URL
	}
	if u.stores, err = stores.Open(ctx, u.cfg.Stores); err != nil {
		return err
	}
	u.parts.Defer(func(context.Context) error { return u.stores.Close() })
	u.parts.Defer(u.endUsers)
	applied, err := u.stores.DB.Migrate(ctx)
	if err != nil {
		return err
	}
	if len(applied) > 0 {
		u.logger.Info("migrations applied", "migrations", len(applied))
	}
	u.logger.Debug("schema is current")
	var demo *Demo
	if u.cfg.Demo {
		if demo, err = OpenDemo(ctx, clickhouse.NewAccounts(u.stores.DB), u.cfg.Stores.Data); err != nil {
			return err
		}
	}
	jobs := slices.Concat([]string{"--nice", strconv.Itoa(niceBeside), "--tiers", u.cfg.TiersFile}, u.cfg.Schedules.Args(),
		u.cfg.Ages.Args(), batch.MinDataArgs(u.cfg.MinDataPct), u.cfg.Sources.ChoiceArgs(),
		[]string{"--trust", strings.Join(u.cfg.Sources.Trust, ","), "--inbox", u.cfg.Inbox})
	cron, err := u.startRole(ctx, "batch", jobs)
	if err != nil {
		return err
	}
	at, err := u.startAPI(ctx)
	if err != nil {
		return err
	}
	worker, err := u.startRole(ctx, "work", append([]string{"--tiers", u.cfg.TiersFile}, u.cfg.Sources.Args()...))
	if err != nil {
		return err
	}
	// The first snapshot of a small universe is published within a second. A large one takes longer.
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	at.AwaitSnapshot(waiting)
	cancel()
	rt := config.Runtime{
		PID: os.Getpid(), BaseURL: at.URL, AdminURL: at.AdminURL, ClickHouseURL: u.cfg.Stores.ClickHouseURL, AnalystURL: u.analystURL,
		RedisURL:  u.cfg.Stores.RedisURL,
		Processes: map[string]int{"worker": worker.PID(), "batch": cron.PID()},
	}
	if u.redis != nil {
		rt.Processes["redis-server"] = u.redis.PID()
	}
	if u.clickhouse != nil {
		rt.Processes["clickhouse"] = u.clickhouse.PID()
	}
	if err := config.WriteRuntime(u.cfg.Stores.Data, rt); err != nil {
		return err
	}
	fmt.Fprintf(u.cfg.Out, "ready %s in %.1f s\n\n", at.URL, time.Since(began).Seconds())
	if err := u.printConsole(ctx, at.URL, demo); err != nil {
		return err
	}
	u.printParts(at, demo)
	if u.cfg.Examples {
		if err := u.loadExamples(ctx); err != nil && ctx.Err() == nil {
			u.logger.Warn("examples not loaded; a restart tries again", "err", err)
		}
	}
	return u.printNext(ctx, demo)
}

// printParts writes the addresses, the sources and the demo account.
func (u *run) printParts(at server.Address, demo *Demo) {
	login := "external"
	if u.clickhouse != nil {
		login = "user analyst, password in " + config.AnalystPasswordPath(u.cfg.Stores.Data) + "; tools: " + self() + " sql --connection"
	}
	fmt.Fprintf(u.cfg.Out, "  api          %s\n  clickhouse   %s   (%s)\n  data         %s\n", at.URL, hostOf(u.cfg.Stores.ClickHouseURL),
		login, u.cfg.Stores.Data)
	if at.AdminURL != "" {
		fmt.Fprintf(u.cfg.Out, "  operators    %s   (/healthz, /readyz, /metrics)\n", at.AdminURL)
	}
	fmt.Fprintf(u.cfg.Out, "  sources      %s\n", u.cfg.Sources.Summary())
	if demo != nil {
		demo.Print(u.cfg.Out)
	}
}

// printNext writes the next commands.
func (u *run) printNext(ctx context.Context, demo *Demo) error {
	scored, err := clickhouse.NewUniverse(u.stores.DB).AnyScore(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(u.cfg.Out, "\nNext, in another terminal:\n\n")
	if u.cfg.Stores.Data != config.DefaultData {
		fmt.Fprintf(u.cfg.Out, "  export %s=%s\n", config.EnvName("data"), u.cfg.Stores.Data)
	}
	if demo != nil {
		fmt.Fprintf(u.cfg.Out, "  export COMPANYSCORE_KEY=%s\n", demo.LiveKey)
	}
	if !scored && !u.cfg.Examples {
		fmt.Fprintf(u.cfg.Out, "  %[1]s facts import examples/companies.csv\n"+
			"  %[1]s run start --from examples/companies.csv --wait\n", self())
	}
	if demo != nil {
		fmt.Fprintf(u.cfg.Out, "  %s score apple.com\n", self())
	}
	fmt.Fprintf(u.cfg.Out, "  %s explain apple.com\n\nCtrl-C stops everything; the data stays.\n", self())
	return nil
}

// self returns the program as it was called.
func self() string { return os.Args[0] }

// printConsole prints how to sign in to the console: with a link if there is a demo account, since
// its keys are printed too. Whoever starts everything on a machine can read all of its data, so the
// link is one of an operator. Without a demo account the output has no secrets.
func (u *run) printConsole(ctx context.Context, base string, demo *Demo) error {
	switch {
	case !u.cfg.Server.Console.On():
		return nil
	case demo == nil:
		fmt.Fprintf(u.cfg.Out, "  console      %s%s   (to sign in: %s console link --operator)\n", base, console.Path, self())
		return nil
	}
	link, err := console.NewLink(ctx, u.stores.Redis, base, console.Grant{AccountID: demo.AccountID, Operator: true}, console.LinkTTL)
	if err != nil {
		return err
	}
	fmt.Fprintf(u.cfg.Out, "  console      %s   (signs in once, within %s; another: %s console link)\n", link, console.LinkTTL, self())
	return nil
}

// niceBeside is the nice value of the embedded engine and of the batch jobs. The HTTP API and the
// worker have priority, so that a batch job does not delay answers from memory.
const niceBeside = 10

// startClickHouse starts the embedded engine as a child process. This process keeps the listening
// socket open and passes it to each new child.
func (u *run) startClickHouse(ctx context.Context) error {
	path := filepath.Join(u.cfg.Stores.Data, "clickhouse")
	if err := u.awaitUnused(ctx, path); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", u.cfg.ClickHouseListen)
	if err != nil {
		return fmt.Errorf("listen for ClickHouse: %w", err)
	}
	defer ln.Close()
	listener, err := ln.(*net.TCPListener).File() // kept open, so that a new child has the same address
	if err != nil {
		return fmt.Errorf("pass the listener to ClickHouse: %w", err)
	}
	u.parts.Defer(func(context.Context) error { return listener.Close() })
	self, err := os.Executable()
	if err != nil {
		return err
	}
	address := reachable(ln.Addr().(*net.TCPAddr))
	password := rand.Text()
	analyst, err := config.AnalystPassword(u.cfg.Stores.Data)
	if err != nil {
		return err
	}
	u.clickhouse, err = process.Start(ctx, process.Config{
		Name: "clickhouse",
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, "clickhouse", "--path", path, "--nice", strconv.Itoa(niceBeside),
				"--log-level", u.cfg.Log.Level, "--log-format", u.cfg.Log.Format)
			cmd.Args = append(cmd.Args, u.cfg.ClickHouse.Args()...)
			if runtime.GOOS != "linux" { // on Linux OrphanSignal ends the child
				cmd.Args = append(cmd.Args, "--exit-with-stdin")
			}
			cmd.Env = append(os.Environ(), "COMPANYSCORE_PASSWORD="+password, "COMPANYSCORE_ANALYST_PASSWORD="+analyst,
				process.ListenFDs+"=1")
			cmd.ExtraFiles = []*os.File{listener}
			return cmd
		},
		Stderr:       os.Stderr,
		OrphanSignal: syscall.SIGKILL, // acknowledged data are safe
		Ready: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ping", nil)
			if err != nil {
				return err
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			return res.Body.Close()
		},
		Logger: u.logger,
	})
	if err != nil {
		return err
	}
	u.parts.Defer(u.clickhouse.Stop)
	u.cfg.Stores.ClickHouseURL = fmt.Sprintf("http://companyscore:%s@%s/companyscore", password, address)
	u.analystURL = fmt.Sprintf("http://analyst:%s@%s/companyscore", analyst, address)
	return nil
}

// reachable returns the address at which this machine reaches a listener.
func reachable(at *net.TCPAddr) string {
	if at.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	return at.String()
}

// leftoverTimeout bounds the wait for the end of an earlier `up`'s ClickHouse.
const leftoverTimeout = 35 * time.Second

// awaitUnused waits until no process has the data directory of the engine open. This process has
// the lock of all data, so only a process of an earlier `up` can have it open.
func (u *run) awaitUnused(ctx context.Context, path string) error {
	waiting, cancel := context.WithTimeout(ctx, leftoverTimeout)
	defer cancel()
	for logged := false; ; logged = true {
		inUse, pid, err := embedded.InUse(path)
		if err != nil || !inUse {
			return err
		}
		if !logged {
			u.logger.Info("waiting for the ClickHouse of an earlier process to end", "directory", path, "pid", pid, "max", leftoverTimeout)
		}
		select {
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%s is open in process %d, which did not end within %s: end it", path, pid, leftoverTimeout)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startRole starts a role of this program as a child process on the same stores. It returns when
// the process has started.
func (u *run) startRole(ctx context.Context, role string, args []string) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = slices.Concat([]string{role, "--log-level", u.cfg.Log.Level, "--log-format", u.cfg.Log.Format}, args)
	child, err := process.Start(ctx, process.Config{
		Name: role,
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, args...)
			// URLs contain passwords, and everyone can see the arguments of a process.
			cmd.Env = append(os.Environ(), "CLICKHOUSE_URL="+u.cfg.Stores.ClickHouseURL, "REDIS_URL="+u.cfg.Stores.RedisURL)
			cmd.Stderr = os.Stderr
			return cmd
		},
		Ready:  func(context.Context) error { return nil },
		Logger: u.logger,
	})
	if err != nil {
		return nil, err
	}
	u.users = append(u.users, child.Stop)
	return child, nil
}

// endUsers ends the users of the stores concurrently, because each may need most of the shutdown time.
func (u *run) endUsers(ctx context.Context) error {
	faults := make([]error, len(u.users))
	var ending sync.WaitGroup
	for i, end := range u.users {
		ending.Go(func() { faults[i] = end(ctx) })
	}
	ending.Wait()
	return errors.Join(faults...)
}

// hostOf returns the address of a URL without user and password.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
