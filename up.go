package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"companyscore/batch"
	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/internal/redis"
	"companyscore/server/account"
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
}

func (c *cli) up() *cobra.Command {
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
			if err := errors.Join(err, cfg.sources.check(), cfg.schedules.Validate()); err != nil {
				return &usageError{err}
			}
			if cfg.sources.ranks == "" {
				cfg.sources.ranks = filepath.Join(cfg.stores.Data, "ranks")
			}
			u := &upRun{cfg: cfg, limits: limits, logger: c.logger, level: c.log, out: cmd.OutOrStdout()}
			err = u.start(cmd.Context())
			if err == nil {
				err = u.api.wait(cmd.Context())
				u.api = nil
			}
			return errors.Join(err, u.stop(cmd.Context()))
		},
	}
	cfg.api.flags(cmd)
	cmd.Flags().StringVar(&cfg.stores.Data, "data", config.DefaultData, "directory for all data")
	cmd.Flags().StringVar(&cfg.stores.ClickHouseURL, "clickhouse-url", "", "ClickHouse to use instead of an own one")
	cmd.Flags().StringVar(&cfg.stores.RedisURL, "redis-url", "", "Redis to use instead of an own one")
	cfg.sources.flags(cmd)
	addTiersFlag(cmd, &cfg.tiers)
	cfg.schedules.Flags(cmd.Flags())
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
	demo, err := u.demoAccount(ctx)
	if err != nil {
		return err
	}
	if u.batch, err = u.startRole(ctx, "batch", append([]string{"--nice", strconv.Itoa(beside)}, u.cfg.schedules.Args()...)); err != nil {
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
	u.welcome(base, demo)
	return nil
}

// beside is how far the embedded engine and the batch jobs yield the processor to the
// HTTP interface and the worker, so that no batch keeps answers from memory waiting.
const beside = 10

// startClickHouse starts the embedded engine in a process of its own. The
// listening socket stays ours and is handed to each new child.
func (u *upRun) startClickHouse(ctx context.Context) error {
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
			cmd := exec.Command(self, "clickhouse", "--path", filepath.Join(u.cfg.stores.Data, "clickhouse"),
				"--nice", strconv.Itoa(beside), "--log-level", u.level.Level, "--log-format", u.level.Format)
			cmd.Env = append(os.Environ(), "COMPANYSCORE_PASSWORD="+password, "COMPANYSCORE_ANALYST_PASSWORD="+analyst, listenFDs+"=1")
			cmd.ExtraFiles = []*os.File{u.chListener}
			cmd.Stderr = os.Stderr
			return cmd
		},
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

// stop ends what start has begun, last first.
func (u *upRun) stop(ctx context.Context) error {
	ctx, cancel := shutdownContext(ctx)
	defer cancel()
	var faults []error
	if u.api != nil {
		faults = append(faults, u.api.stop(ctx))
	}
	if u.batch != nil {
		faults = append(faults, u.batch.Stop(ctx))
	}
	if u.worker != nil {
		faults = append(faults, u.worker.Stop(ctx))
	}
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

// demo is an account to try things with. Its keys are kept beside the data, so
// that every start shows the same.
type demo struct {
	AccountID string       `json:"account_id"`
	Name      string       `json:"name"`
	Tier      account.Tier `json:"tier"`
	LiveKey   string       `json:"live_key"`
	TestKey   string       `json:"test_key"`
}

func (u *upRun) demoAccount(ctx context.Context) (demo, error) {
	path := filepath.Join(u.cfg.stores.Data, "demo.json")
	accounts := clickhouse.NewAccounts(u.stores.db)
	var d demo
	if text, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(text, &d); err != nil {
			return demo{}, fmt.Errorf("read %s: %w: remove the file to get a new demo account", path, err)
		}
		_, err := accounts.Account(ctx, d.AccountID)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, account.ErrNotFound) {
			return demo{}, err
		}
		// The file outlived the store: make a new account.
	}
	now := time.Now()
	d = demo{AccountID: uuid.Must(uuid.NewV7()).String(), Name: "demo", Tier: account.Starter}
	live, liveText := account.NewKey(d.AccountID, "demo live", account.Live, now)
	test, testText := account.NewKey(d.AccountID, "demo test", account.Test, now)
	d.LiveKey, d.TestKey = liveText, testText
	if err := accounts.Put(ctx, account.Account{ID: d.AccountID, Name: d.Name, Tier: d.Tier, CreatedAt: now}); err != nil {
		return demo{}, err
	}
	for _, key := range []account.Key{live, test} {
		if err := accounts.PutKey(ctx, key); err != nil {
			return demo{}, err
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return demo{}, err
	}
	return d, os.WriteFile(path, append(text, '\n'), 0o600)
}

func (u *upRun) welcome(base string, d demo) {
	fmt.Fprintf(u.out, `
  api          %[1]s
  clickhouse   %[2]s   (user analyst; or: companyscore sql "SELECT 1")
  data         %[3]s

  demo account %[4]s (%[5]s)
  live key     %[6]s
  test key     %[7]s

Try it:

  curl -s %[1]s/v1/score/acme.test -H 'X-API-Key: %[7]s'

  curl -s %[1]s/v1/score -H 'X-API-Key: %[6]s' -H 'Content-Type: application/json' -d '{"domain": "example.com"}'

  curl -s --retry 5 --retry-all-errors --fail %[1]s/v1/score/example.com -H 'X-API-Key: %[6]s'

Ctrl-C stops everything; the data stays.
`, base, hostOf(u.cfg.stores.ClickHouseURL), u.cfg.stores.Data, d.AccountID, d.Tier, d.LiveKey, d.TestKey)
}
