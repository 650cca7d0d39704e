package cmd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/bench"
	"companyscore/bench/peer"
	"companyscore/bench/processor"
	"companyscore/bench/report"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/internal/redis"
	"companyscore/sql"
	"companyscore/up"
)

// peersFlags are the flags of `bench peers`.
type peersFlags struct {
	data        string
	key         string
	domain      string
	companies   string
	rounds      int
	each        time.Duration
	connections int
	apart       bool
	jsonTo      string
}

func (c *benchCommands) peers() *cobra.Command {
	var f peersFlags
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Compare the hot read with other servers that send the same bytes",
		Long: `Compare the hot read with other servers that send the same bytes, in one run and in turns:
a bare Fiber handler, net/http, nginx with the answer in its configuration, nginx as a
cache in front of Fiber, Fiber with Redis, and ClickHouse over HTTP. Without --data it
starts an up of its own in a temporary directory. Exits 1 when the hot read is below 0.90
of bare Fiber or below 1.1 times the cache of nginx, by answers or by CPU for each.

Servers have one processor and the generator another, or what is measured would be how the
two share them. With --apart=false, or with the up of --data, all run where they like.`,
		Example: "  companyscore bench peers --rounds 5 --json peers.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.rounds < 1 || f.rounds > 1000 || f.each < 100*time.Millisecond || f.connections < 1 {
				return cli.Usage(errors.New("use 1 to 1000 rounds, at least 100ms for --each, and at least one connection"))
			}
			if f.data != "" || len(processor.Allowed()) < 2 {
				f.apart = false
			}
			dir, err := os.MkdirTemp("", "companyscore-peers-")
			if err != nil {
				return err
			}
			run := &peersRun{commands: c, flags: f, dir: dir, out: cmd.ErrOrStderr()}
			defer run.close(cmd.Context())
			result, err := run.compare(cmd.Context())
			if err != nil {
				return err
			}
			switch f.jsonTo {
			case "":
				err = result.Text(cmd.OutOrStdout())
			case "-":
				err = result.JSON(cmd.OutOrStdout())
			default:
				err = errors.Join(report.WriteFile(f.jsonTo, result.JSON), result.Text(cmd.OutOrStdout()))
			}
			if err == nil && !result.Met() {
				err = cli.ErrReported
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "data directory of a running up (default: start one)")
	flags.StringVar(&f.key, "key", "", "API key (default: of its demo account)")
	flags.StringVar(&f.domain, "domain", "apple.com", "domain to read; it is scored first if necessary")
	flags.StringVar(&f.companies, "companies", filepath.Join("examples", "companies.csv"),
		"facts that a started up imports, if the file exists")
	flags.IntVar(&f.rounds, "rounds", 11, "number of rounds; prefer many short ones on a shared machine")
	flags.DurationVar(&f.each, "each", 1200*time.Millisecond, "duration of the measurement of each server in a round")
	flags.IntVar(&f.connections, "connections", 64, "number of connections")
	flags.BoolVar(&f.apart, "apart", true, "pin servers and generator to different processors, if possible")
	flags.StringVar(&f.jsonTo, "json", "", "also write the result as JSON to this file; - for standard output, without text")
	return cmd
}

// peerServer runs one of the compared servers in its own process.
func (c *benchCommands) peerServer() *cobra.Command {
	var answerFile, redisURL string
	cmd := &cobra.Command{
		Use: "peer-server KIND", Short: "Run a server of bench peers", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := peer.ReadAnswer(answerFile)
			if err != nil {
				return err
			}
			var client goredis.UniversalClient
			if args[0] == peer.KindRedis {
				if client, err = redis.Open(cmd.Context(), redisURL); err != nil {
					return err
				}
				defer client.Close()
			}
			return peer.Serve(cmd.Context(), args[0], answer, client, func(address string) {
				fmt.Fprintf(cmd.OutOrStdout(), "ready http://%s\n", address)
			})
		},
	}
	cmd.Flags().StringVar(&answerFile, "answer", "", "file of the answer")
	cmd.Flags().StringVar(&redisURL, "redis-url", "", "Redis to read from")
	return cmd
}

// peersRun starts and stops the compared servers.
type peersRun struct {
	commands *benchCommands
	flags    peersFlags
	dir      string
	out      io.Writer
	children []*process.Process
}

