package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"companyscore/batch"
	"companyscore/clickhouse"
	"companyscore/clickhouse/embedded"
	"companyscore/internal/account"
	"companyscore/internal/batchjob"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/internal/redis"
	"companyscore/server/meter"
)

// upConfig is what `up` is told.
type upConfig struct {
	stores  config.Stores
	api     apiConfig
	sources sourceConfig
	tiers   string
	// schedules are those of the batch jobs.
	schedules batch.Schedules
	ages      batchjob.Ages
}

func (c *program) up() *cobra.Command {
	var cfg upConfig
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start everything on this machine",
		Long: `Start Redis, ClickHouse, the HTTP interface, a worker and the batch jobs, with all
data in one directory. Prints a line that begins with "ready" when it serves.
With --clickhouse-url or --redis-url it uses that server instead of its own.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			limits, err := cfg.api.check(cfg.tiers)
			if err := errors.Join(err, cfg.sources.check(), cfg.schedules.Validate(), cfg.ages.Validate()); err != nil {
				return cli.Usage(err)
			}
			if cfg.sources.ranks == "" {
				cfg.sources.ranks = filepath.Join(cfg.stores.Data, "ranks")
			}
			u := &upRun{cfg: cfg, limits: limits, logger: c.logger, level: c.log, out: cmd.OutOrStdout()}
			err = u.start(cmd.Context())
			switch {
			case err == nil:
				select {
				case err = <-u.api.failed:
				case <-cmd.Context().Done():
				}
			case cmd.Context().Err() != nil: // whatever failed, it was asked to end
				c.logger.Info("stopped during the start", "err", err)
				err = nil
			}
			return errors.Join(err, u.stop(cmd.Context()))
		},
	}
	cfg.api.flags(cmd, true)
	cmd.Flags().StringVar(&cfg.stores.Data, "data", config.DefaultData, "directory for all data")
	cmd.Flags().StringVar(&cfg.stores.ClickHouseURL, "clickhouse-url", "", "ClickHouse to use instead of an own one")
	cmd.Flags().StringVar(&cfg.stores.RedisURL, "redis-url", "", "Redis to use instead of an own one")
	cfg.sources.flags(cmd)
	addTiersFlag(cmd, &cfg.tiers)
	cfg.schedules.Flags(cmd.Flags())
	cfg.ages.Flags(cmd.Flags())
	return cmd
}

// upRun is one run of everything. What start has begun, stop ends in reverse.
type upRun struct {
	cfg    upConfig
	limits meter.Limits
	logger *slog.Logger
	level  config.Log
	out    io.Writer

	lock       *os.File
	redis      *redis.Local
	clickhouse *process.Process
	chListener *os.File // kept open, so that the address outlives the child
	analystURL string
	stores     *stores
	api        *api
	worker     *process.Process
	batch      *process.Process
}

func (u *upRun) start(ctx context.Context) (err error) {
	began := time.Now()
	u.cfg.api.memory.Apply()
	if u.lock, err = config.LockData(u.cfg.stores.Data); err != nil {
		return err
	}
	starting, startCtx := errgroup.WithContext(ctx)
	if u.cfg.stores.RedisURL == "" {
		starting.Go(func() (err error) {
			u.redis, err = redis.StartLocal(startCtx, filepath.Join(u.cfg.stores.Data, "redis"), u.logger)
			return err
		})
	}
	if u.cfg.stores.ClickHouseURL == "" {
		starting.Go(func() error { return u.startClickHouse(startCtx) })
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	if u.redis != nil {
		u.cfg.stores.RedisURL = u.redis.URL
	}
	if u.stores, err = openStores(ctx, u.cfg.stores); err != nil {
		return err
	}
	applied, err := u.stores.db.Migrate(ctx)
	if err != nil {
		return err
	}
	if len(applied) > 0 {
		u.logger.Info("schema is new", "migrations", len(applied))
	}
	u.logger.Debug("schema is current")
	var demo *account.Demo
	if u.cfg.api.demo {
		if demo, err = account.OpenDemo(ctx, clickhouse.NewAccounts(u.stores.db), u.cfg.stores.Data); err != nil {
			return err
		}
	}
	jobs := slices.Concat([]string{"--nice", strconv.Itoa(beside), "--tiers", u.cfg.tiers}, u.cfg.schedules.Args(), u.cfg.ages.Args(), u.cfg.sources.choiceArgs())
	if u.batch, err = u.startRole(ctx, "batch", jobs); err != nil {
		return err
	}
	if u.api, err = startAPI(ctx, u.stores, u.limits, u.cfg.api, u.logger); err != nil {
		return err
	}
	if u.worker, err = u.startRole(ctx, "work", append([]string{"--tiers", u.cfg.tiers}, u.cfg.sources.args()...)); err != nil {
		return err
	}
	// On a first start the statistics take a moment; a large universe takes longer.
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	u.api.universe.Wait(waiting)
	cancel()
	base := "http://" + u.api.address
	rt := config.Runtime{
		PID: os.Getpid(), BaseURL: base, AdminURL: u.api.adminURL, ClickHouseURL: u.cfg.stores.ClickHouseURL, AnalystURL: u.analystURL, RedisURL: u.cfg.stores.RedisURL,
		Processes: map[string]int{"worker": u.worker.PID(), "batch": u.batch.PID()},
	}
	if u.redis != nil {
		rt.Processes["redis-server"] = u.redis.PID()
	}
	if u.clickhouse != nil {
		rt.Processes["clickhouse"] = u.clickhouse.PID()
	}
	if err := config.WriteRuntime(u.cfg.stores.Data, rt); err != nil {
		return err
	}
	fmt.Fprintf(u.out, "ready %s in %.1f s\n", base, time.Since(began).Seconds())
	fmt.Fprintf(u.out, "\n  api          %s\n  clickhouse   %s   (user analyst; or: companyscore sql \"SELECT 1\")\n  data         %s\n",
		base, hostOf(u.cfg.stores.ClickHouseURL), u.cfg.stores.Data)
	if demo != nil {
		demo.Print(u.out, base)
	}
	fmt.Fprint(u.out, "\nCtrl-C stops everything; the data stays.\n")
	return nil
}

// beside is how far the embedded engine and the batch jobs yield the processor to the
// HTTP interface and the worker, so that no batch keeps answers from memory waiting.
const beside = 10

// startClickHouse starts the embedded engine in a process of its own. The
// listening socket stays ours and is handed to each new child.
func (u *upRun) startClickHouse(ctx context.Context) error {
	path := filepath.Join(u.cfg.stores.Data, "clickhouse")
	if err := u.awaitUnused(ctx, path); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find an address for ClickHouse: %w", err)
	}
	defer ln.Close()
	if u.chListener, err = ln.(*net.TCPListener).File(); err != nil {
		return fmt.Errorf("share the address of ClickHouse: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	address := ln.Addr().String()
	password, analyst := rand.Text(), rand.Text()
	u.clickhouse, err = process.Start(ctx, process.Config{
		Name: "clickhouse",
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, "clickhouse", "--path", path, "--nice", strconv.Itoa(beside),
				"--log-level", u.level.Level, "--log-format", u.level.Format)
			if runtime.GOOS != "linux" { // there OrphanSignal ends it
				cmd.Args = append(cmd.Args, "--exit-with-stdin")
			}
			cmd.Env = append(os.Environ(), "COMPANYSCORE_PASSWORD="+password, "COMPANYSCORE_ANALYST_PASSWORD="+analyst, listenFDs+"=1")
			cmd.ExtraFiles = []*os.File{u.chListener}
			return cmd
		},
		Stderr:       os.Stderr,
		OrphanSignal: syscall.SIGKILL, // loses nothing it has acknowledged
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
	u.cfg.stores.ClickHouseURL = fmt.Sprintf("http://companyscore:%s@%s/companyscore", password, address)
	u.analystURL = fmt.Sprintf("http://analyst:%s@%s/companyscore", analyst, address)
	return err
}

// leftoverMax bounds the wait for the end of an earlier `up`'s ClickHouse.
const leftoverMax = 35 * time.Second

// awaitUnused waits until no process has the data directory of the engine open. As
// this process holds the lock of all data, another one can only be left over.
func (u *upRun) awaitUnused(ctx context.Context, path string) error {
	waiting, cancel := context.WithTimeout(ctx, leftoverMax)
	defer cancel()
	for logged := false; ; logged = true {
		inUse, pid, err := embedded.InUse(path)
		if err != nil || !inUse {
			return err
		}
		if !logged {
			u.logger.Info("waiting for the ClickHouse of an earlier process to end", "directory", path, "pid", pid, "max", leftoverMax)
		}
		select {
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%s is open in process %d, which did not end within %s: end it", path, pid, leftoverMax)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startRole starts a role of this program as a process of its own, on the same stores.
// It works when it can, and nobody waits for it.
func (u *upRun) startRole(ctx context.Context, role string, args []string) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = slices.Concat([]string{role, "--log-level", u.level.Level, "--log-format", u.level.Format}, args)
	return process.Start(ctx, process.Config{
		Name: role,
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, args...)
			// URLs hold passwords, and arguments can be seen by everyone.
			cmd.Env = append(os.Environ(), "CLICKHOUSE_URL="+u.cfg.stores.ClickHouseURL, "REDIS_URL="+u.cfg.stores.RedisURL)
			cmd.Stderr = os.Stderr
			return cmd
		},
		Ready:  func(context.Context) error { return nil },
		Logger: u.logger,
	})
}

// stop ends what start has begun: first those who use the stores, all at once, as
// each may need most of the time there is; then the stores.
func (u *upRun) stop(ctx context.Context) error {
	ctx, cancel := cli.ShutdownContext(ctx)
	defer cancel()
	var users []func(context.Context) error
	if u.api != nil {
		users = append(users, u.api.stop)
	}
	for _, role := range []*process.Process{u.batch, u.worker} {
		if role != nil {
			users = append(users, role.Stop)
		}
	}
	faults := make([]error, len(users))
	var ending sync.WaitGroup
	for i, stop := range users {
		ending.Go(func() { faults[i] = stop(ctx) })
	}
	ending.Wait()
	if u.stores != nil {
		faults = append(faults, u.stores.close())
	}
	if u.clickhouse != nil {
		faults = append(faults, u.clickhouse.Stop(ctx))
	}
	if u.chListener != nil {
		faults = append(faults, u.chListener.Close())
	}
	if u.redis != nil {
		faults = append(faults, u.redis.Stop(ctx))
	}
	if u.lock != nil {
		if err := config.RemoveRuntime(u.cfg.stores.Data); !errors.Is(err, os.ErrNotExist) {
			faults = append(faults, err)
		}
		faults = append(faults, u.lock.Close())
	}
	return errors.Join(faults...)
}
