package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/cli"
	"companyscore/internal/config"
)

// listenFDs is the variable by which a parent says that it hands down a
// listening socket as file 3, as systemd does.
const listenFDs = "LISTEN_FDS"

func (c *program) clickhouse() *cobra.Command {
	var path, listen, password, analyst string
	var nice int
	var exitWithStdin bool
	cmd := &cobra.Command{
		Use:   "clickhouse",
		Short: "Run the embedded ClickHouse",
		Long: `Run the ClickHouse engine on one data directory and answer ClickHouse's HTTP protocol.
It has two users: companyscore, who may do everything, and analyst, who may read.
A password that is not given is made up and printed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.CheckAddress("--listen", listen); err != nil {
				return cli.Usage(err)
			}
			if err := checkNice(nice); err != nil {
				return cli.Usage(err)
			}
			if err := lowerPriority(nice); err != nil {
				return err
			}
			if exitWithStdin {
				go dieWith(cmd.InOrStdin())
			}
			ln, err := listener(listen)
			if err != nil {
				return err
			}
			for name, secret := range map[string]*string{"companyscore": &password, "analyst": &analyst} {
				if *secret == "" {
					*secret = rand.Text()
					fmt.Fprintf(cmd.OutOrStdout(), "password of %s: %s\n", name, *secret)
				}
			}
			server, err := embedded.New(cmd.Context(), embedded.Config{Path: path, Password: password, AnalystPassword: analyst, Logger: c.logger})
			if err != nil {
				return errors.Join(err, ln.Close())
			}
			failed := make(chan error, 1)
			go func() { failed <- server.Serve(ln) }()
			fmt.Fprintf(cmd.OutOrStdout(), "ready http://%s\n", ln.Addr())
			select {
			case err = <-failed:
			case <-cmd.Context().Done():
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), statementsMax)
			defer cancel()
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			}
			if unfinished := server.Shutdown(ctx); unfinished != nil {
				c.logger.Warn("ended with statements unfinished; acknowledged data are safe", "err", unfinished)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&path, "path", "./data/clickhouse", "data directory; one process at a time may use it")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8123", "address to answer on, unless a socket is handed down with "+listenFDs)
	addNiceFlag(cmd, &nice)
	cmd.Flags().BoolVar(&exitWithStdin, "exit-with-stdin", false, "end at once, as by SIGKILL, when standard input ends: a parent that keeps it open never leaves the engine behind")
	cmd.Flags().StringVar(&password, "password", "", "password of the user companyscore; better given by the variable, as arguments can be seen")
	cmd.Flags().StringVar(&analyst, "analyst-password", "", "password of the user analyst")
	return cmd
}

// statementsMax is how long statements of the service may go on when the engine is stopped.
const statementsMax = 2 * time.Second

// dieWith ends this process when r ends. The engine loses nothing it has acknowledged.
// A read may fail after SIGCONT although the parent lives, so it is repeated.
func dieWith(r io.Reader) {
	for {
		if _, err := io.Copy(io.Discard, r); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// listener takes over a socket that was handed down, or opens one.
func listener(address string) (net.Listener, error) {
	if os.Getenv(listenFDs) != "1" {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		return ln, nil
	}
	f := os.NewFile(3, "handed down socket")
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("take over the socket handed down with %s: %w", listenFDs, err)
	}
	return ln, nil
}

func (c *program) migrate() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the ClickHouse schema up to date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := openClickHouse(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer db.Close()
			applied, err := db.Migrate(cmd.Context())
			for _, name := range applied {
				fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
			}
			if err == nil && len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to apply")
			}
			return err
		},
	}
	where.Flags(cmd.Flags())
	return cmd
}

// hostOf is the address in a URL, without its password.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