// close stops the servers in reverse order and removes their directory.
func (r *peersRun) close(ctx context.Context) {
	for i := len(r.children) - 1; i >= 0; i-- {
		stopChild(ctx, r.children[i])
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.commands.logger.Warn("temporary directory is left", "err", err)
	}
}

// start starts this program as a server and returns its pid and address.
func (r *peersRun) start(ctx context.Context, args ...string) (int, string, error) {
	child, pid, address, err := startChild(ctx, r.commands, args...)
	if err == nil {
		r.children = append(r.children, child)
	}
	return pid, address, err
}

// call runs this program and waits for its end.
func (r *peersRun) call(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if text, err := exec.CommandContext(ctx, self, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("companyscore %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

func (r *peersRun) compare(ctx context.Context) (*peer.Result, error) {
	env := bench.Environment(commandLine(), nil)
	processors := processor.Allowed()
	if r.flags.apart {
		err := processor.KeepProcess(processors[0]) // and its child processes
		if errors.Is(err, errors.ErrUnsupported) {
			r.flags.apart = false
		} else if err != nil {
			return nil, err
		}
	}
	data := r.flags.data
	if data == "" {
		data = filepath.Join(r.dir, "data")
		fmt.Fprintln(r.out, "starting an up of its own")
		if _, _, err := r.start(ctx, "up", "--data", data, "--listen", "127.0.0.1:0", "--sources", "facts", "--log-level",
			"error"); err != nil {
			return nil, err
		}
		if _, err := os.Stat(r.flags.companies); err == nil {
			if err := r.call(ctx, "facts", "import", "--quiet", r.flags.companies, "--data", data); err != nil {
				return nil, err
			}
		}
	}
	rt, err := config.ReadRuntime(data)
	if err != nil {
		return nil, err
	}
	if err := r.call(ctx, "run", "start", r.flags.domain, "--wait", "--quiet", "--data", data); err != nil {
		return nil, err
	}
	key := r.flags.key
	if key == "" {
		d, err := up.ReadDemo(data)
		if err != nil {
			return nil, fmt.Errorf("read the key of the demo account: %w: give one with --key", err)
		}
		key = d.LiveKey
	}
	maps.Copy(env.Versions, peerVersions(rt.PID))
	target := peer.Route + r.flags.domain
	var answer peer.Answer
	for range 2 { // the second answer comes from memory
		if answer, err = peer.Fetch(ctx, rt.BaseURL+target, key); err != nil {
			return nil, err
		}
	}
	cfg := peer.Config{
		Rounds: r.flags.rounds, Each: r.flags.each, Connections: r.flags.connections, Seed: 1,
		Progress: func(round int, name string) {
			fmt.Fprintf(r.out, "round %d of %d: %s\n", round, r.flags.rounds, name)
		},
	}
	if r.flags.apart {
		cfg.Processors = processors[len(processors)-1:]
	}
	if err := r.collect(ctx, &cfg, rt, target, key, answer); err != nil {
		return nil, err
	}
	result, err := peer.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	env.LoadAfter = bench.LoadAverage()
	result.Environment = env
	return result, nil
}

// peerVersions returns the versions of the compared servers.
func peerVersions(up int) map[string]string {
	versions := make(map[string]string)
	for name, version := range map[string]string{
		"server": bench.ProcessVersion(up), "nginx": bench.ToolVersion("nginx", "-v"), "redis-server": bench.ToolVersion("redis-server",
			"--version"),
	} {
		if version != "" {
			versions[name] = version
		}
	}
	return versions
}

// collect starts all peers. The service is the first.
func (r *peersRun) collect(ctx context.Context, cfg *peer.Config, rt *config.Runtime, target, key string, answer peer.Answer) error {
	answerFile := filepath.Join(r.dir, "answer.json")
	if err := report.WriteFile(answerFile, func(w io.Writer) error { return json.NewEncoder(w).Encode(answer) }); err != nil {
		return err
	}
	header := map[string]string{"X-API-Key": key}
	add := func(name, address string, serving, besides []int) {
		cfg.Peers = append(cfg.Peers, peer.Peer{Name: name, Address: address, Target: target, Header: header, Serving: serving,
			Besides: besides})
	}
	var besides []int
	for _, pid := range rt.Processes {
		besides = append(besides, pid)
	}
	add(peer.Ours, strings.TrimPrefix(rt.BaseURL, "http://"), []int{rt.PID}, besides)
	fiberPID, fiberAddress, err := r.start(ctx, "bench", "peer-server", peer.KindFiber, "--answer", answerFile)
	if err != nil {
		return err
	}
	add(peer.BareFiber, fiberAddress, []int{fiberPID}, nil)
	if err := r.addNginx(ctx, cfg, add, fiberAddress, fiberPID, answer); err != nil {
		return err
	}
	pid, address, err := r.start(ctx, "bench", "peer-server", peer.KindNetHTTP, "--answer", answerFile)
	if err != nil {
		return err
	}
	add("net/http", address, []int{pid}, nil)
	if err := r.addRedis(ctx, cfg, add, rt, answer, answerFile); err != nil {
		return err
	}
	if err := r.addClickHouse(cfg, rt); err != nil {
		return err
	}
	pid, address, err = r.start(ctx, "bench", "null-server")
	if err != nil {
		return err
	}
	add("nothing (what the generator can do)", address, []int{pid}, nil)
	return nil
}

type addPeer func(name, address string, serving, besides []int)

// addNginx adds all kinds of nginx if it is installed.
func (r *peersRun) addNginx(ctx context.Context, cfg *peer.Config, add addPeer, origin string, originPID int, answer peer.Answer) error {
	for i, kind := range []struct {
		name, origin string
		keepOpen     bool
	}{{peer.ProxyCache, origin, false}, {peer.OpenCache, origin, true}, {"nginx return 200", "", false}} {
		dir := filepath.Join(r.dir, fmt.Sprintf("nginx-%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		nginx, err := peer.NewNginx(dir, kind.origin, kind.keepOpen, answer, min(runtime.GOMAXPROCS(0), len(processor.Allowed())))
		if err != nil {
			cfg.Skipped = append(cfg.Skipped, fmt.Sprintf("%s: %v", kind.name, err))
			continue
		}
		child, err := process.Start(ctx, process.Config{Name: "nginx", Command: nginx.Command, Ready: benchAnswers(nginx.Address),
			Logger: r.commands.logger})
		if err != nil {
			return err
		}
		r.children = append(r.children, child)
		var besides []int
		if kind.origin != "" {
			besides = []int{originPID}
		}
		add(kind.name, nginx.Address, append(bench.Children(child.PID()), child.PID()), besides)
	}
	return nil
}

// addRedis adds Fiber with Redis.
func (r *peersRun) addRedis(ctx context.Context, cfg *peer.Config, add addPeer, rt *config.Runtime, answer peer.Answer,
	answerFile string) error {
	pid, ok := rt.Processes["redis-server"]
	if !ok {
		cfg.Skipped = append(cfg.Skipped, "Fiber with Redis: the up uses a Redis of yours")
		return nil
	}
	client, err := redis.Open(ctx, rt.RedisURL)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := peer.PutBody(ctx, client, r.flags.domain, answer); err != nil {
		return err
	}
	serving, address, err := r.start(ctx, "bench", "peer-server", peer.KindRedis, "--answer", answerFile, "--redis-url", rt.RedisURL)
	if err != nil {
		return err
	}
	add("Fiber with Redis", address, []int{serving, pid}, nil)
	return nil
}

// addClickHouse adds the query of an uncached read.
func (r *peersRun) addClickHouse(cfg *peer.Config, rt *config.Runtime) error {
	pid, ok := rt.Processes["clickhouse"]
	if !ok {
		cfg.Skipped = append(cfg.Skipped, "ClickHouse over HTTP: the up uses a ClickHouse of yours")
		return nil
	}
	u, err := url.Parse(rt.ClickHouseURL)
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	query := url.Values{
		"database": {sql.Private(strings.Trim(u.Path, "/"))}, "default_format": {"JSONEachRow"}, "query": {sql.Query("score_heads")},
		"param_domains": {"['" + r.flags.domain + "']"},
	}
	cfg.Peers = append(cfg.Peers, peer.Peer{
		Name: "ClickHouse over HTTP", Address: u.Host, Target: "/?" + query.Encode(), Serving: []int{pid},
		Header: map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))},
	})
	return nil
}

// benchAnswers waits until a server accepts connections.
func benchAnswers(address string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}
