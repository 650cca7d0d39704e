package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/config"
)

// listenFDs is the variable by which a parent says that it hands down a
// listening socket as file 3, as systemd does.
const listenFDs = "LISTEN_FDS"

func (c *cli) clickhouse() *cobra.Command {
	var path, listen, password, analyst string
	var nice int
	cmd := &cobra.Command{
		Use:   "clickhouse",
		Short: "Run the embedded ClickHouse",
		Long: `Run the ClickHouse engine on one data directory and answer ClickHouse's HTTP protocol.
It has two users: companyscore, who may do everything, and analyst, who may read.
A password that is not given is made up and printed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.CheckAddress("--listen", listen); err != nil {
				return &usageError{err}
			}
			if err := checkNice(nice); err != nil {
				return &usageError{err}
			}
			if err := lowerPriority(nice); err != nil {
				return err
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
			ctx, cancel := shutdownContext(cmd.Context())
			defer cancel()
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			}
			return errors.Join(err, server.Shutdown(ctx))
		},
	}
	cmd.Flags().StringVar(&path, "path", "./data/clickhouse", "data directory; one process at a time may use it")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8123", "address to answer on, unless a socket is handed down with "+listenFDs)
	addNiceFlag(cmd, &nice)
	cmd.Flags().StringVar(&password, "password", "", "password of the user companyscore; better given by the variable, as arguments can be seen")
	cmd.Flags().StringVar(&analyst, "analyst-password", "", "password of the user analyst")
	return cmd
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

func (c *cli) migrate() *cobra.Command {
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
